#include "collectives/performing/operations.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "messaging/fast_path.h"
#include "platform/copy.h"
#include "platform/monotonic.h"

namespace velo::performing {
namespace {

matching::Key key_of(const LiveRun& run, std::uint32_t source, std::uint32_t tag) {
    static_assert(goal::kAny == static_cast<std::uint32_t>(matching::kAnySource));
    return {run.context, static_cast<std::int32_t>(source == goal::kAny ? source : source | run.round),
            tag == goal::kAny ? matching::kAnyTag : static_cast<std::int32_t>(run.first_tag | tag)};
}

LiveRun& live(goal::Run& run) {
    return static_cast<LiveRun&>(run);
}

Slot& slot_of(velo_message_receive* receive) {
    static_assert(offsetof(Slot, receive) == 0 && offsetof(Slot, send) == 0);
    return *reinterpret_cast<Slot*>(receive);
}

void unpack(velo_message_receive* receive, const void* data, std::size_t bytes) {
    Slot& slot = slot_of(receive);
    const goal::Memory& memory = slot.run->memory();
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes > 0) {
        const std::size_t part = std::min<std::uint64_t>(bytes, slot.piece->bytes - slot.position);
        if (part > 0) std::memcpy(memory.at(slot.piece->place) + slot.position, from, part);
        from += part;
        bytes -= part;
        slot.position += part;
        if (slot.position < slot.piece->bytes) return;
        ++slot.piece;
        slot.position = 0;
    }
}

}  // namespace

void Operations::send(goal::Run& base, goal::Vertex v, const goal::Operation& o) {
    LiveRun& run = live(base);
    ++counts_.operations;
    if (o.tag == run.compiled->shared_tag && sharing_.hold(run, v, o)) [[unlikely]]
        return;
    send_now(run, v, o);
}

void Operations::send_now(LiveRun& run, goal::Vertex v, const goal::Operation& o) {
    if (o.tag == run.compiled->shared_tag && sharing_.share(run, v, o)) [[unlikely]]
        return;
    velo_peer* peer = nullptr;
    if (o.peer != run.group->rank) {
        peer = run.group->peer(o.peer);
        if (peer == nullptr) return host_.fail(run, v, VELO_ERR_UNREACHABLE);
        if (inbox_.has_departed(peer)) return host_.fail_with_departed(run, v, *peer);
        if (peer->is_remote()) count_remote(*peer);
    }
    const matching::Key key = key_of(run, run.group->rank, o.tag);
    const std::byte* data = nullptr;
    if (o.pieces == 0) {
        data = run.memory().at({o.offset, o.space});
        if (peer != nullptr && messenger_.try_send_fast(*peer, key, data, o.bytes)) [[likely]]
            return run.finished(v);
    }
    Slot& slot = slots_.take(run, v, peer);
    // A short send that others of the schedule wait for does not wait for its receive, which may come after
    // them. What nobody waits for is not copied: it holds up who is far ahead of its receiver.
    const bool is_copy = !run.schedule().dependents(v).empty() && messenger_.would_wait(peer, o.bytes);
    if (o.pieces > 0 || is_copy) {
        slot.packed = std::make_unique_for_overwrite<std::byte[]>(o.bytes);
        if (data != nullptr && o.bytes > 0) std::memcpy(slot.packed.get(), data, o.bytes);
        data = slot.packed.get();
    }
    if (o.pieces > 0) {
        std::byte* to = slot.packed.get();
        for (const goal::Piece& piece : run.schedule().pieces(o)) {
            if (piece.bytes > 0) std::memcpy(to, run.memory().at(piece.place), piece.bytes);
            to += piece.bytes;
        }
    }
    slot.send.done = [](velo_message_send* sent, velo_status status) {
        Slots::tell(*reinterpret_cast<Slot*>(sent), status);
    };
    if (is_copy) slot.run = nullptr;
    const velo_status status = messenger_.send(peer, key, data, o.bytes, VELO_SEND_STANDARD, &slot.send);
    if (status == VELO_QUEUED) {
        if (is_copy) run.finished(v);
        return;
    }
    release(slot);
    if (status == VELO_OK)
        run.finished(v);
    else
        host_.fail(run, v, status);
}

