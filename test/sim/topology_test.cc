#include "machine/topology.h"

#include <gtest/gtest.h>

#include <set>

#include "machine/parameters.h"

namespace velo::sim {
namespace {

TEST(Topology, CountsTheHopsOfAMesh) {
    const Topology mesh({8, 8}, false);
    EXPECT_EQ(mesh.distance(0, 1), 1U);
    EXPECT_EQ(mesh.distance(0, 63), 14U);  // the thesis's longest way
    const Topology cube({4, 4, 4}, false);
    EXPECT_EQ(cube.distance(0, 63), 9U);
}

TEST(Topology, TakesTheShortWayAroundATorus) {
    const Topology torus({8, 8}, true);
    EXPECT_EQ(torus.distance(0, 63), 2U);
    EXPECT_EQ(torus.distance(0, 36), 8U);
}

TEST(Topology, RoutesByDimensionOverLinksOfItsOwn) {
    const Topology mesh({4, 4}, false);
    std::set<std::uint32_t> links;
    std::uint32_t node = 0;
    for (const std::uint32_t expected : {1U, 2U, 6U, 10U}) {
        const Topology::Hop hop = mesh.next(node, 10);
        EXPECT_EQ(hop.node, expected);
        EXPECT_LT(hop.link, mesh.links());
        EXPECT_TRUE(links.insert(hop.link).second);
        node = hop.node;
    }
}

TEST(Topology, GivesAJobTheThesisShapes) {
    EXPECT_EQ(to_string(mesh_for(256, 16)), "4x4");
    EXPECT_EQ(to_string(mesh_for(1024, 16)), "4x4x4");
    for (const std::uint32_t processes : {1U, 17U, 100U, 5000U, 262144U}) {
        Machine machine;
        machine.dimensions = mesh_for(processes, 16);
        EXPECT_GE(machine.processes(), processes);
    }
    EXPECT_TRUE(parse_dimensions("4x").empty());
    EXPECT_TRUE(parse_dimensions("0x4").empty());
    EXPECT_TRUE(parse_dimensions("2x2x2x2").empty());
}

}  // namespace
}  // namespace velo::sim
