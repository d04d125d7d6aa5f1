// Every algorithm with every number of ranks: what it leaves in the buffers under seeded interleavings,
// beside what the operation says; and that the checker has nothing to say about it.
#include "collectives/algorithms/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithms/steps.h"
#include "collectives/goal/check.h"
#include "goal/party.h"

namespace velo::goal::collectives {
namespace {

Program program_of(const Algorithm& algorithm, Request request) {
    Program program;
    for (std::uint32_t rank = 0; rank < request.size; ++rank) {
        request.rank = rank;
        std::string error;
        auto schedule = compile(algorithm.make(request), &error);
        if (!schedule) throw std::runtime_error(error);
        program.schedules.push_back(std::move(*schedule));
    }
    return program;
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm> {
 protected:
    std::string_view operation() const { return GetParam().operation; }
    bool rooted() const {
        return operation() == "bcast" || operation() == "reduce" || operation() == "gather" ||
               operation() == "scatter";
    }

    static std::byte datum(std::uint32_t rank, std::uint64_t at) {
        return static_cast<std::byte>(rank * 37 + at * 11 + at / 256 * 5 + 1);
    }
    static Bytes data(std::uint32_t rank, std::uint64_t bytes) {
        Bytes all(bytes);
        for (std::uint64_t i = 0; i < bytes; ++i) all[i] = datum(rank, i);
        return all;
    }
    // Sum over ranks [first, last) of 16-bit words, at `offset` of their vectors.
    static Bytes sum(std::uint32_t first, std::uint32_t last, std::uint64_t offset, std::uint64_t bytes) {
        Bytes all(bytes);
        for (std::uint64_t i = 0; i < bytes; i += 2) {
            std::uint16_t total = 0;
            for (std::uint32_t rank = first; rank < last; ++rank) {
                const std::byte word[] = {datum(rank, offset + i), datum(rank, offset + i + 1)};
                std::uint16_t value;
                std::memcpy(&value, word, 2);
                total = static_cast<std::uint16_t>(total + value);
            }
            std::memcpy(&all[i], &total, 2);
        }
        return all;
    }

    void prepare(Party& party, const Request& request) const {
        for (std::uint32_t rank = 0; rank < request.size; ++rank) {
            const std::uint64_t n = request.size, b = request.bytes;
            Bytes &in = party.argument(rank, kSendBuffer), &out = party.argument(rank, kReceiveBuffer);
            const bool root = rank == request.root;
            const bool in_place = request.in_place && (root || !rooted());
            const auto all_in = operation() == "alltoall" || operation() == "reduce_scatter_block" ||
                                        (operation() == "scatter" && root)
                                    ? n * b
                                    : b;
            const auto all_out = operation() == "alltoall" || operation() == "allgather" ||
                                         operation() == "gather" ||
                                         (operation() == "reduce_scatter_block" && in_place)
                                     ? n * b
                                     : b;
            in = data(rank, all_in);
            out = Bytes(all_out, std::byte{0xee});
            if (operation() == "bcast" && root) out = data(rank, b);
            if (!in_place || operation() == "bcast" || operation() == "scatter") continue;
            const bool own_block = operation() == "allgather" || operation() == "gather";
            std::ranges::copy(in, out.begin() + static_cast<std::ptrdiff_t>(own_block ? rank * b : 0));
            in.assign(in.size(), std::byte{0xee});
        }
    }

    // What the receive buffer must hold; of what is not determined, what it holds.
    Bytes expected(const Request& request, std::uint32_t rank, const Bytes& found) const {
        const std::uint32_t n = request.size;
        const std::uint64_t b = request.bytes;
        const bool root = rank == request.root;
        Bytes all;
        const auto append = [&all](const Bytes& more) { all.insert(all.end(), more.begin(), more.end()); };
        if (operation() == "bcast") return data(request.root, b);
        if (operation() == "scatter") {
            if (root && request.in_place) return found;
            const Bytes from = data(request.root, n * b);
            return {from.begin() + static_cast<std::ptrdiff_t>(rank * b),
                    from.begin() + static_cast<std::ptrdiff_t>((rank + 1) * b)};
        }
        if (operation() == "allgather" || (operation() == "gather" && root)) {
            for (std::uint32_t r = 0; r < n; ++r) append(data(r, b));
            return all;
        }
        if (operation() == "alltoall") {
            for (std::uint32_t r = 0; r < n; ++r)
                for (std::uint64_t i = 0; i < b; ++i) all.push_back(datum(r, rank * b + i));
            return all;
        }
        if (operation() == "allreduce" || (operation() == "reduce" && root)) return sum(0, n, 0, b);
        if (operation() == "scan") return sum(0, rank + 1, 0, b);
        if (operation() == "exscan" && rank > 0) return sum(0, rank, 0, b);
        if (operation() == "reduce_scatter_block") {
            append(sum(0, n, rank * b, b));
            all.insert(all.end(), found.begin() + static_cast<std::ptrdiff_t>(all.size()), found.end());
            return all;
        }
        return found;
    }

    Request request_of(std::uint32_t size, std::uint32_t root, std::uint64_t bytes) const {
        Request request;
        request.size = size;
        request.root = root;
        request.on_node = 1 + size / 3;
        request.bytes = bytes;
        request.segment = bytes > 100 ? 100 : 0;
        request.reduction.width = 16;
        return request;
    }
};

TEST(CollectivesTest, vectors_are_shared_out_in_whole_elements_of_the_program) {
    for (const Algorithm& a : algorithms()) {
        if (a.operation != "allreduce") continue;
        Request request;
        request.size = 5;
        request.bytes = std::uint64_t{12} * 17;
        request.reduction = {Operator::kOwn, Type::kUint, 8, true, 12};
        for (request.rank = 0; request.rank < request.size; ++request.rank) {
            const Graph graph = a.make(request);
            for (const Operation& o : graph.operations())
                EXPECT_EQ(o.bytes % 12 + (o.space == kReceiveBuffer ? o.offset % 12 : 0), 0U) << a.name;
        }
    }
}

class EveryOrderedReduction : public EveryAlgorithm {};

// What blocks differ in is in the lists of a request.
bool has_lists(const Algorithm& a) {
    return a.operation == "exchange" || a.operation == "reduce_scatter" || a.operation.ends_with("v");
}
class EveryAlgorithmWithLists : public EveryAlgorithm {};

template <typename Condition>
std::vector<Algorithm> all(Condition condition) {
    std::vector<Algorithm> list;
    std::ranges::copy_if(algorithms(), std::back_inserter(list), condition);
    return list;
}
std::string identifier(const ::testing::TestParamInfo<Algorithm>& test) {
    return std::string(test.param.operation) + "_" + std::string(test.param.name);
}
INSTANTIATE_TEST_SUITE_P(CollectivesTest, EveryAlgorithm,
                         ::testing::ValuesIn(all([](const Algorithm& a) { return !has_lists(a); })),
                         identifier);
INSTANTIATE_TEST_SUITE_P(CollectivesTest, EveryOrderedReduction,
                         ::testing::ValuesIn(all([](const Algorithm& a) {
                             const bool reduces = a.operation.find("reduce") != std::string_view::npos ||
                                                  a.operation.find("scan") != std::string_view::npos;
                             return reduces && a.keeps_order && !has_lists(a);
                         })),
                         identifier);

INSTANTIATE_TEST_SUITE_P(CollectivesTest, EveryAlgorithmWithLists,
                         ::testing::ValuesIn(all([](const Algorithm& a) {
                             return has_lists(a) && a.operation != "exchange";
                         })),
                         identifier);

TEST_P(EveryAlgorithm, does_what_its_operation_says) {
    std::mt19937 random(1);
    for (std::uint32_t size = 1; size <= 17; ++size)
        for (const std::uint64_t bytes : {0, 2, 34, 406})
            for (std::uint32_t root = 0; root < (rooted() ? size : 1); root += 1 + size / 4)
                for (const bool in_place : {false, true}) {
                    Request request = request_of(size, root, bytes);
                    Program program;
                    for (std::uint32_t rank = 0; rank < size; ++rank) {
                        request.rank = rank;
                        request.in_place = in_place && (!rooted() || rank == root);
                        std::string error;
                        auto schedule = compile(GetParam().make(request), &error);
                        ASSERT_TRUE(schedule) << error;
                        program.schedules.push_back(std::move(*schedule));
                    }
                    request.in_place = in_place;
                    for (int round = 0; round < 3; ++round) {
                        const unsigned seed = random();
                        Party party(program, seed);
                        prepare(party, request);
                        std::vector<Bytes> sent;
                        for (std::uint32_t rank = 0; rank < size; ++rank)
                            sent.push_back(party.argument(rank, kSendBuffer));
                        ASSERT_TRUE(party.run());
                        EXPECT_EQ(party.unmatched(), 0U);
                        for (std::uint32_t rank = 0; rank < size; ++rank) {
                            const Bytes& found = party.argument(rank, kReceiveBuffer);
                            ASSERT_EQ(found, expected(request, rank, found))
                                << "rank " << rank << " of " << size << ", root " << root << ", " << bytes
                                << " bytes, seed " << seed << (in_place ? ", in place" : "");
                            ASSERT_EQ(party.argument(rank, kSendBuffer), sent[rank])
                                << "written into what is sent";
                        }
                    }
                }
}

TEST_P(EveryAlgorithm, has_no_findings) {
    for (std::uint32_t size = 1; size <= 17; ++size)
        for (std::uint32_t root = 0; root < (rooted() ? size : 1); ++root)
            for (const bool in_place : {false, true}) {
                Request request = request_of(size, root, 406);
                request.in_place = in_place;
                const Program program = program_of(GetParam(), request);
                // Without memory for messages too.
                const auto findings = check(program, {.eager = 0, .barrier = operation() == "barrier"});
                std::string all;
                for (const Finding& f : findings) all += f.text + "\n";
                ASSERT_EQ(all, "") << size << " ranks, root " << root << (in_place ? ", in place" : "");
            }
}

// No operator tells in which order its operands came: so the schedules are interpreted on lists of ranks,
// which are joined where operands are combined.
class Follower : Executor {
 public:
    explicit Follower(const Program& program, std::uint64_t bytes) : program_(program), bytes_(bytes) {
        for (const Schedule& schedule : program.schedules) runs_.emplace_back(schedule);
        held_.resize(program.size());
    }
    using List = std::vector<std::uint32_t>;

    List& at(std::uint32_t rank, Space space, std::uint64_t offset) { return held_[rank][{space, offset}]; }

    bool run() {
        for (bool again = true; again;) {
            again = false;
            for (rank_ = 0; rank_ < program_.size(); ++rank_) {
                if (runs_[rank_].has_ready()) again = true;
                drain(runs_[rank_], *this);
            }
        }
        return std::ranges::all_of(runs_, &Run::done);
    }

 private:
    void send(Run& run, Vertex v, const Operation& o) override {
        const auto waiting = exchange_.arrive(o.peer, {rank_, o.tag, v, o.bytes});
        sent_[{rank_, v}] = at(rank_, o.space, o.offset);
        run.finished(v);
        if (waiting) get(o.peer, *waiting, {rank_, v});
    }
    void receive(Run&, Vertex v, const Operation& o) override {
        if (const auto m = exchange_.receive(rank_, v, o.peer, o.tag)) get(rank_, v, {m->source, m->send});
    }
    void get(std::uint32_t rank, Vertex v, std::pair<std::uint32_t, Vertex> from) {
        const Operation& o = program_.schedules[rank].operation(v);
        at(rank, o.space, o.offset) = sent_[from];
        runs_[rank].finished(v);
    }
    void work(Run& run, Vertex v, const Operation& o) override {
        if (o.kind == Kind::kCombine && o.bytes == bytes_) {
            const Combination& c = run.schedule().combination(o);
            List result = at(rank_, c.first.space, c.first.offset);
            if (c.op != Operator::kCopy) {
                const List& more = at(rank_, c.second.space, c.second.offset);
                result.insert(result.end(), more.begin(), more.end());
            }
            at(rank_, c.result.space, c.result.offset) = result;
        }
        run.finished(v);
    }

    const Program& program_;
    std::uint64_t bytes_;
    std::vector<Run> runs_;
    std::vector<std::map<std::pair<Space, std::uint64_t>, List>> held_;
    std::map<std::pair<std::uint32_t, Vertex>, List> sent_;
    Exchange exchange_;
    std::uint32_t rank_ = 0;
};

TEST_P(EveryOrderedReduction, keeps_the_order_of_the_ranks) {
    constexpr std::uint64_t kBytes = 8;
    for (std::uint32_t size = 1; size <= 17; ++size)
        for (std::uint32_t root = 0; root < (rooted() ? size : 1); ++root) {
            Request request = request_of(size, root, kBytes);
            request.reduction.commutative = false;
            ASSERT_TRUE(GetParam().keeps_order);
            const Program program = program_of(GetParam(), request);
            Follower follower(program, kBytes);
            const bool blocks = operation() == "reduce_scatter_block";
            for (std::uint32_t rank = 0; rank < size; ++rank)
                for (std::uint32_t i = 0; i < (blocks ? size : 1); ++i)
                    follower.at(rank, kSendBuffer, i * kBytes) = {rank};
            ASSERT_TRUE(follower.run());
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                if (operation() == "reduce" && rank != root) continue;
                if (operation() == "exscan" && rank == 0) continue;
                Follower::List expected;
                const std::uint32_t last = operation() == "scan"     ? rank + 1
                                           : operation() == "exscan" ? rank
                                                                     : size;
                for (std::uint32_t r = 0; r < last; ++r) expected.push_back(r);
                ASSERT_EQ(follower.at(rank, kReceiveBuffer, 0), expected)
                    << "rank " << rank << " of " << size << ", root " << root;
            }
        }
}

// Blocks of random sizes, every third of them empty, with gaps between them, in any order.
TEST_P(EveryAlgorithmWithLists, moves_blocks_of_any_size) {
    const bool reduces = operation() == "reduce_scatter", gathers = operation() == "gatherv";
    const bool scatters = operation() == "scatterv", all_to_all = operation() == "alltoallv";
    std::mt19937 random(5);
    for (std::uint32_t size = 1; size <= 13; ++size)
        for (const bool in_place : {false, true}) {
            const std::uint32_t root = (gathers || scatters) ? random() % size : 0;
            // Bytes from one rank to another; what does not depend on the sender, or the receiver, is the
            // same.
            std::vector<std::vector<std::uint64_t>> bytes(size, std::vector<std::uint64_t>(size));
            for (std::uint32_t from = 0; from < size; ++from)
                for (std::uint32_t to = 0; to < size; ++to) {
                    const std::uint64_t any = random() % 3 == 0 ? 0 : 2 * (random() % 60);
                    bytes[from][to] = (operation() == "allgatherv" || gathers) && to > 0 ? bytes[from][0]
                                      : (reduces || scatters) && from > 0                ? bytes[0][to]
                                      : all_to_all && in_place && from > to              ? bytes[to][from]
                                                                                         : any;
                }
            const auto laid_out = [&](auto bytes_of, bool gaps) {
                std::vector<std::uint32_t> order(size);
                for (std::uint32_t i = 0; i < size; ++i) order[i] = i;
                if (gaps) std::ranges::shuffle(order, random);
                std::vector<Block> list(size);
                std::uint64_t at = 0;
                for (const std::uint32_t i : order) {
                    list[i] = {i, 0, at, bytes_of(i)};
                    at += bytes_of(i) + (gaps ? 2 * (random() % 5) : 0);
                }
                return list;
            };
            Program program;
            std::vector<Bytes> sent(size), kept(size), expected(size);
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                Request request = request_of(size, root, 0);
                request.rank = rank;
                const bool at_root = rank == root;
                request.in_place = in_place && (at_root || !(gathers || scatters));
                std::vector<Block> out, in;
                if (reduces || all_to_all || (scatters && at_root))
                    out = laid_out([&](std::uint32_t to) { return bytes[rank][to]; }, !reduces);
                if (all_to_all || operation() == "allgatherv" || (gathers && at_root))
                    in = laid_out([&](std::uint32_t from) { return bytes[from][rank]; }, true);
                request.bytes = gathers ? bytes[rank][root] : scatters ? bytes[root][rank] : 0;
                request.sends = out;
                request.receives = in;
                std::string error;
                auto schedule = compile(GetParam().make(request), &error);
                ASSERT_TRUE(schedule) << error;
                program.schedules.push_back(std::move(*schedule));

                const auto extent = [](const std::vector<Block>& list) {
                    std::uint64_t end = 0;
                    for (const Block& b : list) end = std::max(end, b.offset + b.bytes);
                    return end + 6;
                };
                const auto put = [](Bytes& to, std::uint64_t at, const Bytes& from) {
                    std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(at));
                };
                // The block from one rank to another: the same to all where the operation has it so.
                const auto block = [&](std::uint32_t from, std::uint32_t to) {
                    return data(all_to_all || scatters ? from * size + to : from, bytes[from][to]);
                };
                sent[rank] = Bytes(out.empty() ? bytes[rank][root] + 6 : extent(out), std::byte{0xee});
                kept[rank] = Bytes(in.empty() ? bytes[root][rank] + 6 : extent(in), std::byte{0xdd});
                if (reduces && in_place) kept[rank].resize(extent(out));
                if (reduces) put(in_place ? kept[rank] : sent[rank], 0, data(rank, extent(out) - 6));
                for (std::uint32_t to = 0; !reduces && to < out.size(); ++to)
                    put(sent[rank], out[to].offset, block(rank, to));
                if (out.empty() && !request.in_place && !scatters) put(sent[rank], 0, block(rank, root));
                for (std::uint32_t from = 0; request.in_place && from < in.size(); ++from)
                    if (all_to_all || from == rank) put(kept[rank], in[from].offset, block(rank, from));
                expected[rank] = kept[rank];
                if (reduces) put(expected[rank], 0, sum(0, size, out[rank].offset, bytes[0][rank]));
                for (std::uint32_t from = 0; from < in.size(); ++from)
                    put(expected[rank], in[from].offset, block(from, rank));
                if (scatters && !request.in_place) put(expected[rank], 0, block(root, rank));
            }
            std::string all;
            for (const Finding& f : check(program, {.eager = 0})) all += f.text + "\n";
            ASSERT_EQ(all, "") << size << " ranks" << (in_place ? ", in place" : "");
            for (int round = 0; round < 3; ++round) {
                Party party(program, random());
                for (std::uint32_t rank = 0; rank < size; ++rank) {
                    party.argument(rank, kSendBuffer) = sent[rank];
                    party.argument(rank, kReceiveBuffer) = kept[rank];
                }
                ASSERT_TRUE(party.run());
                EXPECT_EQ(party.unmatched(), 0U);
                for (std::uint32_t rank = 0; rank < size; ++rank) {
                    Bytes& found = party.argument(rank, kReceiveBuffer);
                    // Behind a sum that is in place nothing is determined.
                    if (reduces && in_place)
                        found.resize(bytes[0][rank]), expected[rank].resize(found.size());
                    ASSERT_EQ(found, expected[rank])
                        << "rank " << rank << " of " << size << (in_place ? ", in place" : "");
                    ASSERT_EQ(party.argument(rank, kSendBuffer), sent[rank]) << "written into what is sent";
                }
            }
        }
}

