#include "live.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

#include "goal.h"
#include "goal/check.h"
#include "objects.h"

namespace velo::goal {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Without these a run would not end, or fail.
void refuse_what_cannot_end(const Program& program) {
    std::string text;
    for (const Finding& finding : check(program))
        if (finding.kind == Finding::kDeadlock || finding.kind == Finding::kUnmatched ||
            finding.kind == Finding::kSize)
            text += (text.empty() ? "" : "\n  ") + finding.text;
    if (!text.empty()) throw std::runtime_error("refused, as it cannot come to its end:\n  " + text);
}

// One rank's schedule, made anew through goal.h over memory of its own.
class Part {
 public:
    Part(GOAL_Group group, const Schedule& schedule, double calculations)
        : schedule_(schedule), graph_(GOAL_CreateGraph_r(group)) {
        make_room();
        spins_.reserve(schedule.count());
        for (Vertex v = 0; v < schedule.count(); ++v) add(schedule.operation(v), calculations);
        for (Vertex v = 0; v < schedule.count(); ++v) {
            for (const Vertex d : schedule.dependents(v)) GOAL_Requires(graph_, v, d);
            for (const Vertex d : schedule.start_dependents(v)) GOAL_RequiresStart(graph_, v, d);
        }
        compiled_ = GOAL_Compile(graph_);
        GOAL_FreeGraph(graph_);
    }
    ~Part() { GOAL_FreeSchedule(compiled_); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    GOAL_Schedule compiled() const { return compiled_; }
    std::uint64_t sent_bytes() const { return sent_bytes_; }
    double calculated_s() const {
        double ns = 0;
        for (const double spin : spins_) ns += spin;
        return ns / 1e9;
    }

 private:
    // Addresses and lengths, as the vector forms take them.
    struct Pieces {
        std::vector<void*> addresses;
        std::vector<int> lengths;

        void add(std::byte* at, std::uint64_t bytes) {
            do {
                const auto part = static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX));
                addresses.push_back(at);
                lengths.push_back(part);
                at += part;
                bytes -= static_cast<std::uint64_t>(part);
            } while (bytes > 0);
        }
        int count() const { return static_cast<int>(lengths.size()); }
    };

    static void spin(void* ns) {
        const Clock::time_point begin = Clock::now();
        const double wanted = *static_cast<const double*>(ns) / 1e9;
        while (seconds_since(begin) < wanted) {
        }
    }
    static void nothing(void*) {}

    // What is received nowhere goes past what is sent from nowhere.
    static std::size_t room_of(Space space, bool written) {
        return space == kNowhere && written ? kSpaces + std::size_t{1} : space;
    }
    template <typename Function>
    void each_piece(std::uint64_t offset, std::uint32_t pieces, Space space, std::uint64_t bytes,
                    Function function) const {
        if (pieces == 0) function(Piece{{offset, space}, bytes});
        for (std::uint32_t i = 0; i < pieces; ++i) function(schedule_.pieces()[offset + i]);
    }
    template <typename Function>
    void each_buffer(const Operation& o, Function function) const {
        if (o.communicates())
            each_piece(o.offset, o.pieces, o.space, o.bytes,
                       [&](const Piece& piece) { function(piece, o.kind == Kind::kReceive); });
        if (o.kind != Kind::kCombine) return;
        const Combination& c = schedule_.combination(o);
        for (const Operand* operand : {&c.first, &c.second, &c.result})
            each_piece(operand->offset, operand->pieces, operand->space, c.bytes(),
                       [&](const Piece& piece) { function(piece, operand == &c.result); });
    }

    void make_room() {
        std::array<std::uint64_t, kSpaces + 2> bytes{};
        for (const Operation& o : schedule_.operations())
            each_buffer(o, [&](const Piece& piece, bool written) {
                std::uint64_t& room = bytes[room_of(piece.place.space, written)];
                room = std::max(room, piece.place.offset + piece.bytes);
            });
        for (std::size_t i = 0; i < bytes.size(); ++i) memory_[i].resize(bytes[i] + 1);
    }

