// Two worlds that take the same events: after each of them, both must have sent the same packets in the same
// order.
#pragma once

#include <cstdint>
#include <string>

#include "world.h"

namespace velo::schedule {

template <class First, class Second>
class Lockstep {
 public:
    Lockstep(First& first, Second& second) : first_(first), second_(second) {}

    std::uint32_t processes() const { return first_.processes(); }
    bool limited() const { return first_.limited(); }
    std::size_t in_channel(std::uint32_t from, std::uint32_t to) const { return first_.in_channel(from, to); }
    bool doorbell(std::uint32_t, std::uint32_t) const { return false; }
    void hear(std::uint32_t, std::uint32_t) {}
    bool delays(std::uint32_t) const { return false; }
    void look(std::uint32_t) {}
    std::size_t in_mailbox(std::uint32_t p) const { return first_.in_mailbox(p); }
    std::size_t backlog(std::uint32_t p, std::uint32_t to) const { return first_.backlog(p, to); }
    bool quiet() const { return first_.quiet() && second_.quiet(); }

    void send(std::uint32_t from, std::uint32_t to, std::uint32_t count, bool spare) {
        first_.send(from, to, count, spare);
        second_.send(from, to, count, spare);
        compare();
    }
    void deliver(std::uint32_t from, std::uint32_t to) {
        first_.deliver(from, to);
        second_.deliver(from, to);
    }
    bool retrieve(std::uint32_t p, std::uint32_t* from) {
        const bool data = first_.retrieve(p, from);
        second_.retrieve(p, from);
        compare();
        return data;
    }
    void poke(std::uint32_t p) {
        first_.poke(p);
        second_.poke(p);
        compare();
    }

    void sleep() {
        first_.sleep();
        second_.sleep();
    }

    std::string check() const {
        if (!difference_.empty()) return difference_;
        if (std::string broken = first_.check(); !broken.empty()) return "first world: " + broken;
        if (std::string broken = second_.check(); !broken.empty()) return "second world: " + broken;
        return {};
    }
    std::string stranded() const { return first_.stranded() + second_.stranded(); }
    std::uint64_t compared() const { return compared_; }

 private:
    void compare() {
        compared_ += first_.emissions().size();
        if (!difference_.empty() || first_.emissions() == second_.emissions()) return;
        difference_ = "the worlds differ:";
        for (const Emission& e : first_.emissions()) difference_ += " " + to_string(e);
        difference_ += " as against";
        for (const Emission& e : second_.emissions()) difference_ += " " + to_string(e);
    }

    First& first_;
    Second& second_;
    std::uint64_t compared_ = 0;
    std::string difference_;
};

}  // namespace velo::schedule
