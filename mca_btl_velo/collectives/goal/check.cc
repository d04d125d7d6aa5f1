#include "collectives/goal/check.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "collectives/goal/exchange.h"
#include "collectives/goal/run.h"

namespace velo::goal {
namespace {

class Findings {
 public:
    explicit Findings(std::size_t most) : most_(most) {}
    bool full(Finding::Kind kind) const {
        return static_cast<std::size_t>(std::ranges::count(list_, kind, &Finding::kind)) >= most_;
    }
    void add(Finding::Kind kind, std::string text) {
        if (!full(kind)) list_.push_back({kind, std::move(text)});
    }
    std::vector<Finding> take() { return std::move(list_); }

 private:
    std::size_t most_;
    std::vector<Finding> list_;
};

// Runs all ranks on a network without time. Without receives from any source the order of its steps changes
// nothing: what can come to its end does, and each receive gets the same message.
//
// For barriers it follows which ranks are known to have begun: at the start of an operation its own rank, and
// what was known at the end (the start) of what it requires (irequires); at the end of a receive also what
// was known at the start of the send.
class Rehearsal : Executor {
 public:
    Rehearsal(const Program& program, const CheckOptions& options, Findings& findings)
        : program_(program), options_(options), findings_(findings), words_((program.size() + 63) / 64) {
        for (const Schedule& schedule : program.schedules) {
            runs_.emplace_back(schedule);
            under_way_.emplace_back(schedule.count());
            first_.push_back(operations_);
            operations_ += schedule.count();
        }
        if (options.barrier) {
            known_.resize(operations_ * words_);
            at_end_.resize(program.size() * words_);
        }
    }

    void record(std::vector<Match>* matches) { record_ = matches; }

    void run() {
        for (std::uint32_t rank = 0; rank < program_.size(); ++rank) {
            for (Vertex v = 0; options_.barrier && v < program_.schedules[rank].count(); ++v)
                set(known(rank, v), rank);
            if (options_.barrier) set(&at_end_[rank * words_], rank);
            awake_.push(rank);
        }
        while (!awake_.empty()) {
            rank_ = awake_.front();
            awake_.pop();
            drain(runs_[rank_], *this);
        }
        report_stuck();
        for (const auto& [send, receiver] : pending_)
            if (runs_[receiver].done())
                findings_.add(Finding::kUnmatched,
                              program_.place(send.first, send.second) + " finds no receive");
        if (options_.barrier) report_leaving();
    }

 private:
    using At = std::pair<std::uint32_t, Vertex>;  // rank and operation

    void send(Run&, Vertex v, const Operation& o) override {
        begin(rank_, v);
        pending_[{rank_, v}] = o.peer;
        const auto waiting = exchange_.arrive(o.peer, {rank_, o.tag, v, o.bytes});
        if (o.bytes <= options_.eager) end(rank_, v);
        if (waiting) match(rank_, v, o.peer, *waiting);
    }
    void receive(Run&, Vertex v, const Operation& o) override {
        begin(rank_, v);
        if (const auto message = exchange_.receive(rank_, v, o.peer, o.tag))
            match(message->source, message->send, rank_, v);
    }
    void work(Run&, Vertex v, const Operation&) override {
        begin(rank_, v);
        end(rank_, v);
    }

    void match(std::uint32_t from, Vertex send, std::uint32_t to, Vertex receive) {
        if (record_ != nullptr) record_->push_back({from, send, to, receive});
        pending_.erase({from, send});
        const std::uint64_t sent = operation(from, send).bytes, expected = operation(to, receive).bytes;
        if (sent != expected)
            findings_.add(Finding::kSize,
                          program_.place(from, send) + " is received by " + program_.place(to, receive));
        if (options_.barrier) {
            // The send goes on only if its receive has begun.
            if (sent > options_.eager) join(known(from, send), known(to, receive));
            join(known(to, receive), known(from, send));
        }
        end(to, receive);
        if (sent > options_.eager) end(from, send);
    }

    void begin(std::uint32_t rank, Vertex v) {
        under_way_[rank][v] = true;
        if (!options_.barrier) return;
        for (const Vertex d : program_.schedules[rank].start_dependents(v))
            join(known(rank, d), known(rank, v));
    }
    void end(std::uint32_t rank, Vertex v) {
        under_way_[rank][v] = false;
        if (options_.barrier) {
            for (const Vertex d : program_.schedules[rank].dependents(v))
                join(known(rank, d), known(rank, v));
            join(&at_end_[rank * words_], known(rank, v));
        }
        runs_[rank].finished(v);
        if (rank != rank_) awake_.push(rank);
    }

