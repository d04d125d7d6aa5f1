// A cache line that two processes of a machine bounce: how far apart their cores are, whatever MPI does.
#pragma once

#include <mpi.h>

#include <atomic>
#include <utility>

namespace velo::bench {

class CacheLine {
 public:
    // Collective; there is no line unless it is of two processes with one /dev/shm.
    explicit CacheLine(MPI_Comm comm);
    ~CacheLine();
    CacheLine(const CacheLine&) = delete;
    CacheLine& operator=(const CacheLine&) = delete;

    // Microseconds one way, median and least of the batches; 0 where there is no line. Collective.
    std::pair<double, double> measure(double seconds);

 private:
    struct alignas(64) Line {
        std::atomic<long> turn;
    };

    void bounce(long turns);

    MPI_Comm comm_;
    int rank_ = 0;
    Line* line_ = nullptr;
    long turn_ = 0;
};

}  // namespace velo::bench
