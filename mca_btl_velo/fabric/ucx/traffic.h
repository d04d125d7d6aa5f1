// What the parts of the UCX network share.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/ucx/messages.h"
#include "fabric/ucx/network.h"

namespace velo::fabric::ucx {

// Ended flights that are kept for the next sends, with their memory.
constexpr std::size_t kMostSpares = 16;

// Data past the mailbox on its way to a peer. It is the caller's until all of it has been sent.
struct Bulk {
    Remote* to;
    std::uint32_t id;
    std::vector<std::byte> header;  // the engine's
    const std::byte* data;
    std::size_t bytes, sent = 0;
    std::size_t flying = 0;  // of `sent`, what UCX has not done with
    void* context;
};

// A send that UCX has not finished with. UCX reads header and data until then.
struct Flight {
    UcxNetwork* network;
    Remote* to;
    std::size_t outstanding;  // see Remote
    Bulk* bulk;               // whose data it carries, nullptr: its own
    std::size_t bulk_bytes;
    std::vector<std::byte> header, data;
    // Of parcels that are collected: in `data`, and where they are.
    std::size_t filled;
    std::vector<ucp_dt_iov_t> pieces;
    // Of what UCX packs: the bytes, and, until they are in `data`, where they come from.
    std::size_t bytes;
    bool copied;
    Parcel parcel;
    MessageView message;
    std::size_t offset;

    // Packs bytes from `from` on. Returns their number.
    std::size_t pack(std::size_t from, std::byte* to, std::size_t room) const {
        if (copied || from > 0 || room < bytes) [[unlikely]]
            return pack_part(from, to, room);
        std::memcpy(to, &parcel, sizeof parcel);
        message.copy_to(to + sizeof parcel, offset, bytes - sizeof parcel);
        return bytes;
    }
    [[gnu::noinline]] std::size_t pack_part(std::size_t from, std::byte* to, std::size_t room) const {
        const std::size_t count = std::min(room, bytes - from);
        if (copied) {
            std::memcpy(to, data.data() + from, count);
            return count;
        }
        std::size_t head = 0;
        if (from < sizeof parcel) {
            head = std::min(count, sizeof parcel - from);
            std::memcpy(to, reinterpret_cast<const std::byte*>(&parcel) + from, head);
        }
        if (count > head) message.copy_to(to + head, offset + from + head - sizeof parcel, count - head);
        return count;
    }
    // The message is its sender's again.
    void copy() {
        if (copied) return;
        if (data.size() < bytes) data.resize(bytes);
        pack(0, data.data(), bytes);
        copied = true;
    }

    void append(const std::byte* piece, std::size_t size) {
        if (!pieces.empty() && static_cast<std::byte*>(pieces.back().buffer) + pieces.back().length == piece)
            pieces.back().length += size;
        else
            pieces.push_back({const_cast<std::byte*>(piece), size});
    }

    template <typename Header>
    void put_header(const Header& first, std::span<const std::byte> second = {}) {
        header.resize(sizeof first + second.size());
        std::memcpy(header.data(), &first, sizeof first);
        if (!second.empty()) std::memcpy(header.data() + sizeof first, second.data(), second.size());
    }
};

template <typename Header>
bool read_header(const void* from, std::size_t bytes, Header* header) {
    if (bytes < sizeof *header) return false;
    std::memcpy(header, from, sizeof *header);
    return true;
}

template <typename Action>
ucs_status_t UcxNetwork::shielded(Action action) {
    try {
        action();
    } catch (const std::exception&) {
        if (!thrown_) thrown_ = std::current_exception();
    }
    return UCS_OK;
}

inline void UcxNetwork::stamp(Remote& to, Parcel& parcel) const {
    parcel.key = to.address.key;
    parcel.sender = config_.process_name;
    parcel.sequence = to.next_sequence++;
}

// The sender of a message with that key and name; remotes_.size() for a stranger.
inline flow::PeerIndex UcxNetwork::sender_of(std::uint64_t key, std::uint64_t name) {
    if (key == own_.key && name == last_sender_.name) [[likely]]
        return last_sender_.index;
    return other_sender_of(key, name);
}

}  // namespace velo::fabric::ucx
