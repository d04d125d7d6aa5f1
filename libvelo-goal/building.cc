// Graphs: each call says at once what is wrong with its arguments.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "objects.h"

namespace velo::library {
namespace {

static_assert(GOAL_INVALID_VERTEX == VELO_GOAL_NO_VERTEX);
static_assert(static_cast<int>(VELO_GOAL_MAX) == GOAL_MAX && static_cast<int>(VELO_GOAL_WTIME) == GOAL_WTIME);
static_assert(static_cast<int>(VELO_GOAL_SINT) == GOAL_SINT &&
              static_cast<int>(VELO_GOAL_FLOAT) == GOAL_FLOAT);

constexpr const char* kOperators[] = {"GOAL_MAX", "GOAL_MIN", "GOAL_ADD",  "GOAL_SUB",
                                      "GOAL_DIV", "GOAL_MUL", "GOAL_COPY", "GOAL_AND",
                                      "GOAL_OR",  "GOAL_XOR", "GOAL_WTIME"};
constexpr const char* kTypes[] = {"GOAL_SINT", "GOAL_UINT", "GOAL_FLOAT"};

_GOAL_Graph& checked(GOAL_Graph graph) {
    if (graph == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "graph", "is NULL"};
    require_open(*graph->group, "graph");
    return *graph;
}

// An argument, or an element of it.
struct Argument {
    Argument(const char* name) : name(name) {}
    Argument(const char* name, std::size_t index) : name(name), index(static_cast<std::ptrdiff_t>(index)) {}
    operator std::string() const { return index < 0 ? name : name + ("[" + std::to_string(index) + "]"); }

    const char* name;
    std::ptrdiff_t index = -1;
};

velo_goal_place place_of(_GOAL_Graph& graph, Argument argument, const void* buffer, std::uint64_t bytes,
                         GOAL_MemType mem) {
    const auto offset = reinterpret_cast<std::uintptr_t>(buffer);
    if (mem == GOAL_USERSPACE) {
        if (buffer == nullptr && bytes > 0)
            throw Misuse{GOAL_ERR_ARGUMENT, argument,
                         "is NULL (an offset in the scratchpad goes with GOAL_SCRATCHPAD)"};
        return {offset, VELO_GOAL_ABSOLUTE};
    }
    if (mem != GOAL_SCRATCHPAD)
        throw Misuse{GOAL_ERR_ARGUMENT, argument,
                     "its memory, " + std::to_string(static_cast<int>(mem)) +
                         ", is neither GOAL_USERSPACE nor GOAL_SCRATCHPAD"};
    const std::uint64_t end = offset + bytes;
    if (end < offset || (graph.has_scratchpad && end > graph.scratchpad))
        throw Misuse{GOAL_ERR_ARGUMENT, argument,
                     std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                         " are beyond the scratchpad of " + std::to_string(graph.scratchpad) + " bytes"};
    graph.scratch_used = std::max(graph.scratch_used, end);
    return {offset, VELO_GOAL_SCRATCH};
}

std::uint64_t count_of(Argument argument, int count) {
    if (count < 0) throw Misuse{GOAL_ERR_ARGUMENT, argument, std::to_string(count) + " is negative"};
    return static_cast<std::uint64_t>(count);
}

// The names of the arguments that are a buffer in pieces.
struct Names {
    const char *buffers, *lengths, *count;
};

struct Pieces {
    std::vector<velo_goal_piece> list;
    std::uint64_t bytes = 0;

