// Every local operation on integers of each sign and on floats against the language. C++, with the default
// arguments.
#include <goal.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <type_traits>

namespace {

int tried = 0;

void require(bool condition, const char* what, int op, const char* type, std::size_t index) {
    if (condition) return;
    std::fprintf(stderr, "FAILED: %s, operation %d on %s, element %zu\n", what, op, type, index);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

// Of values with which no operation overflows.
template <typename T>
T expected(GOAL_Op op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (op == GOAL_AND) return a & b;
        if (op == GOAL_OR) return a | b;
        if (op == GOAL_XOR) return a ^ b;
    }
    switch (op) {
        case GOAL_ADD:
            return a + b;
        case GOAL_SUB:
            return a - b;
        case GOAL_MUL:
            return a * b;
        case GOAL_DIV:
            return a / b;
        case GOAL_MAX:
            return std::max(a, b);
        case GOAL_MIN:
            return std::min(a, b);
        default:
            return a;
    }
}

void run(GOAL_Graph graph) {
    const GOAL_Schedule schedule = GOAL_Compile(graph);
    GOAL_FreeGraph(graph);
    GOAL_Wait(GOAL_Run(schedule));
    GOAL_FreeSchedule(schedule);
}

template <typename T>
void all(GOAL_DataType type, const char* name) {
    for (int number = GOAL_MAX; number <= GOAL_XOR; ++number) {
        const auto op = static_cast<GOAL_Op>(number);
        if (type == GOAL_FLOAT && op >= GOAL_AND) continue;
        T a[100], b[100], result[100];
        for (int i = 0; i < 100; ++i) a[i] = static_cast<T>(150 - 4 * i), b[i] = static_cast<T>(3 * i + 1);
        if (type == GOAL_UINT)
            for (T& value : a) value += 1000;
        const GOAL_Graph graph = GOAL_CreateGraph();
        GOAL_LocalOp(graph, a, b, result, op, type, 8 * sizeof(T), 100);
        run(graph);
        for (int i = 0; i < 100; ++i) require(result[i] == expected(op, a[i], b[i]), "a value", op, name, i);
        ++tried;
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    GOAL_Init();
    all<std::int32_t>(GOAL_SINT, "32 bits, signed");
    all<std::uint64_t>(GOAL_UINT, "64 bits");
    all<double>(GOAL_FLOAT, "double");
    // Types and counts that GOAL_WTIME does not look at.
    double seconds[2] = {-1, -1};
    const GOAL_Graph graph = GOAL_CreateGraph();
    const GOAL_Vertex before =
        GOAL_LocalOp(graph, nullptr, nullptr, &seconds[0], GOAL_WTIME, GOAL_SINT, 7, -1);
    int length = sizeof(double);
    void* place = &seconds[1];
    const GOAL_Vertex after = GOAL_LocalOpVec(graph, nullptr, nullptr, 0, nullptr, nullptr, 0, &place,
                                              &length, 1, GOAL_UINT, 1, GOAL_WTIME);
    GOAL_Requires(graph, before, after);
    run(graph);
    require(seconds[0] > 0 && seconds[1] >= seconds[0], "time", GOAL_WTIME, "double", 0);
    // A send to oneself is a copy, as the paper has it.
    int from = 4711, to = 0, rank = GOAL_MyRank();
    const GOAL_Graph self = GOAL_CreateGraph();
    GOAL_Send(self, &from, sizeof from, rank);
    GOAL_Recv(self, &to, sizeof to, rank);
    run(self);
    require(to == 4711, "a message to oneself", GOAL_COPY, "int", 0);
    GOAL_Finalize();
    if (rank == 0) std::printf("tried=%d\n", tried);
    MPI_Finalize();
    return 0;
}
