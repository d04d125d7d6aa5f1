// Arithmetic on measurements. What was not measured is NaN, and so is everything that is computed from it:
// nothing here, and no caller, puts another number in its place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace velo::sim {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

inline bool all_measured(const std::vector<double>& values) {
    return !values.empty() &&
           std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}
inline double largest(const std::vector<double>& values) {
    return all_measured(values) ? *std::max_element(values.begin(), values.end()) : kNotMeasured;
}
inline double least(const std::vector<double>& values) {
    return all_measured(values) ? *std::min_element(values.begin(), values.end()) : kNotMeasured;
}
inline double mean(const std::vector<double>& values) {
    return all_measured(values)
               ? std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())
               : kNotMeasured;
}
inline double median(std::vector<double> values) {
    if (!all_measured(values)) return kNotMeasured;
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}
// a - b, one by one.
inline std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return {};
    std::vector<double> result;
    for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
    return result;
}
inline std::vector<double> magnitudes(std::vector<double> values) {
    for (double& value : values) value = std::fabs(value);
    return values;
}
// What each value rises by from the one before.
inline std::vector<double> rises(const std::vector<double>& values) {
    std::vector<double> result;
    for (std::size_t i = 1; i < values.size(); ++i) result.push_back(values[i] - values[i - 1]);
    return result;
}

// The sizes from `low` to `high`, both among them.
inline std::vector<std::uint32_t> between(const std::vector<std::uint32_t>& sizes, std::uint32_t low,
                                          std::uint32_t high = UINT32_MAX) {
    std::vector<std::uint32_t> chosen;
    for (const std::uint32_t size : sizes)
        if (low <= size && size <= high) chosen.push_back(size);
    return chosen;
}

// The first of the ascending sizes from which on no value is above 0. Not measured if the last one still is:
// it may settle at a larger size, or never.
inline double settles_at(const std::vector<std::uint32_t>& sizes, const std::vector<double>& values) {
    if (sizes.size() != values.size() || !all_measured(values)) return kNotMeasured;
    double first = kNotMeasured;
    for (std::size_t i = sizes.size(); i-- > 0 && values[i] <= 0;) first = sizes[i];
    return first;
}

}  // namespace velo::sim
