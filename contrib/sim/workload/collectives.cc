#include "workload/collectives.h"

namespace velo::sim {
namespace {

// The subtree of `rank` in a binomial tree of `count`: it holds the ranks rank..rank+size-1.
std::uint32_t subtree(std::uint32_t rank, std::uint32_t count) {
    if (rank == 0) return count;
    return std::min(rank & (~rank + 1), count - rank);
}

std::uint32_t highest_power(std::uint32_t count) {
    std::uint32_t power = 1;
    while (power * 2 < count) power *= 2;
    return power;
}

std::uint32_t parent(std::uint32_t rank) {
    return rank & (rank - 1);
}

}  // namespace

void Barrier::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    barrier(out, p, count());
}

void Broadcast::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = rank(p, iteration);
    if (r > 0) receive(out, process(parent(r), iteration), bytes());
    const std::uint32_t top = r == 0 ? highest_power(count()) : (r & (~r + 1)) / 2;
    for (std::uint32_t bit = top; bit > 0; bit /= 2)
        if (r + bit < count()) send(out, process(r + bit, iteration), bytes());
}

void Reduce::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = rank(p, iteration);
    const std::uint32_t top = r == 0 ? 2 * highest_power(count()) : r & (~r + 1);
    for (std::uint32_t bit = 1; bit < top; bit *= 2)
        if (r + bit < count()) receive(out, process(r + bit, iteration), bytes());
    if (r > 0) send(out, process(parent(r), iteration), bytes());
}

// Processes beyond the largest power of two give their data to a partner first and get the result last.
void AllReduce::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    std::uint32_t power = 1;
    while (power * 2 <= count()) power *= 2;
    const std::uint32_t extra = count() - power;
    if (p >= power) {
        send(out, p - power, bytes());
        receive(out, p - power, bytes());
        return;
    }
    if (p < extra) receive(out, p + power, bytes());
    for (std::uint32_t bit = 1; bit < power; bit *= 2) {
        start(out, p ^ bit, bytes());
        receive(out, p ^ bit, bytes());
        finish(out);
    }
    if (p < extra) send(out, p + power, bytes());
}

void Gather::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = rank(p, iteration);
    const std::uint32_t top = r == 0 ? 2 * highest_power(count()) : r & (~r + 1);
    for (std::uint32_t bit = 1; bit < top; bit *= 2)
        if (r + bit < count()) receive(out, process(r + bit, iteration), bytes() * subtree(r + bit, count()));
    if (r > 0) send(out, process(parent(r), iteration), bytes() * subtree(r, count()));
}

void Scatter::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = rank(p, iteration);
    if (r > 0) receive(out, process(parent(r), iteration), bytes() * subtree(r, count()));
    const std::uint32_t top = r == 0 ? highest_power(count()) : (r & (~r + 1)) / 2;
    for (std::uint32_t bit = top; bit > 0; bit /= 2)
        if (r + bit < count()) send(out, process(r + bit, iteration), bytes() * subtree(r + bit, count()));
}

void AllGather::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    // Bruck's algorithm: in round k the blocks of 2^k processes.
    for (std::uint32_t distance = 1; distance < count(); distance *= 2) {
        const std::uint32_t blocks = std::min(distance, count() - distance);
        start(out, (p + count() - distance) % count(), bytes() * blocks);
        receive(out, (p + distance) % count(), bytes() * blocks);
        finish(out);
    }
}

void LinearScatter::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = root(iteration);
    if (p != r) return receive(out, r, bytes());
    for (std::uint32_t q = 0; q < count(); ++q)
        if (q != p) send(out, q, bytes());
}

void LinearGather::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t r = root(iteration);
    if (p != r) return send(out, r, bytes());
    for (std::uint32_t q = 0; q < count(); ++q)
        if (q != p) receive(out, q, bytes());
}

}  // namespace velo::sim
