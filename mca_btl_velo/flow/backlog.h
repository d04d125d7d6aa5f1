// DATA that had to wait for credits says so (wire kind kBackloggedData): each packet that waited, or the
// first of each run that leaves a queue.
#pragma once

#include "flow/emitter.h"

namespace velo::flow {

class Backlog {
 public:
    // Instead of Policy::data_retrieved.
    virtual void backlogged_data_retrieved(FlowIndex from, Emitter& out) = 0;

 protected:
    ~Backlog() = default;
};

}  // namespace velo::flow
