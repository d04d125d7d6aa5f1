// The parameters as a table, for whatever goes by all of them.
#pragma once

#include <forward_list>
#include <string>
#include <string_view>

#include "types/engine.h"
#include "types/goal.h"
#include "types/messages.h"

namespace velo::parameters {

// In the order of parameters.inc; nullptr beyond the last.
const velo_parameter* at(unsigned index) noexcept;

// The one of that name, or of the name that is most like it; nullptr if none is.
const velo_parameter* like(std::string_view name) noexcept;
// What does the work of a parameter that is gone; nullptr: there was none of that name.
const char* instead_of(std::string_view name) noexcept;

// "1 to 255", "one of none, static, ..."
std::string permitted_text(const velo_parameter& parameter);
std::string default_text(const velo_parameter& parameter);
// Whether a value is permitted, written as users write it: numbers with the units that Open MPI knows.
bool permits(const velo_parameter& parameter, const char* value) noexcept;
// "btl_velo_credit_slots is 300; it must be 1 to 255"
std::string objection(const velo_parameter& parameter, const char* value);

// What ompi_info says: the help, what is permitted, the default.
std::string help(const velo_parameter& parameter);

// The value that a configuration has, as users write it. `config` is that of the parameter's owner.
std::string value_text(const velo_parameter& parameter, const void* config);
// Those of the engine that are not their defaults: "flow_control static, verbose 5".
std::string set_text(const velo_config& config);
// All of the engine, as a JSON object.
std::string values_json(const velo_config& config);

// Copies of the engine's texts, which the configuration has from here on: its own may go away.
std::forward_list<std::string> keep_texts(velo_config& config);

velo_config engine_defaults() noexcept;
velo_messenger_config messenger_defaults() noexcept;
velo_coll_config coll_defaults() noexcept;

// Throw Failure at the first parameter that is out of its range.
void check(const velo_config& config);
void check(const velo_messenger_config& config);

}  // namespace velo::parameters
