// Broadcasts of a process to all others of its group, by multicast: a member of the reliable core
// (design/multicast.md) on sockets. What comes before it is wanted is kept, in bounded memory; what is for
// somebody who waits is always taken, so that nothing that is kept can hold it up. Whether a broadcast goes
// this way its source alone decides, each time: whoever waits for it has to take it from elsewhere, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/multicast/member.h"
#include "collectives/udp/socket.h"
#include "types/goal.h"

namespace velo::fabric::udp {

struct ChannelConfig {
    Key key{};
    std::uint32_t me = 0;
    bool attached = false;  // `me` leads this process's node: it hears what that one hears, and says nothing
    std::vector<in_addr_t> members;    // the addresses of their interfaces
    std::vector<std::uint32_t> ranks;  // who they are
    std::uint32_t mtu = 1500;          // the least of them
    multicast::Scheme scheme = multicast::Scheme::kCoroot;
    std::uint32_t window = 128;
    std::uint32_t ack_every = 0;            // 0: a quarter of the window
    std::optional<std::uint32_t> co_roots;  // all others at most; nothing: by the number of members
    // Of what a receive buffer holds, among all members; a broadcast of its own each may send in any case.
    multicast::Shares shares = multicast::Shares::kDynamic;
    std::uint32_t receive_bytes = 4U << 20;  // of a receive buffer, asked for: what the system permits
    std::uint64_t stored_bytes = 4U << 20;   // of what nobody has asked for, at most
    // Of a member that does not answer or get on, until it is told; 0: never.
    std::uint64_t silence_ns = 10'000'000'000;
    void (*log)(void* context, int level, const char* text) = nullptr;
    void* context = nullptr;
};

// A broadcast: a group of processes, the number of its run. No other group of the job ever has the name of
// one: datagrams of a group that is no more may still come, and are nobody's.
struct Name {
    std::uint64_t run = 0;
    std::uint64_t group = 0;

    friend bool operator==(const Name&, const Name&) = default;
};

class Channel final : private multicast::Carrier {
 public:
    // Throws Failure.
    explicit Channel(const ChannelConfig& config);

    // To all others. False: it has to go another way. The data may be overwritten when this returns.
    bool send(const Name& name, const void* data, std::size_t bytes);
    // So many bytes have no room now, and may soon have some, as the others get on; poll() until then.
    bool fills_up(std::size_t bytes);

    // So many bytes of that broadcast are wanted there, and told to `who` in arrived().
    void want(const Name& name, void* into, std::size_t bytes, void* who);
    // Attached: that broadcast is not wanted from here, nor are older ones of the group that nobody waits
    // for.
    void pass(const Name& name);
    // That is not to be told to `who` any more.
    void forget(const Name& name, const void* who);
    // What has come for nobody who waits.
    void forget_group(std::uint64_t group);
    struct Arrived {
        void* who;
        bool fits;
    };
    // Whoever takes them empties it.
    std::vector<Arrived>& arrived() { return arrived_; }

    void poll();

    // A broadcast of that group, of this run or an older one, has not come everywhere yet.
    bool owes(std::uint64_t group, std::uint64_t run);

    // All hear this process, as far as is known.
    bool usable() const { return state_ == State::kGood; }
    // Not all hear each other: for good.
    bool has_given_up() const { return state_ == State::kBad; }
    velo_multicast_state observe() const;
    const multicast::Counters& reliability() const { return member_.counters(); }

 private:
    enum class State : std::uint8_t { kUntried, kCalling, kGood, kBad };
    struct Peer {
        in_addr_t address;
        bool heard = false;         // its call, here
        bool hears = false;         // ours, there
        std::uint64_t deaf_ns = 0;  // since when it says that it does not; 0: it has not said so
    };
    struct Slot {
        Content content;
        std::uint32_t bytes = 0;
        std::byte* data = nullptr;
    };
    struct Ring {
        std::vector<Slot> slots;  // none: not used yet
        std::unique_ptr<std::byte[]> data;
    };
    struct Entry {
        std::byte* into = nullptr;
        std::unique_ptr<std::byte[]> own;  // nobody has asked for it yet
        std::uint32_t total = 0;           // 0: nothing has come
        std::uint32_t filled = 0;
        std::uint64_t capacity = 0;
        void* who = nullptr;  // nullptr: nobody has asked
    };
    struct Hash {
        std::size_t operator()(const Name& name) const {
            return (name.run << 16 ^ name.group) * 0x9e3779b97f4a7c15;
        }
    };
    using Entries = std::unordered_map<Name, Entry, Hash>;

    // multicast::Carrier
    void multicast(const multicast::Datagram& datagram) override;
    void send(std::uint32_t to, const multicast::Datagram& datagram) override;
    void keep(std::uint32_t stream, multicast::Sequence sequence) override;
    void deliver(std::uint32_t, multicast::Sequence) override {}

    std::uint32_t datagrams_of(std::size_t bytes) const;
    void look_at_room();
    Slot& slot(std::uint32_t stream, multicast::Sequence sequence);
    void put(std::uint32_t stream, multicast::Sequence sequence, const Content& content,
             std::span<const std::byte> payload);
    void post(in_addr_t to, const multicast::Datagram& datagram);
    void take(const Content& content, std::span<const std::byte> payload);
    bool is_welcome(const Content& content, std::span<const std::byte> payload);
    void finish(Entries::iterator at);
    void forget(Entries::iterator at);
    void hear(std::span<const std::byte> bytes);
    void hear_call(const Letter& letter);
    void say(Call call, in_addr_t to, bool heard = false);
    void call();
    void complain();
    bool is_calm() const;
    bool is_long(std::uint64_t ns) const { return config_.silence_ns > 0 && ns >= config_.silence_ns; }
    std::string name_of(std::uint32_t member) const;
    void log(int level, const std::string& text) const;

    // Of the scheme: basic has one of 1, whatever was asked for.
    std::uint32_t window() const { return member_.config().window; }

    const ChannelConfig config_;
    const Sealer sealer_;
    const std::uint32_t payload_;  // bytes of a broadcast in a datagram, at most
    Socket socket_;
    multicast::Member member_;
    std::vector<Peer> peers_;
    std::vector<Ring> rings_;    // by stream
    std::vector<bool> repairs_;  // by stream: this member may be asked for its data
    Entries entries_;
    std::unordered_map<std::uint64_t, std::uint64_t>
        newest_;  // attached: run of a group that was wanted or passed
    std::uint64_t stored_ = 0, wanted_ = 0;
    std::vector<Arrived> arrived_;
    const Letter* arriving_ = nullptr;
    State state_ = State::kUntried;
    std::uint32_t answers_ = 0;  // peers that hear this process
    std::uint64_t now_ns_ = 0, due_ns_ = multicast::kNever;
    std::uint64_t began_calling_ns_ = 0, call_ns_ = 0, call_every_ns_ = 0;
    std::uint64_t full_since_ns_ = 0;  // without anybody having got on
    multicast::Sequence freed_ = 0;
    unsigned full_since_look_ = 0;
    bool is_full_ = false;
    bool told_silence_ = false, told_stall_ = false;
    unsigned looks_ = 0;
    bool look_now_ = false;  // something has just become wanted
    bool wants_room_ = false;
    bool came_here_ = false;  // what was wanted last, and not as a message
    velo_multicast_state counters_{};
};

}  // namespace velo::fabric::udp
