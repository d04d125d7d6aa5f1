// A directory for traces, and what is in a trace file.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trace/recorder.h"

namespace velo::test {

class TraceDirectory {
 public:
    TraceDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "velo-trace-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TraceDirectory() { std::filesystem::remove_all(path_); }
    TraceDirectory(const TraceDirectory&) = delete;
    TraceDirectory& operator=(const TraceDirectory&) = delete;

    const std::string& path() const { return path_; }

 private:
    std::string path_;
};

struct TraceFile {
    trace::FileHeader header{};
    std::vector<trace::Record> records;
    std::size_t bytes = 0;

    std::vector<trace::Record> of(trace::Kind kind) const {
        std::vector<trace::Record> found;
        for (const auto& record : records) {
            if (record.kind == kind) found.push_back(record);
        }
        return found;
    }
};

inline TraceFile read_trace(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    EXPECT_TRUE(stream) << path;
    std::string data{std::istreambuf_iterator<char>(stream), {}};
    TraceFile file;
    file.bytes = data.size();
    EXPECT_GE(data.size(), sizeof file.header);
    if (data.size() < sizeof file.header) return file;
    std::memcpy(&file.header, data.data(), sizeof file.header);
    std::size_t count = (data.size() - sizeof file.header) / sizeof(trace::Record);
    file.records.resize(count);
    if (count > 0)
        std::memcpy(file.records.data(), data.data() + sizeof file.header, count * sizeof(trace::Record));
    return file;
}

}  // namespace velo::test
