// velo-sim: the policies of the plugin on a modelled machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/commands.h"

int main(int argc, char** argv) {
    CLI::App app(
        "velo-sim runs Velo's flow control policies, the plugin's own objects, on a model of a large "
        "machine.",
        "velo-sim");
    app.footer("velo-sim SUBCOMMAND --help shows the options of a subcommand.");
    app.require_subcommand(1);
    app.fallthrough(false);
    int status = 0;
    velo::sim::add_run_command(app, status);
    velo::sim::add_experiment_command(app, status);
    velo::sim::add_goal_command(app, status);
    velo::sim::add_multicast_command(app, status);
    velo::sim::add_plot_command(app, status);
    velo::sim::add_list_command(app, status);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::bad_alloc&) {
        std::fputs(
            "velo-sim: not enough memory: a process has a state for each other one, but in the pattern sparse. "
            "Lower --processes or run sparse\n",
            stderr);
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "velo-sim: %s\n", error.what());
        return 1;
    }
    return status;
}
