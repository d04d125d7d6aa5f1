#include "platform/processors.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace velo::platform {
namespace {

// "0-3,8". False: it is none.
bool add_list(std::string_view list, std::set<std::uint32_t>& to) {
    constexpr std::uint32_t kMost = 1U << 16;
    const char *at = list.data(), *const end = at + list.size();
    while (at != end) {
        std::uint32_t first = 0;
        auto read = std::from_chars(at, end, first);
        if (read.ec != std::errc()) return false;
        std::uint32_t last = first;
        if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
        if (read.ec != std::errc() || last < first || last >= kMost) return false;
        for (; first <= last; ++first) to.insert(first);
        if (read.ptr != end && *read.ptr != ',') return false;
        at = read.ptr == end ? end : read.ptr + 1;
    }
    return !list.empty();
}

// Of the words between colons the one of the hardware threads.
std::string_view threads_in(std::string_view locality) {
    constexpr std::string_view kThreads = "HT";
    for (std::size_t at = 0; at < locality.size();) {
        const std::size_t end = std::min(locality.find(':', at), locality.size());
        const std::string_view word = locality.substr(at, end - at);
        if (word.starts_with(kThreads)) return word.substr(kThreads.size());
        at = end + 1;
    }
    return {};
}

std::string content_of(pid_t process, const char* file) {
    std::ifstream in("/proc/" + std::to_string(process) + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Each process manager says so.
bool is_rank(pid_t process) {
    const std::string environment = '\0' + content_of(process, "environ");
    return environment.find(std::string("\0PMIX_RANK=", 11)) != std::string::npos ||
           environment.find(std::string("\0PMI_RANK=", 10)) != std::string::npos;
}

// "17 (a name) S 16 ..."
pid_t parent_of(pid_t process) {
    const std::string stat = content_of(process, "stat");
    const std::size_t behind = stat.rfind(") ");
    pid_t parent = 0;
    if (behind != std::string::npos && stat.size() > behind + 4)
        (void)std::from_chars(stat.data() + behind + 4, stat.data() + stat.size(), parent);
    return parent;
}

}  // namespace

std::uint32_t online_processors() noexcept {
    return static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::optional<std::uint32_t> processors_in(std::span<const char* const> localities) {
    std::set<std::uint32_t> all;
    for (const char* locality : localities)
        if (locality == nullptr || !add_list(threads_in(locality), all)) return {};
    return static_cast<std::uint32_t>(all.size());
}

std::uint32_t processors_in(const cpu_set_t& own, const cpu_set_t& launcher) {
    cpu_set_t all;
    CPU_OR(&all, &own, &launcher);
    return static_cast<std::uint32_t>(CPU_COUNT(&all));
}

std::uint32_t shared_processors(std::span<const char* const> localities) {
    if (const auto bound = processors_in(localities); bound && *bound > 0) return *bound;
    const std::uint32_t online = online_processors();
    cpu_set_t own, launchers;
    if (::sched_getaffinity(0, sizeof own, &own) != 0) return online;
    if (static_cast<std::uint32_t>(CPU_COUNT(&own)) >= online) return online;
    const pid_t launcher = find_launcher(::getppid(), is_rank, parent_of);
    if (launcher == 0 || ::sched_getaffinity(launcher, sizeof launchers, &launchers) != 0) return online;
    return processors_in(own, launchers);
}

}  // namespace velo::platform
