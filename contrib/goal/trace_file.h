// A run for Perfetto (ui.perfetto.dev) or chrome://tracing: a process for each rank, in it threads, on them
// what took time, and an arrow for each message.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

namespace velo::goal {

class TraceFile {
 public:
    explicit TraceFile(const std::string& path) : path_(path), file_(path) {
        file_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
        if (!file_.flush()) fail();
    }

    struct Where {
        std::uint32_t rank, thread;
    };
    void slice(Where where, std::uint64_t begin_ns, std::uint64_t end_ns, const std::string& name) {
        event('X', where, begin_ns, name) << ",\"dur\":" << us(end_ns - begin_ns) << '}';
    }
    // An end of the arrow `id`, at a slice.
    void leaves(Where where, std::uint64_t ns, const std::string& id) { arrow('s', where, ns, id); }
    void arrives(Where where, std::uint64_t ns, const std::string& id) { arrow('f', where, ns, id); }
    void close() {
        file_ << "\n]}\n";
        if (!file_.flush()) fail();
    }

 private:
    [[noreturn]] void fail() const { throw std::runtime_error("cannot write " + path_); }
    static std::string us(std::uint64_t ns) {
        char text[40];
        std::snprintf(text, sizeof text, "%llu.%03u", static_cast<unsigned long long>(ns / 1000),
                      static_cast<unsigned>(ns % 1000));
        return text;
    }
    void arrow(char phase, Where where, std::uint64_t ns, const std::string& id) {
        event(phase, where, ns, "message") << ",\"cat\":\"message\",\"bp\":\"e\",\"id\":\"" << id << "\"}";
    }
    std::ostream& event(char phase, Where where, std::uint64_t ns, const std::string& name) {
        file_ << (first_ ? "\n" : ",\n") << "{\"ph\":\"" << phase << "\",\"pid\":" << where.rank
              << ",\"tid\":" << where.thread << ",\"ts\":" << us(ns) << ",\"name\":\"" << name << '"';
        first_ = false;
        return file_;
    }

    std::string path_;
    std::ofstream file_;
    bool first_ = true;
};

}  // namespace velo::goal
