// The trace file: a header and records of fixed size. design/trace.md is the description for readers; what
// changes here changes there, and in contrib/trace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::trace {

inline constexpr char kMagic[8] = {'V', 'E', 'L', 'O', 'T', 'R', 'A', 'C'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;
// No peer, or a count that the policy does not keep.
inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class Kind : std::uint16_t {
    kPeer = 1,
    kSend = 2,
    kCreditSent = 3,
    kCreditReceived = 4,
    kPiggybackReceived = 5,
    kRequestSent = 6,
    kRequestReceived = 7,
    kResponseSent = 8,
    kResponseReceived = 9,
    kContactSent = 10,
    kContactReceived = 11,
    kStallBegin = 12,
    kStallEnd = 13,
    kSteal = 14,
    kIntended = 15,
    kRefused = 16,
    kGrown = 17,
    kMailbox = 18,
    kStallWarning = 19,
    kLimit = 20,
    kEnd = 21,
    kBoardBegin = 22,
    kBoardWait = 23,
    kBoardGoOn = 24,
    kBoardEnd = 25,
};

struct FileHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t header_bytes;
    std::uint32_t record_bytes;
    std::uint32_t byte_order;
    std::uint64_t process_name;
    std::uint64_t realtime_ns;
    std::uint64_t monotonic_ns;
    std::uint32_t pid;
    std::uint32_t peers;
    std::uint32_t spare_peers;
    std::uint32_t slots_per_peer;
    std::uint32_t credit_slots;
    std::uint32_t mailbox_slots;
    std::uint32_t piggyback;
    std::uint32_t zero;
    char policy[32];
    char host[64];
    char reserved[80];
};
static_assert(sizeof(FileHeader) == 256);
static_assert(offsetof(FileHeader, pid) == 48 && offsetof(FileHeader, policy) == 80);

struct Record {
    std::uint64_t time_ns;
    Kind kind;
    std::uint16_t zero;
    std::uint32_t peer;
    std::uint32_t count;
    std::uint32_t credits;
    std::uint32_t held;
    std::uint32_t extra;
};
static_assert(sizeof(Record) == 32);

}  // namespace velo::trace
