// Rank 1 sends messages to rank 0, which calls MPI all the time and receives none of them until they have all
// been sent or a time has gone by; then it receives all, and prints its resident memory while that goes on.
#include <mpi.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "modes.h"
#include "options.h"

namespace velo::bench {
namespace {

constexpr int kFlood = 1;
constexpr int kFinished = 2;
constexpr double kStep = 0.02;  // seconds between two lines

long resident_kib() {
    long pages = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    std::fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

class Flood {
 public:
    Flood(int messages, int bytes, double seconds)
        : messages_(messages), bytes_(bytes), seconds_(seconds), data_(bytes), begin_(MPI_Wtime()) {}

    void send_all() {
        for (int i = 0; i < messages_; ++i) {
            std::memcpy(data_.data(), &i, sizeof i);
            MPI_Send(data_.data(), bytes_, MPI_BYTE, 0, kFlood, MPI_COMM_WORLD);
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 0, kFinished, MPI_COMM_WORLD);
    }

    // Returns the messages that came in the place of others.
    long receive_all() {
        // Posted first: a probe would search all that has come, which slows the flood down.
        int finished = 0;
        long wrong = 0;
        MPI_Request last;
        MPI_Irecv(nullptr, 0, MPI_BYTE, 1, kFinished, MPI_COMM_WORLD, &last);
        print("flood", true);
        while (!finished && MPI_Wtime() - begin_ < seconds_) {
            MPI_Test(&last, &finished, MPI_STATUS_IGNORE);
            print("flood", false);
        }
        print("flood", true);
        for (int i = 0; i < messages_; ++i) {
            int number = 0;
            MPI_Recv(data_.data(), bytes_, MPI_BYTE, 1, kFlood, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            std::memcpy(&number, data_.data(), sizeof number);
            wrong += number != i;
            if (i % 64 == 0) print("receive", false);
        }
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        print("receive", true);
        return wrong;
    }

 private:
    void print(const char* phase, bool always) {
        const double now = MPI_Wtime() - begin_;
        if (!always && now - printed_ < kStep) return;
        printed_ = now;
        std::printf("%s %.3f %ld\n", phase, now, resident_kib());
    }

    int messages_;
    int bytes_;
    double seconds_;
    std::vector<char> data_;
    double begin_;
    double printed_ = 0;
};

}  // namespace

int run_flood(const Words& words, int rank) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || words.size() != 3) throw UsageError("flood MESSAGES BYTES SECONDS, with two ranks");
    const int messages = parse_int("messages", words[0], 1, INT_MAX);
    const int bytes = parse_int("bytes", words[1], sizeof(int), 1 << 30);
    const double seconds = parse_positive("seconds", words[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    Flood flood(messages, bytes, seconds);
    if (rank == 1) {
        flood.send_all();
        return 0;
    }
    const long wrong = flood.receive_all();
    if (wrong) std::fprintf(stderr, "velo-mpi-bench: %ld messages have come in the place of others\n", wrong);
    return wrong ? 1 : 0;
}

}  // namespace velo::bench
