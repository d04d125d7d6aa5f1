#include "parameters/table.h"

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "flow/policies.h"
#include "platform/failure.h"
#include "types/multicast.h"

namespace velo::parameters {
namespace {

constexpr const char* kSingleCopy[] = {"auto", "xpmem", "cma", "copy"};
constexpr const char* kNetworks[] = {"ucx", "always", "none"};
constexpr const char* kByReference[] = {"auto", "never", "always"};
constexpr const char* kMulticasts[] = {"off", "auto", "always"};
constexpr const char* kShares[] = {"static", "dynamic"};
constexpr const char* kReports[] = {"none", "summary", "json"};

template <const auto& kWords>
const char* word(unsigned index) {
    return index < std::size(kWords) ? kWords[index] : nullptr;
}

// The names that parameters.inc uses.
constexpr auto single_copy_name = word<kSingleCopy>;
constexpr auto network_name = word<kNetworks>;
constexpr auto by_reference_name = word<kByReference>;
constexpr auto multicast_name = word<kMulticasts>;
constexpr auto shares_name = word<kShares>;
const char* scheme_name(unsigned index) {
    return index < std::size(multicast::kSchemeNames) ? multicast::kSchemeNames[index].data() : nullptr;
}
constexpr auto report_name = word<kReports>;
const char* policy_name(unsigned index) {
    return flow::policy_name(index).data();
}
constexpr bool OWN = false, ALIKE = true;

struct Default {
    constexpr Default(const char* words) : text(words) {}
    constexpr Default(std::integral auto value) : number(value) {}
    const char* text = nullptr;
    std::int64_t number = 0;
};

constexpr velo_parameter row(const char* prefixed, std::size_t prefix, velo_parameter_type type,
                             velo_parameter_owner owner, std::size_t offset, Default initial,
                             velo_permitted permitted, int level, bool alike, const char* help) {
    return {prefixed,       prefixed + prefix, type,  owner, offset, initial.text,
            initial.number, permitted,         level, alike, help};
}

#define VELO_ROW(component, owner, offset, type, name, initial, permitted, level, alike, help)         \
    row(component "_velo_" #name, sizeof component "_velo_" - 1, VELO_PARAMETER_##type, owner, offset, \
        initial, permitted, level, alike, help),

constexpr velo_parameter kTable[] = {
#define VELO_PARAMETER(type, name, ...) \
    VELO_ROW("btl", VELO_PARAMETER_OF_ENGINE, offsetof(velo_config, name), type, name, __VA_ARGS__)
#define VELO_BASE_PARAMETER(type, name, ...) \
    VELO_ROW("btl", VELO_PARAMETER_OF_BASE, 0, type, name, __VA_ARGS__)
#define VELO_MESSENGER_PARAMETER(type, name, ...)                                                   \
    VELO_ROW("mtl", VELO_PARAMETER_OF_MESSENGER, offsetof(velo_messenger_config, name), type, name, \
             __VA_ARGS__)
#define VELO_COLL_PARAMETER(type, name, ...) \
    VELO_ROW("coll", VELO_PARAMETER_OF_COLL, offsetof(velo_coll_config, name), type, name, __VA_ARGS__)
#include "types/parameters.inc"
};
#undef VELO_ROW

struct Gone {
    std::string_view name;
    const char* instead;
};
constexpr Gone kGone[] = {
#define VELO_GONE_PARAMETER(name, instead) {name, instead},
#include "types/parameters.inc"
};

bool is_text(const velo_parameter& parameter) {
    return parameter.type == VELO_PARAMETER_TEXT || parameter.type == VELO_PARAMETER_CHOICE;
}

template <typename Value>
Value read(const velo_parameter& parameter, const void* config) {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(config) + parameter.offset, sizeof value);
    return value;
}

// A value beyond int64_t is beyond every range too.
std::int64_t number_of(const velo_parameter& parameter, const void* config) {
    switch (parameter.type) {
        case VELO_PARAMETER_BOOL:
            return read<bool>(parameter, config) ? 1 : 0;
        case VELO_PARAMETER_COUNT:
            return read<std::uint32_t>(parameter, config);
        case VELO_PARAMETER_INTEGER:
            return read<int>(parameter, config);
        default:
            return static_cast<std::int64_t>(read<std::uint64_t>(parameter, config));
    }
}

template <typename Value>
void write(const velo_parameter& parameter, void* config, Value value) {
    std::memcpy(static_cast<std::byte*>(config) + parameter.offset, &value, sizeof value);
}

void write_default(const velo_parameter& parameter, void* config) {
    auto put = [&](auto value) { write(parameter, config, value); };
    switch (parameter.type) {
        case VELO_PARAMETER_BOOL:
            return put(parameter.number != 0);
        case VELO_PARAMETER_COUNT:
            return put(static_cast<std::uint32_t>(parameter.number));
        case VELO_PARAMETER_INTEGER:
            return put(static_cast<int>(parameter.number));
        case VELO_PARAMETER_LARGE:
        case VELO_PARAMETER_SIZE:
            return put(static_cast<std::uint64_t>(parameter.number));
        default:
            return put(parameter.text);
    }
}
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));

