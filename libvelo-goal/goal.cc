// Beginning and end, schedules, runs, errors.
#include "goal.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "objects.h"

namespace velo::library {
namespace {

// --- errors

std::atomic<GOAL_ErrorHandler> handler{GOAL_ErrorsAbort};
thread_local std::string last_error;

// --- the group of GOAL_Init

struct Process {
    std::mutex mutex;
    bool initialized = false, finalized = false;
    std::shared_ptr<Group> group;
};

Process& process() {
    static Process* the = new Process;  // GOAL_ may be called by the destructors of others
    return *the;
}

std::shared_ptr<Group> of_init() {
    require_mpi();
    std::lock_guard held(process().mutex);
    if (process().group == nullptr)
        throw Misuse{GOAL_ERR_STATE, "",
                     process().finalized ? "GOAL_Finalize has been called" : "call GOAL_Init before"};
    return process().group;
}
std::shared_ptr<Group> of(GOAL_Group group) {
    if (group == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "group", "is NULL"};
    require_mpi();
    return group->group;
}

int size_of(const std::shared_ptr<Group>& group) {
    return static_cast<int>(group->size());
}
int rank_in(const std::shared_ptr<Group>& group) {
    return static_cast<int>(group->rank());
}

// --- runs

// Records that no handle names.
class FreeRuns {
 public:
    _GOAL_Run* take() {
        std::lock_guard held(mutex_);
        if (first_ == nullptr) return new _GOAL_Run;
        return std::exchange(first_, first_->next);
    }
    void give_back(_GOAL_Run* run) {
        run->number.fetch_add(1, std::memory_order_relaxed);
        std::lock_guard held(mutex_);
        run->next = std::exchange(first_, run);
    }

 private:
    std::mutex mutex_;
    _GOAL_Run* first_ = nullptr;
};

FreeRuns& free_runs() {
    static FreeRuns* all = new FreeRuns;
    return *all;
}

_GOAL_Schedule& checked(GOAL_Schedule schedule) {
    if (schedule == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "sched", "is NULL"};
    return *schedule;
}

_GOAL_Run& checked(GOAL_Handle handle) {
    if (handle._run == nullptr)
        throw Misuse{GOAL_ERR_ARGUMENT, "handle", "is that of a run that was not started"};
    if (handle._run->number.load(std::memory_order_relaxed) != handle._number)
        throw Misuse{GOAL_ERR_ARGUMENT, "handle",
                     "has been waited for already, or its schedule has been freed"};
    require_open(*handle._run->schedule->group, "handle");
    return *handle._run;
}

// Looks at the run, without doing anything for it.
bool is_over(_GOAL_Run& run) {
    if (run.run == nullptr) return true;
    if (is_released()) return false;
    const _GOAL_Schedule& schedule = *run.schedule;
    if (!schedule.table.velo_goal_run_is_over(run.run)) return false;
    run.result = schedule.table.velo_goal_run_end(std::exchange(run.run, nullptr));
    --schedule.group->under_way;
    return true;
}

void end(_GOAL_Run& run) {
    *run.link = run.next;
    if (run.next != nullptr) run.next->link = run.link;
    free_runs().give_back(&run);
}

void require_success(const velo_goal_table& velo, const velo_goal_result& result, std::uint32_t rank) {
    if (result.status == VELO_OK) return;
    std::string text = "the run has failed";
    if (result.vertex != VELO_GOAL_NO_VERTEX) text += " at vertex " + std::to_string(result.vertex);
    if (result.rank != rank) text += " of rank " + std::to_string(result.rank);
    if (result.peer != VELO_GOAL_ANY) text += ", with rank " + std::to_string(result.peer);
    throw Misuse{GOAL_ERR_RUN, "handle", text + ": " + velo.velo_goal_reason(result.status)};
}

velo_status call(void* schedule, std::uint32_t number) {
    const Function& called = static_cast<const _GOAL_Schedule*>(schedule)->functions[number];
    called.function(called.argument);
    return VELO_OK;
}

}  // namespace

void tell(const char* call, const Misuse& misuse) {
    last_error =
        std::string(call) + ": " + misuse.argument + (misuse.argument.empty() ? "" : ": ") + misuse.text;
    handler.load()(misuse.error, last_error.c_str());
}

}  // namespace velo::library

using namespace velo::library;

extern "C" {

void GOAL_ErrorsAbort(int error, const char* text) {
    std::fprintf(stderr, "velo-goal: %s\n", text);
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) MPI_Abort(MPI_COMM_WORLD, -error);
    std::abort();
}

void GOAL_ErrorsReturn(int, const char*) {}

GOAL_ErrorHandler GOAL_SetErrorHandler(GOAL_ErrorHandler wanted) {
    return handler.exchange(wanted != nullptr ? wanted : GOAL_ErrorsAbort);
}

const char* GOAL_ErrorText(void) {
    return last_error.c_str();
}

int GOAL_Init(void) {
    return attempt("GOAL_Init", [] {
        std::lock_guard held(process().mutex);
        if (process().initialized) throw Misuse{GOAL_ERR_STATE, "", "has been called already"};
        process().group = Group::open(MPI_COMM_WORLD);
        process().initialized = true;
        return GOAL_SUCCESS;
    });
}

int GOAL_IsInitialized(void) {
    std::lock_guard held(process().mutex);
    return process().initialized;
}

int GOAL_Finalize(void) {
    return attempt("GOAL_Finalize", [] {
        const std::shared_ptr<Group> group = of_init();
        group->close();
        std::lock_guard held(process().mutex);
        process().group = nullptr;
        process().finalized = true;
        return GOAL_SUCCESS;
    });
}

