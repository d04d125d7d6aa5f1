// What the receives of a peer have announced: one for each of its cells at most (rma/share.h),
// whatever it says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "matching/key.h"
#include "rma/share.h"

namespace velo::messaging {

struct Announcement {
    matching::Key key;
    std::uint64_t address, bytes;
    std::uint32_t ticket;  // rma/share.h
    bool when_idle;
};

class Announcements {
 public:
    // Instead of what had that cell, or that key, before: it is over.
    void put(const Announcement& announcement) {
        std::erase_if(list_, [&](const Announcement& old) {
            return old.key == announcement.key ||
                   rma::cell_of(old.ticket) == rma::cell_of(announcement.ticket);
        });
        list_.push_back(announcement);
    }
    // The one that a message is for.
    std::optional<Announcement> take(const matching::Key& key, std::uint64_t bytes) {
        for (Announcement& announcement : list_) {
            if (announcement.key != key) continue;
            const Announcement taken = announcement;
            announcement = list_.back();
            list_.pop_back();
            if (taken.bytes == bytes) return taken;
            break;
        }
        return std::nullopt;
    }
    std::size_t size() const { return list_.size(); }

 private:
    std::vector<Announcement> list_;
};

}  // namespace velo::messaging
