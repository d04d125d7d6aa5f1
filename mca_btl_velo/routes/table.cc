#include "routes/table.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <cstring>
#endif

namespace velo::routes {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

// Measured: docs/measured/routes.md. Both copying pays from 64 KiB on wherever single copy works, but not
// where both send, as each then copies for itself. A buffer that was not sent from before is in no cache of
// the receiver's, and the ring is.
constexpr Row kSafe{kNever, {0, 128 * KiB, 64 * KiB}, {0, 0, kNever}};
// Zen: what one core has stored the other reads out of the cache that they share, or past the caches where
// they share none; lines of the mailbox and of a user's buffer are slow to take back from the other core.
constexpr Row kZenNear{1 * KiB, {128 * KiB, 64 * MiB, 128 * KiB}, {64 * MiB, 64 * MiB, kNever}};
constexpr Row kZenFar{1 * KiB, {128 * KiB, 128 * KiB, 128 * KiB}, {32 * KiB, 32 * KiB, kNever}};

bool is_zen(std::string_view processor) {
    for (const std::string_view maker : {"AuthenticAMD family ", "HygonGenuine family "}) {
        if (!processor.starts_with(maker)) continue;
        int family = 0;
        std::from_chars(processor.data() + maker.size(), processor.data() + processor.size(), family);
        return family >= 23;
    }
    return false;
}

std::size_t bytes_of(std::string_view word, std::string_view what) {
    if (word == "never") return kNever;
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bytes);
    if (error != std::errc() || end != word.data() + word.size())
        throw std::invalid_argument("\"" + std::string(what) + "\" is followed by \"" + std::string(word) +
                                    "\" instead of a number of bytes or \"never\"");
    return bytes;
}

std::string limit_text(std::size_t bytes) {
    return bytes == kNever ? "never" : std::to_string(bytes);
}

std::string size_text(std::size_t bytes) {
    if (bytes > 0 && bytes % MiB == 0) return std::to_string(bytes / MiB) + " MiB";
    if (bytes > 0 && bytes % KiB == 0) return std::to_string(bytes / KiB) + " KiB";
    return std::to_string(bytes) + " B";
}

std::string row_text(const Row& row) {
    const auto large = [](const LargeLimits& its) {
        return " staged " + limit_text(its.staged_to) + " cold " + limit_text(its.cold_to) + " both " +
               limit_text(its.both_from);
    };
    return "reference " + limit_text(row.reference_from) + " one-way" + large(row.one_way) + " both-ways" +
           large(row.both_ways);
}

// Ranges of a message by rendezvous, each with who copies it.
std::string large_ranges(const LargeLimits& its, std::size_t from, bool cold) {
    std::string text;
    const auto add = [&](std::size_t begin, std::size_t end, const char* route) {
        if (begin >= end) return;
        text += (text.empty() ? "" : ", ") + size_text(begin) +
                (end == kNever ? " and more " : " to " + size_text(end) + " ") + route;
    };
    const std::size_t staged = cold ? its.cold_to : its.staged_to;
    const std::size_t rest = std::max(from, staged == kNever ? kNever : staged == 0 ? 0 : staged);
    add(from, std::max(from, staged), "staged");
    add(rest, std::max(rest, its.both_from), "the reader copies");
    if (its.both_from != kNever) add(std::max(rest, its.both_from), kNever, "both copy");
    return text;
}

}  // namespace

Table Table::safe() {
    Table table;
    table.near_ = table.far_ = kSafe;
    return table;
}

Table Table::built_in(std::string_view processor) {
    if (!is_zen(processor)) return safe();
    Table table;
    table.near_ = kZenNear;
    table.far_ = kZenFar;
    return table;
}

