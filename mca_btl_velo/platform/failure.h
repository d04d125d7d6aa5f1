// Failure: thrown inside the engine's set-up code, turned into a status and a message at the C interface.
#pragma once

#include <stdexcept>
#include <string>

#include "platform/status.h"

namespace velo {

class Failure : public std::runtime_error {
 public:
    Failure(velo_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
    velo_status status() const { return status_; }

 private:
    velo_status status_;
};

}  // namespace velo
