#include "collectives/performing/group.h"

#include <algorithm>
#include <span>

#include "collectives/algorithms/nodes.h"
#include "platform/failure.h"

namespace velo::performing {
namespace {

namespace collectives = goal::collectives;

bool is_same(const velo_goal_request& a, const velo_goal_request& b) {
    return a.root == b.root && a.bytes == b.bytes && a.segment == b.segment && a.in_place == b.in_place &&
           a.op == b.op && a.type == b.type && a.width == b.width && a.ordered == b.ordered &&
           a.element == b.element && a.on_node == b.on_node && a.multicast == b.multicast;
}

std::string_view text(const char* name) {
    return name == nullptr ? std::string_view() : name;
}

using Blocks = std::vector<collectives::Block>;

bool is_same(const Blocks& kept, const velo_goal_block* asked, std::uint32_t count) {
    return std::equal(kept.begin(), kept.end(), asked, asked + count,
                      [](const collectives::Block& a, const velo_goal_block& b) {
                          return a.bytes == b.bytes && a.offset == b.offset && a.peer == b.peer &&
                                 a.tag == b.tag;
                      });
}

Blocks blocks_of(const velo_goal_block* asked, std::uint32_t count) {
    Blocks blocks;
    blocks.reserve(count);
    for (const velo_goal_block& b : std::span(asked, count))
        blocks.push_back({b.peer, b.tag, b.offset, b.bytes});
    return blocks;
}

std::shared_ptr<Compiled> make(const Group& group, const velo_goal_request& asked, const Blocks& sends,
                               const Blocks& receives, const collectives::Choices& choices) {
    collectives::Request request;
    request.sends = sends;
    request.receives = receives;
    request.rank = group.rank;
    request.size = group.size;
    request.root = asked.root;
    request.bytes = asked.bytes;
    request.segment = asked.segment;
    request.in_place = asked.in_place;
    request.on_node = std::max(1U, asked.on_node);
    request.reduction = {static_cast<goal::Operator>(asked.op), static_cast<goal::Type>(asked.type),
                         static_cast<std::uint8_t>(asked.width), !asked.ordered,
                         std::max<std::uint64_t>(1, asked.element)};
    const collectives::Algorithm* algorithm =
        asked.algorithm == nullptr ? nullptr : collectives::find(asked.operation, asked.algorithm);
    if (asked.algorithm == nullptr || (algorithm != nullptr && !algorithm->serves(request)))
        algorithm = choices.choose(asked.operation, request);
    if (algorithm == nullptr || request.root >= request.size)
        throw Failure(VELO_ERR_UNSUPPORTED, std::string("no such collective operation: ") + asked.operation);
    const auto fits = [&](const Blocks& blocks) {
        return algorithm->operation == "exchange"
                   ? std::ranges::all_of(blocks, [&](const auto& block) { return block.peer < request.size; })
                   : blocks.empty() || blocks.size() == request.size;
    };
    if (!fits(sends) || !fits(receives))
        throw Failure(VELO_ERR_PARAMETER, "the blocks are not those of the ranks");
    std::shared_ptr<Compiled> made = compiled(algorithm->make(request));
    if (made->most_tag < kLaneTag) made->signature = collectives::signature(*algorithm, request);
    if (asked.multicast) {
        made->led = request.rank % request.on_node != 0;
        const bool at_root = request.rank / request.on_node == request.root / request.on_node;
        made->shared_tag = !made->led ? collectives::nodes::kBetweenLeaders
                           : at_root  ? kNoTag
                                      : collectives::nodes::kFromLeaders;
    }
    return made;
}

}  // namespace

std::shared_ptr<Compiled>* Group::schedule(const velo_goal_request& request,
                                           const collectives::Choices& choices, std::uint64_t* made) {
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
        if (!is_same(kept->request, request) || kept->operation != request.operation ||
            kept->algorithm != text(request.algorithm) ||
            !is_same(kept->sends, request.sends, request.send_count) ||
            !is_same(kept->receives, request.receives, request.receive_count))
            continue;
        if (kept != kept_.begin()) kept_.splice(kept_.begin(), kept_, kept);
        return &kept->compiled;
    }
    kept_.push_front({request.operation, std::string(text(request.algorithm)), request,
                      blocks_of(request.sends, request.send_count),
                      blocks_of(request.receives, request.receive_count), nullptr});
    try {
        kept_.front().compiled = make(*this, request, kept_.front().sends, kept_.front().receives, choices);
    } catch (...) {
        kept_.pop_front();
        throw;
    }
    ++*made;
    if (kept_.size() > kMostKept) kept_.pop_back();
    return &kept_.front().compiled;
}

std::uint64_t GroupNames::take(std::uint64_t members, std::uint32_t id) {
    const auto mixed = [](std::uint64_t a, std::uint64_t b) {
        const std::uint64_t product = (a ^ b) * 0x9e3779b97f4a7c15;  // one to one in each of both
        return product ^ product >> 32;
    };
    constexpr std::uint64_t kTimes = (1U << kTimeBits) - 1;
    const std::uint64_t group = mixed(mixed(members, id), members);
    const std::uint32_t before = counts_[group]++;
    return (mixed(group, before) & ~kTimes) | ((group + before) & kTimes);
}

}  // namespace velo::performing
