/* Buffers: schedules move contiguous bytes. If a part of a buffer is not contiguous, the whole buffer is packed into
 * memory of ours. */
#include "coll_velo.h"

#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"

static mca_coll_velo_part_t *parts_of(mca_coll_velo_buffer_t *buffer)
{
    return NULL == buffer->parts ? &buffer->whole : buffer->parts;
}

static velo_goal_block *blocks_of(mca_coll_velo_buffer_t *buffer)
{
    return NULL == buffer->parts ? &buffer->whole_block : buffer->blocks;
}

/* Of what is there once for several peers. */
static bool is_the_one_before(const mca_coll_velo_part_t *parts, uint32_t i)
{
    return 0 < i && 0 == memcmp(&parts[i], &parts[i - 1], sizeof(*parts));
}

static ptrdiff_t begin_of(const mca_coll_velo_part_t *part)
{
    ptrdiff_t begin, extent;
    ompi_datatype_get_true_extent(part->type, &begin, &extent);
    return part->offset + begin;
}

bool mca_coll_velo_divide(mca_coll_velo_buffer_t *buffer, uint32_t count)
{
    buffer->parts = calloc((size_t) count + 1, sizeof(*buffer->parts) + sizeof(*buffer->blocks));
    if (NULL == buffer->parts) {
        return false;
    }
    buffer->blocks = (velo_goal_block *) (buffer->parts + count);
    buffer->count = count;
    for (uint32_t i = 0; i < count; ++i) {
        buffer->blocks[i].peer = i;
    }
    return true;
}

static void lay_out_packed(mca_coll_velo_buffer_t *buffer, const mca_coll_velo_part_t *parts, velo_goal_block *blocks)
{
    buffer->is_packed = true;
    for (uint32_t i = 0; i < buffer->count; ++i) {
        if (is_the_one_before(parts, i)) {
            blocks[i].offset = blocks[i - 1].offset;
            continue;
        }
        blocks[i].offset = buffer->length;
        buffer->length += blocks[i].bytes;
    }
}

void mca_coll_velo_lay_out(mca_coll_velo_buffer_t *buffer)
{
    const mca_coll_velo_part_t *parts = parts_of(buffer);
    velo_goal_block *blocks = blocks_of(buffer);
    bool together = true, some = false;
    ptrdiff_t first = 0;
    for (uint32_t i = 0; i < buffer->count; ++i) {
        size_t size;
        if (0 == parts[i].count) {
            continue; /* it may have no type */
        }
        ompi_datatype_type_size(parts[i].type, &size);
        blocks[i].bytes = parts[i].count * size;
        if (0 == size) {
            continue;
        }
        const ptrdiff_t begin = begin_of(&parts[i]);
        together = together && ompi_datatype_is_contiguous_memory_layout(parts[i].type, 1 == parts[i].count ? 1 : 2);
        first = some && first < begin ? first : begin;
        some = true;
    }
    if (!together) {
        lay_out_packed(buffer, parts, blocks);
        return;
    }
    buffer->bytes = buffer->user + first;
    for (uint32_t i = 0; i < buffer->count; ++i) {
        blocks[i].offset = 0 == blocks[i].bytes ? 0 : (uint64_t) (begin_of(&parts[i]) - first);
    }
}

void mca_coll_velo_convert(ompi_datatype_t *type, size_t elements, char *user, char *bytes, size_t length, bool pack)
{
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    (void) (pack ? opal_convertor_copy_and_prepare_for_send
                 : opal_convertor_copy_and_prepare_for_recv)(ompi_mpi_local_convertor, &type->super, elements, user, 0, &convertor);
    for (size_t done = 0, part; done < length; done += part) {
        struct iovec iov = {.iov_base = bytes + done, .iov_len = length - done};
        uint32_t count = 1;
        part = iov.iov_len;
        if ((pack ? opal_convertor_pack : opal_convertor_unpack)(&convertor, &iov, &count, &part) < 0 || 0 == part) {
            break;
        }
    }
    OBJ_DESTRUCT(&convertor);
}

static void convert_all(mca_coll_velo_buffer_t *buffer, bool pack)
{
    const mca_coll_velo_part_t *parts = parts_of(buffer);
    for (uint32_t i = 0; i < buffer->count; ++i) {
        const velo_goal_block *block = &blocks_of(buffer)[i];
        if (0 < block->bytes && !is_the_one_before(parts, i)) {
            mca_coll_velo_convert(parts[i].type, parts[i].count, buffer->user + parts[i].offset, buffer->ours + block->offset,
                                  block->bytes, pack);
        }
    }
}

bool mca_coll_velo_fill(mca_coll_velo_buffer_t *buffer)
{
    if (OPAL_LIKELY(!buffer->is_packed)) {
        return true;
    }
    if (NULL == buffer->ours) {
        buffer->bytes = buffer->ours = malloc(buffer->length + 1);
        if (NULL == buffer->ours) {
            return false;
        }
    }
    if (buffer->is_read) {
        convert_all(buffer, true);
    }
    return true;
}

void mca_coll_velo_empty(mca_coll_velo_buffer_t *buffer, bool is_whole)
{
    if (OPAL_UNLIKELY(buffer->is_packed) && buffer->is_written && is_whole) {
        convert_all(buffer, false);
    }
}

void mca_coll_velo_keep_types(mca_coll_velo_buffer_t *buffer)
{
    for (uint32_t i = 0; buffer->is_packed && i < buffer->count; ++i) {
        if (0 < blocks_of(buffer)[i].bytes) {
            OBJ_RETAIN(parts_of(buffer)[i].type);
        }
    }
    buffer->keeps_types = buffer->is_packed;
}

void mca_coll_velo_drop(mca_coll_velo_buffer_t *buffer)
{
    for (uint32_t i = 0; buffer->keeps_types && i < buffer->count; ++i) {
        if (0 < blocks_of(buffer)[i].bytes) {
            OBJ_RELEASE(parts_of(buffer)[i].type);
        }
    }
    if (OPAL_UNLIKELY(NULL != buffer->ours || NULL != buffer->parts)) {
        free(buffer->ours);
        free(buffer->parts);
    }
}
