#include "experiment/grid.h"

#include <cmath>

namespace velo::sim {

double Grid::overhead(const std::vector<Cell>& key) const {
    for (const Point& point : points_)
        if (point.key == key) return overhead(point);
    return std::nan("");
}

const Measured* Grid::find(const std::vector<Cell>& key) const {
    for (const Point& point : points_)
        if (point.key == key) return &results_[point.run];
    return nullptr;
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
