#include "singlecopy/xpmem/library.h"

#include "velo_config.h"

#ifdef VELO_HAVE_XPMEM
extern "C" {
#include <xpmem.h>
}
#endif

namespace velo::singlecopy {

#ifdef VELO_HAVE_XPMEM

namespace {

class LibXpmem final : public XpmemLibrary {
 public:
    std::int64_t make() override {
        // Permissions as of a file: the owner alone.
        return xpmem_make(nullptr, XPMEM_MAXADDR_SIZE, XPMEM_PERMIT_MODE, reinterpret_cast<void*>(0600));
    }
    void remove(std::int64_t segment) override { xpmem_remove(segment); }
    std::int64_t get(std::int64_t segment) override {
        return xpmem_get(segment, XPMEM_RDWR, XPMEM_PERMIT_MODE, nullptr);
    }
    void release(std::int64_t permit) override { xpmem_release(permit); }
    void* attach(std::int64_t permit, std::uint64_t address, std::size_t bytes) override {
        xpmem_addr from{permit, static_cast<off_t>(address)};
        void* attached = xpmem_attach(from, bytes, nullptr);
        return attached == reinterpret_cast<void*>(-1) ? nullptr : attached;
    }
    void detach(void* attached) override { xpmem_detach(attached); }
};

}  // namespace

XpmemLibrary* xpmem_library() {
    static LibXpmem library;
    return &library;
}

#else

XpmemLibrary* xpmem_library() {
    return nullptr;
}

#endif

}  // namespace velo::singlecopy
