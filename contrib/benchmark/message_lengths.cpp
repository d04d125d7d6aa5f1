#include <fstream>

#include "options.h"

namespace velo::bench {

std::vector<std::size_t> power_of_two_lengths(const Options& options) {
    std::vector<std::size_t> lengths;
    if (options.zero_size) lengths.push_back(0);
    for (int log = options.min_log; log <= options.max_log; ++log) lengths.push_back(std::size_t{1} << log);
    return lengths;
}

std::vector<std::size_t> read_lengths(const std::string& path) {
    constexpr long long kMaxLength = 1LL << 30;  // MPI counts are int
    std::ifstream file(path);
    if (!file) throw UsageError("-msglen " + path + ": cannot read the file");
    std::vector<std::size_t> lengths;
    for (std::string line; std::getline(file, line);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
        std::size_t parsed = 0;
        long long length = -1;
        try {
            length = std::stoll(line, &parsed);
        } catch (const std::exception&) {
        }
        if (length < 0 || length > kMaxLength || line.find_first_not_of(" \t\r", parsed) != std::string::npos)
            throw UsageError("-msglen " + path + ": \"" + line + "\" is no length from 0 to 2^30");
        lengths.push_back(static_cast<std::size_t>(length));
    }
    if (lengths.empty()) throw UsageError("-msglen " + path + ": no lengths in the file");
    return lengths;
}

}  // namespace velo::bench
