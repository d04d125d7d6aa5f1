#include "machine/parameters.h"

#include <cmath>
#include <cstdlib>

namespace velo::sim {
namespace {

struct Entry {
    const char* name;
    double Costs::*cost;
};
constexpr Entry kEntries[] = {
    {"inject", &Costs::inject_ns},
    {"eject", &Costs::eject_ns},
    {"link", &Costs::link_ns},
    {"hop", &Costs::hop_ns},
    {"network", &Costs::network_ns},
    {"send_packet", &Costs::send_packet_ns},
    {"receive_packet", &Costs::receive_packet_ns},
    {"send_message", &Costs::send_message_ns},
    {"receive_message", &Costs::receive_message_ns},
    {"poll", &Costs::poll_ns},
    {"credit_packet", &Costs::credit_packet_ns},
    {"account_packet", &Costs::account_packet_ns},
    {"monitor", &Costs::monitor_ns},
    {"local_message", &Costs::local_message_ns},
    {"local_byte", &Costs::local_byte_ns},
    {"barrier", &Costs::barrier_ns},
    {"skew", &Costs::skew_ns},
};

}  // namespace

std::vector<std::uint32_t> mesh_for(std::uint32_t processes, std::uint32_t processes_per_node) {
    const std::uint32_t nodes =
        processes < processes_per_node ? 1 : (processes + processes_per_node - 1) / processes_per_node;
    if (nodes <= 2) return {nodes};
    if (nodes <= 16) {  // flat, as the thesis configured its 16 nodes
        const auto side = static_cast<std::uint32_t>(std::ceil(std::sqrt(nodes)));
        return {side, (nodes + side - 1) / side};
    }
    const auto side = static_cast<std::uint32_t>(std::ceil(std::cbrt(nodes) - 1e-9));
    const auto rest = (nodes + side - 1) / side;
    const auto second = static_cast<std::uint32_t>(std::ceil(std::sqrt(rest) - 1e-9));
    return {side, second, (rest + second - 1) / second};
}

std::vector<std::uint32_t> parse_dimensions(const std::string& text) {
    std::vector<std::uint32_t> dimensions;
    const char* at = text.c_str();
    while (*at != '\0') {
        char* end = nullptr;
        const unsigned long value = std::strtoul(at, &end, 10);
        if (end == at || value == 0 || value > 65535) return {};
        dimensions.push_back(static_cast<std::uint32_t>(value));
        if (*end == 'x' && end[1] != '\0')
            ++end;
        else if (*end != '\0')
            return {};
        at = end;
    }
    return dimensions.size() <= 3 ? dimensions : std::vector<std::uint32_t>{};
}

std::string to_string(const std::vector<std::uint32_t>& dimensions) {
    std::string text;
    for (std::uint32_t d : dimensions) text += (text.empty() ? "" : "x") + std::to_string(d);
    return text;
}

bool set_cost(Costs& costs, const std::string& name, double value) {
    for (const Entry& entry : kEntries)
        if (name == entry.name) {
            costs.*entry.cost = value;
            return true;
        }
    return false;
}

std::vector<std::pair<std::string, double>> list_costs(const Costs& costs) {
    std::vector<std::pair<std::string, double>> list;
    for (const Entry& entry : kEntries) list.emplace_back(entry.name, costs.*entry.cost);
    return list;
}

}  // namespace velo::sim
