#include "trace/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::trace {
namespace {

bool is_directory(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// At least one record and kLimit fit.
std::uint64_t records_within(std::uint64_t limit_bytes) {
    if (limit_bytes == 0) return UINT64_MAX;
    std::uint64_t room = limit_bytes < sizeof(FileHeader) ? 0 : limit_bytes - sizeof(FileHeader);
    return std::max<std::uint64_t>(room / sizeof(Record), 2);
}

}  // namespace

std::string file_name(const std::string& where, std::uint64_t process_name) {
    std::string prefix = is_directory(where) ? where + "/velo" : where;
    return prefix + "." + std::to_string(process_name >> 32) + "." +
           std::to_string(process_name & 0xffffffff) + ".vtrace";
}

Recorder::Recorder(const Destination& destination, FileHeader header)
    : path_(file_name(destination.where, header.process_name)),
      limit_records_(records_within(destination.limit_bytes)),
      buffer_(std::make_unique<Record[]>(kBufferedRecords)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_trace is \"" + destination.where + "\": cannot create " +
                                              path_ + " (" + std::strerror(errno) +
                                              "); it must be a writable directory or the beginning of a "
                                              "path in one");
    }
    std::memcpy(header.magic, kMagic, sizeof header.magic);
    header.version = kVersion;
    header.header_bytes = sizeof header;
    header.record_bytes = sizeof(Record);
    header.byte_order = kByteOrder;
    header.pid = static_cast<std::uint32_t>(getpid());
    gethostname(header.host, sizeof header.host - 1);
    header.realtime_ns = platform::clock_ns(CLOCK_REALTIME);
    header.monotonic_ns = flushed_ns_ = platform::monotonic_ns();
    if (!write_all(&header, sizeof header)) {
        throw Failure(VELO_ERR_RESOURCE,
                      "btl_velo_trace: cannot write " + path_ + " (" + std::strerror(errno) + ")");
    }
}

Recorder::~Recorder() {
    if (file_ < 0) return;
    add(Kind::kEnd, kNone, 0, kNone, kNone, 0);
    flush();
    if (file_ >= 0) close(file_);
}

void Recorder::add(Kind kind, std::uint32_t peer, std::uint32_t count, std::uint32_t credits,
                   std::uint32_t held, std::uint32_t extra) {
    if (file_ < 0) return;
    bool last = ++records_ == limit_records_;
    if (last) {
        kind = Kind::kLimit;
        peer = credits = held = kNone;
        count = extra = 0;
    }
    buffer_[used_++] = {platform::monotonic_ns(), kind, 0, peer, count, credits, held, extra};
    if (used_ == kBufferedRecords || last) flush();
    if (last) stop(0);
}

void Recorder::flush() {
    if (file_ < 0) return;
    flushed_ns_ = platform::monotonic_ns();
    std::size_t bytes = std::exchange(used_, 0) * sizeof(Record);
    if (!write_all(buffer_.get(), bytes)) stop(errno);
}

std::string Recorder::take_complaint() {
    if (!std::exchange(complains_, false)) return {};
    return "btl_velo_trace: " +
           (error_ == 0 ? path_ + " is as long as btl_velo_trace_limit allows"
                        : "cannot write " + path_ + " (" + std::strerror(error_) + ")") +
           "; nothing is recorded from here on";
}

bool Recorder::write_all(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes > 0) {
        ssize_t written = write(file_, from, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        from += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

void Recorder::stop(int error) {
    if (file_ < 0) return;
    close(file_);
    file_ = -1;
    error_ = error;
    complains_ = true;
}

}  // namespace velo::trace
