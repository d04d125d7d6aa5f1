#include "platform/layout.h"

#include <cctype>
#include <cstring>

#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::platform {
namespace {

std::uint64_t word_of(std::span<const std::byte> address, std::size_t index) {
    std::uint64_t word = 0;
    const std::size_t at = index * sizeof word;
    if (address.size() >= at + sizeof word) std::memcpy(&word, address.data() + at, sizeof word);
    return word;
}

std::string text_of(std::uint64_t magic, std::size_t bytes) {
    std::string name;
    for (; magic != 0; magic >>= 8) {
        const auto letter = static_cast<unsigned char>(magic & 0xff);
        name += std::isprint(letter) != 0 ? static_cast<char>(letter) : '?';
    }
    return "\"" + name + "\" (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

void check_layout(std::span<const std::byte> address, std::uint64_t magic, std::size_t bytes,
                  const std::string& owner) {
    const std::uint64_t theirs = word_of(address, 0);
    if (theirs == magic && address.size() >= bytes) return;
    throw Failure(VELO_ERR_MISMATCH, owner + " runs another build of Velo: its address has the layout " +
                                         text_of(theirs, address.size()) + ", that of this process would have " +
                                         text_of(magic, bytes) +
                                         ". Install the same version of Velo on all nodes of the job.");
}

void check_layout(std::span<const std::byte> address, std::uint64_t magic, std::size_t bytes) {
    check_layout(address, magic, bytes, process_text(word_of(address, 1)));
}

}  // namespace velo::platform
