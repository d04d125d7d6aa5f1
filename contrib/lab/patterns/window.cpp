// Liu & Panda, section 6.2.2: back-to-back messages, as many as the window has, then a reply.
#include <algorithm>

#include "pattern.h"

namespace velo::lab {
namespace {

constexpr int kTag = 13;
constexpr int kReplyTag = 14;

class Window final : public Pattern {
 public:
    Window(const World& world, int bytes, int window, bool blocking)
        : world_(world), bytes_(bytes), window_(window), blocking_(blocking), requests_(window) {
        const std::size_t messages = static_cast<std::size_t>(bytes) * window;
        if (world.rank == 0) {
            out_.resize(messages);
            for (int i = 0; i < window; ++i) fill(out_, offset(i), bytes, 0, i);
        }
        if (world.rank == 1) in_.resize(messages);
    }

    void run() override {
        if (world_.rank == 0) send();
        if (world_.rank == 1) receive();
    }

    void spoil() override { std::fill(in_.begin(), in_.end(), 0xff); }

    long defects() const override {
        long defects = 0;
        for (int i = 0; world_.rank == 1 && i < window_; ++i)
            defects += count_defects(in_, offset(i), bytes_, 0, i);
        return defects;
    }

    bool takes_part() const override { return world_.rank < 2; }
    long messages() const override { return window_ + 1; }
    double counted_bytes() const override { return static_cast<double>(bytes_) * window_; }

 private:
    void send() {
        for (int i = 0; i < window_; ++i) {
            if (blocking_)
                MPI_Send(out_.data() + offset(i), bytes_, MPI_BYTE, 1, kTag, world_.everyone);
            else
                MPI_Isend(out_.data() + offset(i), bytes_, MPI_BYTE, 1, kTag, world_.everyone, &requests_[i]);
        }
        if (!blocking_) MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, kReplyTag, world_.everyone, MPI_STATUS_IGNORE);
    }
    void receive() {
        for (int i = 0; i < window_; ++i) {
            if (blocking_)
                MPI_Recv(in_.data() + offset(i), bytes_, MPI_BYTE, 0, kTag, world_.everyone,
                         MPI_STATUS_IGNORE);
            else
                MPI_Irecv(in_.data() + offset(i), bytes_, MPI_BYTE, 0, kTag, world_.everyone, &requests_[i]);
        }
        if (!blocking_) MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, kReplyTag, world_.everyone);
    }
    std::size_t offset(int message) const { return static_cast<std::size_t>(message) * bytes_; }

    World world_;
    int bytes_;
    int window_;
    bool blocking_;
    std::vector<unsigned char> out_;
    std::vector<unsigned char> in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Pattern> make_window(const World& world, int bytes, int window, bool blocking) {
    return std::make_unique<Window>(world, bytes, window, blocking);
}

}  // namespace velo::lab