    // An operation that has begun and does not end, kNoVertex: none.
    Vertex stuck(std::uint32_t rank) const {
        const auto found = std::ranges::find(under_way_[rank], true);
        return found == under_way_[rank].end() ? kNoVertex
                                               : static_cast<Vertex>(found - under_way_[rank].begin());
    }

    // Follows from each rank that is left whom it waits for: round a circle, or to one that has ended.
    void report_stuck() {
        std::vector<bool> told(program_.size(), false);
        for (std::uint32_t rank = 0; rank < program_.size(); ++rank) {
            if (runs_[rank].done() || told[rank]) continue;
            std::vector<std::uint32_t> chain;
            std::string text;
            std::uint32_t at = rank;
            bool known_before = false;
            for (;;) {
                const Vertex v = stuck(at);
                if (v == kNoVertex || told[at]) {
                    known_before = told[at] && !std::ranges::count(chain, at);
                    if (v == kNoVertex)
                        text += "rank " + std::to_string(at) +
                                (runs_[at].done() ? ", which has ended" : ", which cannot go on");
                    else
                        text += "rank " + std::to_string(at);
                    break;
                }
                told[at] = true;
                chain.push_back(at);
                const Operation& o = operation(at, v);
                if (chain.size() <= kShown) text += program_.place(at, v) + " waits for ";
                if (chain.size() == kShown + 1) text += "... ";
                if (o.peer == kAny) {
                    text += "any rank";
                    break;
                }
                at = o.peer;
            }
            if (!known_before) findings_.add(Finding::kDeadlock, text);
        }
    }

    void report_leaving() {
        for (std::uint32_t rank = 0; rank < program_.size(); ++rank) {
            if (!runs_[rank].done()) continue;
            for (std::uint32_t other = 0; other < program_.size(); ++other)
                if ((at_end_[rank * words_ + other / 64] >> other % 64 & 1) == 0)
                    findings_.add(Finding::kLeaves, "rank " + std::to_string(rank) + " may end before rank " +
                                                        std::to_string(other) + " has begun");
        }
    }

    const Operation& operation(std::uint32_t rank, Vertex v) const {
        return program_.schedules[rank].operation(v);
    }
    std::uint64_t* known(std::uint32_t rank, Vertex v) { return &known_[(first_[rank] + v) * words_]; }
    static void set(std::uint64_t* ranks, std::uint32_t rank) { ranks[rank / 64] |= 1ULL << rank % 64; }
    void join(std::uint64_t* to, const std::uint64_t* from) const {
        for (std::size_t i = 0; i < words_; ++i) to[i] |= from[i];
    }

    static constexpr std::size_t kShown = 16;
    const Program& program_;
    const CheckOptions& options_;
    Findings& findings_;
    std::vector<Match>* record_ = nullptr;
    std::size_t words_;
    std::vector<Run> runs_;
    std::vector<std::vector<bool>> under_way_;  // by rank and operation
    std::vector<std::size_t> first_;            // by rank: its first operation, of all
    std::size_t operations_ = 0;
    std::vector<std::uint64_t> known_;     // by operation: ranks that are known to have begun
    std::vector<std::uint64_t> at_end_;    // by rank: when it ends
    std::map<At, std::uint32_t> pending_;  // messages without a receive, and to whom
    std::queue<std::uint32_t> awake_;
    std::uint32_t rank_ = 0;
    Exchange exchange_;
};

// Of one rank: which operations are in an order.
class Order {
 public:
    explicit Order(const Schedule& schedule)
        : schedule_(schedule), position_(schedule.count()), seen_(schedule.count()) {
        Run run(schedule);
        std::uint32_t next = 0;
        for (Vertex v = run.next(); v != kNoVertex; v = run.next()) {
            position_[v] = next++;
            run.started(v);
            run.finished(v);
        }
    }

    std::uint32_t position(Vertex v) const { return position_[v]; }
    // `b` starts only when `a` has started.
    bool starts_in_order(Vertex a, Vertex b) { return path(a, b, true); }
    // `a` has finished when `b` starts.
    bool ends_before(Vertex a, Vertex b) { return path(a, b, false); }

