#include "engine/routes/table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <cstring>
#endif

namespace velo::routes {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
// What is staged copies each byte twice: never right for more than this, which is most of what caches hold.
constexpr std::size_t kMostStaged = 64 * MiB;

// Measured: docs/measured/routes.md. Both copying pays from 64 KiB on wherever single copy works, but not
// where both send, as each then copies for itself. A buffer that was not sent from before is in no cache of
// the receiver's, and the ring is.
constexpr LargeLimits kSafeOneWay{0, 128 * KiB, 64 * KiB}, kSafeBothWays{0, 0, kNever};
constexpr Row kSafeNear{Copying::kVectors, kNever, kSafeOneWay, kSafeBothWays};
constexpr Row kSafeFar{Copying::kNonTemporal, kNever, kSafeOneWay, kSafeBothWays};
// Zen: what one core has stored the other reads out of the cache that they share, or past the caches where
// they share none; lines of the mailbox and of a user's buffer are slow to take back from the other core.
// Whoever only receives does not know the distance: both_from is the same near and far.
constexpr std::size_t kZenBoth = 128 * KiB;
constexpr LargeLimits kZenFarOneWay{128 * KiB, 128 * KiB, kZenBoth},
    kZenFarBothWays{32 * KiB, 32 * KiB, kNever};
constexpr LargeLimits kZenNearBothWays{64 * MiB, 64 * MiB, kNever};
constexpr Row kZenNear{Copying::kVectors, 1 * KiB, {128 * KiB, 64 * MiB, kZenBoth}, kZenNearBothWays};
constexpr Row kZenFar{Copying::kNonTemporal, 1 * KiB, kZenFarOneWay, kZenFarBothWays};
// Zen 5 and later fetch a run of packets ahead, and store by string into lines of the other core's cache
// without fetching them.
constexpr Row kZen5Near{Copying::kString, 4 * KiB, {64 * MiB, 64 * MiB, kZenBoth}, kZenNearBothWays};
constexpr Row kZen5Far{Copying::kString, 4 * KiB, kZenFarOneWay, kZenFarBothWays};

constexpr int kZen5Family = 26;

// Of a Zen; else 0.
int zen_family(std::string_view processor) {
    for (const std::string_view maker : {"AuthenticAMD family ", "HygonGenuine family "}) {
        if (!processor.starts_with(maker)) continue;
        int family = 0;
        std::from_chars(processor.data() + maker.size(), processor.data() + processor.size(), family);
        return family >= 23 ? family : 0;
    }
    return 0;
}

// What ends before `end` of a text, which begins behind it from then on.
std::string_view cut(std::string_view* text, std::string_view ends) {
    const std::size_t end = text->find_first_of(ends);
    const std::string_view first = text->substr(0, end);
    text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
    return first;
}

// The next of the words between blanks; "" behind the last one.
std::string_view next_word(std::string_view* text) {
    while (!text->empty())
        if (const std::string_view word = cut(text, " \t\r\n"); !word.empty()) return word;
    return {};
}

// The file, or as much of it as no table has. Returns 0 or an errno; ENOENT also where this user may not look
// whether there is one, as in another's home.
int read_file(const std::string& path, std::string* text) {
    constexpr std::size_t kMost = 4096;
    if (access(path.c_str(), F_OK) != 0) return ENOENT;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno;
    text->resize(kMost);
    const ssize_t bytes = read(fd, text->data(), kMost);
    const int error = bytes < 0 ? errno : 0;
    close(fd);
    text->resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return error;
}

// As it is quoted in a message.
std::string quoted(std::string_view word) {
    constexpr std::size_t kMost = 40;
    return "\"" + std::string(word.substr(0, kMost)) + (word.size() > kMost ? "...\"" : "\"");
}

std::size_t bytes_of(std::string_view word, std::string_view what) {
    if (word == "never") return kNever;
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bytes);
    if (error != std::errc() || end != word.data() + word.size())
        throw std::invalid_argument(quoted(what) + " is followed by " + quoted(word) +
                                    " instead of a number of bytes or \"never\"");
    return bytes;
}

std::string limit_text(std::size_t bytes) {
    return bytes == kNever ? "never" : std::to_string(bytes);
}

constexpr struct {
    std::string_view word;
    Copying copying;
} kCopyings[] = {
    {"vectors", Copying::kVectors}, {"non-temporal", Copying::kNonTemporal}, {"string", Copying::kString}};

std::string_view copying_text(Copying copying) {
    return kCopyings[static_cast<int>(copying)].word;
}

Copying copying_of(std::string_view word) {
    for (const auto& its : kCopyings)
        if (its.word == word) return its.copying;
    throw std::invalid_argument("\"copy\" is followed by " + quoted(word) +
                                " instead of vectors, non-temporal or string");
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
    return "copy " + std::string(copying_text(row.copying)) + " reference " + limit_text(row.reference_from) +
           " one-way" + large(row.one_way) + " both-ways" + large(row.both_ways);
}

// Ranges of a message by rendezvous, which is longer than `eager_limit`, each with who copies it.
std::string large_ranges(const LargeLimits& its, std::size_t eager_limit, bool cold) {
    std::string text;
    const auto add = [&text](const std::string& range, const char* route) {
        text += (text.empty() ? "" : ", ") + range + " " + route;
    };
    const std::size_t staged = std::max(eager_limit, cold ? its.cold_to : its.staged_to);
    if (staged > eager_limit) add("up to " + size_text(staged), "staged");
    if (its.both_from == kNever) {
        add("longer", "the receiver copies");
        return text;
    }
    if (its.both_from > staged + 1) add("below " + size_text(its.both_from), "the receiver copies");
    add("longer", "both copy");
    return text;
}

}  // namespace

