// Failure: thrown inside the engine, turned into a status and a message where C calls it.
#pragma once

#include <new>
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

// Runs `action`; what it throws is reported as a status and a text, without further allocations, and the
// status returned. Every exception of the engine and of the library is a std::exception; what is not, such as
// the unwinding of a thread that is being cancelled, must not be caught.
template <typename Action, typename Report>
[[gnu::always_inline]] inline velo_status contained(Action action, Report report) {
    const auto caught = [&report](velo_status status, const char* text) {
        report(status, text);
        return status;
    };
    try {
        action();
        return VELO_OK;
    } catch (const Failure& failure) {
        return caught(failure.status(), failure.what());
    } catch (const std::bad_alloc&) {
        return caught(VELO_ERR_RESOURCE, "out of memory");
    } catch (const std::exception& other) {
        return caught(VELO_ERR_RESOURCE, other.what());
    }
}

}  // namespace velo
