#include "drawing.h"

#include <algorithm>
#include <vector>

#include "collectives/goal/check.h"

namespace velo::goal {
namespace {

struct Layout {
    explicit Layout(const Program& program) : matches(goal::matches(program)) {
        for (const Schedule& schedule : program.schedules) level.emplace_back(schedule.count(), 0);
        // An edge may come from any rank: until nothing moves, each round a message further.
        for (bool moved = true; moved;) {
            moved = false;
            const auto below = [&](std::uint32_t rank, Vertex v, std::uint32_t least) {
                if (level[rank][v] >= least) return;
                level[rank][v] = least;
                moved = true;
            };
            for (const Schedule& schedule : program.schedules)
                for (Vertex v = 0; v < schedule.count(); ++v)
                    for (const auto waiting : {schedule.dependents(v), schedule.start_dependents(v)})
                        for (const Vertex d : waiting)
                            below(schedule.rank(), d, level[schedule.rank()][v] + 1);
            for (const Match& m : matches) below(m.to, m.receive, level[m.from][m.send] + 1);
        }
        // Operations of one rank and level stand side by side.
        for (const Schedule& schedule : program.schedules) {
            std::vector<std::uint32_t> used;
            place.emplace_back();
            std::uint32_t most = 1;
            for (Vertex v = 0; v < schedule.count(); ++v) {
                const std::uint32_t l = level[schedule.rank()][v];
                if (used.size() <= l) used.resize(l + 1);
                place.back().push_back(used[l]++);
                most = std::max(most, used[l]);
                levels = std::max(levels, l + 1);
            }
            first_column.push_back(columns);
            columns += most;
        }
    }

    std::vector<Match> matches;
    std::vector<std::vector<std::uint32_t>> level, place;  // by rank and operation
    std::vector<std::uint32_t> first_column;               // by rank
    std::uint32_t columns = 0, levels = 0;
};

const char* colour(Kind kind) {
    switch (kind) {
        case Kind::kSend:
            return "#dbe9f6";
        case Kind::kReceive:
            return "#e2f0d9";
        default:
            return "#fbe5d6";
    }
}

}  // namespace

std::string to_svg(const Program& program) {
    constexpr int kWidth = 150, kHeight = 54, kBoxWidth = 136, kBoxHeight = 30, kTop = 40;
    const Layout layout(program);
    const auto x = [&](std::uint32_t rank, Vertex v) {
        return static_cast<int>(layout.first_column[rank] + layout.place[rank][v]) * kWidth + kWidth / 2;
    };
    const auto y = [&](std::uint32_t rank, Vertex v) {
        return kTop + static_cast<int>(layout.level[rank][v]) * kHeight + kHeight / 2;
    };
    const auto number = [](int value) { return std::to_string(value); };
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                      number(static_cast<int>(layout.columns) * kWidth) + "\" height=\"" +
                      number(kTop + static_cast<int>(layout.levels) * kHeight) +
                      "\" font-family=\"sans-serif\" font-size=\"11\">\n"
                      "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
                      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";
    const auto line = [&](std::uint32_t from, Vertex v, std::uint32_t to, Vertex w, const char* style) {
        svg += "<line x1=\"" + number(x(from, v)) + "\" y1=\"" + number(y(from, v) + kBoxHeight / 2) +
               "\" x2=\"" + number(x(to, w)) + "\" y2=\"" + number(y(to, w) - kBoxHeight / 2) +
               "\" stroke=\"" + style + "\" marker-end=\"url(#a)\"/>\n";
    };
    for (std::uint32_t rank = 0; rank < program.size(); ++rank) {
        const Schedule& schedule = program.schedules[rank];
        svg += "<text x=\"" + number(static_cast<int>(layout.first_column[rank]) * kWidth + 7) +
               "\" y=\"22\" font-weight=\"bold\">rank " + std::to_string(rank) + "</text>\n";
        for (Vertex v = 0; v < schedule.count(); ++v) {
            for (const Vertex d : schedule.dependents(v)) line(rank, v, rank, d, "#444");
            for (const Vertex d : schedule.start_dependents(v))
                line(rank, v, rank, d, "#444\" stroke-dasharray=\"4 3");
        }
    }
    for (const Match& m : layout.matches) line(m.from, m.send, m.to, m.receive, "#2a6fb0");
    for (std::uint32_t rank = 0; rank < program.size(); ++rank) {
        const Schedule& schedule = program.schedules[rank];
        for (Vertex v = 0; v < schedule.count(); ++v) {
            const Operation& o = schedule.operation(v);
            svg += "<rect x=\"" + number(x(rank, v) - kBoxWidth / 2) + "\" y=\"" +
                   number(y(rank, v) - kBoxHeight / 2) + "\" width=\"" + number(kBoxWidth) + "\" height=\"" +
                   number(kBoxHeight) + "\" rx=\"4\" stroke=\"#666\" fill=\"" + colour(o.kind) +
                   "\"><title>" + program.place(rank, v) +
                   "</title></rect>\n<text text-anchor=\"middle\" x=\"" + number(x(rank, v)) + "\" y=\"" +
                   number(y(rank, v) + 4) + "\">" + describe(o, &schedule) + "</text>\n";
        }
    }
    return svg + "</svg>\n";
}

std::string to_dot(const Program& program) {
    const auto node = [](std::uint32_t rank, Vertex v) {
        return "r" + std::to_string(rank) + "_" + std::to_string(v);
    };
    std::string dot = "digraph goal {\n  node [shape=box];\n";
    for (std::uint32_t rank = 0; rank < program.size(); ++rank) {
        const Schedule& schedule = program.schedules[rank];
        dot += "  subgraph cluster_" + std::to_string(rank) + " {\n    label=\"rank " + std::to_string(rank) +
               "\";\n";
        for (Vertex v = 0; v < schedule.count(); ++v)
            dot +=
                "    " + node(rank, v) + " [label=\"" + describe(schedule.operation(v), &schedule) + "\"];\n";
        for (Vertex v = 0; v < schedule.count(); ++v) {
            for (const Vertex d : schedule.dependents(v))
                dot += "    " + node(rank, v) + " -> " + node(rank, d) + ";\n";
            for (const Vertex d : schedule.start_dependents(v))
                dot += "    " + node(rank, v) + " -> " + node(rank, d) + " [style=dashed];\n";
        }
        dot += "  }\n";
    }
    for (const Match& m : matches(program))
        dot += "  " + node(m.from, m.send) + " -> " + node(m.to, m.receive) + " [color=blue];\n";
    return dot + "}\n";
}

}  // namespace velo::goal