Table Table::safe() {
    Table table;
    table.near_ = kSafeNear;
    table.far_ = kSafeFar;
    return table;
}

Table Table::built_in(std::string_view processor) {
    const int family = zen_family(processor);
    if (family == 0) return safe();
    Table table;
    table.near_ = family >= kZen5Family ? kZen5Near : kZenNear;
    table.far_ = family >= kZen5Family ? kZen5Far : kZenFar;
    return table;
}

// A word chooses what the numbers behind it are of: near or far, one way or both ways; without such a word
// they are of all. What is not named stays as in `base`.
Table Table::parse(std::string_view text, const Table& base) {
    Table table = base;
    bool near = true, far = true, one_way = true, both_ways = true, sets = false;
    const auto next_of = [&](std::string_view what) {
        const std::string_view word = next_word(&text);
        if (word.empty()) throw std::invalid_argument("nothing follows " + quoted(what));
        sets = true;
        return word;
    };
    const auto next = [&](std::string_view what) { return bytes_of(next_of(what), what); };
    const auto next_staged = [&](std::string_view what) {
        const std::size_t bytes = next(what);
        if (bytes != kNever && bytes > kMostStaged)
            throw std::invalid_argument(quoted(what) + " is followed by \"" + std::to_string(bytes) +
                                        "\": at most " + std::to_string(kMostStaged) + " bytes are staged");
        return bytes == kNever ? 0 : bytes;
    };
    const auto each_row = [&](auto&& change) {
        if (near) change(table.near_);
        if (far) change(table.far_);
    };
    const auto set = [&](std::size_t LargeLimits::*limit, std::size_t bytes) {
        each_row([&](Row& row) {
            if (one_way) row.one_way.*limit = bytes;
            if (both_ways) row.both_ways.*limit = bytes;
        });
    };
    for (std::string_view word; !(word = next_word(&text)).empty();) {
        if (word == "near" || word == "far") {
            near = word == "near";
            far = !near;
            one_way = both_ways = true;
        } else if (word == "one-way" || word == "both-ways") {
            one_way = word == "one-way";
            both_ways = !one_way;
        } else if (word == "copy") {
            const Copying copying = copying_of(next_of(word));
            each_row([copying](Row& row) { row.copying = copying; });
        } else if (word == "reference") {
            const std::size_t bytes = next(word);
            each_row([bytes](Row& row) { row.reference_from = bytes; });
        } else if (word == "staged") {
            const std::size_t bytes = next_staged(word);
            set(&LargeLimits::staged_to, bytes);
            set(&LargeLimits::cold_to, bytes);
        } else if (word == "cold") {
            set(&LargeLimits::cold_to, next_staged(word));
        } else if (word == "both") {
            set(&LargeLimits::both_from, next(word));
        } else {
            throw std::invalid_argument(quoted(word) +
                                        " is none of near, far, one-way, both-ways, copy, reference, "
                                        "staged, cold, both");
        }
    }
    if (!sets) throw std::invalid_argument("it sets nothing");
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
        return parse(choice, safe());
    }
    const bool known = zen_family(processor) > 0;
    *source = known ? "built in for this processor" : "safe values, this processor was not measured";
    const auto ignored = [&](const std::string& why) {
        *source += "; \"" + file + "\" is ignored: " + why;
        return built_in(processor);
    };
    std::string text;
    const int error = read_file(file, &text);
    if (error == ENOENT) return built_in(processor);
    if (error != 0) return ignored("it cannot be read, " + std::generic_category().message(error));
    constexpr std::string_view kProcessor = "processor ", kEnd = "\nend\n";
    std::string_view rest = text;
    const std::string_view title = cut(&rest, "\n"), of = cut(&rest, "\n");
    if (title != kCalibrationTitle || !of.starts_with(kProcessor) || !rest.ends_with(kEnd))
        return ignored("it is damaged, run velo-info --calibrate again");
    rest.remove_suffix(kEnd.size());
    if (of.substr(kProcessor.size()) != processor || processor.empty())
        return ignored("it is of another processor, run velo-info --calibrate here");
    try {
        const Table table = parse(rest, built_in(processor));
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
    Row as_near = far_;  // but for how the sender copies, which is no range
    as_near.copying = near_.copying;
    const bool one = as_near == near_;
    for (const bool far : {false, true}) {
        if (far && one) break;
        const Row& its = row(far);
        const std::string where = one ? "near and far" : far ? "far" : "near";
        const bool refers = its.reference_from <= eager_limit;
        text += where + ", at once: " +
                (refers ? "below " + size_text(its.reference_from) + " packets, up to " +
                              size_text(eager_limit) + " by reference"
                        : "up to " + size_text(eager_limit) + " packets") +
                "\n";
        for (const bool both : {false, true}) {
            const LargeLimits& large = its.large(both);
            const std::string how = where + (both ? ", both ways" : ", one way");
            text += how + ": " + large_ranges(large, eager_limit, false) + "\n";
            if (large.cold_to != large.staged_to)
                text +=
                    how + ", buffers not sent from lately: " + large_ranges(large, eager_limit, true) + "\n";
        }
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
