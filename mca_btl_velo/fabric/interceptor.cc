#include "fabric/interceptor.h"

#ifdef VELO_CHECKED

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "platform/failure.h"

namespace velo::fabric {
namespace {

struct Rates {
    double drop_out = 0, delay_out = 0, refuse_out = 0, drop_in = 0, delay_in = 0;
};

constexpr std::array<std::pair<const char*, double Rates::*>, 5> kRates{{{"drop_out", &Rates::drop_out},
                                                                         {"delay_out", &Rates::delay_out},
                                                                         {"refuse_out", &Rates::refuse_out},
                                                                         {"drop_in", &Rates::drop_in},
                                                                         {"delay_in", &Rates::delay_in}}};

[[noreturn]] void object(const std::string& setting) {
    throw Failure(VELO_ERR_PARAMETER,
                  "VELO_INTERCEPT: \"" + setting +
                      "\" is none of seed=N, drop_out=R, delay_out=R, refuse_out=R, drop_in=R, delay_in=R "
                      "with R from 0 to 1");
}

std::size_t bytes_carried(const Burst& burst) {
    const std::size_t rest = burst.message.total() - burst.offset;
    const std::uint32_t run = burst.framing.run_packets(rest);
    std::size_t done = 0;
    for (std::uint32_t left = burst.packets; left > 0;) {
        const std::size_t bytes = std::min(wire::run_capacity(std::min(run, left)), rest - done);
        left -= wire::packets_in_run(bytes);
        done += bytes;
    }
    return done;
}

}  // namespace

struct Interceptor::Faults {
    explicit Faults(std::string text) {
        std::uint64_t seed = 0;
        while (!text.empty()) {
            const std::size_t comma = std::min(text.find(','), text.size());
            set(text.substr(0, comma), &seed);
            text.erase(0, comma + 1);
        }
        random.seed(seed);
    }

    void set(const std::string& setting, std::uint64_t* seed) {
        const std::size_t equals = setting.find('=');
        if (equals == std::string::npos) object(setting);
        const std::string name = setting.substr(0, equals);
        const char* value = setting.c_str() + equals + 1;
        char* end = nullptr;
        if (name == "seed") {
            *seed = std::strtoull(value, &end, 10);
        } else {
            const auto* known = std::find_if(kRates.begin(), kRates.end(),
                                             [&](const auto& rate) { return name == rate.first; });
            if (known == kRates.end()) object(setting);
            const double rate = rates.*known->second = std::strtod(value, &end);
            if (!(rate >= 0 && rate <= 1)) object(setting);
        }
        if (end == value || *end != '\0') object(setting);
    }
    bool happens(double rate) { return std::bernoulli_distribution(rate)(random); }
    // The look after which something leaves that is delayed at this one.
    std::uint64_t later() { return looks + 1 + random() % kMostLooks; }

    Rates rates;
    std::mt19937_64 random;
    std::uint64_t looks = 0, held_until = 0;
    std::uint64_t dropped = 0, delayed = 0, refused = 0;
    std::vector<FaultyLink*> links;
};

class Interceptor::FaultyLink final : public Link {
 public:
    FaultyLink(std::shared_ptr<Faults> faults, std::unique_ptr<Link> inner)
        : faults_(std::move(faults)), inner_(std::move(inner)) {
        faults_->links.push_back(this);
    }
    ~FaultyLink() override { std::erase(faults_->links, this); }

