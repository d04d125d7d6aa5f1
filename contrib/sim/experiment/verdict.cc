#include "experiment/verdict.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace velo::sim {
namespace {

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

// Bounds of one size, beside the statement's own: {"min": 1, "max": 2, "full": {"min": 1}}.
Verdict judge_one(const nlohmann::json& entry, const Report& report, bool full) {
    Verdict verdict;
    verdict.statement = entry.at("statement");
    verdict.source = entry.at("source");
    verdict.metric = entry.at("metric");
    verdict.kind = entry.value("kind", "predicted");
    nlohmann::json bounds = entry;
    const char* size = full ? "full" : "reduced";
    if (entry.contains(size)) bounds.update(entry.at(size));
    verdict.expected = bounds.value("model", "shows") == "shows";
    verdict.note = bounds.value("note", "");
    const bool low = bounds.contains("min");
    const bool high = bounds.contains("max");
    if (!low && !high) throw std::runtime_error("\"" + verdict.metric + "\" has neither min nor max");
    if (low && high && bounds["min"].get<double>() > bounds["max"].get<double>())
        throw std::runtime_error("\"" + verdict.metric + "\" has a min above its max");
    verdict.bound = (low ? number(bounds["min"]) : "") + " .. " + (high ? number(bounds["max"]) : "");
    const auto found = report.metrics.find(verdict.metric);
    if (found == report.metrics.end()) return verdict;
    verdict.measured = true;
    verdict.value = found->second;
    verdict.holds = (!low || verdict.value >= bounds["min"].get<double>()) &&
                    (!high || verdict.value <= bounds["max"].get<double>());
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

}  // namespace

void check_bounds(const std::string& bounds_file, const std::string& experiment) {
    judge(bounds_file, experiment, Report{}, true);
    judge(bounds_file, experiment, Report{}, false);
}

std::vector<Verdict> judge(const std::string& bounds_file, const std::string& experiment,
                           const Report& report, bool full) {
    try {
        std::vector<Verdict> verdicts;
        for (const nlohmann::json& entry : statements(bounds_file, experiment))
            verdicts.push_back(judge_one(entry, report, full));
        return verdicts;
    } catch (const std::exception& error) {
        throw std::runtime_error(bounds_file + ": " + experiment + ": " + error.what());
    }
}

std::string to_text(const std::vector<Verdict>& verdicts) {
    std::string text;
    for (const Verdict& v : verdicts) {
        const char* judgement = !v.measured ? "NOT MEASURED" : v.holds ? "HOLDS" : "DOES NOT HOLD";
        text += std::string(judgement) + ": " + v.statement + " [" + v.source + "; " + v.kind + "]\n    " +
                v.metric + (v.measured ? " = " + number(v.value) : "") + ", bound " + v.bound;
        if (v.measured && v.holds != v.expected)
            text += v.expected ? " -- UNEXPECTED: it held when the bounds were written"
                               : " -- UNEXPECTED: it did not hold when the bounds were written";
        text += "\n";
        if (!v.note.empty()) text += "    " + v.note + "\n";
    }
    return text;
}

}  // namespace velo::sim
