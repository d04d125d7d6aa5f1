// Messages that calls have sent, and how many of them waited for credits: the barriers between calls send
// messages too, which wait as the scheduler has it. By Velo's variables of MPI_T; nothing without them.
#pragma once

#include <mpi.h>

namespace velo::bench {

class CallCounts {
 public:
    CallCounts();
    ~CallCounts();
    CallCounts(const CallCounts&) = delete;
    CallCounts& operator=(const CallCounts&) = delete;

    void begin() { add(-1); }
    void end() { add(1); }

    // Of this process.
    long messages() const { return counts_[0]; }
    long delayed() const { return counts_[1]; }

 private:
    void add(long sign);

    bool is_open_ = false;
    MPI_T_pvar_session session_{};
    MPI_T_pvar_handle handles_[2]{};
    bool has_[2] = {false, false};
    long counts_[2] = {0, 0};
};

}  // namespace velo::bench