std::size_t messages(const char* operation, const char* name, std::uint32_t size, std::uint64_t bytes) {
    Request request;
    request.size = size;
    request.bytes = bytes;
    const Program program = program_of(*find(operation, name), request);
    std::size_t count = 0;
    for (const Schedule& schedule : program.schedules)
        for (const Operation& o : schedule.operations()) count += o.kind == Kind::kSend;
    return count;
}

TEST(CollectivesTest, send_so_many_messages) {
    EXPECT_EQ(messages("barrier", "dissemination", 64, 0), 64U * 6);
    EXPECT_EQ(messages("barrier", "recursive_doubling", 5, 0), 4U * 2 + 2);
    EXPECT_EQ(messages("barrier", "binomial", 64, 0), 2U * 63);
    EXPECT_EQ(messages("bcast", "binomial", 64, 8), 63U);
    EXPECT_EQ(messages("bcast", "chain", 4, 100000), 3U * 4);
    EXPECT_EQ(messages("bcast", "scatter_allgather", 8, 800), 7U + 8 * 7 - (7 + 3 + 1 + 1));
    EXPECT_EQ(messages("allreduce", "ring", 8, 800), 8U * 14);
    EXPECT_EQ(messages("allreduce", "rabenseifner", 8, 800), 8U * 6);
    EXPECT_EQ(messages("allreduce", "recursive_doubling", 6, 800), 4U * 2 + 2 * 2);
    EXPECT_EQ(messages("alltoall", "bruck", 16, 8), 16U * 4);
    EXPECT_EQ(messages("alltoall", "pairwise", 16, 8), 16U * 15);
    EXPECT_EQ(messages("allgather", "bruck", 9, 8), 9U * 4);
}

