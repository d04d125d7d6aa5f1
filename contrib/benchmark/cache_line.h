// A cache line that two processes of a machine bounce: how far apart their cores are, whatever MPI does.
#pragma once

#include <mpi.h>

#include <atomic>

namespace velo::bench {

class CacheLine {
 public:
    // Collective; there is no line unless it is of two processes with one /dev/shm.
    explicit CacheLine(MPI_Comm comm);
    ~CacheLine();
    CacheLine(const CacheLine&) = delete;
    CacheLine& operator=(const CacheLine&) = delete;

    // What tells how far apart the cores are, known to rank 0; zeros where there is no line.
    struct Distance {
        double usec = 0;      // of the line, one way
        double slowdown = 0;  // of a computing process while the other one computes: two threads of a core
    };
    // Collective.
    Distance measure(double seconds);

 private:
    struct alignas(64) Line {
        std::atomic<long> turn;
    };

    void bounce(long turns);
    double bounce_usec(double seconds);
    double slowdown();

    MPI_Comm comm_;
    int rank_ = 0;
    Line* line_ = nullptr;
    long turn_ = 0;
};

}  // namespace velo::bench
