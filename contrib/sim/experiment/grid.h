// A table of runs, each compared with a reference run: what most experiments are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/sweep.h"

namespace velo::sim {

class Grid {
 public:
    // `labels` name the columns that tell the runs apart.
    explicit Grid(std::vector<std::string> labels) : labels_(std::move(labels)) {}

    // The number of a reference, for add().
    std::size_t reference(const Trial& run) {
        runs_.push_back(run);
        return runs_.size() - 1;
    }
    void add(std::vector<Cell> key, const Trial& run, std::size_t reference) {
        points_.push_back({std::move(key), runs_.size(), reference});
        runs_.push_back(run);
    }
    // With the context's seed.
    void execute(const Context& context);

    struct Point {
        std::vector<Cell> key;
        std::size_t run;
        std::size_t reference;
    };
    const std::vector<Point>& points() const { return points_; }
    const Measured& of(const Point& point) const { return results_[point.run]; }
    const Measured& of(std::size_t reference) const { return results_[reference]; }
    double overhead(const Point& point) const {
        return overhead_percent(of(point).time_us, results_[point.reference].time_us);
    }
    // Of the point with exactly these labels; NaN if there is none.
    double overhead(const std::vector<Cell>& key) const;
    double delayed_percent(const std::vector<Cell>& key) const;
    // Of the points with these labels and each of `sizes` as the last one.
    std::vector<double> overheads(const std::vector<Cell>& key,
                                  const std::vector<std::uint32_t>& sizes) const;
    std::vector<double> delayed_percents(const std::vector<Cell>& key,
                                         const std::vector<std::uint32_t>& sizes) const;
    const Measured* find(const std::vector<Cell>& key) const;
    bool has(const std::vector<Cell>& key) const;

    // The rows: labels, time, reference, overhead, delayed messages, credit packets, steals.
    Report report() const;

 private:
    std::vector<std::string> labels_;
    std::vector<Trial> runs_;
    std::vector<Point> points_;
    std::vector<Measured> results_;
};

}  // namespace velo::sim
