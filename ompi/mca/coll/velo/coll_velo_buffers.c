/* Buffers: schedules move bytes that lie together. */
#include "coll_velo.h"

#include <stdlib.h>

static int32_t length(const mca_coll_velo_buffer_t *buffer)
{
    size_t size;
    ompi_datatype_type_size(buffer->type, &size);
    return (int32_t) (buffer->count * size);
}

bool mca_coll_velo_prepare(mca_coll_velo_buffer_t *buffer, bool is_read)
{
    buffer->ours = NULL;
    buffer->bytes = buffer->user;
    if (0 == buffer->count) {
        return true;
    }
    if (ompi_datatype_is_contiguous_memory_layout(buffer->type, (int32_t) buffer->count)) {
        ptrdiff_t begin, extent;
        ompi_datatype_get_true_extent(buffer->type, &begin, &extent);
        buffer->bytes = (char *) buffer->user + begin;
        return true;
    }
    const int32_t bytes = length(buffer);
    buffer->bytes = buffer->ours = malloc((size_t) bytes + 1);
    if (NULL == buffer->ours) {
        return false;
    }
    if (is_read) {
        (void) ompi_datatype_sndrcv(buffer->user, (int32_t) buffer->count, buffer->type, buffer->ours, bytes, MPI_BYTE);
    }
    return true;
}

void mca_coll_velo_finish(mca_coll_velo_buffer_t *buffer)
{
    if (OPAL_LIKELY(NULL == buffer->ours)) {
        return;
    }
    if (buffer->is_written) {
        (void) ompi_datatype_sndrcv(buffer->ours, length(buffer), MPI_BYTE, buffer->user, (int32_t) buffer->count,
                                    buffer->type);
    }
    free(buffer->ours);
    buffer->ours = NULL;
}
