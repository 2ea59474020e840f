/* SPDX-License-Identifier: BSD-3-Clause */
/* Two counts: of the ranks that hold it, in the storage itself, and of those in this process that need the
 * mapping, results and the window's spares. Who chooses sets the former for all ranks, so that it is never
 * found to be free before all of them have taken hold; one that a call which failed left to nobody never is.
 * Where a spare stands follows from its name, so that what rank 0 finds free all others have, too. */

#include "net/storage.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { HEAD = 64, PAGE = 4096 };

struct sar_storage {
    struct sar_segment segment; /* begins with a head */
    struct sar_segment_name name;
    atomic_int uses; /* in this process */
};

struct head {
    atomic_int holders;
};

static struct head *head_of(const struct sar_storage *storage)
{
    return storage->segment.memory;
}

static int holders(const struct sar_storage *storage)
{
    return atomic_load_explicit(&head_of(storage)->holders, memory_order_acquire);
}

static bool holds(const struct sar_storage *storage, size_t bytes)
{
    return storage->segment.bytes - HEAD >= bytes;
}

static void drop(struct sar_storage *storage)
{
    if (atomic_fetch_sub(&storage->uses, 1) != 1)
        return;
    sar_storage_seal(storage);
    sar_segment_unmap(&storage->segment);
    free(storage);
}

static void become_spare(struct sar_window *window, struct sar_storage *storage)
{
    struct sar_storage **place = &window->spares[storage->name.serial % SAR_SPARES];
    if (*place != NULL)
        drop(*place);
    *place = storage;
}

static enum sar_status make(struct sar_window *window, size_t bytes, struct sar_storage **storage)
{
    if (bytes > SIZE_MAX / 2)
        return SAR_NO_MEMORY;
    struct sar_storage *made = calloc(1, sizeof *made);
    enum sar_status status = SAR_NO_MEMORY;
    if (made != NULL)
        status = sar_segment_make(bytes + bytes / 8 + PAGE, &made->segment, &made->name);
    if (status != SAR_OK) {
        free(made);
        return status;
    }
    atomic_init(&made->uses, 1);
    become_spare(window, made);
    *storage = made;
    return SAR_OK;
}

enum sar_status sar_storage_choose(struct sar_window *window, struct sar_storage *back, size_t bytes,
                                   struct sar_storage **storage)
{
    struct sar_storage *found = NULL;
    if (back != NULL && holders(back) == window->ranks && holds(back, bytes)) {
        *storage = back;
        return SAR_OK;
    }
    for (int i = 0; i < SAR_SPARES && found == NULL; i++) {
        struct sar_storage *spare = window->spares[i];
        if (spare != NULL && holders(spare) == 0 && holds(spare, bytes))
            found = spare;
    }
    if (found == NULL)
        SAR_TRY(make(window, bytes, &found));
    atomic_store_explicit(&head_of(found)->holders, window->ranks, memory_order_release);
    *storage = found;
    return SAR_OK;
}

enum sar_status sar_storage_find(struct sar_window *window, struct sar_storage *back,
                                 const struct sar_segment_name *name, struct sar_storage **storage)
{
    struct sar_segment segment;
    *storage = NULL;
    for (int i = 0; i < SAR_SPARES; i++)
        if (window->spares[i] != NULL && sar_segment_same(&window->spares[i]->name, name))
            *storage = window->spares[i];
    if (back != NULL && sar_segment_same(&back->name, name))
        *storage = back;
    if (*storage != NULL)
        return SAR_OK;
    struct sar_storage *made = calloc(1, sizeof *made);
    enum sar_status status = made == NULL ? SAR_NO_MEMORY : sar_segment_map(name, &segment);
    if (status != SAR_OK) {
        free(made);
        return status;
    }
    *made = (struct sar_storage){ .segment = segment, .name = *name };
    made->name.file = -1;
    atomic_init(&made->uses, 1);
    become_spare(window, made);
    *storage = made;
    return SAR_OK;
}

struct sar_segment_name sar_storage_name(const struct sar_storage *storage)
{
    return storage->name;
}

void *sar_storage_memory(const struct sar_storage *storage)
{
    return (unsigned char *)storage->segment.memory + HEAD;
}

void sar_storage_seal(struct sar_storage *storage)
{
    sar_segment_seal(&storage->name);
}

void sar_storage_keep(struct sar_storage *storage)
{
    atomic_fetch_add(&storage->uses, 1);
}

void sar_storage_let_go(struct sar_storage *storage)
{
    atomic_fetch_sub_explicit(&head_of(storage)->holders, 1, memory_order_release);
    drop(storage);
}

void sar_storage_forget(struct sar_window *window)
{
    for (int i = 0; i < SAR_SPARES; i++) {
        if (window->spares[i] != NULL)
            drop(window->spares[i]);
        window->spares[i] = NULL;
    }
}
