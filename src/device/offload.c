/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/offload.h"

static struct sar_vector vector_of(const struct sar_memory *memory, const struct sar_shape *shape, void *buf)
{
    return (struct sar_vector){ shape, buf, memory->place, memory->stream };
}

enum sar_status sar_offload_count(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                  size_t *nnz)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    return memory->accelerator->count(&vector, nnz);
}

enum sar_status sar_offload_compact(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                    struct sar_mirror room[2], struct sar_run *run)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    SAR_TRY(sar_mirror_take(memory, NULL, run->nnz * shape->index_size, &room[0]));
    SAR_TRY(sar_mirror_take(memory, NULL, run->nnz * shape->element_size, &room[1]));
    struct sar_run made = { room[0].host, room[1].host, run->nnz };
    SAR_TRY(memory->accelerator->compact(&vector, &made));
    SAR_TRY(memory->accelerator->wait(memory->place, memory->stream));
    *run = made;
    return SAR_OK;
}

enum sar_status sar_offload_write(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                  const struct sar_delivery *delivery)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    SAR_TRY(memory->accelerator->scatter(&vector, delivery->runs, delivery->n, delivery->clear));
    return memory->accelerator->wait(memory->place, memory->stream);
}
