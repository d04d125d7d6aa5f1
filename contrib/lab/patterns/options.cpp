#include "options.h"

#include <charconv>
#include <sstream>
#include <stdexcept>

namespace velo::lab {
namespace {

const std::vector<std::string> kPatterns = {"alltoall", "blocking", "incast", "nonblocking", "scatterv"};

template <typename Number>
Number number(const std::string& option, const std::string& text, Number least, Number most) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        std::ostringstream what;
        what << option << " " << text << ": expected a number from " << least << " to " << most;
        throw std::invalid_argument(what.str());
    }
    return value;
}

void set(Options& options, const std::string& name, const std::string& value) {
    if (name == "--bytes")
        options.bytes = number(name, value, 1, 1 << 24);
    else if (name == "--active")
        options.active = number(name, value, 2, 1 << 20);
    else if (name == "--window")
        options.window = number(name, value, 1, 1 << 16);
    else if (name == "--hold")
        options.hold = number(name, value, 1, 1 << 20);
    else if (name == "--repetitions")
        options.repetitions = number(name, value, 1L, 1L << 40);
    else if (name == "--seconds")
        options.seconds = number(name, value, 1e-4, 1e5);
    else
        throw std::invalid_argument("unknown option " + name);
}

void check_pattern(const std::string& name) {
    std::string known;
    for (const std::string& pattern : kPatterns) {
        if (pattern == name) return;
        known += " " + pattern;
    }
    throw std::invalid_argument("pattern '" + name + "' is not one of" + known);
}

}  // namespace

std::string usage() {
    return R"(Usage: velo-lab-patterns PATTERN [options]

Communication patterns of the papers on flow control, for velo-lab; plain MPI.

  alltoall      everyone of the first --active ranks sends to and receives from each other, the rest waits
  incast        everyone sends --window messages to rank 0
  blocking      rank 0 sends --window messages to rank 1 with MPI_Send, which replies
  nonblocking   the same with MPI_Isend and MPI_Irecv
  scatterv      from a root that changes after --hold repetitions

  --bytes N          of a message (default 2048)
  --repetitions N    most repetitions (default 1000)
  --seconds S        about how long to measure (default 0.5)

Exit status: 0, 1 when received data was wrong, 2 for a wrong command line.
)";
}

Options parse_options(const std::vector<std::string>& words) {
    if (words.empty()) throw std::invalid_argument("no pattern");
    Options options;
    options.pattern = words[0];
    check_pattern(options.pattern);
    if (words.size() % 2 == 0) throw std::invalid_argument("option " + words.back() + " has no value");
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) set(options, words[i], words[i + 1]);
    return options;
}

}  // namespace velo::lab
