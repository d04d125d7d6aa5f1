// What run and goal have in common: the machine, flow control, and what is printed of a run.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "experiment/sweep.h"

namespace velo::sim {

struct RunOptions {
    Trial run;
    std::string nodes;
    std::vector<std::string> costs;
    bool no_piggyback = false;
    bool json = false;
    bool per_process = false;
};

// An option that is one of some words. (CLI11's own shows the numbers behind enumerators of a byte as
// characters.)
template <typename Value>
void add_choice(CLI::App& command, const std::string& name, Value& value,
                const std::map<std::string, Value>& choices, const std::string& help) {
    std::vector<std::string> words;
    std::string usual;
    for (const auto& [word, meaning] : choices) {
        words.push_back(word);
        if (meaning == value) usual = word;
    }
    command
        .add_option_function<std::string>(
            name, [&value, choices](const std::string& word) { value = choices.at(word); }, help)
        ->check(CLI::IsMember(words))
        ->default_str(usual);
}

// All but what the processes do.
void add_machine_options(CLI::App& command, RunOptions& options);
// What the words on the command line mean. Throws std::runtime_error.
void apply(RunOptions& options);
// As text or as JSON.
void print(const RunOptions& options, const Measured& measured);

}  // namespace velo::sim
