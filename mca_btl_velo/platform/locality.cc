#include "platform/locality.h"

#include "velo_config.h"

#ifdef VELO_HAVE_HWLOC
#include <hwloc.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "platform/small_file.h"

namespace velo::platform {
namespace {

struct Destroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

struct Free {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Free>;

// A look at one small file spares most machines the topology, which takes milliseconds to load.
bool several_nodes() {
    static const bool several =
        SmallFile("/sys/devices/system/node/online").text().find_first_of(",-") != std::string_view::npos;
    return several;
}

Topology load() {
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) return nullptr;
    Topology loaded(topology);
    return hwloc_topology_load(topology) == 0 ? std::move(loaded) : nullptr;
}

Bitmap own_processors(hwloc_topology_t topology) {
    Bitmap set(hwloc_bitmap_alloc());
    if (hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_PROCESS) != 0) return nullptr;
    hwloc_bitmap_and(set.get(), set.get(), hwloc_topology_get_topology_cpuset(topology));
    return set;
}

// The one node of the processors that this process may run on; nullptr if there are several.
hwloc_obj_t own_node(hwloc_topology_t topology) {
    Bitmap processors = own_processors(topology), nodes(hwloc_bitmap_alloc());
    if (processors == nullptr) return nullptr;
    hwloc_cpuset_to_nodeset(topology, processors.get(), nodes.get());
    if (hwloc_bitmap_weight(nodes.get()) != 1) return nullptr;
    return hwloc_get_numanode_obj_by_os_index(topology,
                                              static_cast<unsigned>(hwloc_bitmap_first(nodes.get())));
}

std::string list_of(hwloc_const_bitmap_t set) {
    char* text = nullptr;
    if (hwloc_bitmap_list_asprintf(&text, set) < 0) return "?";
    const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
    return text;
}

}  // namespace

void place_nearby(void* memory, std::size_t bytes) {
    if (!several_nodes()) return;
    Topology topology = load();
    hwloc_obj_t node = topology != nullptr ? own_node(topology.get()) : nullptr;
    if (node == nullptr) return;
    // A hint: where the system refuses it, the first touch decides.
    (void)hwloc_set_area_membind(topology.get(), memory, bytes, node->nodeset, HWLOC_MEMBIND_BIND,
                                 HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_NOCPUBIND);
}

int own_numa_node() {
    if (!several_nodes()) return 0;
    Topology topology = load();
    hwloc_obj_t node = topology != nullptr ? own_node(topology.get()) : nullptr;
    return node != nullptr ? static_cast<int>(node->os_index) : -1;
}

std::string describe_locality() {
    Topology topology = load();
    Bitmap processors = topology != nullptr ? own_processors(topology.get()) : nullptr;
    if (processors == nullptr) return "processors unknown";
    int all = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PU);
    int nodes = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE);
    hwloc_obj_t node = own_node(topology.get());
    std::string where = node != nullptr
                            ? "NUMA node " + std::to_string(node->os_index) + " of " + std::to_string(nodes)
                            : "several of " + std::to_string(nodes) + " NUMA nodes";
    return "processor " + list_of(processors.get()) + " of " + std::to_string(all) + ", " + where;
}

}  // namespace velo::platform

#else

namespace velo::platform {

void place_nearby(void*, std::size_t) {}

int own_numa_node() {
    return -1;
}

std::string describe_locality() {
    return "locality unknown (built without hwloc)";
}

}  // namespace velo::platform

#endif
