// What the modelled machine costs. The defaults are calibrated for the thesis's cluster (64 nodes with 16
// cores, EXTOLL on an FPGA); contrib/sim/design.md says which numbers were fitted to which reference time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"

namespace velo::sim {

// Times in nanoseconds.
struct Costs {
    // The network interface and the links, per packet of 64 bytes and its header.
    double inject_ns = 168.9;  // the processes of a node share this rate
    double eject_ns = 168.9;
    double link_ns = 168.9;
    double hop_ns = 86.9;     // each switch and cable
    double network_ns = 600;  // fixed: host interface on both sides
    // A process, per packet and per message.
    double send_packet_ns = 60;
    double receive_packet_ns = 100;
    double send_message_ns = 400;
    double receive_message_ns = 700;
    double poll_ns = 50;  // from an arrival to a process that waits for it
    // The processor's part of flow control.
    double credit_packet_ns = 150;  // building or taking in a CREDIT, REQ or RESP
    double account_packet_ns = 4;   // counting one DATA packet, on each side
    double monitor_ns = 40;         // a threshold that was reached, under a policy that watches activity
    // How long a process waits for a window before it asks one more peer to give way (lazy).
    double patience_ns = 2e6;
    // LiMIC inside a node.
    double local_message_ns = 900;
    double local_byte_ns = 0.35;
    // Rendezvous: larger messages travel by RMA.
    double rma_packet_bytes = 64;

    // A synchronisation takes as long as a barrier: so much for each doubling of the processes. After it, and
    // at the start, the processes go on within the skew, at random.
    double barrier_ns = 2500;
    double skew_ns = 2000;
};

struct Machine {
    std::vector<std::uint32_t> dimensions = {4, 4, 4};  // nodes
    bool torus = false;
    std::uint32_t processes_per_node = 16;
    std::uint32_t node_stride = 1;  // 63 puts the second node of a job into the far corner of 8x8
    std::uint32_t node_window =
        64;  // packets of a node in the network before back-pressure stops it, 0: no limit
    std::uint32_t max_train = 0;       // packets simulated as one train at most, 0: no limit
    std::uint32_t eager_limit = 2048;  // bytes of MPI data
    std::uint32_t header_bytes = 16;   // MPI header of the thesis; ob1's has 14
    std::uint64_t seed = 1;
    bool progress_before_send = false;  // a process empties its mailbox before each send, stalled or not
    bool limic = false;                 // messages inside a node bypass VELO
    Costs costs;

    std::uint32_t nodes() const {
        std::uint32_t count = 1;
        for (std::uint32_t d : dimensions) count *= d;
        return count;
    }
    std::uint32_t processes() const { return ((nodes() - 1) / node_stride + 1) * processes_per_node; }
};

// A mesh of the smallest number of nodes that holds `processes`: the thesis's shapes where it had them (16
// nodes are 4x4, 64 are 4x4x4), otherwise the most cubic one.
std::vector<std::uint32_t> mesh_for(std::uint32_t processes, std::uint32_t processes_per_node);

// "4x4x4" or "8x8"; empty if the text is none.
std::vector<std::uint32_t> parse_dimensions(const std::string& text);
std::string to_string(const std::vector<std::uint32_t>& dimensions);

// Sets one cost by its name without "_ns", such as "hop"; false if there is no such cost.
bool set_cost(Costs& costs, const std::string& name, double value);
std::vector<std::pair<std::string, double>> list_costs(const Costs& costs);

}  // namespace velo::sim
