// A search through states, breadth first: those that are still to be looked at, and all that were met.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>

namespace velo::schedule {

template <class Node>
class Frontier {
 public:
    // False: it was met before.
    bool is_new(std::string state) { return seen_.insert(std::move(state)).second; }
    void put(Node&& node) { nodes_.push_back(std::move(node)); }
    // Of those that are left the one with the fewest steps.
    Node take() {
        Node node = std::move(nodes_.front());
        nodes_.pop_front();
        return node;
    }
    std::uint64_t states() const { return seen_.size(); }
    bool exhausted() const { return nodes_.empty(); }

 private:
    std::deque<Node> nodes_;
    std::unordered_set<std::string> seen_;
};

}  // namespace velo::schedule
