#include "tune.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "collectives/algorithms/choice.h"
#include "part.h"

namespace velo::goal {
namespace {

using collectives::Algorithm;

// All buffers of an operation at one rank.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr double kFirstLineSeconds = 2;
// Of broadcasts by multicast, which are asked for by a parameter of their own.
constexpr std::string_view kLeaders = "leaders";
// Its blocks are those of lists, which are no matter of a size.
bool is_in_lists(std::string_view operation) {
    return operation == "exchange" || operation.ends_with('v');
}

bool has_sizes(std::string_view operation) {
    return operation != "barrier";
}

// What is to be measured at some number of ranks.
struct Case {
    std::string_view operation;
    std::uint64_t bytes;
};

std::vector<Case> cases(const TuneOptions& options) {
    std::vector<std::string_view> operations(options.operations.begin(), options.operations.end());
    for (const Algorithm& a : collectives::algorithms())
        if (options.operations.empty() && !is_in_lists(a.operation) &&
            (operations.empty() || operations.back() != a.operation))
            operations.push_back(a.operation);
    std::vector<std::uint64_t> sizes = options.sizes;
    std::ranges::sort(sizes);
    std::vector<Case> list;
    for (const std::string_view operation : operations) {
        if (has_sizes(operation))
            for (const std::uint64_t bytes : sizes) list.push_back({operation, bytes});
        else
            list.push_back({operation, 0});
    }
    return list;
}

std::vector<std::uint32_t> counts(const TuneOptions& options, std::uint32_t all) {
    std::vector<std::uint32_t> list = options.ranks;
    for (std::uint32_t ranks = 2; options.ranks.empty() && ranks <= all; ranks *= 2) list.push_back(ranks);
    if (options.ranks.empty() && !std::has_single_bit(all)) list.push_back(all);
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
}

// Ranks of each node if they lie node by node, so many at most on the last, as coll velo has it; else 1.
std::uint32_t ranks_on_node(MPI_Comm comm) {
    int rank, size, leader;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm node;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Allreduce(&rank, &leader, 1, MPI_INT, MPI_MIN, node);
    MPI_Comm_free(&node);
    std::vector<int> leaders(static_cast<std::size_t>(size));
    MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, comm);
    const auto second = std::ranges::find_if(leaders, [](int led_by) { return led_by != 0; });
    const auto each = second - leaders.begin();
    for (std::ptrdiff_t i = 0; i < size; ++i)
        if (leaders[static_cast<std::size_t>(i)] != i / each * each) return 1;
    return static_cast<std::uint32_t>(each);
}

collectives::Request request_of(const Case& c, std::uint32_t rank, std::uint32_t size,
                                std::uint32_t on_node = 1) {
    collectives::Request request;
    request.rank = rank;
    request.size = size;
    request.on_node = on_node;
    request.bytes = c.bytes;
    request.reduction = {Operator::kAdd, Type::kFloat, 64};
    if (c.bytes % sizeof(double) != 0) request.reduction = {};
    return request;
}

struct Candidate {
    Candidate(const Algorithm* algorithm, const collectives::Request& request, GOAL_Group group)
        : algorithm(algorithm) {
        std::string error;
        schedule = compile(algorithm->make(request), &error);
        if (!schedule) throw std::runtime_error(error);
        part = std::make_unique<Part>(group, *schedule, 0.0);
    }

    const Algorithm* algorithm;
    std::optional<Schedule> schedule;
    std::unique_ptr<Part> part;
    std::uint32_t repetitions = 1;
    std::vector<double> seconds;  // of a run, by round
    double median = 0;
};

// The ranks that measure together: the first so many.
class Bench {
 public:
    Bench(MPI_Comm comm, const TuneOptions& options)
        : comm_(comm), options_(options), on_node_(ranks_on_node(comm)) {
        GOAL_InitComm(comm, &group_);
        rank_ = static_cast<std::uint32_t>(GOAL_MyRank_r(group_));
        size_ = static_cast<std::uint32_t>(GOAL_GroupSize_r(group_));
        barrier_.emplace_back(collectives::find("barrier", "dissemination"),
                              request_of({"barrier", 0}, rank_, size_), group_);
    }
    ~Bench() {
        barrier_.clear();
        GOAL_FreeGroup(&group_);
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }

