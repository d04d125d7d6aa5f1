// Memory of the ranks of a job: when MPI has started, when each has sent to each other, and when they have
// worked.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "modes.h"
#include "options.h"

namespace velo::bench {
namespace {

constexpr std::array<const char*, 4> kKinds{"Pss", "Pss_Anon", "Pss_File", "Pss_Shmem"};
constexpr int kBusyMessages = 32;
constexpr int kBusyBytes = 2048;

using Kibibytes = std::array<double, kKinds.size()>;

// -1 where the kernel does not tell.
Kibibytes read_smaps() {
    Kibibytes kib;
    kib.fill(-1);
    std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
    if (file == nullptr)
        throw UsageError("cannot read /proc/self/smaps_rollup (Linux 4.14 or newer is needed)");
    char line[256];
    char key[256];
    double value = 0;
    while (std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "%255[^:]: %lf", key, &value) == 2)
            for (std::size_t i = 0; i < kKinds.size(); ++i)
                if (std::strcmp(key, kKinds[i]) == 0) kib[i] = value;
    std::fclose(file);
    return kib;
}

// The ranks read while all others wait: what they share is shared out among all of them.
void print_memory(const char* when, int rank, int ranks) {
    Kibibytes sum{};
    Kibibytes largest{};
    MPI_Barrier(MPI_COMM_WORLD);
    const Kibibytes mine = read_smaps();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(mine.data(), sum.data(), kKinds.size(), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine.data(), largest.data(), kKinds.size(), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (std::size_t i = 0; rank == 0 && i < kKinds.size(); ++i)
        std::printf("memory %s %s %.6g %.6g\n", when, kKinds[i], sum[i] / ranks, largest[i]);
}

// From each rank to each other. MPI_Alltoall may send small blocks by way of other ranks.
void send_to_every_peer(int rank, int ranks, int messages, int bytes) {
    static char out[kBusyBytes];
    static char in[kBusyBytes];
    for (int distance = 1; distance < ranks; ++distance)
        for (int i = 0; i < messages; ++i)
            MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + distance) % ranks, 0, in, bytes, MPI_BYTE,
                         (rank + ranks - distance) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace

int run_memory(const Words&, int rank) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    print_library(rank);
    print_memory("started", rank, ranks);
    send_to_every_peer(rank, ranks, 1, 64);
    print_memory("connected", rank, ranks);
    send_to_every_peer(rank, ranks, kBusyMessages, kBusyBytes);
    print_memory("used", rank, ranks);
    if (rank == 0) std::puts("end");
    return 0;
}

}  // namespace velo::bench
