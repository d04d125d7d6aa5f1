#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "collectives/algorithms/collectives.h"
#include "experiment/experiment.h"
#include "experiment/verdict.h"
#include "flow/policies.h"
#include "machine/parameters.h"
#include "machine/simulation.h"
#include "workload/patterns.h"

namespace velo::sim {
namespace {

namespace fs = std::filesystem;

struct ExperimentOptions {
    std::vector<std::string> names;
    fs::path output = "results";
    fs::path bounds;
    Context context;
    unsigned seeds = kSeeds;
    bool no_plot = false;
};

// In $VELO_SIM_DATA, beside the program, or where `make install` puts data.
fs::path find_file(const char* name) {
    std::error_code error;
    const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
    const char* given = std::getenv("VELO_SIM_DATA");
    for (const fs::path& directory : {given != nullptr ? fs::path(given) : here, here,
                                      here / "../share/velo/sim", fs::path(VELO_SIM_DATA)})
        if (fs::exists(directory / name, error)) return directory / name;
    return name;
}

void write_file(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (!file.flush())
        throw std::runtime_error(path.string() + ": cannot be written; choose another --output");
}

bool plot(const fs::path& script, const fs::path& csv, const Experiment& experiment) {
    const fs::path picture = fs::path(csv).replace_extension(".png");
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        execlp(VELO_PYTHON, VELO_PYTHON, script.c_str(), csv.c_str(), picture.c_str(), "--x",
               experiment.x.c_str(), "--y", experiment.y.c_str(), "--title", experiment.title.c_str(),
               static_cast<char*>(nullptr));
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A line now and then, where an experiment lasts.
Progress progress_of(const Experiment& experiment) {
    using Clock = std::chrono::steady_clock;
    return [name = experiment.name, start = Clock::now(), last = Clock::now()](std::size_t done,
                                                                               std::size_t runs) mutable {
        if (Clock::now() - last < std::chrono::seconds(30)) return;
        last = Clock::now();
        std::fprintf(
            stderr, "%s: %zu of %zu runs after %lld s\n", name.c_str(), done, runs,
            static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(last - start).count()));
    };
}

void make_output(const fs::path& output) {
    std::error_code error;
    fs::create_directories(output, error);
    if (error || access(output.c_str(), W_OK) != 0)
        throw std::runtime_error(output.string() +
                                 ": no directory that can be written; choose another --output");
}

// Adds to `all`. Returns false if a run failed or a verdict is not the one that the bounds file expects.
bool perform(const ExperimentOptions& o, const Experiment& experiment, std::vector<Verdict>& all) {
    const std::string size = o.context.processes > 0 ? std::to_string(o.context.processes)
                             : o.context.full        ? "full"
                                                     : "";
    std::printf("== %s: %s (%s size, %u %s)\n", experiment.name.c_str(), experiment.title.c_str(),
                size.empty() ? "reduced" : size.c_str(), experiment.random ? o.seeds : 1,
                experiment.random && o.seeds > 1 ? "seeds" : "run");
    std::fflush(stdout);
    Context context = o.context;
    context.progress = progress_of(experiment);
    const Sample measured = sample(experiment, context, o.seeds);
    std::vector<Verdict> verdicts = judge(o.bounds.string(), experiment.name, measured, o.context.full);
    // The table speaks of its two sizes only.
    if (o.context.processes > 0)
        for (Verdict& verdict : verdicts) verdict.expected = Finding::kUnknown;
    all.insert(all.end(), verdicts.begin(), verdicts.end());
    std::string text = to_text(verdicts) + "count: " + count_text(verdicts) + "\n";
    for (const std::string& remark : measured.remarks) text += "remark: " + remark + "\n";
    std::printf("%s", text.c_str());

    const std::string name = experiment.name + (size.empty() ? "" : "-" + size);
    const fs::path table = o.output / (name + ".csv");
    write_file(table, csv(measured));
    write_file(o.output / (name + "-verdict.txt"), text);
    write_file(o.output / (name + "-metrics.json"), metrics_json(measured));
    if (!o.no_plot && !plot(find_file("velo-sim-plot"), table, experiment))
        std::fprintf(stderr,
                     "velo-sim: no plot of %s: is python3-matplotlib installed? --no-plot leaves plots out\n",
                     experiment.name.c_str());
    return !measured.failed() &&
           std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.is_as_expected(); });
}