 private:
    // From the start of `a`, or only from its end. Asked again about one `a`, it finds all that comes after.
    bool path(Vertex a, Vertex b, bool from_start) {
        if (position_[a] >= position_[b]) return false;
        const bool again = a == from_ && from_start == from_start_;
        if (again && (found_all_ || seen_[b] == round_)) return seen_[b] == round_;
        from_ = a;
        from_start_ = from_start;
        found_all_ = again;
        const std::uint32_t last = again ? schedule_.count() : position_[b];
        ++round_;
        stack_.clear();
        const auto enter = [&](std::span<const Vertex> to) {
            for (const Vertex v : to)
                if (position_[v] <= last && seen_[v] != round_) {
                    seen_[v] = round_;
                    stack_.push_back(v);
                }
        };
        enter(schedule_.dependents(a));
        if (from_start) enter(schedule_.start_dependents(a));
        while (!stack_.empty() && (again || seen_[b] != round_)) {
            const Vertex v = stack_.back();
            stack_.pop_back();
            enter(schedule_.dependents(v));
            enter(schedule_.start_dependents(v));
        }
        return seen_[b] == round_;
    }

    const Schedule& schedule_;
    std::vector<std::uint32_t> position_;  // in one of the possible orders
    std::vector<std::uint32_t> seen_;
    std::vector<Vertex> stack_;
    std::uint32_t round_ = 0;
    Vertex from_ = kNoVertex;  // of this round
    bool from_start_ = false, found_all_ = false;
};

// Sends (receives) of one peer and tag are told apart by their order alone.
void check_order(const Program& program, std::uint32_t rank, Order& order, Findings& findings) {
    const Schedule& schedule = program.schedules[rank];
    std::map<std::tuple<Kind, std::uint32_t, std::uint32_t>, std::vector<Vertex>> alike;
    for (Vertex v = 0; v < schedule.count(); ++v)
        if (const Operation& o = schedule.operation(v); o.communicates() && o.peer != kAny)
            alike[{o.kind, o.peer, o.tag}].push_back(v);
    for (auto& [key, vertices] : alike) {
        std::ranges::sort(vertices, {}, [&](Vertex v) { return order.position(v); });
        for (std::size_t i = 1; i < vertices.size() && !findings.full(Finding::kAmbiguous); ++i) {
            const Vertex v = vertices[i - 1], w = vertices[i];
            const Operation &a = schedule.operation(v), &b = schedule.operation(w);
            const bool same = a.bytes == b.bytes && a.space == b.space && a.offset == b.offset;
            if (!same && !order.starts_in_order(v, w))
                findings.add(Finding::kAmbiguous,
                             program.place(rank, v) + " and " + program.name(rank, w) + " (" +
                                 describe(b, &schedule) +
                                 ") are told apart by nothing but their order, and have none");
        }
    }
}

struct Access {
    std::uint64_t begin, end;
    Vertex vertex;
    Space space;
    bool writes;
};

std::vector<Access> accesses(const Schedule& schedule) {
    std::vector<Access> list;
    const auto add = [&](Vertex v, Space space, std::uint64_t offset, std::uint32_t pieces,
                         std::uint64_t bytes, bool writes) {
        if (pieces == 0) {
            if (space < kSpaces && bytes > 0) list.push_back({offset, offset + bytes, v, space, writes});
            return;
        }
        for (std::uint32_t i = 0; i < pieces; ++i) {
            const Piece& piece = schedule.pieces()[offset + i];
            if (piece.bytes > 0)
                list.push_back(
                    {piece.place.offset, piece.place.offset + piece.bytes, v, piece.place.space, writes});
        }
    };
    for (Vertex v = 0; v < schedule.count(); ++v) {
        const Operation& o = schedule.operation(v);
        if (o.communicates()) add(v, o.space, o.offset, o.pieces, o.bytes, o.kind == Kind::kReceive);
        if (o.kind != Kind::kCombine) continue;
        const Combination& c = schedule.combination(o);
        const auto operand = [&](const Operand& of, bool writes) {
            add(v, of.space, of.offset, of.pieces, o.bytes, writes);
        };
        if (c.op != Operator::kWtime) operand(c.first, false);
        if (c.op != Operator::kWtime && c.op != Operator::kCopy) operand(c.second, false);
        operand(c.result, true);
    }
    return list;
}

// Who has used the bytes of a space, as the operations come in one of their possible orders. That one has
// finished when another one starts goes on from there to the next, so an access is compared with the last
// one that has written, or if it writes with those that have read since; of readers that come one after the
// other with the last.
class Uses {
 public:
    explicit Uses(Order& order) : order_(order) {}

