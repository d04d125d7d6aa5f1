#include "collectives/board/store.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "platform/failure.h"
#include "platform/monotonic.h"
#include "platform/ticks.h"

namespace velo::board {
namespace {

// The header, the places, which have memory as far as they are in use, and the boards.
constexpr std::size_t kPage = 4096, kPlacesAt = kPage,
                      kBoardsAt = kPlacesAt + StoreHeader::kPlaces * sizeof(Place), kMostRoom = 1U << 30;
constexpr std::uint32_t kInPage = kPage / sizeof(Place);
static_assert(sizeof(StoreHeader) <= kPage);

constexpr std::size_t in_pages(std::size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

// Held for a microsecond, or while a new board gets its memory.
class Locked {
 public:
    explicit Locked(std::atomic<std::uint32_t>* lock) : lock_(lock) {
        Patience patience(kPatienceNs);
        // acquire, release: what its last holder has written is there.
        for (std::uint32_t look = 1; lock_->exchange(1, std::memory_order_acquire) != 0; ++look) {
            if (look % kLooks != 0) {
                platform::relax();
                continue;
            }
            (void)sched_yield();
            if (patience.is_over(platform::monotonic_ns()))
                throw Failure(
                    VELO_ERR_RESOURCE,
                    "another process has held a store of boards for 20 s: it has been stopped or killed");
        }
    }
    Locked(const Locked&) = delete;
    ~Locked() { lock_->store(0, std::memory_order_release); }

 private:
    static constexpr std::uint32_t kLooks = 32;
    static constexpr std::uint64_t kPatienceNs = 20'000'000'000;

    std::atomic<std::uint32_t>* lock_;
};

[[noreturn]] void refuse_words(const char* what) {
    throw Failure(VELO_ERR_PROTOCOL,
                  std::string("a store of boards has ") + what + " that no correct process writes there");
}

}  // namespace

Store Store::create(const std::string& directory, std::uint32_t most, const Shape& shape) {
    if (!shape.plausible()) refuse_shape();
    const std::size_t one = in_pages(Offsets::of(shape).end);
    const std::size_t boards = std::clamp<std::size_t>(most, 1, std::max<std::size_t>(kMostRoom / one, 1));
    Store store(platform::SharedFile::create(directory, kBoardsAt + boards * one, 0));
    store.file_.provide(0, kPlacesAt + kPage);
    new (store.file_.data()) StoreHeader{};
    StoreHeader& all = store.header();
    all.magic = StoreHeader::kMagic;
    all.most = most;
    all.end = kBoardsAt;
    return store;
}

Store Store::open(const platform::FileAddress& address) {
    if (address.bytes < kBoardsAt) refuse();
    Store store(platform::SharedFile::open(address, 0));
    if (store.header().magic != StoreHeader::kMagic) refuse();
    return store;
}

Place* Store::places() {
    return reinterpret_cast<Place*>(file_.data() + kPlacesAt);
}

// What others have written says where this process writes: nowhere but among the boards.
std::uint64_t Store::end() {
    const std::uint64_t end = header().end;
    if (end < kBoardsAt || end > file_.bytes() || end % kPage != 0) refuse_words("an end");
    return end;
}

std::span<std::byte> Store::memory_of(const Place& place, const Shape& shape) {
    const std::uint64_t offset = place.offset, bytes = place.bytes, end = this->end();
    if (offset < kBoardsAt || offset % kPage != 0 || bytes > end || offset > end - bytes ||
        bytes < Offsets::of(shape).end)
        refuse_words("a place of a board");
    return {file_.data() + offset, bytes};
}

// The first one; null: there is none.
template <typename Wanted>
Place* Store::find(Wanted wanted) {
    const std::uint32_t used = header().used;
    if (used > StoreHeader::kPlaces) refuse_words("a number of places");
    Place* const end = places() + used;
    Place* const found = std::find_if(places(), end, wanted);
    return found == end ? nullptr : found;
}

// Null: there is none, and no memory for more. From then on nobody makes a board here: who comes to a board
// later than others would else find place for what they have been refused.
Place* Store::free_place() {
    StoreHeader& all = header();
    if (Place* free = find([](const Place& place) { return place.state == Place::kNone; })) return free;
    const bool is_in_page = all.used % kInPage != 0 || all.used == 0;
    if (all.used >= StoreHeader::kPlaces ||
        (!is_in_page && !provide({reinterpret_cast<std::byte*>(places() + all.used), kPage}))) {
        all.is_closed = 1;
        return nullptr;
    }
    return &places()[all.used++];
}

// One for a board of that shape, laid out; null: there is no memory for it.
Place* Store::with_memory(const Shape& shape) {
    StoreHeader& all = header();
    const std::size_t bytes = in_pages(Offsets::of(shape).end);
    if (all.taken >= all.most) return nullptr;
    if (Place* same = find(
            [&](const Place& place) { return place.state == Place::kResting && place.shape == shape; })) {
        lay_out_again(memory_of(*same, shape).data(), shape);
        return same;
    }
    const std::uint64_t end = this->end();
    if (bytes <= file_.bytes() - end) {
        Place* const fresh = free_place();
        if (fresh == nullptr || !provide({file_.data() + end, Offsets::of(shape).chunks})) return nullptr;
        fresh->offset = end;
        fresh->bytes = bytes;
        all.end = end + bytes;
        lay_out(file_.data() + end, shape);
        return fresh;
    }
    Place* const other =
        find([&](const Place& place) { return place.state == Place::kResting && place.bytes >= bytes; });
    if (other != nullptr) {
        std::byte* const memory = memory_of(*other, shape).data();
        if (!provide({memory, Offsets::of(shape).chunks})) return nullptr;
        std::memset(memory, 0, Offsets::of(shape).chunks);
        lay_out(memory, shape);
    }
    return other;
}

// Null: it has none.
Place* Store::begin(const Key& key, const Shape& shape) {
    Place* const place = with_memory(shape);
    if (place == nullptr) return refuse_board(key, shape);
    place->key = key;
    place->shape = shape;
    place->state = Place::kTaken;
    place->left = 0;
    ++header().taken;
    return place;
}

// Where there are as many boards as there may be, a communicator's next ones are refused one after the other,
// as many as its program likes: they share a place, which is short to look for.
Place* Store::refuse_board(const Key& key, const Shape& shape) {
    if (Place* before = find([&](const Place& place) {
            return key.number > 0 && place.refuses({key.members, key.number - 1});
        });
        before != nullptr && before->more < UINT32_MAX) {
        ++before->more;
        return before;
    }
    Place* const place = free_place();
    if (place == nullptr) return nullptr;
    place->key = key;
    place->shape = shape;
    place->state = Place::kRefused;
    place->more = 0;
    place->left = 0;
    return place;
}

Store::Taken Store::take(const Key& key, const Shape& shape) {
    if (!shape.plausible()) refuse_shape();
    const Locked locked(&header().lock);
    Place* place = find([&](const Place& place) {
        return (place.state == Place::kTaken && place.key == key) || place.refuses(key);
    });
    if (place == nullptr && header().is_closed == 0) place = begin(key, shape);
    if (place == nullptr) return {kNowhere, {}};
    const auto index = static_cast<std::uint32_t>(place - places());
    if (place->state == Place::kRefused) return {index, {}};
    if (place->shape != shape) refuse();
    return {index, memory_of(*place, shape)};
}

bool Store::provide(std::span<std::byte> memory) {
    try {
        file_.provide(static_cast<std::size_t>(memory.data() - file_.data()), memory.size());
        return true;
    } catch (const Failure&) {
        return false;
    }
}

bool Store::back(const Board& board, std::uint32_t writer, std::uint32_t kinds) {
    std::atomic<std::uint32_t>& word = board.backing_of(writer);
    const auto undecided = [&] { return kinds & ~Backing::decided(word.load(std::memory_order_acquire)); };
    if (undecided() != 0) {
        const Locked locked(&header().lock);
        for (const std::uint32_t kind : {Backing::kSlips, Backing::kChunks})
            if ((undecided() & kind) != 0) {
                const bool granted = provide(board.places_of(writer, kind));
                // release: who finds this finds the memory.
                word.fetch_or(granted ? kind : kind << Backing::kRefused, std::memory_order_release);
            }
    }
    return (kinds & ~Backing::granted(word.load(std::memory_order_relaxed))) == 0;
}

void Store::leave(std::uint32_t index) {
    if (index == kNowhere) return;
    StoreHeader& all = header();
    const Locked locked(&all.lock);
    Place& place = places()[index];
    const std::uint64_t boards = place.state == Place::kRefused ? std::uint64_t{place.more} + 1 : 1;
    const std::uint64_t times = boards * place.shape.members;
    if (place.left >= times) refuse_words("a number of members");
    if (++place.left < times) return;
    if (place.state == Place::kTaken) --all.taken;
    place.state = place.bytes > 0 ? Place::kResting : Place::kNone;
}

}  // namespace velo::board
