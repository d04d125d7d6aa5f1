#include "collectives/performing/compiled.h"

#include <algorithm>
#include <string>

#include "collectives/performing/run.h"
#include "platform/failure.h"

namespace velo::performing {
namespace {

using goal::Operation;
using goal::Piece;
using goal::Vertex;

// Looks at all places of a schedule. Arguments are believed: nobody knows how long they are.
class Places {
 public:
    explicit Places(Compiled& of) : of_(of) {}

    void look() {
        const goal::Schedule& schedule = of_.schedule;
        for (at_ = 0; at_ < schedule.count(); ++at_) {
            const Operation& o = schedule.operation(at_);
            if (o.communicates() || o.kind == goal::Kind::kCombine) of_.moved_bytes += o.bytes;
            if (o.communicates()) {
                if (o.tag > INT32_MAX && !(o.kind == goal::Kind::kReceive && o.tag == goal::kAny))
                    refuse("has a tag above 2^31 - 1");
                of_.most_tag = std::max(of_.most_tag, o.tag);
                consider({o.offset, o.pieces, o.space}, o.bytes);
            } else if (o.kind == goal::Kind::kCombine) {
                const goal::Combination& c = schedule.combination(o);
                of_.combines |= c.op == goal::Operator::kOwn;
                consider(c.result, o.bytes);
                if (c.op == goal::Operator::kWtime) continue;
                consider(c.first, o.bytes);
                if (c.op != goal::Operator::kCopy) consider(c.second, o.bytes);
            }
        }
    }

 private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw Failure(VELO_ERR_PARAMETER,
                      "rank " + std::to_string(of_.schedule.rank()) + ": operation " + std::to_string(at_) +
                          " (" + describe(of_.schedule.operation(at_), &of_.schedule) + ") " + what);
    }
    void consider(const goal::Operand& operand, std::uint64_t bytes) {
        if (operand.pieces == 0) return consider({{operand.offset, operand.space}, bytes});
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < operand.pieces; ++i) {
            const Piece& piece = of_.schedule.pieces()[operand.offset + i];
            consider(piece);
            sum += piece.bytes;
        }
        if (sum < bytes) refuse("has an operand of " + std::to_string(sum) + " bytes");
    }
    void consider(const Piece& piece) {
        const goal::Place& place = piece.place;
        const std::uint64_t end = place.offset + piece.bytes;
        if (place.space > goal::kNowhere) refuse("uses space " + std::to_string(place.space));
        if (piece.bytes == 0) return;
        if (place.space < goal::kArguments) of_.arguments = std::max(of_.arguments, place.space + 1U);
        if (place.space == goal::kScratch && (end < piece.bytes || end > of_.schedule.scratch_bytes()))
            refuse("goes beyond the scratchpad of " + std::to_string(of_.schedule.scratch_bytes()) +
                   " bytes");
        if (place.space == goal::kNowhere) {
            if (end < piece.bytes) refuse("goes beyond all memory");
            of_.nowhere = std::max(of_.nowhere, end);
        }
    }

    Compiled& of_;
    Vertex at_ = 0;
};

// Receives that no other could be taken for.
void find_large(Compiled& of) {
    const goal::Schedule& schedule = of.schedule;
    const auto is_large = [&](const Operation& o) {
        return o.bytes >= kLeastAnnounced && o.pieces == 0 && o.peer != schedule.rank();
    };
    const auto key = [&](Vertex v) {
        const Operation& o = schedule.operation(v);
        return std::uint64_t{o.peer} << 32 | o.tag;
    };
    std::vector<Vertex> receives;
    std::vector<std::uint32_t> receivers;  // of something that is large as well
    bool some = false;
    for (Vertex v = 0; v < schedule.count(); ++v) {
        const Operation& o = schedule.operation(v);
        if (o.kind == goal::Kind::kSend && is_large(o)) receivers.push_back(o.peer);
        if (o.kind != goal::Kind::kReceive) continue;
        if (o.peer == goal::kAny || o.tag == goal::kAny) return;
        receives.push_back(v);
        some = some || is_large(o);
    }
    if (!some) return;
    of.large.resize(schedule.count());
    std::ranges::sort(receives, {}, key);
    std::ranges::sort(receivers);
    for (std::size_t i = 0; i < receives.size(); ++i) {
        const Operation& o = schedule.operation(receives[i]);
        const bool alone = (i == 0 || key(receives[i - 1]) != key(receives[i])) &&
                           (i + 1 == receives.size() || key(receives[i + 1]) != key(receives[i]));
        if (alone && is_large(o))
            of.large[receives[i]] = std::ranges::binary_search(receivers, o.peer) ? Compiled::Large::kBothWays
                                                                                  : Compiled::Large::kOneWay;
    }
}

}  // namespace

Compiled::Compiled(goal::Schedule made) : schedule(std::move(made)) {
    Places(*this).look();
    find_large(*this);
}
Compiled::~Compiled() = default;

std::shared_ptr<Compiled> compiled(const goal::Graph& graph) {
    std::string error;
    std::optional<goal::Schedule> schedule = goal::compile(graph, &error);
    if (!schedule) throw Failure(VELO_ERR_PARAMETER, error);
    return std::make_shared<Compiled>(std::move(*schedule));
}

}  // namespace velo::performing