    std::uint32_t count() const { return static_cast<std::uint32_t>(list.size()); }
};

Pieces pieces_of(_GOAL_Graph& graph, const Names& names, void** buffers, const int* lengths, int count,
                 GOAL_MemType mem) {
    Pieces pieces;
    pieces.list.resize(count_of(names.count, count));
    if (count > 0 && buffers == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, names.buffers, "is NULL"};
    if (count > 0 && lengths == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, names.lengths, "is NULL"};
    for (std::size_t i = 0; i < pieces.list.size(); ++i) {
        const std::uint64_t bytes = count_of({names.lengths, i}, lengths[i]);
        pieces.list[i] = {place_of(graph, {names.buffers, i}, buffers[i], bytes, mem), bytes};
        pieces.bytes += bytes;
    }
    return pieces;
}

std::uint32_t rank_of(const _GOAL_Graph& graph, const char* argument, int rank) {
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= graph.group->size())
        throw Misuse{GOAL_ERR_ARGUMENT, argument,
                     "there is no rank " + std::to_string(rank) + " in a group of " +
                         std::to_string(graph.group->size())};
    return static_cast<std::uint32_t>(rank);
}
std::uint32_t source_of(const _GOAL_Graph& graph, const char* argument, int rank) {
    return rank == GOAL_ANY_SOURCE ? VELO_GOAL_ANY : rank_of(graph, argument, rank);
}

std::uint32_t tag_of(int tag) {
    return static_cast<std::uint32_t>(count_of("tag", tag));
}
std::uint32_t wanted_tag_of(int tag) {
    return tag == GOAL_ANY_TAG ? VELO_GOAL_ANY : tag_of(tag);
}

// Without its operands. `type` and `width` name those arguments.
velo_goal_combination combination_of(const _GOAL_Graph& graph, int op, const char* type_argument, int type,
                                     const char* width_argument, int width) {
    if (op < GOAL_MAX || op > GOAL_WTIME)
        throw Misuse{GOAL_ERR_ARGUMENT, "op", std::to_string(op) + " is no GOAL_Op"};
    velo_goal_combination made{};
    made.op = static_cast<velo_goal_operator>(op);
    made.width = 8;
    if (op == GOAL_WTIME) return made;
    if (type < GOAL_SINT || type > GOAL_FLOAT)
        throw Misuse{GOAL_ERR_ARGUMENT, type_argument, std::to_string(type) + " is no GOAL_DataType"};
    made.type = static_cast<velo_goal_type>(type);
    if (width != 8 && width != 16 && width != 32 && width != 64)
        throw Misuse{GOAL_ERR_ARGUMENT, width_argument,
                     std::to_string(width) + " is none of 8, 16, 32 and 64 bits"};
    made.width = static_cast<std::uint32_t>(width);
    if (!graph.table.velo_goal_is_legal(made.op, made.type, made.width))
        throw Misuse{GOAL_ERR_ARGUMENT, "op",
                     std::string("there is no ") + kOperators[op] + " on " + kTypes[type] + " of " +
                         std::to_string(width) + " bits"};
    return made;
}

GOAL_Vertex added(_GOAL_Graph& graph, velo_goal_vertex vertex) {
    if (vertex == VELO_GOAL_NO_VERTEX) throw std::bad_alloc();
    graph.operations = vertex + 1;
    return vertex;
}

// Without the borders between pieces that lie one behind the other.
std::vector<velo_goal_piece> joined(const Pieces& pieces) {
    std::vector<velo_goal_piece> made;
    for (const velo_goal_piece& piece : pieces.list) {
        if (piece.bytes == 0) continue;
        if (!made.empty() && made.back().place.space == piece.place.space &&
            made.back().place.offset + made.back().bytes == piece.place.offset)
            made.back().bytes += piece.bytes;
        else
            made.push_back(piece);
    }
    return made;
}

// In place is not beside: byte for byte where the operand is.
void require_apart(const char* argument, const Pieces& result, const Pieces& operand) {
    std::vector<velo_goal_piece> to = joined(result), from = joined(operand);
    const auto same = [](const velo_goal_piece& a, const velo_goal_piece& b) {
        return a.place.space == b.place.space && a.place.offset == b.place.offset && a.bytes == b.bytes;
    };
    if (std::equal(to.begin(), to.end(), from.begin(), from.end(), same)) return;
    const auto lies_before = [](const velo_goal_piece& a, const velo_goal_piece& b) {
        return std::tie(a.place.space, a.place.offset) < std::tie(b.place.space, b.place.offset);
    };
    std::sort(to.begin(), to.end(), lies_before);
    std::sort(from.begin(), from.end(), lies_before);
    const auto ends_before = [](const velo_goal_piece& a, const velo_goal_piece& b) {
        return a.place.space != b.place.space ? a.place.space < b.place.space
                                              : a.place.offset + a.bytes <= b.place.offset;
    };
    for (auto a = to.begin(), b = from.begin(); a != to.end() && b != from.end();) {
        if (ends_before(*a, *b))
            ++a;
        else if (ends_before(*b, *a))
            ++b;
        else
            throw Misuse{GOAL_ERR_ARGUMENT, argument, "overlaps an operand and is not in its place"};
    }
}

// `argument`: the result.
GOAL_Vertex combine(_GOAL_Graph& graph, velo_goal_combination& made, const Pieces& first,
                    const Pieces& second, const Pieces& result, const char* argument) {
    require_apart(argument, result, first);
    require_apart(argument, result, second);
    made.first = first.list.data();
    made.first_count = first.count();
    made.second = second.list.data();
    made.second_count = second.count();
    made.result = result.list.data();
    made.result_count = result.count();
    return added(graph, graph.table.velo_goal_combine(graph.graph, &made));
}

void require_vertex(const _GOAL_Graph& graph, const char* argument, GOAL_Vertex vertex) {
    if (vertex < graph.operations) return;
    throw Misuse{GOAL_ERR_ARGUMENT, argument,
                 (vertex == GOAL_INVALID_VERTEX ? "GOAL_INVALID_VERTEX" : std::to_string(vertex)) +
                     " is none of the graph's " + std::to_string(graph.operations) + " operations"};
}

int require(const char* call, GOAL_Graph graph, GOAL_Vertex prereq, GOAL_Vertex target,
            decltype(velo_goal_table::velo_goal_requires) velo_goal_table::*function) {
    return attempt(call, [&] {
        _GOAL_Graph& g = checked(graph);
        require_vertex(g, "prereq", prereq);
        require_vertex(g, "target", target);
        (g.table.*function)(g.graph, target, prereq);
        return GOAL_SUCCESS;
    });
}

}  // namespace
}  // namespace velo::library

