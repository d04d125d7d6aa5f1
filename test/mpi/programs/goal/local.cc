// Every local operation on every type and width against the language, in user space and in the scratchpad,
// whole and cut within elements. C++, with the default arguments.
#include <goal.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

int tried = 0;

void require(bool condition, const char* what, int op, const char* type, std::size_t index) {
    if (condition) return;
    std::fprintf(stderr, "FAILED: %s, operation %d on %s, element %zu\n", what, op, type, index);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

template <typename T>
T expected(GOAL_Op op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        // In 128 bits nothing overflows; what is kept is the lower part.
        const __int128 x = a, y = b;
        switch (op) {
            case GOAL_ADD:
                return static_cast<T>(x + y);
            case GOAL_SUB:
                return static_cast<T>(x - y);
            case GOAL_MUL:
                return static_cast<T>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
            case GOAL_DIV:
                return static_cast<T>(b == 0 ? 0 : x / y);
            case GOAL_AND:
                return static_cast<T>(a & b);
            case GOAL_OR:
                return static_cast<T>(a | b);
            case GOAL_XOR:
                return static_cast<T>(a ^ b);
            default:
                break;
        }
    } else {
        switch (op) {
            case GOAL_ADD:
                return a + b;
            case GOAL_SUB:
                return a - b;
            case GOAL_MUL:
                return a * b;
            case GOAL_DIV:
                return a / b;
            default:
                break;
        }
    }
    return op == GOAL_MAX ? (a > b ? a : b) : op == GOAL_MIN ? (a < b ? a : b) : a;
}

GOAL_Schedule compiled(GOAL_Graph graph) {
    const GOAL_Schedule schedule = GOAL_Compile(graph);
    GOAL_FreeGraph(graph);
    return schedule;
}

void run(GOAL_Graph graph) {
    const GOAL_Schedule schedule = compiled(graph);
    GOAL_Wait(GOAL_Run(schedule));
    GOAL_FreeSchedule(schedule);
}

// At an odd address.
template <typename T>
struct Array {
    explicit Array(std::size_t count) : bytes(count * sizeof(T) + 1) {}
    void* data() { return bytes.data() + 1; }
    T operator[](std::size_t i) const {
        T value;
        std::memcpy(&value, bytes.data() + 1 + i * sizeof(T), sizeof(T));
        return value;
    }
    void set(std::size_t i, T value) { std::memcpy(bytes.data() + 1 + i * sizeof(T), &value, sizeof(T)); }
    std::vector<char> bytes;
};

template <typename T>
T interesting(std::mt19937_64& random) {
    if constexpr (std::is_integral_v<T>) {
        const T special[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(),
                             std::numeric_limits<T>::max()};
        return random() % 4 == 0 ? special[random() % 5] : static_cast<T>(random());
    } else {
        return static_cast<T>(static_cast<double>(random() % 2000001) / 1000 - 1000);
    }
}

template <typename T>
void check(Array<T>& a, Array<T>& b, Array<T>& result, std::size_t count, GOAL_Op op, const char* type,
           const char* what) {
    for (std::size_t i = 0; i < count; ++i) {
        const T want = expected(op, a[i], b[i]), have = result[i];
        require(std::memcmp(&want, &have, sizeof(T)) == 0 || (want != want && have != have), what, op, type,
                i);
    }
    ++tried;
}

template <typename T>
void all(GOAL_DataType type, const char* name) {
    constexpr std::size_t kCount = 1001;
    constexpr int kBytes = static_cast<int>(kCount * sizeof(T)), kWidth = 8 * sizeof(T);
    std::mt19937_64 random(kWidth);
    for (int number = GOAL_MAX; number <= GOAL_XOR; ++number) {
        const auto op = static_cast<GOAL_Op>(number);
        if (type == GOAL_FLOAT && op >= GOAL_AND) continue;
        Array<T> a(kCount), b(kCount), result(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            a.set(i, interesting<T>(random));
            b.set(i, interesting<T>(random));
        }
        // In user space.
        GOAL_Graph graph = GOAL_CreateGraph();
        GOAL_LocalOp(graph, a.data(), b.data(), result.data(), op, type, kWidth, kCount);
        run(graph);
        check(a, b, result, kCount, op, name, "whole");
        // Operands and result in the scratchpad, in place of the first one.
        graph = GOAL_CreateGraph();
        GOAL_AllocateScratchpad(graph, 2 * kBytes);
        void* const second = reinterpret_cast<void*>(static_cast<std::uintptr_t>(kBytes));
        const GOAL_Vertex in1 = GOAL_LocalOp(graph, a.data(), nullptr, nullptr, GOAL_COPY, GOAL_UINT, 8,
                                             kBytes, GOAL_USERSPACE, GOAL_USERSPACE, GOAL_SCRATCHPAD);
        const GOAL_Vertex in2 = GOAL_LocalOp(graph, b.data(), nullptr, second, GOAL_COPY, type, kWidth,
                                             kCount, GOAL_USERSPACE, GOAL_USERSPACE, GOAL_SCRATCHPAD);
        const GOAL_Vertex done = GOAL_LocalOp(graph, nullptr, second, nullptr, op, type, kWidth, kCount,
                                              GOAL_SCRATCHPAD, GOAL_SCRATCHPAD, GOAL_SCRATCHPAD);
        const GOAL_Vertex out = GOAL_LocalOp(graph, nullptr, nullptr, result.data(), GOAL_COPY, GOAL_UINT, 8,
                                             kBytes, GOAL_SCRATCHPAD);
        GOAL_Requires(graph, in1, done);
        GOAL_Requires(graph, in2, done);
        GOAL_Requires(graph, done, out);
        std::memset(result.data(), 0xa5, kBytes);
        run(graph);
        check(a, b, result, kCount, op, name, "scratchpad");
        // In pieces that end within elements.
        int one[] = {3, kBytes - 3}, two[] = {0, kBytes / 2 + 1, kBytes - kBytes / 2 - 1},
            three[] = {kBytes - 1, 1};
        const auto at = [](Array<T>& array, int bytes) {
            return static_cast<void*>(static_cast<char*>(array.data()) + bytes);
        };
        void *first[] = {at(a, 0), at(a, 3)}, *middle[] = {at(b, 0), at(b, 0), at(b, two[1])},
             *last[] = {at(result, 0), at(result, kBytes - 1)};
        graph = GOAL_CreateGraph();
        GOAL_LocalOpVec(graph, first, one, 2, middle, two, 3, last, three, 2, static_cast<char>(type),
                        static_cast<char>(kWidth), static_cast<char>(op));
        std::memset(result.data(), 0xa5, kBytes);
        run(graph);
        check(a, b, result, kCount, op, name, "pieces");
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    GOAL_Init();
    all<std::int8_t>(GOAL_SINT, "8 bits, signed");
    all<std::int16_t>(GOAL_SINT, "16 bits, signed");
    all<std::int32_t>(GOAL_SINT, "32 bits, signed");
    all<std::int64_t>(GOAL_SINT, "64 bits, signed");
    all<std::uint8_t>(GOAL_UINT, "8 bits");
    all<std::uint16_t>(GOAL_UINT, "16 bits");
    all<std::uint32_t>(GOAL_UINT, "32 bits");
    all<std::uint64_t>(GOAL_UINT, "64 bits");
    all<float>(GOAL_FLOAT, "float");
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