template <typename Config>
Config defaults(velo_parameter_owner owner) {
    Config config{};
    for (const velo_parameter& parameter : kTable)
        if (parameter.owner == owner) write_default(parameter, &config);
    return config;
}

bool text_permitted(const velo_parameter& parameter, const char* value) {
    if (value == nullptr) return false;
    if (parameter.type == VELO_PARAMETER_TEXT) return parameter.permitted.or_empty || *value != '\0';
    for (unsigned i = 0; const char* known = parameter.permitted.choice(i); ++i)
        if (std::strcmp(known, value) == 0) return true;
    return false;
}

void check_owned(velo_parameter_owner owner, const void* config) {
    for (const velo_parameter& parameter : kTable) {
        if (parameter.owner != owner) continue;
        const bool fine = is_text(parameter) ? text_permitted(parameter, read<const char*>(parameter, config))
                                             : holds(parameter.permitted, number_of(parameter, config));
        if (!fine)
            throw Failure(VELO_ERR_PARAMETER, objection(parameter, value_text(parameter, config).c_str()));
    }
}

// The number that Open MPI reads there, with k, m or g behind it; false if it is none, or too large.
bool parse(const char* value, std::int64_t* number) {
    char* end = nullptr;
    errno = 0;
    *number = std::strtoll(value, &end, 0);
    if (end == value || errno != 0) return false;
    static constexpr char kUnits[] = "kKmMgG";
    int shift = 0;
    if (*end != '\0') {
        const char* unit = std::strchr(kUnits, *end++);
        if (unit == nullptr) return false;
        shift = 10 * static_cast<int>((unit - kUnits) / 2 + 1);
    }
    return *end == '\0' && !__builtin_mul_overflow(*number, std::int64_t{1} << shift, number);
}

std::string quoted(const std::string& text) {
    std::string json = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') json += '\\';
        json += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
    return json + "\"";
}

constexpr std::size_t kLongestName = 63;