// A word chooses what the numbers behind it are of: near or far, one way or both ways; without such a word
// they are of all.
Table Table::parse(std::string_view text) {
    Table table = safe();
    std::vector<Row*> rows{&table.near_, &table.far_};
    bool one_way = true, both_ways = true;
    std::istringstream words{std::string(text)};
    const auto next = [&](const std::string& what) {
        std::string word;
        if (!(words >> word)) throw std::invalid_argument("nothing follows \"" + what + "\"");
        return bytes_of(word, what);
    };
    const auto set = [&](std::size_t LargeLimits::*limit, std::size_t bytes) {
        for (Row* row : rows) {
            if (one_way) row->one_way.*limit = bytes;
            if (both_ways) row->both_ways.*limit = bytes;
        }
    };
    bool any = false;
    for (std::string word; words >> word; any = true) {
        if (word == "near" || word == "far") {
            rows = {word == "near" ? &table.near_ : &table.far_};
            one_way = both_ways = true;
        } else if (word == "one-way" || word == "both-ways") {
            one_way = word == "one-way";
            both_ways = !one_way;
        } else if (word == "reference") {
            const std::size_t bytes = next(word);
            for (Row* row : rows) row->reference_from = bytes;
        } else if (word == "staged") {
            const std::size_t bytes = next(word);
            set(&LargeLimits::staged_to, bytes);
            set(&LargeLimits::cold_to, bytes);
        } else if (word == "cold") {
            set(&LargeLimits::cold_to, next(word));
        } else if (word == "both") {
            set(&LargeLimits::both_from, next(word));
        } else {
            throw std::invalid_argument("\"" + word +
                                        "\" is none of near, far, one-way, both-ways, reference, staged, "
                                        "cold, both");
        }
    }
    if (!any) throw std::invalid_argument("it is empty");
    return table;
}

Table Table::choose(std::string_view choice, const std::string& file, std::string_view processor,
                    std::string* source) {
    if (choice == "safe") {
        *source = "safe values";
        return safe();
    }
    if (choice != "auto") {
        *source = "btl_velo_routes";
        return parse(choice);
    }
    const bool known = is_zen(processor);
    *source = known ? "built in for this processor" : "safe values, this processor was not measured";
    std::ifstream in(file);
    if (file.empty() || !in) return built_in(processor);
    const auto ignored = [&](const std::string& why) {
        *source += "; \"" + file + "\" is ignored: " + why;
        return built_in(processor);
    };
    std::string title, of;
    if (!std::getline(in, title) || title != kCalibrationTitle || !std::getline(in, of) ||
        !of.starts_with("processor "))
        return ignored("it is damaged, run velo-info --calibrate again");
    if (of.substr(of.find(' ') + 1) != processor || processor.empty())
        return ignored("it is of another processor, run velo-info --calibrate here");
    try {
        const std::string rest{std::istreambuf_iterator<char>(in), {}};
        const Table table = parse(rest);
        *source = "calibrated, \"" + file + "\"";
        return table;
    } catch (const std::invalid_argument& damage) {
        return ignored(std::string(damage.what()) + ", run velo-info --calibrate again");
    }
}

std::string Table::text() const {
    return "near " + row_text(near_) + "\nfar " + row_text(far_) + "\n";
}

std::string Table::ranges(std::size_t eager_limit) const {
    std::string text;
    for (const bool far : {false, true}) {
        const Row& its = row(far);
        const std::size_t reference = std::min(its.reference_from, eager_limit);
        text += far ? "far, " : "near, ";
        text += "up to " + size_text(reference) + " packets";
        if (reference < eager_limit)
            text += ", " + size_text(reference) + " to " + size_text(eager_limit) + " by reference";
        text += "\n";
        const char* const where = far ? "far, " : "near, ";
        text += where + ("one way: " + large_ranges(its.one_way, eager_limit, false)) + "\n";
        if (its.one_way.cold_to != its.one_way.staged_to)
            text += where + ("one way, from buffers not sent from lately: " +
                             large_ranges(its.one_way, eager_limit, true)) +
                    "\n";
        text += where + ("both ways at once: " + large_ranges(its.both_ways, eager_limit, false)) + "\n";
    }
    return text;
}

std::string processor_name() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned eax = 0, words[3] = {};
    if (__get_cpuid(0, &eax, &words[0], &words[2], &words[1]) == 0) return "";
    char maker[13] = {};
    std::memcpy(maker, words, 12);
    unsigned ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return "";
    const unsigned base = eax >> 8 & 0xf, family = base + (base == 0xf ? eax >> 20 & 0xff : 0);
    const unsigned model = (eax >> 4 & 0xf) | (base >= 6 ? eax >> 12 & 0xf0 : 0);
    return std::string(maker) + " family " + std::to_string(family) + " model " + std::to_string(model);
#else
    return "";
#endif
}

std::string calibration_file() {
    if (const char* file = std::getenv("VELO_ROUTES_FILE"); file != nullptr) return file;
    const char* home = std::getenv("HOME");
    return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.velo/routes";
}

}  // namespace velo::routes