    Carried carry(const Burst& burst) override {
        if (!burst.granted && refuses()) return {0, 0};
        if (drops()) return {burst.packets, bytes_carried(burst)};
        if (!delays()) return inner_->carry(burst);
        // It may find room for a part of them only.
        if (!burst.granted && burst.packets > 1) {
            ++faults_->refused;
            return {0, 0};
        }
        std::vector<std::byte> data(burst.message.total());
        burst.message.copy_to(data.data(), 0, data.size());
        hold([this, burst, data = std::move(data)] {
            Burst held = burst;
            held.message = {{data.data(), nullptr}, {data.size(), 0}};
            held.stays = false;
            return inner_->carry(held).packets > 0;
        });
        return {burst.packets, bytes_carried(burst)};
    }
    bool carry_packet(const MessageView& message, std::uint8_t tag, std::uint32_t piggyback, bool granted,
                      bool rested) override {
        const Burst burst{.message = message,
                          .offset = 0,
                          .packets = 1,
                          .kind = wire::PacketKind::kData,
                          .tag = tag,
                          .flags = 0,
                          .piggyback = piggyback,
                          .granted = granted,
                          .whole = true,
                          .rested = rested,
                          .stays = false,
                          .framing = wire::kClassicFraming};
        return carry(burst).packets > 0;
    }
    // A place in the mailbox that is taken must be filled: what befalls the REF is decided before.
    bool begin_reference(bool granted) override {
        if (!granted && refuses()) return false;
        reference_ = {granted, drops()};
        if (!reference_.dropped) reference_.delayed = delays();
        return reference_.dropped || reference_.delayed || inner_->begin_reference(granted);
    }
    void carry_reference(const Referred& what) override {
        if (reference_.dropped) return;
        if (!reference_.delayed) return inner_->carry_reference(what);
        hold([this, what, granted = reference_.granted] {
            if (!inner_->begin_reference(granted)) return false;
            inner_->carry_reference(what);
            return true;
        });
    }
    void prepare(std::uint32_t) override {}
    bool holds_some() const override { return inner_->holds_some(); }
    void carry_control(wire::PacketKind kind, std::uint32_t value) override {
        if (drops()) return;
        if (!delays()) return inner_->carry_control(kind, value);
        hold([this, kind, value] {
            inner_->carry_control(kind, value);
            return true;
        });
    }

    // What is due by then leaves.
    void look(std::uint64_t looks) {
        while (!held_.empty() && held_.front().due <= looks && held_.front().leave()) held_.pop_front();
    }

 private:
    struct Held {
        std::uint64_t due;
        std::function<bool()> leave;  // false: the fabric is full
    };

    void hold(std::function<bool()> leave) { held_.push_back({faults_->later(), std::move(leave)}); }
    bool refuses() {
        const bool happens = faults_->happens(faults_->rates.refuse_out);
        faults_->refused += happens;
        return happens;
    }

    bool drops() {
        const bool happens = faults_->happens(faults_->rates.drop_out);
        faults_->dropped += happens;
        return happens;
    }
    // In order: whatever follows something that is delayed waits, too.
    bool delays() {
        const bool happens = !held_.empty() || faults_->happens(faults_->rates.delay_out);
        faults_->delayed += happens;
        return happens;
    }

    struct {
        bool granted = false, dropped = false, delayed = false;
    } reference_;  // that has begun
    std::shared_ptr<Faults> faults_;
    std::unique_ptr<Link> inner_;
    std::deque<Held> held_;
};

Interceptor::Interceptor() {
    const char* text = std::getenv("VELO_INTERCEPT");
    if (text != nullptr && *text != '\0') faults_ = std::make_shared<Faults>(text);
}

Interceptor::~Interceptor() {
    if (!active()) return;
    for (FaultyLink* link : faults_->links) link->look(UINT64_MAX);
}

std::unique_ptr<Link> Interceptor::on(std::unique_ptr<Link> link) {
    if (!active()) return link;
    return std::make_unique<FaultyLink>(faults_, std::move(link));
}

Interceptor::Fate Interceptor::arriving() {
    Faults& faults = *faults_;
    if (faults.looks < faults.held_until) return Fate::kHold;
    if (faults.happens(faults.rates.delay_in)) {
        ++faults.delayed;
        faults.held_until = faults.later();
        return Fate::kHold;
    }
    if (!faults.happens(faults.rates.drop_in)) return Fate::kPass;
    ++faults.dropped;
    return Fate::kDrop;
}

void Interceptor::look() {
    if (!active()) return;
    ++faults_->looks;
    for (FaultyLink* link : faults_->links) link->look(faults_->looks);
}

std::string Interceptor::text() const {
    return std::to_string(faults_->dropped) + " dropped, " + std::to_string(faults_->delayed) + " delayed, " +
           std::to_string(faults_->refused) + " refused";
}

}  // namespace velo::fabric

#endif
