/* Pointers by the places that the engine gives to peers, which count from 0. A process adds one for each of its peers, so that
 * neither adding nor looking up may take longer with more of them. Knows nothing of Open MPI. */
#ifndef MCA_BTL_VELO_PLACES_H
#define MCA_BTL_VELO_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The place of this process, which is no peer of its own. */
#define MCA_BTL_VELO_OWN_PLACE UINT32_MAX

typedef struct mca_btl_velo_places_t {
    void **entries; /* the first one is that of this process */
    uint32_t count;
} mca_btl_velo_places_t;

/* NULL if there is none. */
static inline void *mca_btl_velo_places_find(const mca_btl_velo_places_t *places, uint32_t place)
{
    const uint32_t index = place + 1; /* 0: MCA_BTL_VELO_OWN_PLACE */
    return index < places->count ? places->entries[index] : NULL;
}

/* NULL takes an entry away. False: out of memory. */
static inline bool mca_btl_velo_places_set(mca_btl_velo_places_t *places, uint32_t place, void *entry)
{
    const uint32_t index = place + 1;
    if (index >= places->count) {
        uint64_t count = 0 == places->count ? 16 : 2 * (uint64_t) places->count;
        while (count <= index) {
            count *= 2;
        }
        if (count > UINT32_MAX) {
            return false;
        }
        void **entries = (void **) realloc(places->entries, (size_t) count * sizeof(*entries));
        if (NULL == entries) {
            return false;
        }
        memset(entries + places->count, 0, (size_t) (count - places->count) * sizeof(*entries));
        places->entries = entries;
        places->count = (uint32_t) count;
    }
    places->entries[index] = entry;
    return true;
}

static inline void mca_btl_velo_places_clear(mca_btl_velo_places_t *places)
{
    free(places->entries);
    places->entries = NULL;
    places->count = 0;
}

#endif
