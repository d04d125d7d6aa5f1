#include "experiment/experiment.h"

#include <cstdio>

namespace velo::sim {

const std::vector<Experiment>& experiments() {
    static const std::vector<Experiment> all = [] {
        std::vector<Experiment> list;
        for (const auto& group : {static_experiments(), dynamic_experiments(), literal_experiments(),
                                  benchmark_experiments(), scale_experiments()})
            list.insert(list.end(), group.begin(), group.end());
        return list;
    }();
    return all;
}

const Experiment* find_experiment(const std::string& name) {
    for (const Experiment& experiment : experiments())
        if (experiment.name == name) return &experiment;
    return nullptr;
}

std::string csv(const Report& report) {
    std::string text;
    for (std::size_t i = 0; i < report.columns.size(); ++i) text += (i > 0 ? "," : "") + report.columns[i];
    text += "\n";
    for (const auto& row : report.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i > 0) text += ",";
            if (const auto* word = std::get_if<std::string>(&row[i])) {
                text += *word;
                continue;
            }
            char number[40];
            std::snprintf(number, sizeof number, "%.10g", std::get<double>(row[i]));
            text += number;
        }
        text += "\n";
    }
    return text;
}

}  // namespace velo::sim
