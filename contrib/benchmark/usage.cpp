#include "options.h"

namespace velo::bench {

std::string usage() {
    return R"(Usage: velo-mpi-bench [options] [benchmark ...]

Measures MPI with the benchmarks, options and output of the IMB-MPI1 user's guide.

  -npmin N              run on N, 2N, 4N ... and all processes (default 2)
  -multi 0|1            run as many groups as fit at once: report all groups together (0) or each (1)
  -msglog [MIN:]MAX     message sizes 0 and 2^MIN to 2^MAX bytes (default 0:22)
  -msglen FILE          message sizes from a file, one per line
  -zero_size on|off     include size 0 in -msglog (default on)
  -iter N[,MB]          at most N repetitions (1000) and MB megabytes (40) per sample
  -iter_policy POLICY   dynamic (default), multiple_np, auto or off: how repetitions adapt to -time
  -time SECONDS         longest run time per sample (default 10)
  -mem GB               most memory for message buffers per process (default 1)
  -window_size N        messages in flight of Uniband and Biband (default 256, fewer above 64 MiB)
  -root_shift on|off    move the root of a collective on at each repetition (default off)
  -sync on|off          synchronise before each repetition of a collective (default on)
  -data_check 0|1       1: verify the data of every repetition and add the column "defects";
                        0 (default): verify the warm-up repetition only
  -list                 name the benchmarks
  -h                    this text

Beside the IMB's there are, where they are named, Touched (ping-pong with buffers that are written and read each time),
Blocking (a window of MPI_Send, then a reply), Pairwise (an alltoall of messages, to all and then from all) and Incast (a
window from everyone to rank 0).

Other modes:
  velo-mpi-bench points BENCHMARK [options]
                        one benchmark, a line of words for each size, for other programs
  velo-mpi-bench phases [executions [bytes [divisors]]]
                        a program whose pattern changes, to make traces of
  velo-mpi-bench memory
                        proportional set size of the ranks
  velo-mpi-bench flood MESSAGES BYTES SECONDS
                        resident memory of rank 0, which rank 1 floods

Options of points:
  --bytes A,B,...       sizes (default 2048)
  --seconds S           about how long to measure a size (default 0.5): five batches, of which the median counts
  --repetitions N       most repetitions of a size
  --window N            messages in flight (default 1); --one-buffer 1: all in one buffer, but for those that are checked
  --active N            the benchmark's ranks, the others wait (default: all)
  --groups N            so many times --active ranks, each group for itself and at the same time (default 1)
  --calls N             exactly so many calls, each after a barrier: for counts, which do not depend on the time that calls take;
                        with Velo a line "counted" has the messages of the calls, and how many of them waited for credits
  --request 1           a collective as a request that is waited for
  --touch 1             a collective's buffers are written before each call and read after it, a float of each 64 bytes
  --hold N              a rooted collective moves its root on after N repetitions
  --line S              for two ranks, before and after each size: the time of a cache line that they bounce, measured for S seconds

Exit status: 0, 1 when a data check failed, 2 for a wrong command line.
)";
}

}  // namespace velo::bench