    Pieces pieces(std::uint64_t offset, std::uint32_t count, Space space, std::uint64_t bytes, bool written) {
        Pieces list;
        each_piece(offset, count, space, bytes, [&](const Piece& piece) {
            list.add(memory_[room_of(piece.place.space, written)].data() + piece.place.offset, piece.bytes);
        });
        return list;
    }

    static int tag_of(std::uint32_t tag) {
        if (tag > INT_MAX && tag != kAny)
            throw std::runtime_error("tag " + std::to_string(tag) + " exceeds " + std::to_string(INT_MAX));
        return static_cast<int>(tag);
    }
    static_assert(static_cast<int>(kAny) == GOAL_ANY_SOURCE && static_cast<int>(kAny) == GOAL_ANY_TAG);

    void add(const Operation& o, double calculations) {
        switch (o.kind) {
            case Kind::kSend:
            case Kind::kReceive: {
                const bool sends = o.kind == Kind::kSend;
                Pieces p = pieces(o.offset, o.pieces, o.space, o.bytes, !sends);
                (sends ? GOAL_SendVec : GOAL_RecvVec)(graph_, p.addresses.data(), p.lengths.data(), p.count(),
                                                      static_cast<int>(o.peer), tag_of(o.tag),
                                                      GOAL_USERSPACE);
                if (sends) sent_bytes_ += o.bytes;
                break;
            }
            case Kind::kCalculate:
                spins_.push_back(static_cast<double>(o.bytes) * calculations);
                GOAL_Call(graph_, spins_.back() > 0 ? spin : nothing, &spins_.back());
                break;
            case Kind::kCombine: {
                const Combination& c = schedule_.combination(o);
                const auto list = [&](const Operand& of, bool written) {
                    return pieces(of.offset, of.pieces, of.space, c.bytes(), written);
                };
                Pieces a = list(c.first, false), b = list(c.second, false), z = list(c.result, true);
                GOAL_LocalOpVec(graph_, a.addresses.data(), a.lengths.data(), a.count(), b.addresses.data(),
                                b.lengths.data(), b.count(), z.addresses.data(), z.lengths.data(), z.count(),
                                static_cast<char>(c.type), static_cast<char>(c.width),
                                static_cast<char>(c.op), GOAL_USERSPACE, GOAL_USERSPACE, GOAL_USERSPACE);
                break;
            }
            case Kind::kCall:
                throw std::runtime_error("a call to a function of a program");
        }
    }

    const Schedule& schedule_;
    GOAL_Graph graph_;
    GOAL_Schedule compiled_ = nullptr;
    std::array<std::vector<std::byte>, kSpaces + 2> memory_;  // by space; what nobody looks at at the end
    std::vector<double> spins_;                               // nanoseconds
    std::uint64_t sent_bytes_ = 0;
};

// What rank 0 says of a repetition that takes long.
class Watch {
 public:
    Watch(GOAL_Group group, std::uint32_t operations, const LiveOptions& options)
        : group_(*group->group), operations_(operations), options_(options), next_s_(options.every_s) {}

    void begin(std::uint32_t repetition) {
        repetition_ = repetition;
        finished_ = 0;
        started_before_ = started();
    }
    // This rank's part has ended: rank 0 returns when those of all have.
    void end() {
        if (group_.rank() > 0) {
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            return;
        }
        for (++finished_; finished_ < group_.size(); progress()) hear();
    }
    void progress() {
        constexpr unsigned kPolls = 64;  // between two looks at the clock
        group_.progress();
        if (++polls_ % kPolls != 0 || group_.rank() > 0 || options_.every_s <= 0 ||
            seconds_since(begin_) < next_s_)
            return;
        hear();
        std::fprintf(
            stderr,
            "velo-goal: after %.0f s, repetition %u of %u: %u of %u ranks have finished; of rank 0's %u "
            "operations %llu have started\n",
            seconds_since(begin_), repetition_ + 1, options_.repetitions, finished_, group_.size(),
            operations_, static_cast<unsigned long long>(started() - started_before_));
        next_s_ = seconds_since(begin_) + options_.every_s;
    }

 private:
    void hear() {
        for (int there = 1; there != 0;) {
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            if (there == 0) return;
            MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ++finished_;
        }
    }
    std::uint64_t started() const {
        velo_performer_state state;
        group_.velo().velo_performer_observe(group_.performer(), &state);
        return state.operations;
    }

