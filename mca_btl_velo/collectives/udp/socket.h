// Datagrams of a group: one socket for what all get, one for what goes to one, and out. Nothing waits: what
// cannot be sent now is lost, as on the way.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collectives/udp/place.h"
#include "collectives/udp/seal.h"

namespace velo::fabric::udp {

class FileDescriptor {
 public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    ~FileDescriptor();
    FileDescriptor(const FileDescriptor&) = delete;
    int get() const { return fd_; }

 private:
    int fd_;
};

class Socket {
 public:
    // Of IP and UDP, in front of each datagram.
    static constexpr std::uint32_t kProtocolBytes = 28;

    // Throws Failure.
    // `listens`: beside another one of that address, to what goes to all.
    Socket(in_addr_t own, const Place& place, bool listens, std::uint32_t receive_bytes);

    in_addr_t group() const { return place_.group; }
    // Goes with flush(), or before. The payload has to stay until then.
    void send(in_addr_t to, const Sealer& sealer, const Letter& letter);
    void flush();

    // Whatever is there of what goes to all, in bounded amounts: `take(bytes)` of each datagram. How many.
    template <typename Take>
    std::size_t receive_from_all(Take take) {
        return receive(all_.get(), take);
    }
    // Of what goes to this process alone.
    template <typename Take>
    std::size_t receive_own(Take take) {
        return receive(ours_.get(), take);
    }

    // What waits to be received of what goes to all, at most, by the kernel's account.
    std::uint32_t receive_bytes() const;

    std::uint64_t system_calls() const { return system_calls_; }
    std::uint64_t unsent() const { return unsent_; }

 private:
    static constexpr std::size_t kBatch = 48, kBuffers = 4, kBufferBytes = 65536;
    static constexpr unsigned kRounds = 16;

    struct Outgoing {
        in_addr_t to;
        std::array<std::byte, kMostHeaderBytes> header;
        std::array<iovec, 2> parts;

        std::size_t bytes() const { return parts[0].iov_len + parts[1].iov_len; }
    };

    template <typename Take>
    std::size_t receive(int fd, Take take) {
        std::size_t count = 0, filled = kBuffers;
        for (unsigned round = 0; round < kRounds && filled == kBuffers; ++round) {
            filled = fill(fd);
            for (std::size_t i = 0; i < filled; ++i) {
                const std::span<const std::byte> all = filled_[i].bytes;
                for (std::size_t at = 0; at < all.size(); at += filled_[i].each, ++count)
                    take(all.subspan(at, std::min(filled_[i].each, all.size() - at)));
            }
        }
        return count;
    }
    std::size_t fill(int fd);
    std::size_t alike(std::size_t first) const;

    Place place_;
    FileDescriptor ours_, all_;
    bool joins_ = true;  // datagrams of equal length leave in one piece, which the system cuts
    std::vector<Outgoing> outgoing_;
    std::size_t queued_ = 0;
    std::unique_ptr<std::byte[]> buffers_;
    struct Filled {
        std::span<const std::byte> bytes;
        std::size_t each;  // of the datagrams in it
    };
    std::array<Filled, kBuffers> filled_{};
    std::uint64_t system_calls_ = 0, unsent_ = 0;
};

}  // namespace velo::fabric::udp
