#include "singlecopy/mechanisms.h"

#include <cerrno>
#include <system_error>

#include "platform/failure.h"
#include "platform/process_identity.h"
#include "singlecopy/xpmem/xpmem.h"

namespace velo::singlecopy {
namespace {

constexpr const char* kParameter = "btl_velo_single_copy_mechanism is ";

std::string text_of(int error) {
    return std::generic_category().message(error);
}

}  // namespace

std::unique_ptr<RemoteMemory> Mechanism::reach(const RemoteProcess& process, int* error) const {
    std::unique_ptr<RemoteMemory> memory = open(process, error);
    if (memory == nullptr) return nullptr;
    std::uint64_t value = 0;
    *error = memory->read(&value, process.probe, sizeof value);
    if (*error == 0 && value != process.cookie) *error = ESRCH;
    if (*error != 0) return nullptr;
    return memory;
}

Mechanisms::Mechanisms(std::string_view choice) : choice_(choice) {
    if (choice == "copy") return;
    if (choice != "cma") add_xpmem();
    if (choice != "xpmem") add_cma();
}

void Mechanisms::add_cma() {
    if (!cma_is_deadly()) return candidates_.push_back(make_cma());
    if (choice_ == "auto") return;
    throw Failure(VELO_ERR_PARAMETER, kParameter + choice_ +
                                          ", but a seccomp filter kills who calls process_vm_readv or "
                                          "process_vm_writev; set it to auto or copy");
}

void Mechanisms::add_xpmem() {
    XpmemLibrary* library = xpmem_library();
    int error = 0;
    auto xpmem = library == nullptr ? nullptr : Xpmem::make(*library, &error);
    if (xpmem != nullptr) {
        xpmem_segment_ = xpmem->segment();
        candidates_.push_back(std::move(xpmem));
        return;
    }
    if (choice_ == "auto") return;
    std::string reason =
        library == nullptr ? "this Velo was built without XPMEM (its configure tells why; --with-xpmem=DIR)"
                           : "this process cannot make its memory attachable (xpmem_make: " + text_of(error) +
                                 "; is the kernel module xpmem loaded, and may this user open /dev/xpmem?)";
    throw Failure(VELO_ERR_PARAMETER,
                  kParameter + choice_ + ", but " + reason + "; set it to auto, cma or copy");
}

std::unique_ptr<RemoteMemory> Mechanisms::reach(const RemoteProcess& process) const {
    int error = 0;
    for (const auto& mechanism : candidates_) {
        if (auto memory = mechanism->reach(process, &error)) return memory;
    }
    if (!forced()) return nullptr;
    throw Failure(VELO_ERR_PARAMETER,
                  kParameter + choice_ +
                      ", but the kernel does not let this process read the memory of process " +
                      std::to_string(process.pid) + " on " + platform::host_name() + " (" +
                      std::string(candidates_.front()->obstacles()) + "; " + text_of(error) +
                      "); set it to auto or copy");
}

std::string Mechanisms::description() const {
    if (choice_ != "auto") return choice_;
    std::string names;
    for (const auto& mechanism : candidates_) {
        names += (names.empty() ? "" : ", ") + std::string(mechanism->name());
    }
    return choice_ + " (" + names + (names.empty() ? "" : " ") + "where the peer permits it)";
}

}  // namespace velo::singlecopy
