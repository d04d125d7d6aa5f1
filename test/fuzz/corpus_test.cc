// Every target over its corpus, and over the corpus with some bytes changed: the fuzzers' inputs as ordinary
// tests, with any compiler and any sanitizer.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "targets.h"

namespace velo::fuzz {
namespace {

using Sample = std::vector<std::uint8_t>;

constexpr int kChangedCopies = 20;

// One input in hexadecimal a line.
std::vector<Sample> corpus(const std::string& target) {
    std::ifstream file(VELO_FUZZ_CORPUS "/" + target + ".txt");
    std::vector<Sample> samples;
    for (std::string line; std::getline(file, line);) {
        Sample sample;
        for (std::size_t i = 0; i + 1 < line.size(); i += 2)
            sample.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(i, 2), nullptr, 16)));
        sample.shrink_to_fit();  // for AddressSanitizer, which knows the memory and not the vector
        samples.push_back(std::move(sample));
    }
    return samples;
}

Sample changed(Sample sample, std::mt19937& random) {
    for (unsigned changes = 1 + random() % 3; changes > 0 && !sample.empty(); --changes)
        sample[random() % sample.size()] = static_cast<std::uint8_t>(random());
    return sample;
}

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, no_input_of_it_breaks_anything) {
    const std::vector<Sample> samples = corpus(GetParam().name);
    ASSERT_GE(samples.size(), 10U) << "no corpus in " VELO_FUZZ_CORPUS;
    for (const Sample& sample : samples) GetParam().run(sample);
}

TEST_P(FuzzCorpus, nor_does_one_that_is_slightly_damaged) {
    std::mt19937 random(7);
    for (const Sample& sample : corpus(GetParam().name))
        for (int i = 0; i < kChangedCopies; ++i) GetParam().run(changed(sample, random));
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, ::testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace velo::fuzz
