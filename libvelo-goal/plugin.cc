#include "plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string_view>

namespace velo::library {
namespace {

// The file of the plugin, by one of its names. Open MPI has loaded it as a private object, so that dlsym
// does not find it by default.
int note_plugin(dl_phdr_info* object, std::size_t, void* path) {
    const std::string_view name = object->dlpi_name;
    const std::string_view file = name.substr(name.rfind('/') + 1);
    if (!file.starts_with("mca_") || !file.ends_with("_velo.so")) return 0;
    *static_cast<std::string*>(path) = name;
    return 1;
}

const velo_goal_table* find_table(std::string* error) {
    // Where it is linked into Open MPI.
    if (const void* table = dlsym(RTLD_DEFAULT, VELO_GOAL_TABLE_SYMBOL))
        return static_cast<const velo_goal_table*>(table);
    std::string path;
    dl_iterate_phdr(note_plugin, &path);
    if (path.empty()) {
        *error =
            "this process does not use Velo: is it installed, and was the program started with mpirun --mca "
            "pml "
            "ob1 --mca btl velo?";
        return nullptr;
    }
    void* plugin = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    const void* table = plugin == nullptr ? nullptr : dlsym(plugin, VELO_GOAL_TABLE_SYMBOL);
    // Open MPI keeps it loaded: this was one more reference.
    if (plugin != nullptr) dlclose(plugin);
    if (table == nullptr)
        *error = path + " is Velo of another version than libvelo-goal: it has no " VELO_GOAL_TABLE_SYMBOL;
    return static_cast<const velo_goal_table*>(table);
}

std::atomic<bool> released{false};

// The attributes of MPI_COMM_SELF are what MPI_Finalize deletes first, when no other thread calls MPI.
int release(MPI_Comm, int, void* table, void*) {
    released = true;
    static_cast<const velo_goal_table*>(table)->release();
    return MPI_SUCCESS;
}

}  // namespace

bool is_released() {
    return released.load(std::memory_order_relaxed);
}

Plugin plugin_of_process(std::string* error) {
    static std::mutex mutex;
    static Plugin plugin;
    std::lock_guard held(mutex);
    if (plugin.performer != nullptr) return plugin;
    plugin.table = find_table(error);
    if (plugin.table == nullptr) return plugin;
    int threads, key;
    char text[512] = "";
    MPI_Query_thread(&threads);
    plugin.performer = plugin.table->acquire(threads == MPI_THREAD_MULTIPLE, text, sizeof text);
    *error = text;
    if (plugin.performer == nullptr) return plugin;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, const_cast<velo_goal_table*>(plugin.table));
    MPI_Comm_free_keyval(&key);
    return plugin;
}

}  // namespace velo::library
