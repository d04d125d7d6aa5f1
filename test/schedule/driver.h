// A seeded scheduler: draws the next event of a world, applies it, and checks the invariants.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "patterns.h"
#include "random.h"

namespace velo::schedule {

// An integer from the environment, for longer runs and for the replay of a seed.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : otherwise;
}

// Most schedules are short, so that there are many; quotas travel far only in a long one.
inline std::uint64_t schedule_length(Random& random) {
    return random.chance(1, 6) ? 12000 : 1500;
}

// A Target is a World or a Lockstep of two.
template <class Target>
class Driver {
 public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    Driver(Target& target, Pattern pattern, Random& random)
        : target_(target),
          pattern_(pattern),
          random_(random),
          send_weight_(random.between(1, 6)),
          deliver_weight_(random.between(2, 8)),
          retrieve_weight_(random.between(2, 8)),
          longest_(random.chance(1, 4) ? 40 : 3) {}

    // Check after every n-th event only. 1 at the start.
    void check_every(std::uint64_t events) { check_every_ = events; }
    // Messages of one packet, with room for credits, retrieved as soon as they come.
    void chatty() {
        longest_ = 1;
        always_spare_ = true;
        send_weight_ = 1;
        deliver_weight_ = retrieve_weight_ = 8;
    }
    // This process sends and is sent to, but does not retrieve.
    void never_retrieves(std::uint32_t process) { deaf_ = process; }

    // Processes end at any moment, one event in so many, and others take their places.
    void ends_every(std::uint32_t events) { ends_every_ = events; }

    std::uint64_t events() const { return events_; }
    // Processes that ended, and those that took their places.
    std::uint64_t ends() const { return ends_; }
    std::uint64_t replacements() const { return replacements_; }

    // The first violation, or the empty string after `events` events.
    std::string run(std::uint64_t events) {
        std::uint64_t idle = 0;
        for (std::uint64_t done = 0; done < events;) {
            if (!step()) {
                if (++idle > kPatience) return "the schedule has come to a halt";
                continue;
            }
            idle = 0;
            ++done;
            if (std::string broken = checked(); !broken.empty()) return broken;
        }
        return {};
    }

    // No more sends: retrieves everything, then asks what is left over (I15).
    std::string drain() {
        const std::uint32_t n = target_.processes();
        for (bool moved = true; moved;) {
            moved = false;
            for (std::uint32_t i = 0; i < n * n; ++i) {
                const std::uint32_t from = random_.below(n);
                const std::uint32_t to = random_.below(n);
                if (ends_every_ != 0) bury(to, from);
                if (has_ended(from) && has_ended(to)) continue;
                if (!target_.limited()) target_.poke(from);
                if (from != to && target_.in_channel(from, to) > 0) target_.deliver(from, to);
                if (from != to && target_.doorbell(from, to)) target_.hear(from, to);
                if (from != to && !has_ended(to)) (void)read(from, to, false);
                if (target_.in_mailbox(to) > 0) {
                    std::uint32_t source = 0;
                    target_.retrieve(to, &source);
                } else if (target_.delays(to)) {
                    target_.look(to);
                }
                tell(from);
                ++events_;
                if (std::string broken = checked(); !broken.empty()) return broken;
            }
            moved = !target_.quiet() || somebody_is_unburied();
        }
        if (!target_.limited()) target_.sleep();
        if (!target_.quiet()) return drain();
        if (std::string broken = target_.check(); !broken.empty()) return broken;
        return target_.stranded();
    }

 private:
    std::string checked() { return events_ % check_every_ == 0 ? target_.check() : std::string(); }

    bool step() {
        ++attempts_;
        if (ends_every_ != 0 && come_and_go()) return true;
        const std::uint32_t draw = random_.below(send_weight_ + deliver_weight_ + retrieve_weight_);
        const bool done = draw < send_weight_                     ? try_send()
                          : draw < send_weight_ + deliver_weight_ ? try_deliver()
                                                                  : try_retrieve();
        events_ += done;
        return done;
    }

    bool is_awake(std::uint32_t p) { return awake(pattern_, p, target_.processes(), attempts_, random_); }

