#include "options.h"

#include <getopt.h>
#include <strings.h>

#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace velo::bench {

void reject(std::string_view name, std::string_view value, std::string_view wanted) {
    throw UsageError("-" + std::string(name) + " " + std::string(value) + ": expected " +
                     std::string(wanted));
}

int parse_int(std::string_view name, std::string_view text, int low, int high) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
        reject(name, text, "a number from " + std::to_string(low) + " to " + std::to_string(high));
    return value;
}

double parse_positive(std::string_view name, const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !std::isfinite(value) || value <= 0)
        reject(name, text, "a number above 0");
    return value;
}

namespace {

enum Id {
    kNpmin,
    kMulti,
    kIter,
    kIterPolicy,
    kTime,
    kMem,
    kMsglen,
    kMsglog,
    kWindowSize,
    kRootShift,
    kSync,
    kZeroSize,
    kDataCheck,
    kHelp,
    kList
};

constexpr std::array<option, 16> kLongOptions{{{"npmin", required_argument, nullptr, kNpmin},
                                               {"multi", required_argument, nullptr, kMulti},
                                               {"iter", required_argument, nullptr, kIter},
                                               {"iter_policy", required_argument, nullptr, kIterPolicy},
                                               {"time", required_argument, nullptr, kTime},
                                               {"mem", required_argument, nullptr, kMem},
                                               {"msglen", required_argument, nullptr, kMsglen},
                                               {"msglog", required_argument, nullptr, kMsglog},
                                               {"window_size", required_argument, nullptr, kWindowSize},
                                               {"root_shift", required_argument, nullptr, kRootShift},
                                               {"sync", required_argument, nullptr, kSync},
                                               {"zero_size", required_argument, nullptr, kZeroSize},
                                               {"data_check", required_argument, nullptr, kDataCheck},
                                               {"help", no_argument, nullptr, kHelp},
                                               {"list", no_argument, nullptr, kList},
                                               {nullptr, 0, nullptr, 0}}};

bool parse_switch(std::string_view name, const std::string& text) {
    for (const char* yes : {"1", "on", "yes", "true", "enable"})
        if (strcasecmp(text.c_str(), yes) == 0) return true;
    for (const char* no : {"0", "off", "no", "false", "disable"})
        if (strcasecmp(text.c_str(), no) == 0) return false;
    reject(name, text, "on or off");
}

// Splits "a,b" or "a:b" in two; the second part is empty where the separator is missing.
std::pair<std::string, std::string> split_once(const std::string& text, char separator) {
    const auto at = text.find(separator);
    if (at == std::string::npos) return {text, ""};
    return {text.substr(0, at), text.substr(at + 1)};
}

IterationPolicy parse_iteration_policy(const std::string& text) {
    constexpr std::array<std::pair<const char*, IterationPolicy>, 4> kNames{
        {{"dynamic", IterationPolicy::kDynamic},
         {"multiple_np", IterationPolicy::kMultipleNp},
         {"auto", IterationPolicy::kAuto},
         {"off", IterationPolicy::kOff}}};
    for (const auto& [name, policy] : kNames)
        if (text == name) return policy;
    reject("iter_policy", text, "dynamic, multiple_np, auto or off");
}

void parse_iterations(const std::string& text, Options& options) {
    const auto [repetitions, volume] = split_once(text, ',');
    options.repetitions = parse_int("iter", repetitions, 1, INT_MAX);
    if (!volume.empty()) options.overall_volume_mb = parse_positive("iter", volume);
}

void parse_msglog(const std::string& text, Options& options) {
    constexpr int kMaxLog = 30;  // MPI counts are int
    const auto [first, second] = split_once(text, ':');
    options.min_log = second.empty() ? 0 : parse_int("msglog", first, 0, kMaxLog);
    options.max_log = parse_int("msglog", second.empty() ? first : second, options.min_log, kMaxLog);
}

void apply(Id id, const std::string& value, Options& options) {
    switch (id) {
        case kNpmin:
            options.min_processes = parse_int("npmin", value, 1, INT_MAX);
            break;
        case kMulti:
            options.multi =
                parse_int("multi", value, 0, 1) == 0 ? MultiMode::kSummary : MultiMode::kEveryGroup;
            break;
        case kIter:
            parse_iterations(value, options);
            break;
        case kIterPolicy:
            options.iteration_policy = parse_iteration_policy(value);
            break;
        case kTime:
            options.sample_seconds = parse_positive("time", value);
            break;
        case kMem:
            options.memory_gb = parse_positive("mem", value);
            break;
        case kMsglen:
            options.lengths_file = value;
            break;
        case kMsglog:
            parse_msglog(value, options);
            break;
        case kWindowSize:
            options.window = parse_int("window_size", value, 1, 65536);
            break;
        case kRootShift:
            options.root_shift = parse_switch("root_shift", value);
            break;
        case kSync:
            options.sync = parse_switch("sync", value);
            break;
        case kZeroSize:
            options.zero_size = parse_switch("zero_size", value);
            break;
        case kDataCheck:
            options.check_every_iteration = parse_switch("data_check", value);
            break;
        case kHelp:
            options.help = true;
            break;
        case kList:
            options.list = true;
            break;
    }
}

void add_names(std::string text, std::vector<std::string>& names) {
    while (!text.empty()) {
        auto [name, rest] = split_once(text, ',');
        if (!name.empty()) names.push_back(name);
        text = rest;
    }
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    opterr = 0;
    int id = 0;
    while ((id = getopt_long_only(argc, argv, ":", kLongOptions.data(), nullptr)) != -1) {
        if (id == ':')
            throw UsageError(std::string(argv[optind - 1]) + " needs a value; -h lists the options");
        if (id == '?')
            throw UsageError(std::string(argv[optind - 1]) + ": no such option; -h lists the options");
        apply(static_cast<Id>(id), optarg == nullptr ? "" : optarg, options);
    }
    for (int i = optind; i < argc; ++i) add_names(argv[i], options.benchmarks);
    return options;
}

BenchmarkList select_benchmarks(const Options& options) {
    BenchmarkList available = all_benchmarks();
    BenchmarkList selected;
    const auto take = [&](auto wanted) {
        bool found = false;
        for (auto& benchmark : available) {
            if (benchmark == nullptr || !wanted(benchmark->traits())) continue;
            selected.push_back(std::move(benchmark));
            found = true;
        }
        return found;
    };
    if (options.benchmarks.empty()) take([](const Traits& traits) { return traits.runs_by_default; });
    for (const auto& name : options.benchmarks) {
        const auto has_name = [&](const auto& traits) { return strcasecmp(traits.name, name.c_str()) == 0; };
        if (!take(has_name))
            throw UsageError(name + ": no such benchmark, or named twice; -list names them all");
    }
    return selected;
}

}  // namespace velo::bench
