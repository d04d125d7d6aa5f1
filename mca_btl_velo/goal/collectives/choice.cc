#include "goal/collectives/choice.h"

#include <bit>

namespace velo::goal::collectives {
namespace {

// Few ranks: everybody speaks to everybody, and large blocks are fetched by all receivers at once.
constexpr std::uint32_t kFew = 8;
constexpr std::uint64_t kSmall = 2048, kLarge = std::uint64_t{64} * 1024;

std::string_view name(std::string_view operation, const Request& r) {
    const bool few = r.size <= kFew, commutes = r.reduction.commutative;
    if (operation == "barrier") return "dissemination";
    if (operation == "bcast") {
        if (r.bytes >= kLarge) return few ? "linear" : "scatter_allgather";
        return r.size <= 4 ? "linear" : "binomial";
    }
    if (operation == "reduce") return r.size <= 4 ? "linear" : "binomial";
    if (operation == "allreduce") {
        if (r.bytes < kLarge || !commutes) return "recursive_doubling";
        return std::has_single_bit(r.size) ? "rabenseifner" : "ring";
    }
    if (operation == "reduce_scatter" || operation == "reduce_scatter_block")
        return few || !commutes ? "linear" : "pairwise";
    if (operation == "scan" || operation == "exscan") return "recursive_doubling";
    if (operation == "gather") return few ? "linear" : "by_size";
    if (operation == "scatter") return few || r.bytes >= kSmall ? "linear" : "binomial";
    if (operation == "allgather") return few ? "linear" : r.bytes < kSmall ? "bruck" : "ring";
    if (operation == "allgatherv") return few ? "linear" : r.bytes / r.size < kSmall ? "bruck" : "ring";
    if (operation == "alltoallv") return few ? "linear" : "pairwise";
    if (operation == "gatherv" || operation == "scatterv" || operation == "exchange") return "linear";
    if (operation == "alltoall") return few ? "linear" : r.bytes <= 256 ? "bruck" : "pairwise";
    return {};
}

}  // namespace

const Algorithm* choose(std::string_view operation, const Request& request) {
    return find(operation, name(operation, request));
}

}  // namespace velo::goal::collectives
