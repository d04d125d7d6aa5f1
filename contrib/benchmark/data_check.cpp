#include "data_check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace velo::bench {
namespace {

// Finaliser of splitmix64: neighbouring inputs give unrelated words.
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
    return value ^ value >> 31;
}

// The data of a block as a sequence of words, its last one possibly cut.
class Pattern {
 public:
    Pattern(const Block& block, const Call& call) : block_(block), group_size_(call.group.size) {
        key_ = mix(static_cast<std::uint64_t>(block.from) << 32 | static_cast<std::uint32_t>(block.to));
        key_ = mix(key_ ^ static_cast<std::uint64_t>(call.iteration) << 32 ^
                   static_cast<std::uint32_t>(block.message));
        iteration_ = call.iteration;
    }

    std::size_t word_bytes() const { return block_.content == Content::kBytes ? 8 : sizeof(float); }

    void word(std::size_t index, std::byte* out) const {
        if (block_.content == Content::kBytes) {
            const std::uint64_t value = mix(key_ + index * 0x9e3779b97f4a7c15ULL);
            std::memcpy(out, &value, sizeof value);
        } else {
            const float value = block_.content == Content::kContribution ? contribution(block_.from, index)
                                                                         : sum(block_.message + index);
            std::memcpy(out, &value, sizeof value);
        }
    }

 private:
    // Small whole numbers: their sum is exact in a float, in any order, for up to a million processes.
    float contribution(int rank, std::size_t element) const {
        return static_cast<float>(1 + (rank * 5ULL + iteration_ * 3ULL + element) % 13);
    }
    float sum(std::size_t element) const {
        float total = 0;
        for (int rank = 0; rank < group_size_; ++rank) total += contribution(rank, element);
        return total;
    }

    const Block& block_;
    int group_size_;
    std::uint64_t key_;
    int iteration_;
};

void write(const Pattern& pattern, std::byte* data, std::size_t bytes) {
    std::byte word[8];
    const std::size_t step = pattern.word_bytes();
    for (std::size_t at = 0; at < bytes; at += step) {
        pattern.word(at / step, word);
        std::memcpy(data + at, word, std::min(step, bytes - at));
    }
}

// Garbage that differs from the expected data in every byte.
void poison(const Pattern& pattern, std::byte* data, std::size_t bytes) {
    write(pattern, data, bytes);
    std::transform(data, data + bytes, data, [](std::byte byte) { return ~byte; });
}

std::optional<Mismatch> compare(const Pattern& pattern, const std::byte* data, std::size_t bytes) {
    std::byte word[8];
    const std::size_t step = pattern.word_bytes();
    for (std::size_t at = 0; at < bytes; at += step) {
        pattern.word(at / step, word);
        const std::size_t length = std::min(step, bytes - at);
        const auto [wanted, found] = std::mismatch(word, word + length, data + at);
        if (wanted != word + length)
            return Mismatch{.offset = at + static_cast<std::size_t>(wanted - word),
                            .expected = std::to_integer<unsigned>(*wanted),
                            .found = std::to_integer<unsigned>(*found)};
    }
    return std::nullopt;
}

std::optional<std::size_t> corruption_for(int world_rank) {
    const char* text = std::getenv("VELO_MPI_BENCH_CORRUPT");
    int rank = 0;
    std::size_t offset = 0;
    if (text == nullptr || std::sscanf(text, "%d:%zu", &rank, &offset) != 2 || rank != world_rank)
        return std::nullopt;
    return offset;
}

}  // namespace

DataCheck::DataCheck(int world_rank) : world_rank_(world_rank), corrupt_offset_(corruption_for(world_rank)) {}

void DataCheck::fill(const Benchmark& benchmark, const Call& call) const {
    for (const Block& block : benchmark.sent(call)) {
        std::byte* data = call.send + block.offset;
        write(Pattern(block, call), data, block.bytes);
        if (corrupt_offset_ && *corrupt_offset_ < block.bytes) data[*corrupt_offset_] ^= std::byte{0x40};
    }
    for (const Block& block : benchmark.received(call))
        poison(Pattern(block, call), call.receive + block.offset, block.bytes);
}

int DataCheck::verify(const Benchmark& benchmark, const Call& call) {
    int defects = 0;
    for (const Block& block : benchmark.received(call)) {
        const auto mismatch = compare(Pattern(block, call), call.receive + block.offset, block.bytes);
        if (!mismatch) continue;
        ++defects;
        report(benchmark, call, block, *mismatch);
    }
    defects_ += defects;
    return defects;
}

void DataCheck::report(const Benchmark& benchmark, const Call& call, const Block& block,
                       const Mismatch& mismatch) {
    if (reported_) return;
    reported_ = true;
    const std::string origin = block.from == kEveryone
                                   ? "the sum over all ranks"
                                   : "data of rank " + std::to_string(call.group.first + block.from);
    std::fprintf(
        stderr,
        "velo-mpi-bench: data check failed: rank %d, benchmark %s, size %zu, offset %zu, iteration %d: "
        "expected 0x%02x, found 0x%02x in %s (receive buffer offset %zu)\n",
        world_rank_, benchmark.traits().name, call.bytes, mismatch.offset, call.iteration, mismatch.expected,
        mismatch.found, origin.c_str(), block.offset + mismatch.offset);
}

}  // namespace velo::bench
