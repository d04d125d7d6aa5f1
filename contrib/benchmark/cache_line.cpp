#include "cache_line.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace velo::bench {
namespace {

constexpr std::size_t kMapped = 4096;
constexpr long kTurns = 1000;  // to estimate the time of one
// Who shares its core with the other one must give way at some time.
constexpr int kSpins = 100000;

void* map_shared(const char* name, bool make) {
    const int file = shm_open(name, O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0) return nullptr;
    void* memory = make && ftruncate(file, kMapped) != 0
                       ? MAP_FAILED
                       : mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : memory;
}

// Seconds of a loop that leaves another thread of the core little.
double compute() {
    const double start = MPI_Wtime();
    std::uint64_t words[6] = {1, 2, 3, 4, 5, 6};
    for (std::uint64_t i = 0; i < 5000; ++i) {
        for (int word = 0; word < 6; ++word) words[word] += words[(word + 1) % 6] ^ i;
        // Otherwise the compiler works on several at once, or not at all.
        asm volatile(""
                     : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]), "+r"(words[4]),
                       "+r"(words[5]));
    }
    return MPI_Wtime() - start;
}

}  // namespace

CacheLine::CacheLine(MPI_Comm comm) : comm_(comm) {
    int size = 0;
    if (comm_ == MPI_COMM_NULL) return;
    MPI_Comm_size(comm_, &size);
    MPI_Comm_rank(comm_, &rank_);
    if (size != 2) return;
    long maker = getpid();
    MPI_Bcast(&maker, 1, MPI_LONG, 0, comm_);
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "/velo-mpi-bench-%ld", maker);
    void* memory = nullptr;
    if (rank_ == 0) memory = map_shared(name.data(), true);
    MPI_Barrier(comm_);
    if (rank_ == 1) memory = map_shared(name.data(), false);
    int both = memory != nullptr;
    MPI_Allreduce(MPI_IN_PLACE, &both, 1, MPI_INT, MPI_MIN, comm_);
    if (rank_ == 0 && memory) shm_unlink(name.data());
    line_ = static_cast<Line*>(memory);
    if (both || !line_) return;
    munmap(line_, kMapped);
    line_ = nullptr;
}

CacheLine::~CacheLine() {
    if (line_) munmap(line_, kMapped);
}

// Each process writes every second turn.
void CacheLine::bounce(long turns) {
    for (const long last = turn_ + 2 * turns; turn_ < last; turn_ += 2) {
        if (rank_ == 0) line_->turn.store(turn_ + 1, std::memory_order_release);
        const long awaited = rank_ == 0 ? turn_ + 2 : turn_ + 1;
        for (int spins = 0; line_->turn.load(std::memory_order_acquire) < awaited;)
            if (++spins % kSpins == 0) sched_yield();
        if (rank_ == 1) line_->turn.store(turn_ + 2, std::memory_order_release);
    }
}

double CacheLine::bounce_usec(double seconds) {
    // Short ones, and of them the first quartile: another program that takes a processor for a while is in
    // few.
    constexpr int kBatches = 21;
    const auto timed = [this](long turns) {
        MPI_Barrier(comm_);
        const double start = MPI_Wtime();
        bounce(turns);
        return (MPI_Wtime() - start) / static_cast<double>(turns);
    };
    const double once = std::max(std::min(timed(kTurns), timed(kTurns)), 1e-9);
    long turns = static_cast<long>(seconds / kBatches / once) + 1;
    MPI_Bcast(&turns, 1, MPI_LONG, 0, comm_);
    std::array<double, kBatches> usec{};
    for (double& batch : usec) batch = 1e6 * timed(turns) / 2;
    std::sort(usec.begin(), usec.end());
    return usec[kBatches / 4];
}

// Of short batches the fastest: what else runs on the machine, on the other thread of a core that is asleep
// too, makes them slower and never faster.
double CacheLine::slowdown() {
    constexpr int kBatches = 31;
    std::array<double, 2> fastest{};
    for (const bool both : {false, true}) {
        fastest[both] = std::numeric_limits<double>::max();
        const long done = ++turn_;
        MPI_Barrier(comm_);
        if (rank_ == 0) {
            for (int batch = 0; batch < kBatches; ++batch) fastest[both] = std::min(fastest[both], compute());
            line_->turn.store(done, std::memory_order_release);
        }
        while (line_->turn.load(std::memory_order_acquire) < done)
            if (both)
                compute();
            else
                usleep(500);
    }
    return fastest[0] > 0 ? fastest[1] / fastest[0] : 0;
}

CacheLine::Distance CacheLine::measure(double seconds) {
    if (!line_ || seconds <= 0) return {};
    const double usec = bounce_usec(seconds);
    return {.usec = usec, .slowdown = slowdown()};
}

}  // namespace velo::bench