// Letters that have to be put in, left out or replaced to make one word of the other, which is a name of the
// table.
std::size_t distance(std::string_view one, std::string_view other) noexcept {
    std::size_t row[kLongestName + 1];
    for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < other.size(); ++j) {
            const std::size_t replaced = diagonal + (one[i] != other[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row[other.size()];
}
static_assert(std::ranges::all_of(kTable, [](const velo_parameter& parameter) {
    return std::string_view(parameter.name).size() <= kLongestName;
}));

}  // namespace

const velo_parameter* at(unsigned index) noexcept {
    return index < std::size(kTable) ? &kTable[index] : nullptr;
}

const velo_parameter* like(std::string_view name) noexcept {
    // What differs in more letters is another word.
    std::size_t least = name.size() / 4 + 1;
    const velo_parameter* found = nullptr;
    for (const velo_parameter& parameter : kTable) {
        const std::size_t letters = distance(name, parameter.name);
        if (letters < least) least = letters, found = &parameter;
    }
    return found;
}

const char* instead_of(std::string_view name) noexcept {
    const Gone* gone = std::ranges::find_if(kGone, [&](const Gone& each) {
        const std::size_t any = std::min(each.name.find('*'), each.name.size());
        return any == each.name.size()
                   ? name == each.name
                   : name.starts_with(each.name.substr(0, any)) && name.ends_with(each.name.substr(any + 1));
    });
    return gone == std::end(kGone) ? nullptr : gone->instead;
}

std::string permitted_text(const velo_parameter& parameter) {
    const velo_permitted& permitted = parameter.permitted;
    switch (parameter.type) {
        case VELO_PARAMETER_BOOL:
            return "true or false";
        case VELO_PARAMETER_TEXT:
            return permitted.words + std::string(permitted.or_empty ? ", or nothing" : "");
        case VELO_PARAMETER_CHOICE: {
            std::string text = "one of";
            for (unsigned i = 0; const char* choice = permitted.choice(i); ++i)
                text += (i == 0 ? " " : ", ") + std::string(choice);
            return text;
        }
        default:
            return (permitted.or_zero ? "0 or " : "") + std::to_string(permitted.least) + " to " +
                   std::to_string(permitted.most);
    }
}

std::string default_text(const velo_parameter& parameter) {
    if (parameter.type == VELO_PARAMETER_BOOL) return parameter.number != 0 ? "true" : "false";
    return is_text(parameter) ? parameter.text : std::to_string(parameter.number);
}

bool permits(const velo_parameter& parameter, const char* value) noexcept {
    std::int64_t number = 0;
    switch (parameter.type) {
        case VELO_PARAMETER_BOOL:
        case VELO_PARAMETER_CHOICE:
            return true;  // Open MPI knows words and numbers for them, and refuses others
        case VELO_PARAMETER_TEXT:
            return text_permitted(parameter, value);
        default:
            return parse(value, &number) && holds(parameter.permitted, number);
    }
}

std::string objection(const velo_parameter& parameter, const char* value) {
    const std::string must = "it must be " + permitted_text(parameter);
    if (value == nullptr) return std::string("the value of ") + parameter.name + " is not valid; " + must;
    std::int64_t number = 0;
    const bool plain = !is_text(parameter) && parse(value, &number);
    return std::string(parameter.name) + " is " + (plain ? value : quoted(value)) + "; " + must;
}

std::string help(const velo_parameter& parameter) {
    const std::string initial = default_text(parameter);
    return std::string(parameter.help) + ". " + (parameter.alike ? "The same in all processes. " : "") +
           "Permitted: " + permitted_text(parameter) +
           ". Default: " + (initial.empty() ? "nothing" : initial);
}

std::string value_text(const velo_parameter& parameter, const void* config) {
    if (is_text(parameter)) {
        const char* text = read<const char*>(parameter, config);
        return text == nullptr ? "" : text;
    }
    const std::int64_t number = number_of(parameter, config);
    if (parameter.type == VELO_PARAMETER_BOOL) return number != 0 ? "true" : "false";
    return std::to_string(number);
}

std::string set_text(const velo_config& config) {
    std::string text;
    for (const velo_parameter& parameter : kTable) {
        if (parameter.owner != VELO_PARAMETER_OF_ENGINE) continue;
        const std::string value = value_text(parameter, &config);
        if (value == default_text(parameter)) continue;
        text +=
            (text.empty() ? "" : ", ") + std::string(parameter.key) + " " + (value.empty() ? "\"\"" : value);
    }
    return text;
}

std::string values_json(const velo_config& config) {
    std::string members;
    for (const velo_parameter& parameter : kTable) {
        if (parameter.owner != VELO_PARAMETER_OF_ENGINE) continue;
        const std::string value = value_text(parameter, &config);
        members += (members.empty() ? "\"" : ",\"") + std::string(parameter.key) +
                   "\":" + (is_text(parameter) ? quoted(value) : value);
    }
    return "{" + members + "}";
}

std::forward_list<std::string> keep_texts(velo_config& config) {
    std::forward_list<std::string> texts;
    for (const velo_parameter& parameter : kTable) {
        if (parameter.owner != VELO_PARAMETER_OF_ENGINE || !is_text(parameter)) continue;
        const char* text = read<const char*>(parameter, &config);
        if (text != nullptr) write(parameter, &config, texts.emplace_front(text).c_str());
    }
    return texts;
}

velo_config engine_defaults() noexcept {
    return defaults<velo_config>(VELO_PARAMETER_OF_ENGINE);
}

velo_messenger_config messenger_defaults() noexcept {
    return defaults<velo_messenger_config>(VELO_PARAMETER_OF_MESSENGER);
}

velo_coll_config coll_defaults() noexcept {
    return defaults<velo_coll_config>(VELO_PARAMETER_OF_COLL);
}

void check(const velo_config& config) {
    check_owned(VELO_PARAMETER_OF_ENGINE, &config);
}

void check(const velo_messenger_config& config) {
    check_owned(VELO_PARAMETER_OF_MESSENGER, &config);
}

}  // namespace velo::parameters