    // Tells `racing`, by vertex and byte, with whom the access is in no order.
    template <typename Racing>
    void add(const Access& access, Racing racing) {
        auto at = cut(access.begin);
        cut(access.end);
        for (std::uint64_t begin = access.begin; begin < access.end; begin = at++->second.end) {
            if (at == bytes_.end() || at->first != begin)
                at = bytes_.emplace_hint(
                    at, begin, Bytes{at == bytes_.end() ? access.end : std::min(access.end, at->first), {}});
            use(access, at->second, [&](Vertex earlier) { racing(earlier, begin); });
        }
    }

 private:
    struct Bytes {
        std::uint64_t end;
        std::vector<Vertex> readers;
        Vertex writer = kNoVertex;
    };

    template <typename Racing>
    void use(const Access& access, Bytes& bytes, Racing racing) {
        const Vertex v = access.vertex;
        const auto after = [&](Vertex earlier) { return earlier == v || order_.ends_before(earlier, v); };
        if (!access.writes) {
            if (!bytes.readers.empty() && after(bytes.readers.back())) {
                bytes.readers.back() = v;
                return;
            }
            if (bytes.writer != kNoVertex && !after(bytes.writer)) racing(bytes.writer);
            bytes.readers.push_back(v);
            return;
        }
        if (bytes.readers.empty() && bytes.writer != kNoVertex && !after(bytes.writer)) racing(bytes.writer);
        for (const Vertex reader : bytes.readers)
            if (!after(reader)) racing(reader);
        bytes.readers.clear();
        bytes.writer = v;
    }

    // None lie on both sides of `at`. Those from there on.
    std::map<std::uint64_t, Bytes>::iterator cut(std::uint64_t at) {
        const auto after = bytes_.lower_bound(at);
        if (after == bytes_.begin() || std::prev(after)->second.end <= at) return after;
        Bytes& before = std::prev(after)->second;
        const auto rest = bytes_.emplace_hint(after, at, before);
        before.end = at;
        return rest;
    }

    Order& order_;
    std::map<std::uint64_t, Bytes> bytes_;  // by the first one
};

void check_races(const Program& program, std::uint32_t rank, Order& order, Findings& findings) {
    const Schedule& schedule = program.schedules[rank];
    std::vector<Access> list = accesses(schedule);
    std::ranges::sort(
        list, {}, [&](const Access& a) { return std::tuple(a.space, order.position(a.vertex), a.writes); });
    std::map<Space, Uses> uses;
    std::set<std::pair<Vertex, Vertex>> told;
    for (const Access& a : list) {
        if (findings.full(Finding::kRace)) return;
        uses.try_emplace(a.space, order).first->second.add(a, [&](Vertex earlier, std::uint64_t byte) {
            const auto [first, second] = std::minmax(earlier, a.vertex);
            if (!told.emplace(first, second).second) return;
            findings.add(Finding::kRace,
                         program.place(rank, first) + " and " + program.name(rank, second) + " (" +
                             describe(schedule.operation(second), &schedule) + ") use byte " +
                             std::to_string(byte) + " of " +
                             (a.space == kScratch    ? "the scratchpad"
                              : a.space == kAbsolute ? "memory"
                                                     : "argument " + std::to_string(a.space)) +
                             " in no order");
        });
    }
}

}  // namespace

std::vector<Match> matches(const Program& program) {
    std::vector<Match> list;
    Findings findings(0);
    const CheckOptions options;
    Rehearsal rehearsal(program, options, findings);
    rehearsal.record(&list);
    rehearsal.run();
    return list;
}

std::vector<Finding> check(const Program& program, const CheckOptions& options) {
    Findings findings(options.most);
    Rehearsal(program, options, findings).run();
    for (std::uint32_t rank = 0; rank < program.size(); ++rank) {
        Order order(program.schedules[rank]);
        check_order(program, rank, order, findings);
        check_races(program, rank, order, findings);
    }
    return findings.take();
}

}  // namespace velo::goal