    // Those that serve the case, with their times.
    std::vector<Candidate> measure(const Case& c) {
        std::vector<Candidate> candidates;
        const collectives::Request request = request_of(c, rank_, size_, on_node_);
        for (const Algorithm& a : collectives::algorithms())
            if (a.operation == c.operation && a.name != kLeaders && a.serves(request))
                candidates.emplace_back(&a, request, group_);
        const bool synchronises = !has_sizes(c.operation);
        for (Candidate& candidate : candidates) {
            double once = run(candidate, 2, synchronises);
            MPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_DOUBLE, MPI_MAX, comm_);
            candidate.repetitions =
                static_cast<std::uint32_t>(std::clamp(options_.block_s / std::max(once, 1e-9), 1.0, 1e5));
        }
        for (std::uint32_t round = 0; round < options_.rounds; ++round)
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                Candidate& candidate = candidates[(round + i) % candidates.size()];
                candidate.seconds.push_back(run(candidate, candidate.repetitions, synchronises));
            }
        for (Candidate& candidate : candidates) {
            MPI_Allreduce(MPI_IN_PLACE, candidate.seconds.data(), static_cast<int>(options_.rounds),
                          MPI_DOUBLE, MPI_MAX, comm_);
            std::ranges::sort(candidate.seconds);
            candidate.median = candidate.seconds[candidate.seconds.size() / 2];
        }
        return candidates;
    }

 private:
    // Seconds of a run, from its start to its end, at this rank.
    double run(const Candidate& candidate, std::uint32_t repetitions, bool synchronises) {
        double seconds = 0;
        GOAL_Wait(GOAL_Run(barrier_.front().part->compiled()));
        for (std::uint32_t i = 0; i < repetitions; ++i) {
            if (!synchronises) GOAL_Wait(GOAL_Run(barrier_.front().part->compiled()));
            const Clock::time_point begin = Clock::now();
            GOAL_Wait(GOAL_Run(candidate.part->compiled()));
            seconds += seconds_since(begin);
        }
        return seconds / repetitions;
    }

    MPI_Comm comm_;
    const TuneOptions& options_;
    std::uint32_t on_node_;
    GOAL_Group group_;
    std::uint32_t rank_, size_;
    std::vector<Candidate> barrier_;  // one
};

// What rank 0 writes.
class Table {
 public:
    explicit Table(const TuneOptions& options) : options_(options) {}

    void begin(std::uint32_t all) {
        char host[MPI_MAX_PROCESSOR_NAME], date[32];
        int length;
        MPI_Get_processor_name(host, &length);
        const std::time_t now = std::time(nullptr);
        std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
        text_ =
            "# Rules for coll_velo_choices: OPERATION RANKS BYTES ALGORITHM; the last one that matches "
            "counts.\n"
            "# Measured by velo-goal tune on " +
            std::string(host) + ", " + date + ": " + std::to_string(all) + " ranks at most, medians of " +
            std::to_string(options_.rounds) + " rounds,\n# in microseconds of the slowest rank.\n";
    }
    void begin_ranks(std::uint32_t first, std::uint32_t last) {
        ranks_ = std::to_string(first) + "-" + std::to_string(last);
        text_ += "\n# " + std::to_string(first) + " ranks\n";
    }
    void add(const Case& c, const std::vector<Candidate>& candidates, std::uint32_t ranks) {
        const bool is_first = operation_ != c.operation || counted_ != ranks;
        operation_ = c.operation;
        counted_ = ranks;
        if (is_first) kept_ = own_.choose(c.operation, request_of(c, 0, ranks));
        const Candidate& best = *std::ranges::min_element(candidates, {}, &Candidate::median);
        const auto kept = std::ranges::find(candidates, kept_, &Candidate::algorithm);
        const Algorithm* before = is_first ? nullptr : kept_;
        if (kept == candidates.end() || best.median * (1 + options_.margin_percent / 100) < kept->median)
            kept_ = best.algorithm;
        text_ += "# " + std::string(c.operation) + " " + std::to_string(c.bytes) + ":";
        for (const Candidate& candidate : candidates) {
            char us[40];
            std::snprintf(us, sizeof us, " %.2f", 1e6 * candidate.median);
            text_ += (&candidate == &candidates.front() ? " " : ", ") +
                     std::string(candidate.algorithm->name) + us;
        }
        text_ += '\n';
        if (kept_ != before)
            text_ += std::string(c.operation) + " " + ranks_ + " " + std::to_string(is_first ? 0 : c.bytes) +
                     " " + std::string(kept_->name) + '\n';
    }
    // What has come since the last time: whoever interrupts a long run keeps what it has.
    void save() {
        if (options_.output == "-") {
            std::fwrite(text_.data() + saved_, 1, text_.size() - saved_, stdout);
            std::fflush(stdout);
        } else {
            std::ofstream file(options_.output, saved_ == 0 ? std::ios::trunc : std::ios::app);
            file << text_.substr(saved_);
            if (!file.flush()) throw std::runtime_error("cannot write " + options_.output);
        }
        saved_ = text_.size();
    }

