// The handles of the C interface, and how its functions catch failures.
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include "api/velo.h"
#include "endpoint/engine.h"
#include "platform/failure.h"

struct velo_engine {
    explicit velo_engine(const velo_config& config)
        : engine(config), context(config.context), fatal(config.fatal) {}

    velo::endpoint::Engine engine;
    void* context;
    decltype(velo_config::fatal) fatal;
};

namespace velo::api {

// Runs set-up code; a failure becomes its status and its message.
template <typename Action>
velo_status guarded(char* error, std::size_t error_bytes, Action action) {
    try {
        action();
        return VELO_OK;
    } catch (const Failure& failure) {
        std::snprintf(error, error_bytes, "%s", failure.what());
        return failure.status();
    } catch (const std::bad_alloc&) {
        std::snprintf(error, error_bytes, "out of memory");
        return VELO_ERR_RESOURCE;
    } catch (const std::exception& other) {
        std::snprintf(error, error_bytes, "%s", other.what());
        return VELO_ERR_RESOURCE;
    }
}

// Runs an operation of an open engine; a failure there means that a connection could not be completed or
// memory ran out, which the job cannot survive.
template <typename Action>
velo_status guarded(velo_engine* engine, Action action) {
    try {
        return action();
    } catch (const Failure& failure) {
        engine->fatal(engine->context, failure.status(), failure.what());
        return failure.status();
    } catch (const std::bad_alloc&) {
        engine->fatal(engine->context, VELO_ERR_RESOURCE, "out of memory");
        return VELO_ERR_RESOURCE;
    }
}

}  // namespace velo::api
