#include <algorithm>
#include <string>
#include <string_view>

#include "collectives/goal/check.h"
#include "collectives/goal/program.h"
#include "input.h"
#include "require.h"
#include "targets.h"

namespace velo::fuzz {

void schedules(Bytes bytes) {
    const std::string_view data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string error;
    const auto program = goal::read_program(data, &error);
    require(program.has_value() == error.empty(), "a program and an error");
    if (!program) return;
    // What a file of this size says is small, but for the number of its ranks.
    if (program->size() > 64) return;
    goal::check(*program, {.eager = 0, .barrier = true});
    const std::string text = goal::to_text(*program), binary = goal::to_binary(*program);
    for (const std::string& written : {text, binary}) {
        const auto again = goal::read_program(written, &error);
        require(again.has_value(), "what was written is not read");
        require(goal::to_text(*again) == text && goal::to_binary(*again) == binary,
                "what was written is read as something else");
    }
}

}  // namespace velo::fuzz
