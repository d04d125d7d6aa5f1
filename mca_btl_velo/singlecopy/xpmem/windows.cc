#include "singlecopy/xpmem/windows.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace velo::singlecopy {

std::uint64_t page_bytes() {
    static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

Windows::~Windows() {
    for (const Window& window : windows_) library_.detach(window.data);
}

Windows::Pin Windows::pin(std::uint64_t address, std::size_t bytes) {
    const std::uint64_t number = address / kWindowBytes, offset = address % kWindowBytes;
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kWindowBytes - offset));
    std::lock_guard lock(mutex_);
    Window* window = find(number);
    if (window == nullptr) window = keep(number);
    if (window == nullptr) return attach_in_passing(address, bytes);
    ++window->pins;
    window->used = ++uses_;
    return {window->data + offset, bytes, 0, number, nullptr};
}

void Windows::unpin(const Pin& pin) {
    std::lock_guard lock(mutex_);
    if (pin.passing != nullptr) {
        library_.detach(pin.passing);
    } else {
        --find(pin.window)->pins;
    }
}

Windows::Window* Windows::find(std::uint64_t number) {
    auto found = std::find_if(windows_.begin(), windows_.end(),
                              [=](const Window& window) { return window.number == number; });
    return found == windows_.end() ? nullptr : &*found;
}

// nullptr: all windows are in use, or the kernel does not attach this one as a whole.
Windows::Window* Windows::keep(std::uint64_t number) {
    if (!make_room()) return nullptr;
    void* data = library_.attach(permit_, number * kWindowBytes, kWindowBytes);
    if (data == nullptr) return nullptr;
    return &windows_.emplace_back(Window{number, static_cast<std::byte*>(data), 0, 0});
}

bool Windows::make_room() {
    if (windows_.size() < kMostWindows) return true;
    auto oldest = windows_.end();
    for (auto window = windows_.begin(); window != windows_.end(); ++window) {
        if (window->pins == 0 && (oldest == windows_.end() || window->used < oldest->used)) oldest = window;
    }
    if (oldest == windows_.end()) return false;
    library_.detach(oldest->data);
    windows_.erase(oldest);
    return true;
}

// The pages of one transfer and no more. So are reached, too, the windows that the kernel refuses as a whole:
// the last one of an address space ends beyond it.
Windows::Pin Windows::attach_in_passing(std::uint64_t address, std::size_t bytes) {
    const std::uint64_t page = page_bytes();
    const std::uint64_t start = address / page * page;
    const std::uint64_t end = (address + bytes + page - 1) / page * page;
    void* data = library_.attach(permit_, start, static_cast<std::size_t>(end - start));
    Pin pin;
    if (data == nullptr) {
        pin.error = errno != 0 ? errno : EFAULT;
        return pin;
    }
    pin.data = static_cast<std::byte*>(data) + (address - start);
    pin.bytes = bytes;
    pin.passing = data;
    return pin;
}

}  // namespace velo::singlecopy
