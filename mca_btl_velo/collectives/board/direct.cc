#include "collectives/board/direct.h"

#include <unistd.h>

#include "platform/process_identity.h"
#include "singlecopy/mechanisms.h"

namespace velo::board {
namespace {

// One for all boards of this process.
const singlecopy::Mechanisms& mechanisms(const std::string& choice) {
    static const singlecopy::Mechanisms mechanisms(choice);
    return mechanisms;
}

}  // namespace

Direct::Direct(const Choice& choice, std::uint32_t members)
    : mechanism_(choice.mechanism), from_(choice.from), readers_(members) {}

Memory Direct::memory(const Choice& choice) {
    static const std::uint64_t cookie = platform::random_nonce();
    if (choice.mechanism == "copy") return {};
    return {static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uint64_t>(&cookie), cookie,
            mechanisms(choice.mechanism).xpmem_segment()};
}

bool Direct::reaches(std::uint32_t member, const Memory& memory) {
    Reader& reader = readers_[member];
    if (reader.tried) return reader.memory != nullptr;
    reader.tried = true;
    if (mechanism_ == "copy" || memory.pid == 0) return false;
    reader.memory =
        mechanisms(mechanism_)
            .reach({static_cast<pid_t>(memory.pid), memory.probe, memory.cookie, memory.xpmem_segment});
    return reader.memory != nullptr;
}

}  // namespace velo::board