// In this one's place, with all words that follow.
[[noreturn]] void become_plot(const std::vector<std::string>& words) {
    const std::string script = find_file("velo-sim-plot").string();
    std::vector<char*> command = {const_cast<char*>(VELO_PYTHON), const_cast<char*>(script.c_str())};
    for (const std::string& word : words) command.push_back(const_cast<char*>(word.c_str()));
    command.push_back(nullptr);
    execvp(VELO_PYTHON, command.data());
    throw std::runtime_error(std::string("cannot start " VELO_PYTHON ": ") + std::strerror(errno));
}

}  // namespace

void add_plot_command(CLI::App& app, int&) {
    CLI::App* command = app.add_subcommand("plot", "draws the table of an experiment");
    command->prefix_command();
    command->set_help_flag();
    command->callback([command] { become_plot(command->remaining()); });
}

void add_experiment_command(CLI::App& app, int& status) {
    auto o = std::make_shared<ExperimentOptions>();
    CLI::App* command = app.add_subcommand(
        "experiment",
        "an experiment of the papers: CSV, plot and verdict; exit status 1 if a verdict is not as expected");
    std::vector<std::string> names = {"all"};
    for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
    command->add_option("names", o->names, "experiments, or all")->check(CLI::IsMember(names))->required();
    command->add_flag("--full", o->context.full,
                      "the papers' size: minutes to hours each, instead of seconds");
    command
        ->add_option("-n,--np,--processes,--ranks", o->context.processes, "fig7.5 and eight: of another size")
        ->check(CLI::Range(16U, 4096U))
        ->excludes("--full");
    command->add_option("-j,--jobs", o->context.jobs, "runs side by side")
        ->check(CLI::Range(1U, 1024U))
        ->capture_default_str();
    command
        ->add_option("--seeds", o->seeds,
                     "runs of what is random, each with another seed; a statement holds if it does with each")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    command->add_option("-o,--output", o->output, "directory for the files")->capture_default_str();
    command->add_option("--bounds", o->bounds, "the statements and their bounds (default: as installed)");
    command->add_flag("--no-plot", o->no_plot);
    command->callback([o, &status] {
        if (o->bounds.empty()) o->bounds = find_file("bounds.json");
        std::vector<const Experiment*> chosen;
        for (const Experiment& experiment : experiments())
            if (std::any_of(o->names.begin(), o->names.end(), [&](const std::string& name) {
                    return name == "all" || name == experiment.name;
                }))
                chosen.push_back(&experiment);
        // What would be found out only after the runs.
        for (const Experiment* experiment : chosen) {
            check_bounds(o->bounds.string(), experiment->name);
            if (o->context.processes > 0 && !experiment->any_size)
                throw std::runtime_error(experiment->name + " has two sizes, with and without --full");
        }
        make_output(o->output);
        std::vector<Verdict> all;
        for (const Experiment* experiment : chosen)
            if (!perform(*o, *experiment, all)) status = 1;
        if (chosen.size() > 1) std::printf("== all statements: %s\n", count_text(all).c_str());
    });
}

void add_list_command(CLI::App& app, int&) {
    app.add_subcommand("list", "experiments, patterns, policies and the costs of the machine")->callback([] {
        std::puts("experiments:");
        for (const Experiment& e : experiments())
            std::printf("  %-10s %s\n", e.name.c_str(), e.title.c_str());
        std::puts("patterns:");
        for (const std::string& name : pattern_names())
            std::printf("  %-18s %s\n", name.c_str(), describe_pattern(name).c_str());
        std::puts("collectives, for goal:");
        for (const goal::collectives::Algorithm& a : goal::collectives::algorithms())
            std::printf("  %s:%s\n", std::string(a.operation).c_str(), std::string(a.name).c_str());
        std::puts("policies:");
        for (const std::string_view name : flow::policy_names())
            std::printf("  %s\n", std::string(name).c_str());
        std::puts("costs, in nanoseconds:");
        for (const auto& [name, value] : list_costs(Costs{}))
            std::printf("  %-16s %g\n", name.c_str(), value);
    });
}

}  // namespace velo::sim