    bool try_send() {
        auto [from, to] = next_message(pattern_, target_.processes(), attempts_, random_);
        if (from == to || !is_awake(from) || has_ended(from) || has_ended(to) ||
            target_.backlog(from, to) >= kMaxBacklog)
            return false;
        send(from, to);
        return true;
    }
    void send(std::uint32_t from, std::uint32_t to) {
        target_.send(from, to, random_.between(1, longest_), always_spare_ || random_.chance(3, 4));
    }
    bool try_deliver() {
        const std::uint32_t from = random_.below(target_.processes());
        const std::uint32_t to = random_.below(target_.processes());
        if (from == to) return random_.chance(1, 4) ? rest(from) : tell(from);
        const bool packet = target_.in_channel(from, to) > 0;
        if (target_.doorbell(from, to) && (!packet || random_.chance(1, 2))) {
            if (to == deaf_) return false;
            target_.hear(from, to);
            return true;
        }
        if (packet) target_.deliver(from, to);
        return packet;
    }
    bool try_retrieve() {
        const std::uint32_t p = random_.below(target_.processes());
        if (p == deaf_ || !is_awake(p) || has_ended(p)) return false;
        if constexpr (requires { target_.overdue(p); })
            if (target_.contact_pending(p) && random_.chance(1, 64)) target_.overdue(p);
        if (!target_.limited()) target_.poke(p);
        const std::uint32_t sender = random_.below(target_.processes());
        if (sender != p && (target_.in_mailbox(p) == 0 || random_.chance(1, 2)) && read(sender, p, true))
            return true;
        if (target_.in_mailbox(p) == 0) {
            if (!target_.delays(p)) return false;
            target_.look(p);
            return true;
        }
        std::uint32_t from = 0;
        if (target_.retrieve(p, &from)) answer(from, p);
        return true;
    }
    void answer(std::uint32_t from, std::uint32_t p) {
        if (answers(pattern_, from, p) && !has_ended(from) && target_.backlog(p, from) < kMaxBacklog)
            send(p, from);
    }
    // The next message, or the end, of a batch.
    bool read(std::uint32_t from, std::uint32_t p, bool may_answer) {
        if constexpr (requires { target_.enclosed(from, p); })
            if (target_.enclosed(from, p) > 0) {
                if (target_.read_enclosed(from, p) && may_answer) answer(from, p);
                return true;
            }
        return false;
    }
    // A process that has sent nothing to another for a while closes its batch.
    bool rest(std::uint32_t p) {
        const std::uint32_t to = random_.below(target_.processes());
        if constexpr (requires { target_.rest(p, to); })
            if (to != p && target_.appends(p, to)) return target_.rest(p, to), true;
        return false;
    }

    // A process learns that one of its chunks has been read.
    bool tell(std::uint32_t p) {
        if constexpr (requires { target_.tell(p, 0U); })
            if (const std::uint32_t readers = target_.untold(p); readers > 0)
                return target_.tell(p, random_.below(readers)), true;
        return false;
    }
    bool has_ended(std::uint32_t p) const {
        if constexpr (requires { target_.ended(p); }) return target_.ended(p);
        return false;
    }
    bool bury(std::uint32_t q, std::uint32_t p) {
        if constexpr (requires { target_.may_bury(q, p); })
            if (q != p && target_.may_bury(q, p)) return target_.bury(q, p);
        return false;
    }
    bool somebody_is_unburied() const {
        bool found = false;
        if constexpr (requires { target_.may_bury(0, 0); })
            for (std::uint32_t p = 0; p < target_.processes(); ++p)
                for (std::uint32_t q = 0; q < target_.processes(); ++q)
                    found |= p != q && target_.may_bury(q, p);
        return found;
    }
    // The end of a process, what others do when they notice, and a new one. Two at least live.
    bool come_and_go() {
        if constexpr (requires { target_.end(0U); }) {
            const std::uint32_t p = random_.below(target_.processes());
            const std::uint32_t q = random_.below(target_.processes());
            if (target_.ended(p)) {
                if (random_.chance(1, 8) && target_.may_replace(p)) {
                    target_.replace(p);
                    ++replacements_;
                    return ++events_ > 0;
                }
                return random_.chance(1, 4) && bury(q, p) && ++events_ > 0;
            }
            std::uint32_t living = 0;
            for (std::uint32_t each = 0; each < target_.processes(); ++each) living += !target_.ended(each);
            if (living <= 2 || !random_.chance(1, ends_every_)) return false;
            target_.end(p);
            ++ends_;
            return ++events_ > 0;
        }
        return false;
    }

    static constexpr std::size_t kMaxBacklog = 8;
    static constexpr std::uint64_t kPatience = 1'000'000;  // draws without a possible event

    Target& target_;
    Pattern pattern_;
    Random& random_;
    std::uint32_t send_weight_;
    std::uint32_t deliver_weight_;
    std::uint32_t retrieve_weight_;
    std::uint32_t longest_;  // packets of a message
    bool always_spare_ = false;
    std::uint64_t check_every_ = 1;
    std::uint64_t events_ = 0;
    std::uint64_t attempts_ = 0;  // advances while everybody sleeps
    std::uint32_t deaf_ = kNobody;
    std::uint32_t ends_every_ = 0;  // 0: none does
    std::uint64_t ends_ = 0, replacements_ = 0;
};

}  // namespace velo::schedule
