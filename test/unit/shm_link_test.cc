// The short ways to store a message in a mailbox leave there what the general one does.
#include "fabric/shm/shm_link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "mailbox/reader.h"

namespace velo::fabric::shm {
namespace {

constexpr std::uint32_t kSlots = 30;
constexpr wire::Framing kOneTrain{wire::kPayloadBytes + 1, 140, 16};

// A mailbox with a link to it, of which `used` slots have been used.
class Box {
 public:
    explicit Box(std::uint32_t used) : link_({&pointers_, slots_.data(), kSlots}, 7) {
        (void)mailbox::Writer<>(&pointers_, slots_.data(), kSlots).reserve(used);
    }
    ShmLink& link() { return link_; }
    std::vector<std::byte> bytes() const {
        std::vector<std::byte> all(sizeof(mailbox::Slot<>) * kSlots);
        std::memcpy(all.data(), static_cast<const void*>(slots_.data()), all.size());
        return all;
    }
    std::uint64_t written() const { return pointers_.write; }

 private:
    mailbox::Pointers<> pointers_{};
    std::vector<mailbox::Slot<>> slots_ = std::vector<mailbox::Slot<>>(kSlots);
    ShmLink link_;
};

// Each part in memory of its own of exactly that size, so that a sanitizer sees what is read beyond it.
struct Message {
    Message(std::size_t head, std::size_t total)
        : first(new std::byte[head]), second(new std::byte[total - head]), view{} {
        for (std::size_t at = 0; at < total; ++at)
            (at < head ? first[at] : second[at - head]) = static_cast<std::byte>(1 + at % 251);
        view = {{first.get(), second.get()}, {head, total - head}};
    }
    std::unique_ptr<std::byte[]> first, second;
    MessageView view;
};

TEST(ShmLinkTest, a_plain_run_is_stored_as_any_other_wherever_it_begins) {
    for (std::size_t head : {0U, 1U, 9U, 14U, 16U, 17U, 24U, 25U, 40U, 55U, 56U}) {
        for (std::size_t total = wire::kPayloadBytes + 1; total <= wire::run_capacity(24); total += 3) {
            const Message message(head, total);
            const std::uint32_t packets = wire::packets_in_run(total);
            for (std::uint32_t used : {0U, kSlots - packets, kSlots - 1, 2 * kSlots + 3}) {
                const bool rested = used == 0;
                Box plain(used), general(used);
                plain.link().carry_plain_run(message.view, 9, packets, rested);
                (void)general.link().carry({message.view, 0, packets, wire::PacketKind::kData, 9, 0, 0, true,
                                            true, rested, false, kOneTrain});
                ASSERT_EQ(plain.bytes(), general.bytes()) << head << " of " << total << " at " << used;
                ASSERT_EQ(plain.written(), general.written());
            }
        }
    }
}

TEST(ShmLinkTest, a_plain_packet_is_stored_as_any_other) {
    for (std::size_t head = 0; head <= wire::kPayloadBytes; ++head) {
        for (std::size_t total = head; total <= wire::kPayloadBytes; ++total) {
            const Message message(head, total);
            Box plain(kSlots - 1), general(kSlots - 1);
            plain.link().carry_plain_packet(message.view, 200, total % 2 == 0);
            (void)general.link().carry({message.view, 0, 1, wire::PacketKind::kData, 200, 0, 0, true, true,
                                        false, false, kOneTrain});
            ASSERT_EQ(plain.bytes(), general.bytes()) << head << " of " << total;
        }
    }
}

}  // namespace
}  // namespace velo::fabric::shm
