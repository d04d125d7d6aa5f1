// velo-goal: schedules in LogGOPSim's language and by name: checked, converted, drawn, generated, run, tuned.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "collectives/goal/check.h"
#include "drawing.h"
#include "live.h"
#include "measure.h"
#include "output.h"
#include "source.h"
#include "tune.h"

namespace velo::goal {

void write(const std::string& path, const std::string& data) {
    if (path == "-") {
        std::fwrite(data.data(), 1, data.size(), stdout);
        return;
    }
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

namespace {

const char* name(Finding::Kind kind) {
    constexpr const char* kNames[] = {"deadlock", "unmatched", "size", "ambiguous", "race", "leaves"};
    return kNames[kind];
}

void add_check(CLI::App& app, int& status) {
    struct Options : CheckOptions {
        Source source;
        bool json = false;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(
        "check",
        "whether messages and receives agree, all ranks come to their end and no bytes are used by two");
    add_source_options(*command, o->source);
    command->add_option("--eager", o->eager,
                        "sends of at most so many bytes end without their receive; 0 finds what needs memory "
                        "for messages (default: all do)");
    command->add_flag("--barrier", o->barrier, "and whether no rank ends before every other one has begun");
    command->add_option("--most", o->most, "findings of each kind")->capture_default_str();
    command->add_flag("--json", o->json);
    command->callback([o, &status] {
        const Loaded loaded = load(o->source);
        const std::vector<Finding> findings = check(loaded.program, *o);
        std::size_t operations = 0;
        for (const Schedule& schedule : loaded.program.schedules) operations += schedule.count();
        if (o->json) {
            nlohmann::json list = nlohmann::json::array();
            for (const Finding& f : findings) list.push_back({{"kind", name(f.kind)}, {"text", f.text}});
            std::printf("%s\n",
                        nlohmann::json{
                            {"ranks", loaded.program.size()}, {"operations", operations}, {"findings", list}}
                            .dump()
                            .c_str());
        } else {
            for (const Finding& f : findings) std::printf("%s: %s\n", name(f.kind), f.text.c_str());
            const std::string count = findings.empty() ? "nothing found"
                                                       : std::to_string(findings.size()) + " finding" +
                                                             (findings.size() == 1 ? "" : "s");
            std::printf("%u ranks, %zu operations, %s\n", loaded.program.size(), operations, count.c_str());
        }
        status = findings.empty() ? 0 : 1;
    });
}

void add_convert(CLI::App& app, const char* command_name, const char* help) {
    struct Options : WriteOptions {
        Source source;
        std::string output = "-";
        bool binary = false;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(command_name, help);
    add_source_options(*command, o->source);
    command->add_option("-o,--output", o->output, "- for the terminal")->capture_default_str();
    command->add_flag("--binary", o->binary, "LogGOPSim's, as its txt2bin writes it");
    command
        ->add_option(
            "--local", o->local_ns_per_byte,
            "the language has no local operations: they become calculations of so many ns for each byte")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->callback([o] {
        const Loaded loaded = load(o->source);
        write(o->output, o->binary ? to_binary(loaded.program, *o) : to_text(loaded.program, *o));
    });
}

void add_draw(CLI::App& app) {
    struct Options {
        Source source;
        std::string output = "-";
        bool dot = false;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("draw", "the graph as SVG: operations below what they wait for");
    add_source_options(*command, o->source);
    command->add_option("-o,--output", o->output, "- for the terminal")->capture_default_str();
    command->add_flag("--dot", o->dot, "for graphviz instead");
    command->callback([o] {
        const Loaded loaded = load(o->source);
        constexpr std::size_t kMost = 20000;
        std::size_t operations = 0;
        for (const Schedule& schedule : loaded.program.schedules) operations += schedule.count();
        if (operations > kMost)
            throw std::runtime_error(std::to_string(operations) + " operations are too many for a picture: " +
                                     std::to_string(kMost) + " at most");
        write(o->output, o->dot ? to_dot(loaded.program) : to_svg(loaded.program));
    });
}

void add_run(CLI::App& app, int& status) {
    struct Options : LiveOptions {
        Source source;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(
        "run", "executed by Velo: mpirun --mca pml ob1 --mca btl velo -np N velo-goal run WHAT");
    add_source_options(*command, o->source, false);
    command
        ->add_option("--calc", o->calculations,
                     "calculations take so many times what the file says; 0: no time")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->add_option("--repeat", o->repetitions, "how often, each time after a barrier")
        ->check(CLI::Range(1U, 1U << 30))
        ->capture_default_str();
    command->add_option("--every", o->every_s, "seconds between lines about a run that takes long; 0: none")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->add_option("--trace", o->trace,
                        "writes the last repetition for ui.perfetto.dev; the stamps take time themselves");
    command->add_flag("--json", o->json);
    command->callback([o, &status] { status = run_live(o->source, *o); });
}

void add_tune(CLI::App& app, int& status) {
    auto o = std::make_shared<TuneOptions>();
    CLI::App* command =
        app.add_subcommand("tune",
                           "measures the algorithms of collectives and writes the rules that choose the "
                           "fastest, for coll_velo_choices: "
                           "mpirun --mca pml ob1 --mca btl velo -np N velo-goal tune -o FILE");
    command->add_option("-o,--output", o->output, "- for the terminal")->capture_default_str();
    command->add_option("--operations", o->operations, "A,B,...: of velo-goal list (default: all)")
        ->delimiter(',');
    command
        ->add_option("--np,--ranks", o->ranks,
                     "A,B,...: numbers of ranks (default: powers of two, and all there are)")
        ->delimiter(',');
    command->add_option("--bytes", o->sizes, "A,B,...: of a block, or of all that is broadcast or reduced")
        ->delimiter(',')
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 26))
        ->capture_default_str();
    command->add_option("--rounds", o->rounds, "in which the algorithms take turns; their median counts")
        ->check(CLI::Range(1U, 1U << 16))
        ->capture_default_str();
    command->add_option("--block", o->block_s, "seconds that an algorithm runs in a round")
        ->check(CLI::Range(0.0, 1e3))
        ->capture_default_str();
    command->add_option("--margin", o->margin_percent, "percent by which another algorithm has to be faster")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->add_option("--every", o->every_s, "seconds between lines about how far it is; 0: none")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    command->callback([o, &status] { status = tune(*o); });
}

void add_measure(CLI::App& app, int& status) {
    auto o = std::make_shared<MeasureOptions>();
    CLI::App* command = app.add_subcommand("measure",
                                           "what a schedule costs, under mpirun as run: a ping-pong within "
                                           "one, an addition as one, the same as a loop");
    command->add_option("what", o->what)->required()->check(CLI::IsMember({"pingpong", "local", "loop"}));
    command->add_option("--bytes", o->bytes, "of a message, or of each operand")
        ->check(CLI::Range(8U, 1U << 30))
        ->capture_default_str();
    command->add_option("--type", o->type, "of the operands: uint8, uint64, float, double")
        ->capture_default_str();
    command->add_option("--rounds", o->rounds, "of the ping-pong in one run")
        ->check(CLI::Range(1U, 100000U))
        ->capture_default_str();
    command->add_option("--seconds", o->seconds)->check(CLI::Range(0.0, 1e6))->capture_default_str();
    command->callback([o, &status] { status = measure(*o); });
}

void add_list(CLI::App& app) {
    app.add_subcommand("list", "the collectives by name")->callback([] {
        for (const collectives::Algorithm& a : collectives::algorithms())
            std::printf("%s:%s\n", std::string(a.operation).c_str(), std::string(a.name).c_str());
    });
}

// What is wrong with the command line, and where to read how it is right.
std::string complaint(const CLI::App* app, const CLI::Error& error) {
    const auto chosen = app->get_subcommands();
    const std::string command = chosen.empty() ? "velo-goal" : "velo-goal " + chosen.front()->get_name();
    return command + ": " + error.what() + "; " + command + " --help shows how\n";
}

}  // namespace
}  // namespace velo::goal

int main(int argc, char** argv) {
    CLI::App app(
        "velo-goal works on schedules: graphs of sends, receives and local operations, one for each rank.",
        "velo-goal");
    app.footer(
        "velo-goal SUBCOMMAND --help shows the options of a subcommand. velo-sim goal runs schedules on "
        "modelled machines.");
    app.require_subcommand(1);
    app.failure_message(velo::goal::complaint);
    int status = 0;
    velo::goal::add_check(app, status);
    velo::goal::add_convert(app, "convert", "from text to binary and back");
    velo::goal::add_convert(app, "generate", "a collective as a text of LogGOPSim's language");
    velo::goal::add_draw(app);
    velo::goal::add_run(app, status);
    velo::goal::add_tune(app, status);
    velo::goal::add_measure(app, status);
    velo::goal::add_list(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::bad_alloc&) {
        std::fputs("velo-goal: not enough memory\n", stderr);
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "velo-goal: %s\n", error.what());
        return 1;
    }
    return status;
}