void Operations::count_remote(const velo_peer& peer) {
    ++counts_.network_messages;
    if (peer.index >= sent_to_.size()) sent_to_.resize(peer.index + 1);
    if (sent_to_[peer.index]) return;
    sent_to_[peer.index] = true;
    ++counts_.network_peers;
}

void Operations::receive(goal::Run& base, goal::Vertex v, const goal::Operation& o) {
    LiveRun& run = live(base);
    ++counts_.operations;
    velo_peer* peer = nullptr;
    if (o.peer != goal::kAny && o.peer != run.group->rank && (peer = run.group->peer(o.peer)) == nullptr)
        return host_.fail(run, v, VELO_ERR_UNREACHABLE);
    Slot& slot = slots_.take(run, v, peer);
    slot.receives = true;
    slot.receive.capacity = o.bytes;
    slot.receive.buffer = nullptr;
    slot.receive.unpack = nullptr;
    if (o.pieces == 0) {
        slot.receive.buffer = run.memory().at({o.offset, o.space});
    } else {
        slot.receive.unpack = unpack;
        slot.piece = run.schedule().pieces(o).data();
        slot.position = 0;
    }
    slot.receive.done = [](velo_message_receive* received, velo_status status) {
        const bool fits = received->bytes == received->capacity;
        Slots::tell(slot_of(received), status == VELO_OK && !fits ? VELO_ERR_MISMATCH : status);
    };
    slot.previous = nullptr;
    slot.next = run.receives;
    if (run.receives != nullptr) run.receives->previous = &slot;
    run.receives = &slot;
    const matching::Key key = key_of(run, o.peer, o.tag);
    const Compiled& compiled = *run.compiled;
    const Compiled::Large large = compiled.large.empty() ? Compiled::Large::kNo : compiled.large[v];
    messenger_.receive(key, &slot.receive,
                       large == Compiled::Large::kBothWays ? messaging::Messenger::CopyBy::kReader
                                                           : messaging::Messenger::CopyBy::kFastest);
    if (o.tag == compiled.shared_tag) [[unlikely]]
        sharing_.want(slot);
    else if (large != Compiled::Large::kNo)
        messenger_.announce(*peer, key, &slot.receive);
    // All that it has sent has come.
    if (peer == nullptr || !inbox_.has_departed(peer)) [[likely]]
        return;
    if (!messenger_.cancel(&slot.receive)) return;
    release(slot);
    host_.fail_with_departed(run, v, *peer);
}

void Operations::work(goal::Run& base, goal::Vertex v, const goal::Operation& o) {
    LiveRun& run = live(base);
    ++counts_.operations;
    if (o.kind == goal::Kind::kCombine) {
        const goal::Schedule& schedule = run.schedule();
        const goal::Combination& c = schedule.combination(o);
        if (c.op == goal::Operator::kOwn) [[unlikely]]
            return host_.ask_program(run, v);
        const double seconds =
            c.op == goal::Operator::kWtime ? static_cast<double>(platform::monotonic_ns()) * 1e-9 : 0;
        goal::combine(c, schedule.pieces(), run.memory(), seconds);
        return run.finished(v);
    }
    const bool asked = o.kind == goal::Kind::kCall ? run.start.call != nullptr
                                                   : run.start.calculate != nullptr && o.bytes > 0;
    if (!asked) return run.finished(v);
    host_.ask_program(run, v);
}

void Operations::pass_over(Slot& slot) {
    const goal::Operation& o = slot.run->schedule().operation(slot.vertex);
    Slot& other = slots_.take(*slot.run, slot.vertex, slot.peer);
    other.run = nullptr;
    other.led = std::exchange(slot.led, false);
    other.receive = {};
    other.receive.capacity = o.bytes;
    other.receive.unpack = [](velo_message_receive*, const void*, std::size_t) {};
    other.receive.done = [](velo_message_receive* received, velo_status status) {
        Slots::tell(slot_of(received), status);
    };
    messenger_.receive(key_of(*slot.run, o.peer, o.tag), &other.receive);
}

void Operations::release(Slot& slot) {
    if (slot.receives) {
        (slot.previous != nullptr ? slot.previous->next : slot.run->receives) = slot.next;
        if (slot.next != nullptr) slot.next->previous = slot.previous;
        if (slot.shared) [[unlikely]]
            sharing_.forget(slot);
    }
    if (slot.led) [[unlikely]]
        sharing_.heard_from_leader();
    slots_.give_back(slot);
}

}  // namespace velo::performing
