#include "call_counts.h"

#include <cstring>

namespace velo::bench {
namespace {

constexpr const char* kNames[] = {"btl_velo_messages_sent", "btl_velo_messages_delayed"};

}  // namespace

CallCounts::CallCounts() {
    int provided = 0, variables = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    is_open_ = MPI_T_pvar_session_create(&session_) == MPI_SUCCESS;
    if (!is_open_ || MPI_T_pvar_get_num(&variables) != MPI_SUCCESS) return;
    for (int i = 0; i < variables; ++i) {
        char name[256] = "";
        int length = sizeof name, verbosity, kind, bind, only_read, continuous, atomic, count = 0;
        MPI_Datatype type;
        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &kind, &type, nullptr, nullptr, nullptr, &bind,
                                &only_read, &continuous, &atomic) != MPI_SUCCESS)
            continue;
        for (int which = 0; which < 2; ++which) {
            if (std::strcmp(name, kNames[which]) != 0 || type != MPI_UNSIGNED_LONG_LONG) continue;
            if (MPI_T_pvar_handle_alloc(session_, i, nullptr, &handles_[which], &count) != MPI_SUCCESS)
                continue;
            if (continuous == 0) MPI_T_pvar_start(session_, handles_[which]);
            has_[which] = count == 1;
        }
    }
}

CallCounts::~CallCounts() {
    if (!is_open_) return;
    MPI_T_pvar_session_free(&session_);
    MPI_T_finalize();
}

void CallCounts::add(long sign) {
    for (int which = 0; which < 2; ++which) {
        unsigned long long value = 0;
        if (has_[which] && MPI_T_pvar_read(session_, handles_[which], &value) == MPI_SUCCESS)
            counts_[which] += sign * static_cast<long>(value);
    }
}

}  // namespace velo::bench