TEST(CollectivesTest, go_between_nodes_once) {
    const auto between = [](const char* operation) {
        Request request;
        request.size = 16;
        request.on_node = 4;
        request.root = 6;
        request.bytes = 8;
        const Program program = program_of(*find(operation, "nodes"), request);
        std::size_t count = 0;
        for (const Schedule& schedule : program.schedules)
            for (const Operation& o : schedule.operations())
                count += o.kind == Kind::kSend && o.peer / 4 != schedule.rank() / 4;
        return count;
    };
    EXPECT_EQ(between("bcast"), 3U);
    EXPECT_EQ(between("reduce"), 3U + 1);  // from rank 0 to the root
    EXPECT_EQ(between("allreduce"), 4U * 2);
    EXPECT_EQ(between("barrier"), 4U * 2);
    EXPECT_EQ(between("gather"), 3U);
    EXPECT_EQ(between("scatter"), 3U);
    EXPECT_EQ(between("allgather"), 4U * 3);
    EXPECT_EQ(between("alltoall"), 4U * 3);
}

TEST(CollectivesTest, the_gather_by_size_is_chosen_as_open_mpi_1_4_2_did) {
    const auto operations = [](const char* name, std::uint32_t size, std::uint64_t bytes) {
        Request request;
        request.size = size;
        request.bytes = bytes;
        return program_of(*find("gather", name), request).schedules[0].image().size();
    };
    const auto chosen = [&](std::uint32_t size, std::uint64_t bytes) -> std::string {
        for (const char* name : {"linear", "binomial", "linear_sync"})
            if (operations("by_size", size, bytes) == operations(name, size, bytes)) return name;
        return "none";
    };
    EXPECT_EQ(chosen(8, 6001), "linear_sync");
    EXPECT_EQ(chosen(8, 6000), "linear");
    EXPECT_EQ(chosen(10, 8), "linear");
    EXPECT_EQ(chosen(11, 1023), "binomial");
    EXPECT_EQ(chosen(11, 1024), "linear");
    EXPECT_EQ(chosen(60, 1024), "linear");
    EXPECT_EQ(chosen(61, 1024), "binomial");
    // First segments.
    Request request;
    request.size = 3;
    for (const auto& [bytes, first] : {std::pair{92160, 1024}, {92161, 32768}}) {
        request.bytes = static_cast<std::uint64_t>(bytes);
        const Program program = program_of(*find("gather", "linear_sync"), request);
        EXPECT_EQ(program.schedules[1].operation(1).bytes, static_cast<std::uint64_t>(first));
        // Else the receive of the rest would not be announced.
        EXPECT_NE(program.schedules[1].operation(1).tag, program.schedules[1].operation(2).tag);
    }
}

