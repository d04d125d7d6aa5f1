#include "experiment/experiment.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "experiment/numbers.h"

namespace velo::sim {

const std::vector<Experiment>& experiments() {
    static const std::vector<Experiment> all = [] {
        std::vector<Experiment> list;
        for (const auto& group : {static_experiments(), dynamic_experiments(), literal_experiments(),
                                  benchmark_experiments(), multicast_experiments(), scale_experiments()})
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

bool Sample::failed() const {
    const auto found = metrics.find("failed_runs");
    return found != metrics.end() && !(largest(found->second) <= 0);
}

Sample sample(const Experiment& experiment, const Context& context, unsigned seeds) {
    Sample all;
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::uint64_t>> told;  // remarks, and of which seeds
    all.seeds = experiment.random ? seeds : 1;
    for (std::size_t i = 0; i < all.seeds; ++i) {
        Context own = context;
        own.seed = i + 1;
        const Report report = experiment.run(own);
        all.columns = report.columns;
        if (experiment.random) all.columns.insert(all.columns.begin(), "seed");
        for (std::vector<Cell> row : report.rows) {
            if (experiment.random) row.insert(row.begin(), static_cast<double>(own.seed));
            all.rows.push_back(std::move(row));
        }
        for (const auto& [name, value] : report.metrics)
            all.metrics.try_emplace(name, all.seeds, kNotMeasured).first->second[i] = value;
        for (const std::string& remark : report.remarks) {
            if (!told.contains(remark)) order.push_back(remark);
            told[remark].push_back(own.seed);
        }
    }
    for (const std::string& remark : order) {
        std::string seeds;
        for (const std::uint64_t seed : told[remark])
            seeds += (seeds.empty() ? "" : ", ") + std::to_string(seed);
        all.remarks.push_back(told[remark].size() == all.seeds ? remark : "seed " + seeds + ": " + remark);
    }
    return all;
}

namespace {

std::string field(const Cell& cell) {
    if (const auto* word = std::get_if<std::string>(&cell)) return *word;
    const double value = std::get<double>(cell);
    if (std::isnan(value)) return {};
    char number[40];
    std::snprintf(number, sizeof number, "%.10g", value);
    return number;
}

}  // namespace

std::string csv(const Sample& sample) {
    std::string text;
    for (std::size_t i = 0; i < sample.columns.size(); ++i) text += (i > 0 ? "," : "") + sample.columns[i];
    text += "\n";
    for (const auto& row : sample.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + field(row[i]);
        text += "\n";
    }
    return text;
}

std::string metrics_json(const Sample& sample) {
    return nlohmann::json(sample.metrics).dump(2) + "\n";  // NaN is null
}

}  // namespace velo::sim
