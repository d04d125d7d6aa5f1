#include "collectives/board/backed_places.h"

namespace velo::board {

bool BackedPlaces::back(const Stores& what, std::uint32_t kinds) {
    const std::uint32_t end = what.writers == Writers::kAllAndResult
                                  ? static_cast<std::uint32_t>(backed_.size())
                                  : board_.members();
    for (std::uint32_t writer = 0; writer < end; ++writer) {
        const bool is_root = writer == what.root;
        if ((what.writers == Writers::kRoot && !is_root) || (what.writers == Writers::kAllButRoot && is_root))
            continue;
        std::uint32_t& backed = backed_[writer];
        if ((backed & kinds) == kinds) continue;
        if (!store_->back(board_, writer, kinds)) return false;
        backed |= kinds;
    }
    if (end == backed_.size() && what.writers >= Writers::kAll) everywhere_ |= kinds;
    return true;
}

}  // namespace velo::board