using namespace velo::library;

_GOAL_Graph::_GOAL_Graph(std::shared_ptr<Group> of) : group(std::move(of)), table(group->velo()) {
    if (table.velo_goal_graph_new(group->rank(), group->size(), &graph) != VELO_OK) throw std::bad_alloc();
}

extern "C" {

GOAL_Vertex GOAL_Send(GOAL_Graph graph, void* buf, int count, int dest, int tag, GOAL_MemType mem) {
    return attempt("GOAL_Send", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        const std::uint64_t bytes = count_of("count", count);
        const velo_goal_place from = place_of(g, "buf", buf, bytes, mem);
        return added(g, g.table.velo_goal_send(g.graph, from, bytes, rank_of(g, "dest", dest), tag_of(tag)));
    });
}

GOAL_Vertex GOAL_Recv(GOAL_Graph graph, void* buf, int count, int source, int tag, GOAL_MemType mem) {
    return attempt("GOAL_Recv", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        const std::uint64_t bytes = count_of("count", count);
        const velo_goal_place into = place_of(g, "buf", buf, bytes, mem);
        return added(g, g.table.velo_goal_receive(g.graph, into, bytes, source_of(g, "source", source),
                                                  wanted_tag_of(tag)));
    });
}

GOAL_Vertex GOAL_SendVec(GOAL_Graph graph, void** offsets, int* lengths, int num_elements, int dest, int tag,
                         GOAL_MemType mem) {
    return attempt("GOAL_SendVec", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        const Pieces from =
            pieces_of(g, {"offsets", "lengths", "num_elements"}, offsets, lengths, num_elements, mem);
        return added(g, g.table.velo_goal_send_pieces(g.graph, from.list.data(), from.count(),
                                                      rank_of(g, "dest", dest), tag_of(tag)));
    });
}

GOAL_Vertex GOAL_RecvVec(GOAL_Graph graph, void** offsets, int* lengths, int num_elements, int src, int tag,
                         GOAL_MemType mem) {
    return attempt("GOAL_RecvVec", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        const Pieces into =
            pieces_of(g, {"offsets", "lengths", "num_elements"}, offsets, lengths, num_elements, mem);
        return added(g, g.table.velo_goal_receive_pieces(g.graph, into.list.data(), into.count(),
                                                         source_of(g, "src", src), wanted_tag_of(tag)));
    });
}

GOAL_Vertex GOAL_LocalOp(GOAL_Graph graph, void* b1, void* b2, void* bres, GOAL_Op op, GOAL_DataType dt,
                         int element_width, int num_elements, GOAL_MemType b1_mem, GOAL_MemType b2_mem,
                         GOAL_MemType b3_mem) {
    return attempt("GOAL_LocalOp", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        velo_goal_combination made = combination_of(g, op, "dt", dt, "element_width", element_width);
        if (op != GOAL_WTIME) made.elements = count_of("num_elements", num_elements);
        const std::uint64_t bytes = op == GOAL_WTIME ? sizeof(double) : made.elements * (made.width / 8);
        const auto whole = [&](const char* argument, const void* buffer, GOAL_MemType mem) {
            return Pieces{{{place_of(g, argument, buffer, bytes, mem), bytes}}, bytes};
        };
        Pieces first, second;
        if (op != GOAL_WTIME) first = whole("b1", b1, b1_mem);
        if (op != GOAL_WTIME && op != GOAL_COPY) second = whole("b2", b2, b2_mem);
        return combine(g, made, first, second, whole("bres", bres, b3_mem), "bres");
    });
}

