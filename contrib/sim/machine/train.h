// Packets of one message that leave a process back to back travel as one train, which is one event per hop.
// The train is whole on every link: it does not mix with the packets of another. Machine::max_train shortens
// trains, down to one packet, where that matters.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"
#include "wire/packet.h"

namespace velo::sim {

inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class TrainKind : std::uint8_t {
    kData,    // DATA packets of one message
    kCredit,  // the packets of the policies, one each
    kRequest,
    kResponse,
    kHello,
    kBye,
    kRelease,
    kLeave,
    kResentData,  // DATA that a mailbox has refused, sent again by the interface
    kDoorbell,    // a HELLO outside of the mailbox
    kLocal,       // a message inside a node by LiMIC
    kRmaRequest,  // get request, served by the source's network interface
    kRmaData,     // its answer
    kReferred,    // the data of a REF, which a get has brought
    kEnclosed,    // a message in a batch, or its end
};

// The trains that are control packets.
inline constexpr struct {
    TrainKind train;
    wire::PacketKind packet;
} kControlTrains[] = {
    {TrainKind::kCredit, wire::PacketKind::kCredit},     {TrainKind::kRequest, wire::PacketKind::kRequest},
    {TrainKind::kResponse, wire::PacketKind::kResponse}, {TrainKind::kHello, wire::PacketKind::kHello},
    {TrainKind::kBye, wire::PacketKind::kBye},           {TrainKind::kRelease, wire::PacketKind::kRelease},
    {TrainKind::kLeave, wire::PacketKind::kLeave},       {TrainKind::kDoorbell, wire::PacketKind::kHello},
};
inline wire::PacketKind packet_kind(TrainKind kind) {
    for (const auto& control : kControlTrains)
        if (control.train == kind) return control.packet;
    return wire::PacketKind::kData;
}
inline TrainKind train_kind(wire::PacketKind kind) {
    for (const auto& control : kControlTrains)
        if (control.packet == kind) return control.train;
    return TrainKind::kData;
}

struct Train {
    std::uint32_t from = 0;  // processes
    std::uint32_t to = 0;
    std::uint32_t count = 0;        // packets
    std::uint32_t value = 0;        // credits of a CREDIT, a RESP, or piggybacked; bytes of kLocal and RMA
    std::uint32_t sequence = 0;     // of a packet in its pair, where a mailbox may refuse it
    std::uint32_t node = 0;         // where the head is
    std::uint32_t chunk = kNone;    // of a REF and of what fetches its data: the place in the outbox
    std::uint32_t bytes = 0;        // of data there
    std::uint32_t landing = kNone;  // of what fetches it: where the receiver notes that it is under way
    std::uint32_t next = kNone;
    TrainKind kind = TrainKind::kData;
    bool last = false;        // ends a message
    bool batch = false;       // a REF to one
    bool backlogged = false;  // its first packet has waited for a credit, and says so
    Time done = 0;            // the last packet is in the mailbox

    bool takes_slot() const { return kind <= TrainKind::kResentData; }
    bool is_data() const { return kind == TrainKind::kData || kind == TrainKind::kResentData; }
};

class TrainPool {
 public:
    Train& operator[](std::uint32_t index) { return trains_[index]; }
    std::uint32_t add(const Train& train) {
        if (free_ == kNone) {
            trains_.push_back(train);
            return static_cast<std::uint32_t>(trains_.size() - 1);
        }
        const std::uint32_t index = free_;
        free_ = trains_[index].next;
        trains_[index] = train;
        return index;
    }
    void remove(std::uint32_t index) {
        trains_[index].next = free_;
        free_ = index;
    }
    std::size_t bytes() const { return trains_.capacity() * sizeof(Train); }

 private:
    std::vector<Train> trains_;
    std::uint32_t free_ = kNone;
};

// First in, first out, linked through the trains themselves.
struct TrainQueue {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;

    bool empty() const { return head == kNone; }
    void push(TrainPool& pool, std::uint32_t train) {
        pool[train].next = kNone;
        (tail == kNone ? head : pool[tail].next) = train;
        tail = train;
    }
    std::uint32_t pop(TrainPool& pool) {
        const std::uint32_t train = head;
        head = pool[train].next;
        if (head == kNone) tail = kNone;
        return train;
    }
};

}  // namespace velo::sim
