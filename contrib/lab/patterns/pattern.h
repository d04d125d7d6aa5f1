// What a communication pattern of the laboratory is: calls that are timed, with data that is checked.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "options.h"

namespace velo::lab {

class Pattern {
 public:
    virtual ~Pattern() = default;

    // One repetition; every process of `everyone` calls it, those that have no part in it too.
    virtual void run() = 0;

    // Fills what is received with wrong bytes, for a repetition whose data is checked.
    virtual void spoil() = 0;

    // Bytes that are not what their sender sent, after a repetition.
    virtual long defects() const = 0;

    // Whether this process does something between the barriers.
    virtual bool takes_part() const { return true; }

    // Messages of one repetition, of all processes together.
    virtual long messages() const = 0;

    // Bytes of one repetition, for a bandwidth; 0: there is none.
    virtual double counted_bytes() const { return 0; }
};

struct World {
    MPI_Comm everyone = MPI_COMM_WORLD;
    int rank = 0;
    int ranks = 0;
};

// The first `active` ranks exchange a message with each other; the others wait.
std::unique_ptr<Pattern> make_alltoall(const World& world, int active, int bytes);

// Messages from everyone to rank 0.
std::unique_ptr<Pattern> make_incast(const World& world, int bytes, int window);

// `window` messages from rank 0 to rank 1, and a reply.
std::unique_ptr<Pattern> make_window(const World& world, int bytes, int window, bool blocking);

// Messages of different sizes from a root that moves on after every `hold` repetitions.
std::unique_ptr<Pattern> make_scatterv(const World& world, int bytes, int hold);

// A byte of a message: tells senders, receivers and places apart.
unsigned char content(int from, int to, int place);
void fill(std::vector<unsigned char>& buffer, std::size_t offset, int bytes, int from, int to);
long count_defects(const std::vector<unsigned char>& buffer, std::size_t offset, int bytes, int from, int to);

}  // namespace velo::lab
