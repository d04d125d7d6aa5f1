#include "singlecopy/xpmem/xpmem.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "singlecopy/xpmem/windows.h"

namespace velo::singlecopy {
namespace {

int last_error() {
    return errno != 0 ? errno : EACCES;
}

class XpmemMemory final : public RemoteMemory {
 public:
    XpmemMemory(XpmemLibrary& library, std::int64_t permit)
        : library_(library), permit_(permit), windows_(std::in_place, library, permit) {}
    ~XpmemMemory() override {
        windows_.reset();  // a permit is released after its attachments
        library_.release(permit_);
    }

    int read(void* local, std::uint64_t remote, std::size_t bytes) override {
        auto* to = static_cast<std::byte*>(local);
        return transfer(remote, bytes, [&](std::byte* attached, std::size_t offset, std::size_t count) {
            std::memcpy(to + offset, attached, count);
        });
    }

    int write(const void* local, std::uint64_t remote, std::size_t bytes) override {
        auto* from = static_cast<const std::byte*>(local);
        return transfer(remote, bytes, [&](std::byte* attached, std::size_t offset, std::size_t count) {
            std::memcpy(attached, from + offset, count);
        });
    }

 private:
    template <typename Copy>
    int transfer(std::uint64_t remote, std::size_t bytes, Copy copy) {
        if (bytes == 0) return 0;
        // The first page, which no process has, would be a SIGBUS later.
        if (remote < page_bytes() || bytes > UINT64_MAX - remote) return EFAULT;
        for (std::size_t done = 0; done < bytes;) {
            Windows::Pin pin = windows_->pin(remote + done, bytes - done);
            if (pin.data == nullptr) return pin.error;
            copy(pin.data, done, pin.bytes);
            windows_->unpin(pin);
            done += pin.bytes;
        }
        return 0;
    }

    XpmemLibrary& library_;
    std::int64_t permit_;
    std::optional<Windows> windows_;
};

}  // namespace

std::unique_ptr<Xpmem> Xpmem::make(XpmemLibrary& library, int* error) {
    errno = 0;
    std::int64_t segment = library.make();
    if (segment > 0) return std::unique_ptr<Xpmem>(new Xpmem(library, segment));
    *error = last_error();
    return nullptr;
}

Xpmem::~Xpmem() {
    library_.remove(segment_);
}

std::unique_ptr<RemoteMemory> Xpmem::open(const RemoteProcess& process, int* error) const {
    errno = 0;
    std::int64_t permit = process.xpmem_segment > 0 ? library_.get(process.xpmem_segment) : -1;
    if (permit > 0) return std::make_unique<XpmemMemory>(library_, permit);
    *error = process.xpmem_segment > 0 ? last_error() : ENODEV;
    return nullptr;
}

}  // namespace velo::singlecopy