GOAL_Vertex GOAL_LocalOpVec(GOAL_Graph graph, void** buf1, int* lengths1, int num_elements1, void** buf2,
                            int* lengths2, int num_elements2, void** buf3, int* lengths3, int num_elements3,
                            char datatype, char datatype_width, char op, GOAL_MemType b1_temp,
                            GOAL_MemType b2_temp, GOAL_MemType b3_temp) {
    return attempt("GOAL_LocalOpVec", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        velo_goal_combination made =
            combination_of(g, op, "datatype", datatype, "datatype_width", datatype_width);
        const Pieces result =
            pieces_of(g, {"buf3", "lengths3", "num_elements3"}, buf3, lengths3, num_elements3, b3_temp);
        const std::uint64_t bytes = op == GOAL_WTIME ? sizeof(double) : result.bytes;
        const auto require_total = [bytes](const char* argument, std::uint64_t total) {
            if (total != bytes)
                throw Misuse{GOAL_ERR_ARGUMENT, argument,
                             "come to " + std::to_string(total) + " bytes, where the result has " +
                                 std::to_string(bytes)};
        };
        require_total("lengths3", result.bytes);
        if (bytes % (made.width / 8) != 0)
            throw Misuse{GOAL_ERR_ARGUMENT, "lengths3",
                         "come to " + std::to_string(bytes) + " bytes, which are no whole elements of " +
                             std::to_string(made.width) + " bits"};
        if (op != GOAL_WTIME) made.elements = bytes / (made.width / 8);
        Pieces first, second;
        if (op != GOAL_WTIME) {
            first =
                pieces_of(g, {"buf1", "lengths1", "num_elements1"}, buf1, lengths1, num_elements1, b1_temp);
            require_total("lengths1", first.bytes);
        }
        if (op != GOAL_WTIME && op != GOAL_COPY) {
            second =
                pieces_of(g, {"buf2", "lengths2", "num_elements2"}, buf2, lengths2, num_elements2, b2_temp);
            require_total("lengths2", second.bytes);
        }
        return combine(g, made, first, second, result, "buf3");
    });
}

GOAL_Vertex GOAL_Call(GOAL_Graph graph, void (*function)(void*), void* argument) {
    return attempt("GOAL_Call", GOAL_INVALID_VERTEX, [&] {
        _GOAL_Graph& g = checked(graph);
        if (function == nullptr) throw Misuse{GOAL_ERR_ARGUMENT, "function", "is NULL"};
        g.functions.push_back({function, argument});
        return added(g, g.table.velo_goal_call(g.graph, static_cast<std::uint32_t>(g.functions.size() - 1)));
    });
}

int GOAL_Requires(GOAL_Graph graph, GOAL_Vertex prereq, GOAL_Vertex target) {
    return require("GOAL_Requires", graph, prereq, target, &velo_goal_table::velo_goal_requires);
}

int GOAL_RequiresStart(GOAL_Graph graph, GOAL_Vertex prereq, GOAL_Vertex target) {
    return require("GOAL_RequiresStart", graph, prereq, target, &velo_goal_table::velo_goal_requires_start);
}

int GOAL_AllocateScratchpad(GOAL_Graph graph, size_t bytes) {
    return attempt("GOAL_AllocateScratchpad", [&] {
        _GOAL_Graph& g = checked(graph);
        if (g.has_scratchpad) throw Misuse{GOAL_ERR_STATE, "graph", "has a scratchpad already"};
        if (bytes < g.scratch_used)
            throw Misuse{GOAL_ERR_ARGUMENT, "bytes",
                         std::to_string(bytes) + " are less than the " + std::to_string(g.scratch_used) +
                             " that operations reach to"};
        g.has_scratchpad = true;
        g.scratchpad = bytes;
        g.table.velo_goal_scratch(g.graph, bytes);
        return GOAL_SUCCESS;
    });
}

}  // extern "C"
