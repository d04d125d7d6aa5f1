#include "collectives/udp/socket.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/failure.h"

namespace velo::fabric::udp {
namespace {

constexpr std::size_t kMostJoined = 60000;  // bytes: less than a packet of IP holds

sockaddr_in address(in_addr_t where, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = where;
    return address;
}

[[noreturn]] void refuse(const char* what) {
    throw Failure(VELO_ERR_RESOURCE, std::string(what) + ": " + std::strerror(errno));
}

template <typename Value>
void set(int fd, int level, int option, const Value& value, const char* what) {
    if (setsockopt(fd, level, option, &value, sizeof value) != 0) refuse(what);
}

int open_socket() {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) refuse("socket");
    return fd;
}

void bind_to(int fd, in_addr_t where, std::uint16_t port) {
    const sockaddr_in at = address(where, port);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) refuse("bind");
}

// What a system does not have is done without.
void want(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

// As much as the system permits, at most.
constexpr int kSendBytes = 4 << 20;

}  // namespace

FileDescriptor::~FileDescriptor() {
    close(fd_);
}

Socket::Socket(in_addr_t own, const Place& place, bool listens, std::uint32_t receive_bytes)
    : place_(place),
      ours_(open_socket()),
      all_(open_socket()),
      outgoing_(kBatch),
      buffers_(std::make_unique_for_overwrite<std::byte[]>(kBuffers * kBufferBytes)) {
    bind_to(ours_.get(), own, listens ? 0 : place.port);
    set(ours_.get(), IPPROTO_IP, IP_MULTICAST_TTL, std::uint8_t{1}, "IP_MULTICAST_TTL");
    set(ours_.get(), IPPROTO_IP, IP_MULTICAST_IF, in_addr{own}, "IP_MULTICAST_IF");
    set(ours_.get(), IPPROTO_IP, IP_MULTICAST_LOOP, std::uint8_t{0}, "IP_MULTICAST_LOOP");
    set(ours_.get(), IPPROTO_IP, IP_MTU_DISCOVER, int{IP_PMTUDISC_DO}, "IP_MTU_DISCOVER");
    // Others may listen on this machine: containers, tests.
    set(all_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    bind_to(all_.get(), place.group, place.port);
    set(all_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, ip_mreq{{place.group}, {own}}, "IP_ADD_MEMBERSHIP");
    want(all_.get(), IPPROTO_IP, IP_MULTICAST_ALL, 0);
    for (const int fd : {ours_.get(), all_.get()}) {
        want(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(receive_bytes));
        want(fd, IPPROTO_UDP, UDP_GRO, 1);
    }
    want(ours_.get(), SOL_SOCKET, SO_SNDBUF, kSendBytes);
}

std::uint32_t Socket::receive_bytes() const {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    (void)getsockopt(all_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &length);
    return static_cast<std::uint32_t>(bytes);
}

void Socket::send(in_addr_t to, const Sealer& sealer, const Letter& letter) {
    if (queued_ == kBatch) flush();
    Outgoing& out = outgoing_[queued_++];
    out.to = to;
    out.parts[0] = {out.header.data(), seal(sealer, letter, out.header.data())};
    out.parts[1] = {const_cast<std::byte*>(letter.payload.data()), letter.payload.size()};
}

// How many from there on can leave as one: to the same, and equally long but for the last.
std::size_t Socket::alike(std::size_t first) const {
    std::size_t count = 1, bytes = outgoing_[first].bytes();
    const std::size_t each = bytes;
    while (joins_ && first + count < queued_) {
        const Outgoing& next = outgoing_[first + count];
        bytes += next.bytes();
        if (next.to != outgoing_[first].to || next.bytes() > each || bytes > kMostJoined) break;
        ++count;
        if (next.bytes() < each) break;
    }
    return count;
}

void Socket::flush() {
    for (std::size_t first = 0; first < queued_;) {
        std::array<mmsghdr, kBatch> messages{};
        std::array<sockaddr_in, kBatch> addresses;
        std::array<iovec, 2 * kBatch> parts;
        struct alignas(cmsghdr) Control {
            std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
        };
        std::array<Control, kBatch> controls;
        std::array<std::size_t, kBatch> counts;
        unsigned count = 0;
        std::size_t used = 0;
        for (std::size_t at = first; at < queued_; ++count) {
            counts[count] = alike(at);
            msghdr& message = messages[count].msg_hdr;
            addresses[count] = address(outgoing_[at].to, place_.port);
            message.msg_name = &addresses[count];
            message.msg_namelen = sizeof addresses[count];
            message.msg_iov = &parts[used];
            message.msg_iovlen = 2 * counts[count];
            if (counts[count] > 1) {
                message.msg_control = &controls[count];
                message.msg_controllen = sizeof controls[count];
                cmsghdr* control = CMSG_FIRSTHDR(&message);
                control->cmsg_level = IPPROTO_UDP;
                control->cmsg_type = UDP_SEGMENT;
                control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
                const auto each = static_cast<std::uint16_t>(outgoing_[at].bytes());
                std::memcpy(CMSG_DATA(control), &each, sizeof each);
            }
            for (const std::size_t end = at + counts[count]; at < end; ++at)
                for (const iovec& part : outgoing_[at].parts) parts[used++] = part;
        }
        ++system_calls_;
        const int sent = sendmmsg(ours_.get(), messages.data(), count, 0);
        for (int i = 0; i < sent; ++i) first += counts[i];
        if (sent >= 0) continue;
        if (counts[0] > 1 && (errno == EINVAL || errno == EIO || errno == EOPNOTSUPP)) {
            joins_ = false;
        } else if (errno != EINTR) {
            unsent_ += counts[0];
            first += counts[0];
        }
    }
    queued_ = 0;
}

std::size_t Socket::fill(int fd) {
    std::array<mmsghdr, kBuffers> messages{};
    std::array<iovec, kBuffers> parts;
    struct alignas(cmsghdr) Control {
        std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
    };
    std::array<Control, kBuffers> controls;
    for (std::size_t i = 0; i < kBuffers; ++i) {
        parts[i] = {buffers_.get() + i * kBufferBytes, kBufferBytes};
        msghdr& message = messages[i].msg_hdr;
        message.msg_iov = &parts[i];
        message.msg_iovlen = 1;
        message.msg_control = &controls[i];
        message.msg_controllen = sizeof controls[i];
    }
    ++system_calls_;
    const int filled = recvmmsg(fd, messages.data(), kBuffers, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < filled; ++i) {
        msghdr& message = messages[i].msg_hdr;
        const std::size_t bytes = messages[i].msg_len;
        int each = 0;
        for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
            if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
                std::memcpy(&each, CMSG_DATA(c), sizeof each);
        filled_[i] = {{buffers_.get() + i * kBufferBytes, bytes},
                      each > 0 ? static_cast<std::size_t>(each) : std::max<std::size_t>(bytes, 1)};
    }
    return filled > 0 ? static_cast<std::size_t>(filled) : 0;
}

}  // namespace velo::fabric::udp
