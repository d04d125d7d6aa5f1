#include "experiment/grid.h"

#include <algorithm>

#include "experiment/numbers.h"

namespace velo::sim {
namespace {

std::vector<Cell> with(std::vector<Cell> key, std::uint32_t size) {
    key.emplace_back(static_cast<double>(size));
    return key;
}

}  // namespace

void Grid::execute(const Context& context) {
    for (Trial& run : runs_) run.machine.seed = context.seed;
    results_ = execute_all(runs_, context.jobs, context.progress);
}

double Grid::overhead(const std::vector<Cell>& key) const {
    for (const Point& point : points_)
        if (point.key == key) return overhead(point);
    return kNotMeasured;
}

double Grid::delayed_percent(const std::vector<Cell>& key) const {
    const Measured* measured = find(key);
    return measured != nullptr ? measured->delayed_percent : kNotMeasured;
}

std::vector<double> Grid::overheads(const std::vector<Cell>& key,
                                    const std::vector<std::uint32_t>& sizes) const {
    std::vector<double> values;
    for (const std::uint32_t size : sizes) values.push_back(overhead(with(key, size)));
    return values;
}

std::vector<double> Grid::delayed_percents(const std::vector<Cell>& key,
                                           const std::vector<std::uint32_t>& sizes) const {
    std::vector<double> values;
    for (const std::uint32_t size : sizes) values.push_back(delayed_percent(with(key, size)));
    return values;
}

const Measured* Grid::find(const std::vector<Cell>& key) const {
    for (const Point& point : points_)
        if (point.key == key) return &results_[point.run];
    return nullptr;
}

bool Grid::has(const std::vector<Cell>& key) const {
    return std::any_of(points_.begin(), points_.end(), [&](const Point& point) { return point.key == key; });
}

Report Grid::report() const {
    Report report;
    report.columns = labels_;
    for (const char* column : {"time_us", "reference_us", "overhead_percent", "delayed_percent",
                               "credit_packets_per_message", "steals", "mailbox_slots_used", "events"})
        report.columns.emplace_back(column);
    for (const Point& point : points_) {
        const Measured& m = of(point);
        const Totals& totals = m.outcome.totals;
        std::vector<Cell> row = point.key;
        const double messages = totals.messages > 0 ? static_cast<double>(totals.messages) : 1;
        for (const double value :
             {m.time_us, of(point.reference).time_us, overhead(point), m.delayed_percent,
              static_cast<double>(m.credit_packets) / messages, static_cast<double>(totals.flow.steals),
              static_cast<double>(totals.slots_high_water), static_cast<double>(totals.events)})
            row.emplace_back(value);
        report.rows.push_back(std::move(row));
        const std::string failure = m.outcome.fault + m.outcome.deadlock;
        if (!failure.empty()) report.remarks.push_back("a run FAILED: " + failure);
    }
    report.metrics["failed_runs"] = static_cast<double>(report.remarks.size());
    return report;
}

}  // namespace velo::sim
