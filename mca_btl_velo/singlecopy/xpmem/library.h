// What Velo uses of libxpmem. An interface, because the kernel module is rare: the tests put another
// implementation in its place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::singlecopy {

class XpmemLibrary {
 public:
    virtual ~XpmemLibrary() = default;
    // All set errno where they fail.

    // Lets processes of the same user attach any part of this process's memory. -1: failed.
    virtual std::int64_t make() = 0;
    virtual void remove(std::int64_t segment) = 0;
    // A permit to attach memory of the segment, for reading and writing. -1: failed.
    virtual std::int64_t get(std::int64_t segment) = 0;
    virtual void release(std::int64_t permit) = 0;
    // Maps the owner's [address, address + bytes), whole pages, here. nullptr: failed. Pages that the owner
    // has not mapped may lie between; touching one of them is a SIGBUS.
    virtual void* attach(std::int64_t permit, std::uint64_t address, std::size_t bytes) = 0;
    virtual void detach(void* attached) = 0;
};

// nullptr: this Velo was built without XPMEM.
XpmemLibrary* xpmem_library();

}  // namespace velo::singlecopy
