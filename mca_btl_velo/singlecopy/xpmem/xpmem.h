// XPMEM: a process makes its address space attachable, its peers map parts of it and copy in user space.
#pragma once

#include <cstdint>
#include <memory>

#include "singlecopy/singlecopy.h"
#include "singlecopy/xpmem/library.h"

namespace velo::singlecopy {

class Xpmem final : public Mechanism {
 public:
    // Makes this process's memory attachable for as long as the object lives. nullptr with *error set if the
    // kernel refuses.
    static std::unique_ptr<Xpmem> make(XpmemLibrary& library, int* error);
    ~Xpmem() override;

    std::int64_t segment() const { return segment_; }
    std::string_view name() const override { return "xpmem"; }
    std::string_view obstacles() const override {
        return "xpmem_attach: its btl_velo_single_copy_mechanism is neither auto nor xpmem, it was built "
               "without "
               "XPMEM, or it cannot open /dev/xpmem";
    }

 private:
    Xpmem(XpmemLibrary& library, std::int64_t segment) : library_(library), segment_(segment) {}
    std::unique_ptr<RemoteMemory> open(const RemoteProcess& process, int* error) const override;

    XpmemLibrary& library_;
    std::int64_t segment_;
};

}  // namespace velo::singlecopy
