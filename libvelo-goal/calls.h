// How a call of goal.h tells what is wrong with it.
#pragma once

#include <new>
#include <string>

#include "goal.h"

namespace velo::library {

// Thrown within a call: what is wrong with which argument ("": with the call as such).
struct Misuse {
    int error;
    std::string argument;
    std::string text;
};

// Keeps the text for GOAL_ErrorText and tells the handler.
void tell(const char* call, const Misuse& misuse);

// Runs a call. One that fails returns `failure`, or the error where that is what it returns.
template <typename Result, typename Action>
Result attempt(const char* call, Result failure, Action action) {
    Misuse misuse{GOAL_ERR_MEMORY, "", "there is no more memory"};
    try {
        return action();
    } catch (const Misuse& caught) {
        misuse = caught;
    } catch (const std::bad_alloc&) {
    }
    tell(call, misuse);
    return failure;
}
template <typename Action>
int attempt(const char* call, Action action) {
    Misuse misuse{GOAL_ERR_MEMORY, "", "there is no more memory"};
    try {
        return action();
    } catch (const Misuse& caught) {
        misuse = caught;
    } catch (const std::bad_alloc&) {
    }
    tell(call, misuse);
    return misuse.error;
}

}  // namespace velo::library
