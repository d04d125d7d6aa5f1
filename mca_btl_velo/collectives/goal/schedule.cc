#include "collectives/goal/schedule.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace velo::goal {

class Compiler {
 public:
    Compiler(const Graph& graph, const Naming& naming) : graph_(graph), naming_(naming) {}

    std::optional<Schedule> run(std::string* error) {
        *error = graph_.error();
        if (!error->empty()) return std::nullopt;
        lay_out();
        connect();
        *error = cycle();
        if (!error->empty()) return std::nullopt;
        begin();
        return std::move(schedule_);
    }

 private:
    using Header = Schedule::Header;

    template <typename T>
    T* at(std::uint64_t offset) {
        return const_cast<T*>(schedule_.at<T>(offset));
    }

    void lay_out() {
        std::uint64_t end = sizeof(Header);
        const auto reserve = [&end](std::size_t count, std::size_t size) {
            const std::uint64_t begin = end;
            end += count * size;
            return begin;
        };
        const std::size_t n = graph_.operations().size();
        Header header{};
        reserve(n, sizeof(Operation));
        header.combinations = reserve(graph_.combinations().size(), sizeof(Combination));
        header.pieces = reserve(graph_.pieces().size(), sizeof(Piece));
        header.counters = reserve(n, sizeof(std::uint32_t));
        header.spans = reserve(2 * n + 1, sizeof(std::uint32_t));
        header.edges = reserve(graph_.edges().size(), sizeof(Vertex));
        waiting_.resize(n, false);
        for (const Graph::Edge& edge : graph_.edges()) waiting_[edge.later] = true;
        header.independent_count = static_cast<std::uint32_t>(std::ranges::count(waiting_, false));
        header.independents = reserve(header.independent_count, sizeof(Vertex));
        header.rank = graph_.rank();
        header.size = graph_.size();
        header.operations = static_cast<std::uint32_t>(n);
        header.scratch = graph_.scratch();
        schedule_.block_.resize((end + 7) / 8);
        *at<Header>(0) = header;
        fill(sizeof(Header), graph_.operations());
        fill(header.combinations, graph_.combinations());
        fill(header.pieces, graph_.pieces());
    }

    template <typename T>
    void fill(std::uint64_t offset, const std::vector<T>& from) {
        if (!from.empty()) std::memcpy(at<std::byte>(offset), from.data(), from.size() * sizeof(T));
    }

    void connect() {
        const Header& header = schedule_.header();
        auto* counters = at<std::uint32_t>(header.counters);
        auto* spans = at<std::uint32_t>(header.spans);
        auto* edges = at<Vertex>(header.edges);
        const std::size_t last = std::size_t{2} * header.operations;
        const auto span = [](const Graph::Edge& edge) { return std::size_t{2} * edge.earlier + edge.start; };
        for (const Graph::Edge& edge : graph_.edges()) {
            ++counters[edge.later];
            ++spans[span(edge)];
        }
        std::uint32_t begin = 0;
        for (std::size_t i = 0; i <= last; ++i) begin += std::exchange(spans[i], begin);
        for (const Graph::Edge& edge : graph_.edges()) edges[spans[span(edge)]++] = edge.later;
        for (std::size_t i = last; i > 0; --i) spans[i] = spans[i - 1];
        spans[0] = 0;
    }

    void begin() {
        auto* next = at<Vertex>(schedule_.header().independents);
        Vertex* const first = next;
        for (Vertex v = 0; v < schedule_.count(); ++v)
            if (!waiting_[v]) *next++ = v;
        std::sort(first, next, [this](Vertex v, Vertex w) {
            return starts_before(schedule_.operation(v), v, schedule_.operation(w), w);
        });
    }

    // The operations of a cycle, in the order in which they wait for each other; empty if there is none.
    std::string cycle() const {
        const std::uint32_t n = schedule_.count();
        std::vector<std::uint32_t> left(schedule_.counters(), schedule_.counters() + n);
        std::vector<Vertex> ready;
        for (Vertex v = 0; v < n; ++v)
            if (left[v] == 0) ready.push_back(v);
        for (std::size_t i = 0; i < ready.size(); ++i)
            each_dependent(ready[i], [&](Vertex d) {
                if (--left[d] == 0) ready.push_back(d);
            });
        if (ready.size() == n) return {};
        // Every one of the others waits for one of them.
        std::vector<Vertex> earlier(n, kNoVertex);
        Vertex v = kNoVertex;
        for (Vertex u = 0; u < n; ++u) {
            if (left[u] == 0) continue;
            v = u;
            each_dependent(u, [&](Vertex d) {
                if (left[d] > 0) earlier[d] = u;
            });
        }
        std::vector<bool> seen(n, false);
        for (; !seen[v]; v = earlier[v]) seen[v] = true;
        std::string text = "rank " + std::to_string(schedule_.rank()) + " has a cycle: ";
        const Vertex first = v;
        constexpr unsigned kShown = 32;
        unsigned shown = 0;
        do {
            if (++shown <= kShown)
                text += naming(v) + " (" + describe(schedule_.operation(v), &schedule_) + ") waits for ";
            v = earlier[v];
        } while (v != first);
        if (shown > kShown) text += "... (" + std::to_string(shown - kShown) + " more) waits for ";
        return text + naming(first);
    }

    template <typename Function>
    void each_dependent(Vertex v, Function function) const {
        for (const Vertex d : schedule_.dependents(v)) function(d);
        for (const Vertex d : schedule_.start_dependents(v)) function(d);
    }
    std::string naming(Vertex v) const { return naming_ ? naming_(v) : "operation " + std::to_string(v); }

    const Graph& graph_;
    const Naming& naming_;
    Schedule schedule_;
    std::vector<bool> waiting_;
};

std::optional<Schedule> compile(const Graph& graph, std::string* error, const Naming& naming) {
    return Compiler(graph, naming).run(error);
}

std::string describe(const Operation& o, const Schedule* schedule) {
    const auto number = [](std::uint32_t value) {
        return value == kAny ? std::string("-1") : std::to_string(value);
    };
    std::string text;
    switch (o.kind) {
        case Kind::kSend:
            text = "send " + std::to_string(o.bytes) + "b to " + number(o.peer);
            break;
        case Kind::kReceive:
            text = "recv " + std::to_string(o.bytes) + "b from " + number(o.peer);
            break;
        case Kind::kCalculate:
            text = "calc " + std::to_string(o.bytes);
            break;
        case Kind::kCombine:
            text = schedule != nullptr ? name(schedule->combination(o).op) : "combine";
            text += " " + std::to_string(o.bytes) + "b";
            break;
        case Kind::kCall:
            text = "call " + std::to_string(o.peer);
            break;
    }
    if (o.communicates() && o.tag != 0) text += " tag " + number(o.tag);
    return text;
}

}  // namespace velo::goal
