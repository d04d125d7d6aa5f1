#include <algorithm>

#include "pattern.h"

namespace velo::lab {
namespace {

constexpr int kTag = 12;

// Everyone sends `window` messages to rank 0, which has posted its receives.
class Incast final : public Pattern {
 public:
    Incast(const World& world, int bytes, int window) : world_(world), bytes_(bytes), window_(window) {
        const std::size_t messages = static_cast<std::size_t>(world.ranks) * window;
        if (is_root()) {
            in_.resize(messages * bytes);
            requests_.resize(messages);
        } else {
            out_.resize(bytes);
            fill(out_, 0, bytes, world.rank, 0);
            requests_.resize(window);
        }
    }

    void run() override {
        int posted = 0;
        for (int message = 0; message < window_; ++message) {
            if (!is_root())
                MPI_Isend(out_.data(), bytes_, MPI_BYTE, 0, kTag, world_.everyone, &requests_[posted++]);
            for (int peer = 1; is_root() && peer < world_.ranks; ++peer)
                MPI_Irecv(in_.data() + offset(peer, message), bytes_, MPI_BYTE, peer, kTag, world_.everyone,
                          &requests_[posted++]);
        }
        MPI_Waitall(posted, requests_.data(), MPI_STATUSES_IGNORE);
    }

    void spoil() override { std::fill(in_.begin(), in_.end(), 0xff); }

    long defects() const override {
        long defects = 0;
        for (int peer = 1; is_root() && peer < world_.ranks; ++peer)
            for (int message = 0; message < window_; ++message)
                defects += count_defects(in_, offset(peer, message), bytes_, peer, 0);
        return defects;
    }

    long messages() const override { return static_cast<long>(world_.ranks - 1) * window_; }

 private:
    bool is_root() const { return world_.rank == 0; }
    std::size_t offset(int peer, int message) const {
        return (static_cast<std::size_t>(peer) * window_ + message) * bytes_;
    }

    World world_;
    int bytes_;
    int window_;
    std::vector<unsigned char> out_;
    std::vector<unsigned char> in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Pattern> make_incast(const World& world, int bytes, int window) {
    return std::make_unique<Incast>(world, bytes, window);
}

}  // namespace velo::lab
