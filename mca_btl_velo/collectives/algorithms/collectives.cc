#include "collectives/algorithms/collectives.h"

#include <algorithm>

#include "collectives/algorithms/barrier.h"
#include "collectives/algorithms/blocks.h"
#include "collectives/algorithms/broadcast.h"
#include "collectives/algorithms/nodes.h"
#include "collectives/algorithms/reduce.h"

namespace velo::goal::collectives {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {"barrier", "dissemination", barrier::dissemination},
    {"barrier", "recursive_doubling", barrier::recursive_doubling},
    {"barrier", "binomial", barrier::binomial},
    {"barrier", "nodes", nodes::barrier},
    {"bcast", "linear", broadcast::linear},
    {"bcast", "binomial", broadcast::binomial},
    {"bcast", "chain", broadcast::chain},
    {"bcast", "scatter_allgather", broadcast::scatter_allgather},
    {"bcast", "nodes", nodes::broadcast},
    {"bcast", "leaders", nodes::broadcast_by_leaders},
    {"reduce", "linear", reduce::linear},
    {"reduce", "binomial", reduce::binomial},
    {"reduce", "nodes", nodes::reduce},
    {"allreduce", "reduce_bcast", reduce::all_by_broadcast},
    {"allreduce", "recursive_doubling", reduce::all_by_recursive_doubling},
    {"allreduce", "ring", reduce::all_by_ring, false},
    {"allreduce", "rabenseifner", reduce::all_by_halving, false},
    {"allreduce", "nodes", nodes::allreduce},
    {"reduce_scatter_block", "linear", reduce::scatter_linear},
    {"reduce_scatter_block", "pairwise", reduce::scatter_pairwise, false},
    {"reduce_scatter", "linear", reduce::scatter_linear},
    {"reduce_scatter", "pairwise", reduce::scatter_pairwise, false},
    {"scan", "linear", reduce::scan_linear},
    {"scan", "recursive_doubling", reduce::scan_recursive_doubling},
    {"exscan", "linear", reduce::exscan_linear},
    {"exscan", "recursive_doubling", reduce::exscan_recursive_doubling},
    {"gather", "linear", blocks::gather_linear},
    {"gather", "binomial", blocks::gather_binomial},
    {"gather", "linear_sync", blocks::gather_linear_sync},
    {"gather", "by_size", blocks::gather_by_size},
    {"gather", "nodes", nodes::gather},
    {"scatter", "linear", blocks::scatter_linear},
    {"scatter", "binomial", blocks::scatter_binomial},
    {"scatter", "nodes", nodes::scatter},
    {"allgather", "linear", blocks::allgather_linear},
    {"allgather", "ring", blocks::allgather_ring},
    {"allgather", "bruck", blocks::allgather_bruck},
    {"allgather", "nodes", nodes::allgather},
    {"alltoall", "linear", blocks::alltoall_linear},
    {"alltoall", "pairwise", blocks::alltoall_pairwise},
    {"alltoall", "bruck", blocks::alltoall_bruck},
    {"alltoall", "nodes", nodes::alltoall},
    {"gatherv", "linear", blocks::gather_linear},
    {"scatterv", "linear", blocks::scatter_linear},
    {"allgatherv", "linear", blocks::allgather_linear},
    {"allgatherv", "ring", blocks::allgather_ring},
    {"allgatherv", "bruck", blocks::allgather_bruck},
    {"alltoallv", "linear", blocks::alltoall_linear},
    {"alltoallv", "pairwise", blocks::alltoall_pairwise},
    {"exchange", "linear", blocks::exchange},
};

// Of the signature, from the lowest on; the algorithm is counted from 1 on.
constexpr unsigned kRootBits = 5, kOperatorBits = 4, kAlgorithmBits = 6;
static_assert(std::size(kAlgorithms) < 1U << kAlgorithmBits);
static_assert(static_cast<unsigned>(Operator::kOwn) < 1U << kOperatorBits);

}  // namespace

std::uint32_t signature(const Algorithm& algorithm, const Request& request) {
    const auto number = static_cast<std::uint32_t>(&algorithm - kAlgorithms) + 1;
    return (number << kOperatorBits | static_cast<std::uint32_t>(request.reduction.op)) << kRootBits |
           request.root % (1U << kRootBits);
}

std::string describe(std::uint32_t signature) {
    const std::uint32_t number = signature >> (kOperatorBits + kRootBits);
    if (number == 0 || number > std::size(kAlgorithms)) return "a schedule of its own";
    const Algorithm& a = kAlgorithms[number - 1];
    std::string text = std::string(a.operation) + " (" + std::string(a.name);
    const auto has = [&](auto... part) {
        return ((a.operation.find(part) != std::string_view::npos) || ...);
    };
    if (has("reduce", "scan"))
        text += std::string(", ") +
                goal::name(static_cast<Operator>(signature >> kRootBits & ((1U << kOperatorBits) - 1)));
    if (a.operation == "reduce" || a.operation == "bcast" || a.operation.starts_with("gather") ||
        a.operation.starts_with("scatter"))
        text += ", root " + std::to_string(signature & ((1U << kRootBits) - 1));
    return text + ")";
}

std::span<const Algorithm> algorithms() {
    return kAlgorithms;
}

const Algorithm* find(std::string_view operation, std::string_view name) {
    const auto found = std::ranges::find_if(
        kAlgorithms, [&](const Algorithm& a) { return a.operation == operation && a.name == name; });
    return found == std::end(kAlgorithms) ? nullptr : found;
}

std::uint32_t father(std::uint32_t rank) {
    return rank & (rank - 1);
}

std::uint32_t subtree(std::uint32_t rank, std::uint32_t size) {
    return rank == 0 ? size : std::min(rank & ~(rank - 1), size - rank);
}

}  // namespace velo::goal::collectives
