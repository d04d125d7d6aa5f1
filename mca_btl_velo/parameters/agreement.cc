#include "parameters/agreement.h"

#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "parameters/table.h"

namespace velo::parameters {
namespace {

// Both ends of what parameters.inc is made into here.
#define VELO_EACH_ALIKE(type, name, initial, permitted, level, alike, ...) VELO_IF_##alike(name)
#define VELO_IF_OWN(name)

void assign(std::uint64_t& to, std::uint64_t from) {
    to = from;
}
void assign(Agreement::Word& to, const char* from) {
    std::snprintf(to, sizeof to, "%s", from);
}

// A parameter of every BTL is 0 here if nobody has set it, see velo_config.
std::string text_of(const char* parameter, std::uint64_t value) {
    for (unsigned i = 0; const velo_parameter* row = value == 0 ? at(i) : nullptr; ++i)
        if (row->owner == VELO_PARAMETER_OF_BASE && std::string_view(row->key) == parameter)
            return "not set (default " + default_text(*row) + ")";
    return std::to_string(value);
}
std::string text_of(const char*, const Agreement::Word& word) {
    return {word, strnlen(word, sizeof word)};
}

// Takes from `from` what it has.
template <typename From>
void take(const From& from, Agreement* agreement) {
#define VELO_IF_ALIKE(name) \
    if constexpr (requires { from.name; }) assign(agreement->name, from.name);
#define VELO_PARAMETER VELO_EACH_ALIKE
#define VELO_BASE_PARAMETER VELO_EACH_ALIKE
#include "types/parameters.inc"
#undef VELO_IF_ALIKE
}

template <typename Value>
std::string differs(const char* parameter, const Value& mine, const Value& theirs) {
    const std::string own = text_of(parameter, mine), other = text_of(parameter, theirs);
    if (own == other) return {};
    return std::string("btl_velo_") + parameter + " must be the same in all processes, but it is " + own +
           " in one and " + other + " in another";
}

}  // namespace

Agreement agreement_of(const velo_config& config) {
    Agreement agreement{};
    take(config, &agreement);
    agreement.max_message_bytes = config.max_message_bytes;
    agreement.lazy_doorbell = true;
    return agreement;
}

void agree_on(const flow::PolicyConfig& flow, Agreement* agreement) {
    take(flow, agreement);
    agreement->lazy_doorbell = flow.lazy_doorbell;
}

flow::PolicyConfig agreed_flow(const Agreement& agreement) {
    flow::PolicyConfig flow;
#define VELO_IF_ALIKE(name) flow.name = static_cast<decltype(flow.name)>(agreement.name);
#define VELO_POLICY_PARAMETER VELO_EACH_ALIKE
#include "types/parameters.inc"
#undef VELO_IF_ALIKE
    flow.lazy_doorbell = agreement.lazy_doorbell != 0;
    return flow;
}

std::uint64_t digest(const Agreement& agreement) {
    static_assert(std::has_unique_object_representations_v<Agreement>);
    char bytes[sizeof agreement];
    std::memcpy(bytes, &agreement, sizeof bytes);
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return hash;
}

std::string difference(const Agreement& mine, const Agreement& theirs) {
    std::string text;
#define VELO_IF_ALIKE(name) \
    if (text.empty()) text = differs(#name, mine.name, theirs.name);
#define VELO_PARAMETER VELO_EACH_ALIKE
#define VELO_BASE_PARAMETER VELO_EACH_ALIKE
#include "types/parameters.inc"
#undef VELO_IF_ALIKE
    // The largest of three parameters decides.
    if (text.empty()) text = differs("max_send_size", mine.max_message_bytes, theirs.max_message_bytes);
    return text;
}

}  // namespace velo::parameters
