// Packets of one message that leave a process back to back travel as one train, which is one event per hop.
// The train is whole on every link: it does not mix with the packets of another. Machine::max_train shortens
// trains, down to one packet, where that matters.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"

namespace velo::sim {

inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class TrainKind : std::uint8_t {
    kData,    // DATA packets of one message
    kCredit,  // the packets of the policies, one each
    kRequest,
    kResponse,
    kLocal,       // a message inside a node by LiMIC
    kRmaRequest,  // get request, served by the source's network interface
    kRmaData,     // its answer
};

struct Train {
    std::uint32_t from = 0;  // processes
    std::uint32_t to = 0;
    std::uint32_t count = 0;       // packets
    std::uint32_t value = 0;       // credits of a CREDIT, a RESP, or piggybacked; bytes of kLocal and RMA
    std::uint32_t rendezvous = 0;  // bytes that a rendezvous header announces
    std::uint32_t node = 0;        // where the head is
    std::uint32_t next = kNone;
    TrainKind kind = TrainKind::kData;
    bool last = false;  // ends a message
    std::uint16_t unused = 0;
    Time done = 0;  // the last packet is in the mailbox

    bool takes_slot() const { return kind <= TrainKind::kResponse; }
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
