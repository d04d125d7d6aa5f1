// Velo as this process has loaded it.
#pragma once

#include <string>

#include "api/velo_goal.h"

namespace velo::library {

struct Plugin {
    const velo_goal_table* table = nullptr;
    velo_performer* performer = nullptr;  // NULL: Velo cannot be used here
};

// The same one each time, from any thread; kept until MPI_Finalize. Without a performer `error` says why.
Plugin plugin_of_process(std::string* error);
// MPI_Finalize has begun: nothing of it can be used any more.
bool is_released();

}  // namespace velo::library