int GOAL_IsFinalized(void) {
    std::lock_guard held(process().mutex);
    return process().group == nullptr;
}

int GOAL_GroupSize(void) {
    return attempt("GOAL_GroupSize", [] { return size_of(of_init()); });
}
int GOAL_MyRank(void) {
    return attempt("GOAL_MyRank", [] { return rank_in(of_init()); });
}

int GOAL_InitComm(MPI_Comm comm, GOAL_Group* group) {
    return attempt("GOAL_InitComm", [&] {
        if (group == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "group", "is NULL"};
        *group = nullptr;
        auto made = std::make_unique<_GOAL_Group>();
        made->group = Group::open(comm);
        *group = made.release();
        return GOAL_SUCCESS;
    });
}

int GOAL_FreeGroup(GOAL_Group* group) {
    return attempt("GOAL_FreeGroup", [&] {
        of(group == nullptr ? nullptr : *group)->close();
        delete std::exchange(*group, nullptr);
        return GOAL_SUCCESS;
    });
}

int GOAL_GroupSize_r(GOAL_Group group) {
    return attempt("GOAL_GroupSize_r", [&] { return size_of(of(group)); });
}
int GOAL_MyRank_r(GOAL_Group group) {
    return attempt("GOAL_MyRank_r", [&] { return rank_in(of(group)); });
}

GOAL_Graph GOAL_CreateGraph(void) {
    return attempt("GOAL_CreateGraph", GOAL_Graph{}, [] { return new _GOAL_Graph(of_init()); });
}
GOAL_Graph GOAL_CreateGraph_r(GOAL_Group group) {
    return attempt("GOAL_CreateGraph_r", GOAL_Graph{}, [&] { return new _GOAL_Graph(of(group)); });
}

int GOAL_FreeGraph(GOAL_Graph graph) {
    return attempt("GOAL_FreeGraph", [&] {
        if (graph == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "graph", "is NULL"};
        delete graph;
        return GOAL_SUCCESS;
    });
}

GOAL_Schedule GOAL_Compile(GOAL_Graph graph) {
    return attempt("GOAL_Compile", GOAL_Schedule{}, [&] {
        if (graph == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "graph", "is NULL"};
        require_open(*graph->group, "graph");
        if (graph->scratch_used > 0 && !graph->has_scratchpad)
            throw Misuse{GOAL_ERR_GRAPH, "graph",
                         "operations use " + std::to_string(graph->scratch_used) +
                             " bytes of a scratchpad that GOAL_AllocateScratchpad has not made"};
        auto made = std::make_unique<_GOAL_Schedule>(*graph);
        char error[4096] = "";
        switch (graph->table.velo_goal_compile(graph->graph, &made->schedule, error, sizeof error)) {
            case VELO_OK:
                return made.release();
            case VELO_ERR_RESOURCE:
                throw std::bad_alloc();
            default:
                throw Misuse{GOAL_ERR_GRAPH, "graph", error};
        }
    });
}

int GOAL_IsScheduleValid(GOAL_Schedule sched) {
    return sched != nullptr;
}

void GOAL_MakeScheduleReusable(GOAL_Schedule sched) {
    attempt("GOAL_MakeScheduleReusable", [&] {
        checked(sched);
        return GOAL_SUCCESS;
    });
}

int GOAL_FreeSchedule(GOAL_Schedule sched) {
    return attempt("GOAL_FreeSchedule", [&] {
        _GOAL_Schedule& schedule = checked(sched);
        for (_GOAL_Run* run = schedule.runs; run != nullptr; run = run->next)
            if (!is_over(*run)) throw Misuse{GOAL_ERR_STATE, "sched", "a run of it is under way"};
        while (schedule.runs != nullptr) end(*schedule.runs);
        delete &schedule;
        return GOAL_SUCCESS;
    });
}

GOAL_Handle GOAL_Run(GOAL_Schedule sched) {
    return attempt("GOAL_Run", GOAL_Handle{nullptr, 0}, [&] {
        _GOAL_Schedule& schedule = checked(sched);
        require_open(*schedule.group, "sched");
        _GOAL_Run* const run = free_runs().take();
        velo_goal_start start{};
        start.call = call;
        start.context = &schedule;
        if (schedule.table.velo_goal_run_start(schedule.group->runs(), schedule.schedule, &start,
                                               &run->run) != VELO_OK) {
            free_runs().give_back(run);
            throw std::bad_alloc();
        }
        ++schedule.group->under_way;
        run->schedule = &schedule;
        run->next = schedule.runs;
        run->link = &schedule.runs;
        if (run->next != nullptr) run->next->link = &run->next;
        schedule.runs = run;
        return GOAL_Handle{run, run->number.load(std::memory_order_relaxed)};
    });
}

int GOAL_Test(GOAL_Handle handle) {
    return attempt("GOAL_Test", [&] {
        _GOAL_Run& run = checked(handle);
        const Group& group = *run.schedule->group;
        if (!is_over(run)) group.velo().velo_goal_progress(group.performer());
        if (!is_over(run)) return 0;
        require_success(group.velo(), run.result, group.rank());
        return 1;
    });
}

int GOAL_Wait(GOAL_Handle handle) {
    return attempt("GOAL_Wait", [&] {
        _GOAL_Run& run = checked(handle);
        Group& group = *run.schedule->group;
        while (!is_over(run)) group.progress();
        const velo_goal_result result = run.result;
        end(run);
        require_success(group.velo(), result, group.rank());
        return GOAL_SUCCESS;
    });
}

int GOAL_IsExtensionAvailable(GOAL_ExtensionId ext) {
    return ext >= GOAL_EXTENSION_GROUPS && ext <= GOAL_EXTENSION_CALL;
}

}  // extern "C"