TEST(CollectivesTest, an_exchange_moves_blocks_of_any_size_to_any_neighbours_and_oneself) {
    constexpr std::uint32_t kSize = 5;
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        // Blocks from a to b, some of them to oneself, several between some pairs.
        struct Moved {
            std::uint32_t from, to;
            std::uint64_t out, in, bytes;
        };
        std::vector<Moved> moves;
        std::vector<Block> sends[kSize], receives[kSize];
        std::uint64_t out[kSize] = {}, in[kSize] = {};
        for (unsigned i = random() % 20; i > 0; --i) {
            const std::uint32_t from = random() % kSize, to = random() % kSize;
            const std::uint64_t bytes = random() % 50;
            moves.push_back({from, to, out[from], in[to], bytes});
            const std::uint32_t tag = random() % 2;
            sends[from].push_back({to, tag, out[from], bytes});
            receives[to].push_back({from, tag, in[to], bytes});
            out[from] += bytes;
            in[to] += bytes;
        }
        Program program;
        for (std::uint32_t rank = 0; rank < kSize; ++rank) {
            // Only those with equal tags need have the same order at both ends.
            std::ranges::stable_sort(receives[rank], {}, &Block::tag);
            Request request;
            request.rank = rank;
            request.size = kSize;
            request.sends = sends[rank];
            request.receives = receives[rank];
            std::string error;
            auto schedule = compile(find("exchange", "linear")->make(request), &error);
            ASSERT_TRUE(schedule) << error;
            program.schedules.push_back(std::move(*schedule));
        }
        EXPECT_TRUE(check(program, {.eager = 0}).empty());
        Party party(program, random());
        for (std::uint32_t rank = 0; rank < kSize; ++rank) {
            party.argument(rank, kReceiveBuffer).resize(in[rank] + 1);
            Bytes& bytes = party.argument(rank, kSendBuffer);
            for (std::uint64_t i = 0; i <= out[rank]; ++i) bytes.push_back(static_cast<std::byte>(random()));
        }
        ASSERT_TRUE(party.run());
        for (const Moved& m : moves)
            EXPECT_EQ(std::memcmp(party.argument(m.to, kReceiveBuffer).data() + m.in,
                                  party.argument(m.from, kSendBuffer).data() + m.out, m.bytes),
                      0);
    }
}

