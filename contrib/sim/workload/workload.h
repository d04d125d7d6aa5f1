// What the processes do: each has a list of steps for each iteration. A workload is a pure function of
// (process, iteration), so that it needs no memory of its own at any scale.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace velo::goal {
struct Program;
}

namespace velo::sim {

enum class StepKind : std::uint8_t {
    kSend,         // until the interface has taken the message; meanwhile arrivals are retrieved
    kStart,        // a non-blocking send: what has no credit waits in the queue of its peer
    kFinish,       // until every queue is empty
    kReceive,      // a message from `peer`
    kReceiveAny,   // `bytes` messages from whomever
    kCompute,      // `bytes` nanoseconds, in which nothing is retrieved
    kSynchronise,  // until all processes are here: the experimenter's barrier, which sends no messages
};

struct Step {
    StepKind kind;
    std::uint32_t peer;
    std::uint32_t bytes;  // of MPI data
};

class Workload {
 public:
    virtual ~Workload() = default;
    virtual std::string name() const = 0;
    virtual std::uint32_t processes() const = 0;
    virtual std::uint32_t iterations() const = 0;
    // Appends the steps of one iteration.
    virtual void steps(std::uint32_t process, std::uint32_t iteration, std::vector<Step>& out) const = 0;
    // The peers that a process ever exchanges messages with, ascending. Empty: any.
    virtual std::vector<std::uint32_t> peers(std::uint32_t) const { return {}; }
    virtual bool sparse() const { return false; }
    // Instead of steps: what each iteration runs. It must outlive the workload.
    virtual const goal::Program* program() const { return nullptr; }
};

}  // namespace velo::sim
