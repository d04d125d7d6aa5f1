// Thesis, section 7.4.1: Scatterv whose root changes after `hold` repetitions instead of after each.
#include <algorithm>

#include "pattern.h"

namespace velo::lab {
namespace {

class Scatterv final : public Pattern {
 public:
    Scatterv(const World& world, int bytes, int hold)
        : world_(world),
          bytes_(bytes),
          hold_(hold),
          out_(static_cast<std::size_t>(bytes) * world.ranks),
          in_(bytes),
          counts_(world.ranks, bytes),
          offsets_(world.ranks) {
        for (int peer = 0; peer < world.ranks; ++peer) {
            offsets_[peer] = peer * bytes;
            fill(out_, offsets_[peer], bytes, world.rank, peer);
        }
    }

    void run() override {
        root_ = static_cast<int>(done_++ / hold_ % world_.ranks);
        MPI_Scatterv(out_.data(), counts_.data(), offsets_.data(), MPI_BYTE, in_.data(), bytes_, MPI_BYTE,
                     root_, world_.everyone);
    }

    void spoil() override { std::fill(in_.begin(), in_.end(), 0xff); }
    long defects() const override { return count_defects(in_, 0, bytes_, root_, world_.rank); }

    long messages() const override { return world_.ranks - 1; }

 private:
    World world_;
    int bytes_;
    long hold_;
    long done_ = 0;
    int root_ = 0;
    std::vector<unsigned char> out_;
    std::vector<unsigned char> in_;
    std::vector<int> counts_;
    std::vector<int> offsets_;
};

}  // namespace

std::unique_ptr<Pattern> make_scatterv(const World& world, int bytes, int hold) {
    return std::make_unique<Scatterv>(world, bytes, hold);
}

}  // namespace velo::lab