TEST(CollectivesTest, the_tree_is_that_of_the_paper) {
    // Figure 5.3: seven ranks.
    const std::uint32_t fathers[] = {0, 0, 0, 2, 0, 4, 4};
    const std::uint32_t subtrees[] = {7, 1, 2, 1, 3, 1, 1};
    for (std::uint32_t rank = 0; rank < 7; ++rank) {
        EXPECT_EQ(father(rank), fathers[rank]);
        EXPECT_EQ(subtree(rank, 7), subtrees[rank]);
    }
    std::vector<std::uint32_t> children;
    each_child(0, 7, [&](std::uint32_t child) { children.push_back(child); });
    EXPECT_EQ(children, (std::vector<std::uint32_t>{1, 2, 4}));
}

// Figures 1.1 and 1.2: rank 1 gets eight bytes, keeps four and sends four on to rank 2. Both in one operation
// each: the receive puts its pieces where they belong.
TEST(CollectivesTest, a_scatter_goes_down_a_tree) {
    Request request;
    request.size = 5;
    request.rank = 2;
    request.bytes = 4;
    std::string error;
    const auto schedule = compile(find("scatter", "binomial")->make(request), &error);
    ASSERT_TRUE(schedule) << error;
    ASSERT_EQ(schedule->count(), 2U);
    EXPECT_EQ(describe(schedule->operation(0)), "recv 8b from 0");
    EXPECT_EQ(describe(schedule->operation(1)), "send 4b to 3");
    EXPECT_EQ(schedule->counters()[1], 1U);
}

}  // namespace
}  // namespace velo::goal::collectives
