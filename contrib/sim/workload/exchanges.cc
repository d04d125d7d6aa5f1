#include "workload/exchanges.h"

#include <cmath>

namespace velo::sim {

void AllToAll::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    synchronise(out);
    const std::uint32_t group = p / active();
    if (group < options_.groups) linear_alltoall(out, p, group * active(), active(), bytes());
}

void PairwiseAllToAll::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t n = active();
    if (p >= n) return;
    for (std::uint32_t i = 1; i < n; ++i) {
        start(out, (p + i) % n, bytes());
        receive(out, (p + n - i) % n, bytes());
        finish(out);
    }
}

void PhaseChange::steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const {
    const std::uint32_t group = options_.phases[iteration / options_.iterations];
    if (p < group) linear_alltoall(out, p, 0, group, bytes());
    if ((iteration + 1) % options_.iterations == 0) barrier(out, p, count());
}

void MultiPingPong::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t half = count() / 2;
    if (p < half) {
        send(out, p + half, bytes());
        receive(out, p + half, bytes());
    } else if (p < 2 * half) {
        receive(out, p - half, bytes());
        send(out, p - half, bytes());
    }
}

void Stream::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t half = count() / 2;
    const std::uint32_t window = options_.repetitions;
    if (p < half) {
        for (std::uint32_t i = 0; i < window; ++i) start(out, p + half, bytes());
        finish(out);
        receive(out, p + half, 4);
    } else if (p < 2 * half) {
        for (std::uint32_t i = 0; i < window; ++i) receive(out, p - half, bytes());
        send(out, p - half, 4);
    }
}

void SendReceive::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    start(out, (p + 1) % count(), bytes());
    receive(out, (p + count() - 1) % count(), bytes());
    finish(out);
}

void Exchange::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t right = (p + 1) % count();
    const std::uint32_t left = (p + count() - 1) % count();
    start(out, left, bytes());
    start(out, right, bytes());
    receive(out, left, bytes());
    receive(out, right, bytes());
    finish(out);
}

Wavefront::Wavefront(const PatternOptions& o) : Pattern("wavefront", o), columns_(1) {
    for (std::uint32_t c = 1; c * c <= o.processes; ++c)
        if (o.processes % c == 0) columns_ = c;
}

void Wavefront::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t rows = count() / columns_;
    const std::uint32_t row = p / columns_;
    const std::uint32_t column = p % columns_;
    const std::uint32_t planes = options_.repetitions;
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
        if (row > 0) receive(out, p - columns_, bytes());
        if (column > 0) receive(out, p - 1, bytes());
        if (row + 1 < rows) start(out, p + columns_, bytes());
        if (column + 1 < columns_) start(out, p + 1, bytes());
    }
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
        if (row + 1 < rows) receive(out, p + columns_, bytes());
        if (column + 1 < columns_) receive(out, p + 1, bytes());
        if (row > 0) start(out, p - columns_, bytes());
        if (column > 0) start(out, p - 1, bytes());
    }
    finish(out);
}

void Incast::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    if (p == 0)
        receive_any(out, active() - 1);
    else if (p < active())
        send(out, 0, bytes());
}

void Walk::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    const std::uint32_t hops = count() * count();
    std::uint32_t at = 0;
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
        std::uint32_t next = (at + 1 + (hop * 2654435761U >> 16) % (count() - 1)) % count();
        if (hop + 1 == hops) {  // ends where the next iteration begins
            if (at == 0) return;
            next = 0;
        }
        if (p == at) send(out, next, bytes());
        if (p == next) receive(out, at, bytes());
        at = next;
    }
}

Sparse::Sparse(const PatternOptions& o) : Pattern("sparse", o) {
    const std::uint32_t sides = std::max(1U, (o.neighbours > 0 ? o.neighbours : 6) / 2);
    std::uint32_t distance = 1;
    for (std::uint32_t i = 0; i < sides && distance * 2 < o.processes; ++i) {
        distances_.push_back(distance);
        // The nearest ones first, then far away as a three-dimensional stencil's planes are.
        distance = i < sides / 2 ? distance + 1 : distance * 2;
    }
}

std::vector<std::uint32_t> Sparse::peers(std::uint32_t p) const {
    std::vector<std::uint32_t> list;
    for (std::uint32_t d : distances_) {
        list.push_back((p + d) % count());
        list.push_back((p + count() - d) % count());
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
}

void Sparse::steps(std::uint32_t p, std::uint32_t, Steps& out) const {
    for (std::uint32_t d : distances_) {
        start(out, (p + d) % count(), bytes());
        start(out, (p + count() - d) % count(), bytes());
    }
    for (std::uint32_t d : distances_) {
        receive(out, (p + count() - d) % count(), bytes());
        receive(out, (p + d) % count(), bytes());
    }
    finish(out);
}

}  // namespace velo::sim
