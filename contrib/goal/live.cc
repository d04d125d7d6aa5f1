#include "live.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "collectives/goal/check.h"
#include "goal.h"
#include "objects.h"
#include "part.h"
#include "trace_file.h"

namespace velo::goal {
namespace {

// Without these a run would not end, or fail.
void refuse_what_cannot_end(const Program& program) {
    std::string text;
    for (const Finding& finding : check(program))
        if (finding.kind == Finding::kDeadlock || finding.kind == Finding::kUnmatched ||
            finding.kind == Finding::kSize)
            text += (text.empty() ? "" : "\n  ") + finding.text;
    if (!text.empty()) throw std::runtime_error("refused, as it cannot come to its end:\n  " + text);
}

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

// Times of ranks of one node are those of one clock; others count from the barrier before the run.
bool share_a_clock() {
    MPI_Comm node;
    int size, all;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    int shared = size == all ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return shared != 0;
}

// Slices of a thread do not overlap: each operation gets the first thread that is free.
void draw(TraceFile& trace, const Program& program, const std::vector<double>& stamps) {
    const double first = stamps.empty() ? 0 : *std::ranges::min_element(stamps);
    const auto ns = [&](double seconds) { return static_cast<std::uint64_t>(1e9 * (seconds - first)); };
    const double* of_rank = stamps.data();
    std::vector<std::vector<TraceFile::Where>> where;  // by rank and operation
    std::vector<const double*> begins;                 // by rank
    for (const Schedule& schedule : program.schedules) {
        std::vector<Vertex> order(schedule.count());
        std::iota(order.begin(), order.end(), Vertex{0});
        const auto begin = [&](Vertex v) { return std::min(of_rank[2 * v], of_rank[2 * v + 1]); };
        std::ranges::sort(order, {}, begin);
        std::vector<double> free;
        where.emplace_back(schedule.count());
        for (const Vertex v : order) {
            auto thread = std::ranges::find_if(free, [&](double from) { return from <= begin(v); });
            if (thread == free.end()) thread = free.insert(free.end(), 0);
            *thread = of_rank[2 * v + 1];
            where.back()[v] = {schedule.rank(), static_cast<std::uint32_t>(thread - free.begin())};
            trace.slice(where.back()[v], ns(begin(v)), ns(of_rank[2 * v + 1]),
                        describe(schedule.operation(v), &schedule));
        }
        begins.push_back(of_rank);
        of_rank += std::size_t{2} * schedule.count();
    }
    std::uint32_t id = 0;
    for (const Match& m : matches(program)) {
        trace.leaves(where[m.from][m.send], ns(begins[m.from][2 * m.send]), std::to_string(id));
        trace.arrives(where[m.to][m.receive], ns(begins[m.to][2 * m.receive + 1]), std::to_string(id++));
    }
    trace.close();
}

// Collective; rank 0 draws.
void draw_all(TraceFile* trace, const Program& program, std::vector<double> stamps, double begin_s) {
    if (!share_a_clock())
        for (double& stamp : stamps) stamp -= begin_s;
    std::vector<int> counts, places;
    int all = 0;
    for (const Schedule& schedule : program.schedules) {
        places.push_back(all);
        counts.push_back(static_cast<int>(2 * schedule.count()));
        all += counts.back();
    }
    std::vector<double> of_all(trace == nullptr ? 0 : static_cast<std::size_t>(all));
    MPI_Gatherv(stamps.data(), static_cast<int>(stamps.size()), MPI_DOUBLE, of_all.data(), counts.data(),
                places.data(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (trace != nullptr) draw(*trace, program, of_all);
}

void execute(const Program& program, const Schedule& schedule, const LiveOptions& options, TraceFile* trace) {
    const bool traced = !options.trace.empty();
    GOAL_Group group;
    GOAL_InitComm(MPI_COMM_WORLD, &group);
    {
        const Part part(group, schedule, options.calculations, traced);
        Watch watch(group, (traced ? 3 : 1) * schedule.count(), options);
        double begin_s = 0;
        std::vector<double> times;
        for (std::uint32_t i = 0; i < options.repetitions; ++i) {
            watch.begin(i);
            times.push_back(time_of(part.compiled(), watch));
            begin_s = std::chrono::duration<double>(Clock::now().time_since_epoch()).count() - times.back();
            watch.end();
        }
        std::ranges::sort(times);
        const Row row{static_cast<double>(schedule.count()), static_cast<double>(part.sent_bytes()),
                      part.calculated_s(), times[times.size() / 2], times.back()};
        constexpr int kNumbers = sizeof(Row) / sizeof(double);
        std::vector<Row> rows(schedule.size());
        MPI_Gather(&row, kNumbers, MPI_DOUBLE, rows.data(), kNumbers, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (schedule.rank() == 0) print(rows, options);
        if (traced) draw_all(trace, program, part.stamps(), begin_s);
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
    std::optional<TraceFile> trace;
    std::string wrong;
    try {
        loaded = load(source);
        if (loaded.program.size() != source.processes)
            throw std::runtime_error(source.what + " is for " + std::to_string(loaded.program.size()) +
                                     " ranks, and there are " + std::to_string(size) + ": mpirun -np " +
                                     std::to_string(loaded.program.size()));
        if (rank == 0) refuse_what_cannot_end(loaded.program);
        if (rank == 0 && !options.trace.empty()) trace.emplace(options.trace);
    } catch (const std::exception& error) {
        wrong = error.what();
    }
    int first = wrong.empty() ? size : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == rank) std::fprintf(stderr, "velo-goal: %s\n", wrong.c_str());
    if (first == size)
        execute(loaded.program, loaded.program.schedules[static_cast<std::size_t>(rank)], options,
                trace ? &*trace : nullptr);
    MPI_Finalize();
    return first == size ? 0 : 1;
}

}  // namespace velo::goal