    library::Group& group_;
    std::uint32_t operations_;
    const LiveOptions& options_;
    Clock::time_point begin_ = Clock::now();
    double next_s_;
    unsigned polls_ = 0;
    std::uint32_t repetition_ = 0, finished_ = 0;
    std::uint64_t started_before_ = 0;
};

double time_of(GOAL_Schedule schedule, Watch& watch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const Clock::time_point begin = Clock::now();
    const GOAL_Handle run = GOAL_Run(schedule);
    while (GOAL_Test(run) == 0) watch.progress();
    const double seconds = seconds_since(begin);
    GOAL_Wait(run);
    return seconds;
}

// What rank 0 knows of each at the end.
struct Row {
    double operations, sent_bytes, calculated_s, median_s, most_s;
};

void print(const std::vector<Row>& rows, const LiveOptions& options) {
    if (options.json) {
        nlohmann::json ranks = nlohmann::json::array();
        for (const Row& row : rows)
            ranks.push_back({{"operations", static_cast<std::uint64_t>(row.operations)},
                             {"sent_bytes", static_cast<std::uint64_t>(row.sent_bytes)},
                             {"calculated_s", row.calculated_s},
                             {"median_s", row.median_s},
                             {"most_s", row.most_s}});
        std::printf("%s\n",
                    nlohmann::json{{"repetitions", options.repetitions}, {"ranks", ranks}}.dump().c_str());
        return;
    }
    std::printf("%6s %12s %14s %15s %13s %13s\n", "rank", "operations", "sent, bytes", "calculated, us",
                "median, us", "longest, us");
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
        std::printf("%6zu %12.0f %14.0f %15.1f %13.1f %13.1f\n", rank, rows[rank].operations,
                    rows[rank].sent_bytes, 1e6 * rows[rank].calculated_s, 1e6 * rows[rank].median_s,
                    1e6 * rows[rank].most_s);
    const auto slowest = std::ranges::max_element(rows, {}, &Row::median_s);
    std::printf("repetitions: %u; rank %td takes longest\n", options.repetitions, slowest - rows.begin());
}

void execute(const Schedule& schedule, const LiveOptions& options) {
    GOAL_Group group;
    GOAL_InitComm(MPI_COMM_WORLD, &group);
    {
        const Part part(group, schedule, options.calculations);
        Watch watch(group, schedule.count(), options);
        std::vector<double> times;
        for (std::uint32_t i = 0; i < options.repetitions; ++i) {
            watch.begin(i);
            times.push_back(time_of(part.compiled(), watch));
            watch.end();
        }
        std::ranges::sort(times);
        const Row row{static_cast<double>(schedule.count()), static_cast<double>(part.sent_bytes()),
                      part.calculated_s(), times[times.size() / 2], times.back()};
        constexpr int kNumbers = sizeof(Row) / sizeof(double);
        std::vector<Row> rows(schedule.size());
        MPI_Gather(&row, kNumbers, MPI_DOUBLE, rows.data(), kNumbers, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (schedule.rank() == 0) print(rows, options);
    }
    GOAL_FreeGroup(&group);
}

}  // namespace

int run_live(Source source, const LiveOptions& options) {
    MPI_Init(nullptr, nullptr);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    source.processes = static_cast<std::uint32_t>(size);
    Loaded loaded;
    std::string wrong;
    try {
        loaded = load(source);
        if (loaded.program.size() != source.processes)
            throw std::runtime_error(source.what + " is for " + std::to_string(loaded.program.size()) +
                                     " ranks, and there are " + std::to_string(size) + ": mpirun -np " +
                                     std::to_string(loaded.program.size()));
        if (rank == 0) refuse_what_cannot_end(loaded.program);
    } catch (const std::exception& error) {
        wrong = error.what();
    }
    int first = wrong.empty() ? size : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == rank) std::fprintf(stderr, "velo-goal: %s\n", wrong.c_str());
    if (first == size) execute(loaded.program.schedules[static_cast<std::size_t>(rank)], options);
    MPI_Finalize();
    return first == size ? 0 : 1;
}

}  // namespace velo::goal
