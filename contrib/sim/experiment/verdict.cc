#include "experiment/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "experiment/numbers.h"

namespace velo::sim {
namespace {

constexpr const char* kFindingNames[] = {"holds", "does not hold", "not measured", "not run"};

struct Limit {
    const char* key;  // in the bounds file
    const char* words;
    bool (*admits)(double value, double limit);
};
constexpr Limit kLimits[] = {
    {"min", "at least", [](double value, double limit) { return value >= limit; }},
    {"above", "above", [](double value, double limit) { return value > limit; }},
    {"max", "at most", [](double value, double limit) { return value <= limit; }},
    {"below", "below", [](double value, double limit) { return value < limit; }},
};

std::string number(double value) {
    if (std::isnan(value)) return "not measured";
    char text[40];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

template <class Enum, std::size_t kCount>
Enum parse(const nlohmann::json& entry, const char* key, const char* const (&names)[kCount]) {
    const std::string word = entry.at(key);
    const auto found = std::find(std::begin(names), std::end(names), word);
    if (found == std::end(names)) throw std::runtime_error(std::string(key) + " is \"" + word + "\"");
    return static_cast<Enum>(found - std::begin(names));
}

double bound_of(const nlohmann::json& entry, const char* a, const char* b, double none) {
    return entry.contains(a) ? entry[a].get<double>() : entry.contains(b) ? entry[b].get<double>() : none;
}

void check_limits(const nlohmann::json& entry) {
    const double low = bound_of(entry, "min", "above", -HUGE_VAL);
    const double high = bound_of(entry, "max", "below", HUGE_VAL);
    if (low == -HUGE_VAL && high == HUGE_VAL) throw std::runtime_error("neither min nor max, above or below");
    if (low > high) throw std::runtime_error("a lower bound above the upper one");
}

Verdict judge_one(const nlohmann::json& entry, const Sample& sample, bool full) {
    Verdict verdict;
    verdict.statement = entry.at("statement");
    verdict.source = entry.at("source");
    verdict.metric = entry.at("metric");
    verdict.kind = parse<Kind>(entry, "kind", kKindNames);
    verdict.expected = parse<Finding>(entry, full ? "full" : "reduced", kFindingNames);
    verdict.note = entry.value("note", "");
    check_limits(entry);
    for (const Limit& limit : kLimits)
        if (entry.contains(limit.key))
            verdict.bound += (verdict.bound.empty() ? "" : ", ") + std::string(limit.words) + " " +
                             number(entry[limit.key].get<double>());
    const auto found = sample.metrics.find(verdict.metric);
    if (found == sample.metrics.end() || !all_measured(found->second)) {
        if (found != sample.metrics.end()) verdict.values = found->second;
        return verdict;
    }
    verdict.values = found->second;
    const bool holds = std::all_of(verdict.values.begin(), verdict.values.end(), [&](double value) {
        return std::all_of(std::begin(kLimits), std::end(kLimits), [&](const Limit& limit) {
            return !entry.contains(limit.key) || limit.admits(value, entry[limit.key].get<double>());
        });
    });
    verdict.finding = holds ? Finding::kHolds : Finding::kFails;
    return verdict;
}

nlohmann::json statements(const std::string& bounds_file, const std::string& experiment) {
    std::ifstream file(bounds_file);
    if (!file) throw std::runtime_error("cannot be read; name the bounds file with --bounds");
    const nlohmann::json all = nlohmann::json::parse(file);
    if (!all.contains(experiment) || !all.at(experiment).is_array() || all.at(experiment).empty())
        throw std::runtime_error("there are no statements about it");
    return all.at(experiment);
}

std::string values_text(const std::vector<double>& values) {
    if (values.size() <= 1) return number(values.empty() ? kNotMeasured : values[0]);
    const auto missing = std::count_if(values.begin(), values.end(), [](double v) { return std::isnan(v); });
    if (missing > 0)
        return "not measured with " + std::to_string(missing) + " of " + std::to_string(values.size()) +
               " seeds";
    return number(median(values)) + " (" + number(least(values)) + " to " + number(largest(values)) + ", " +
           std::to_string(values.size()) + " seeds)";
}

}  // namespace

void check_bounds(const std::string& bounds_file, const std::string& experiment) {
    judge(bounds_file, experiment, Sample{}, true);
    judge(bounds_file, experiment, Sample{}, false);
}

std::vector<Verdict> judge(const std::string& bounds_file, const std::string& experiment,
                           const Sample& sample, bool full) {
    std::string about = experiment;
    try {
        std::vector<Verdict> verdicts;
        for (const nlohmann::json& entry : statements(bounds_file, experiment)) {
            about = experiment + ": \"" + entry.value("metric", "") + "\"";
            verdicts.push_back(judge_one(entry, sample, full));
        }
        return verdicts;
    } catch (const std::exception& error) {
        throw std::runtime_error(bounds_file + ": " + about + ": " + error.what());
    }
}

std::string to_text(const std::vector<Verdict>& verdicts) {
    constexpr const char* kTitles[] = {"HOLDS", "DOES NOT HOLD", "NOT MEASURED"};
    std::string text;
    for (const Verdict& v : verdicts) {
        text += std::string(kTitles[static_cast<int>(v.finding)]) + " (" +
                kKindNames[static_cast<int>(v.kind)] + "): " + v.statement + " [" + v.source + "]\n    " +
                v.metric + ": " + values_text(v.values) + "; bound: " + v.bound;
        if (!v.is_as_expected())
            text += std::string(" -- UNEXPECTED: the bounds file says \"") +
                    kFindingNames[static_cast<int>(v.expected)] + "\"";
        text += "\n";
        if (!v.note.empty()) text += "    " + v.note + "\n";
    }
    return text;
}

std::string count_text(const std::vector<Verdict>& verdicts) {
    std::string text;
    for (std::size_t kind = 0; kind < std::size(kKindNames); ++kind) {
        std::array<int, 3> counts{};
        int all = 0;
        for (const Verdict& v : verdicts)
            if (v.kind == static_cast<Kind>(kind)) ++counts[static_cast<std::size_t>(v.finding)], ++all;
        if (all == 0) continue;
        text += (text.empty() ? "" : "; ") + std::string(kKindNames[kind]) + ": " +
                std::to_string(counts[0]) + " of " + std::to_string(all) + " hold";
        if (counts[1] > 0) text += ", " + std::to_string(counts[1]) + " do not";
        if (counts[2] > 0) text += ", " + std::to_string(counts[2]) + " not measured";
    }
    return text;
}

}  // namespace velo::sim