 private:
    const TuneOptions& options_;
    std::size_t saved_ = 0;  // of text_
    const collectives::Choices own_;
    std::string text_, ranks_;
    std::string_view operation_;
    std::uint32_t counted_ = 0;
    const Algorithm* kept_ = nullptr;  // that of the size before
};

bool fits(const Case& c, std::uint32_t ranks) {
    return c.bytes * ranks <= kMostBytes;
}

// Others sleep meanwhile: where ranks share a core, those that poll would be measured, too.
void wait_for_all() {
    MPI_Request everybody;
    MPI_Ibarrier(MPI_COMM_WORLD, &everybody);
    for (int there = 0; there == 0;) {
        MPI_Test(&everybody, &there, MPI_STATUS_IGNORE);
        if (there == 0) usleep(1000);
    }
}

void measure_all(const TuneOptions& options, std::uint32_t all, int rank) {
    const std::vector<std::uint32_t> sizes = counts(options, all);
    const std::vector<Case> list = cases(options);
    const Clock::time_point begin = Clock::now();
    double next_s = std::min(options.every_s, kFirstLineSeconds);
    Table table(options);
    table.begin(all);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, rank < static_cast<int>(sizes[i]) ? 0 : MPI_UNDEFINED, rank, &comm);
        if (comm != MPI_COMM_NULL) {
            Bench bench(comm, options);
            table.begin_ranks(sizes[i], i + 1 < sizes.size() ? sizes[i + 1] - 1 : sizes[i]);
            for (std::size_t j = 0; j < list.size(); ++j) {
                if (!fits(list[j], bench.size())) continue;
                table.add(list[j], bench.measure(list[j]), bench.size());
                if (rank == 0) table.save();
                if (rank > 0 || options.every_s <= 0 || seconds_since(begin) < next_s) continue;
                std::fprintf(stderr, "velo-goal: after %.0f s, %zu of %zu cases: %u ranks, %s, %llu bytes\n",
                             seconds_since(begin), i * list.size() + j + 1, sizes.size() * list.size(),
                             bench.size(), std::string(list[j].operation).c_str(),
                             static_cast<unsigned long long>(list[j].bytes));
                next_s = seconds_since(begin) + options.every_s;
            }
        }
        if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
        wait_for_all();
    }
    if (rank == 0) table.save();
}

void check(const TuneOptions& options, std::uint32_t all) {
    for (const std::string& operation : options.operations)
        if (is_in_lists(operation) ||
            std::ranges::find(collectives::algorithms(), operation, &Algorithm::operation) ==
                collectives::algorithms().end())
            throw std::runtime_error("--operations: there is no " + operation +
                                     "; velo-goal list shows them");
    for (const std::uint32_t ranks : options.ranks)
        if (ranks < 2 || ranks > all)
            throw std::runtime_error("--ranks " + std::to_string(ranks) + ": 2 to " + std::to_string(all) +
                                     ", as mpirun has started");
    // Told before the time that it takes.
    if (options.output != "-" && !std::ofstream(options.output, std::ios::app))
        throw std::runtime_error("cannot write " + options.output);
    if (all < 2) throw std::runtime_error("tune needs two ranks at least: mpirun -np N velo-goal tune");
}

}  // namespace

int tune(const TuneOptions& options) {
    MPI_Init(nullptr, nullptr);
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    try {
        if (rank == 0) check(options, static_cast<std::uint32_t>(size));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "velo-goal: %s\n", error.what());
        wrong = 1;
    }
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    try {
        if (wrong == 0) measure_all(options, static_cast<std::uint32_t>(size), rank);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "velo-goal: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return wrong;
}

}  // namespace velo::goal
