// Thesis, section 5.3: each process first sends a message to every other one and then receives one from each,
// without the optimised algorithms of the MPI library.
#include <algorithm>

#include "pattern.h"

namespace velo::lab {
namespace {

constexpr int kTag = 11;

class Alltoall final : public Pattern {
 public:
    Alltoall(const World& world, int active, int bytes) : world_(world), active_(active), bytes_(bytes) {
        if (!takes_part()) return;
        out_.resize(static_cast<std::size_t>(active) * bytes);
        in_.resize(out_.size());
        for (int peer = 0; peer < active; ++peer) fill(out_, offset(peer), bytes, world.rank, peer);
        requests_.resize(2 * static_cast<std::size_t>(active));
    }

    void run() override {
        if (!takes_part()) return;
        int posted = 0;
        for (int step = 1; step < active_; ++step) {
            const int peer = (world_.rank + active_ - step) % active_;
            MPI_Irecv(in_.data() + offset(peer), bytes_, MPI_BYTE, peer, kTag, world_.everyone,
                      &requests_[posted++]);
        }
        for (int step = 1; step < active_; ++step) {
            const int peer = (world_.rank + step) % active_;
            MPI_Isend(out_.data() + offset(peer), bytes_, MPI_BYTE, peer, kTag, world_.everyone,
                      &requests_[posted++]);
        }
        MPI_Waitall(posted, requests_.data(), MPI_STATUSES_IGNORE);
    }

    void spoil() override { std::fill(in_.begin(), in_.end(), 0xff); }

    long defects() const override {
        long defects = 0;
        for (int peer = 0; takes_part() && peer < active_; ++peer)
            if (peer != world_.rank) defects += count_defects(in_, offset(peer), bytes_, peer, world_.rank);
        return defects;
    }

    bool takes_part() const override { return world_.rank < active_; }
    long messages() const override { return static_cast<long>(active_) * (active_ - 1); }

 private:
    std::size_t offset(int peer) const { return static_cast<std::size_t>(peer) * bytes_; }

    World world_;
    int active_;
    int bytes_;
    std::vector<unsigned char> out_;
    std::vector<unsigned char> in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Pattern> make_alltoall(const World& world, int active, int bytes) {
    return std::make_unique<Alltoall>(world, active, bytes);
}

}  // namespace velo::lab
