// The handles of the C interface, and how its functions catch failures.
#pragma once

#include <cstdio>
#include <type_traits>

#include "api/velo.h"
#include "engine/engine.h"
#include "messaging/messenger.h"
#include "platform/failure.h"

struct velo_engine {
    explicit velo_engine(const velo_config& config) : engine(config) {}

    velo::engine::Engine engine;
};

namespace velo::api {

messaging::Messenger& messenger_of(velo_messenger* messenger);

// Runs set-up code; a failure becomes its status and its message.
template <typename Action>
velo_status guarded(char* error, std::size_t error_bytes, Action action) {
    return contained(action,
                     [&](velo_status, const char* text) { std::snprintf(error, error_bytes, "%s", text); });
}

// Runs an operation of an open engine; a failure there means that a connection could not be completed or
// memory ran out, which the job cannot survive. Returns what the operation returns, after a failure the
// status or nothing (false, NULL).
template <typename Action>
[[gnu::always_inline]] inline auto guarded(engine::Engine& engine, Action action) {
    decltype(action()) result{};
    const velo_status status =
        contained([&] { result = action(); },
                  [&engine](velo_status caught, const char* text) { engine.fail(caught, text); });
    if constexpr (std::is_same_v<decltype(result), velo_status>) {
        if (status != VELO_OK) return status;
    }
    return result;
}

template <typename Action>
[[gnu::always_inline]] inline auto guarded(velo_engine* engine, Action action) {
    return guarded(engine->engine, action);
}

// Runs what may be left out where memory is short.
template <typename Action>
void attempted(Action action) {
    (void)contained(action, [](velo_status, const char*) {});
}

}  // namespace velo::api
