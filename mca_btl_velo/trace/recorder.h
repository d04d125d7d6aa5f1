// Writes one trace file. Memory is bounded by the buffer; the file by its limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trace/format.h"

namespace velo::trace {

struct Destination {
    std::string where;          // an existing directory, or the beginning of a path
    std::uint64_t limit_bytes;  // of the file; 0: none
};

// The file of a process at that destination.
std::string file_name(const std::string& where, std::uint64_t process_name);

class Recorder {
 public:
    static constexpr std::size_t kBufferedRecords = 8192;

    // Creates the file, replacing one of that name, and writes the header, whose constant and time fields it
    // fills in. Throws Failure.
    Recorder(const Destination& destination, FileHeader header);
    // Writes what is buffered, and kEnd.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void add(Kind kind, std::uint32_t peer, std::uint32_t count, std::uint32_t credits, std::uint32_t held,
             std::uint32_t extra);
    void flush();
    // Monotonic time of the last flush.
    std::uint64_t flushed_ns() const { return flushed_ns_; }
    // Why nothing is recorded any more, once; empty otherwise.
    std::string take_complaint();

 private:
    bool write_all(const void* data, std::size_t bytes);
    // `error`: an errno, 0 at the limit.
    void stop(int error);

    std::string path_;
    int file_ = -1;  // -1: nothing is recorded any more
    std::uint64_t limit_records_;
    std::uint64_t records_ = 0;  // written or buffered
    std::uint64_t flushed_ns_ = 0;
    std::size_t used_ = 0;
    std::unique_ptr<Record[]> buffer_;
    int error_ = 0;  // why it stopped
    bool complains_ = false;
};

}  // namespace velo::trace
