/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/cards.h"

#include <string.h>

_Static_assert(sizeof(struct sar_card) <= SAR_CARD, "cards are handed over at meetings");

void sar_card_show(struct sar_request *request, struct sar_card *card)
{
    if (request->exchange.status != SAR_OK)
        card->status = (int64_t)request->exchange.status;
    const char *what =
        request->scheme == &sar_scheme_shared ? "scheme shared" : "last steps of scheme two_level";
    sar_window_arrive(request->net->window, what, card, sizeof *card);
}

const struct sar_card *sar_card_of(const struct sar_request *request, int rank)
{
    return sar_window_card(request->net->window, rank);
}

enum sar_status sar_card_excuse(const struct sar_request *request, struct sar_card *card,
                                enum sar_status status)
{
    if (!sar_segment_lacks(status) || !request->gives_way)
        return status;
    card->status = (int64_t)status;
    return SAR_OK;
}

/* Some rank does not fare well. */
static enum sar_status hear_of_trouble(const struct sar_request *request)
{
    for (int r = 0; r < request->net->ranks; r++) {
        enum sar_status theirs = (enum sar_status)sar_card_of(request, r)->status;
        if (theirs == SAR_OK)
            continue;
        if (!sar_segment_lacks(theirs) || !request->gives_way)
            return SAR_PEER_FAILED;
        request->net->window->lack = theirs;
    }
    return SAR_UNSHARED;
}

enum sar_status sar_cards_hear(const struct sar_request *request)
{
    int64_t any = SAR_OK;
    for (int r = 0; r < request->net->ranks; r++)
        any |= sar_card_of(request, r)->status;
    if (any != SAR_OK)
        return hear_of_trouble(request);
    if (request->net->window->telling)
        sar_window_settle(request->net->window);
    return SAR_OK;
}

bool sar_cards_fresh(const struct sar_request *request)
{
    for (int r = 0; r < request->net->ranks; r++)
        if (sar_card_of(request, r)->fresh)
            return true;
    return false;
}

uint64_t sar_run_bytes(const struct sar_shape *shape, unsigned index_size, uint64_t nnz)
{
    return sar_plus(sar_align(sar_times(nnz, index_size)), sar_times(nnz, shape->element_size));
}

struct sar_run sar_run_lay_out(void *memory, unsigned index_size, uint64_t nnz)
{
    return (struct sar_run){ memory, (unsigned char *)memory + sar_align(nnz * index_size), (size_t)nnz };
}

bool sar_cards_adopt(const struct sar_request *request)
{
    const struct sar_card *mine = sar_card_of(request, request->net->rank);
    for (int r = 0; r < request->net->ranks; r++)
        if (sar_card_of(request, r)->index_size != mine->index_size)
            return false;
    return mine->index_size != 0;
}

static bool all_hand_back(const struct sar_request *request)
{
    const struct sar_card *mine = sar_card_of(request, request->net->rank);
    for (int r = 0; r < request->net->ranks; r++)
        if (!sar_segment_same(&sar_card_of(request, r)->storage, &mine->storage))
            return false;
    return request->sink->back != NULL;
}

enum sar_status sar_card_choose_storage(const struct sar_request *request, struct sar_card *card, size_t nnz,
                                        struct sar_storage **storage)
{
    struct sar_storage *back = all_hand_back(request) ? request->sink->back : NULL;
    size_t bytes = sar_run_bytes(&request->agreed->shape, request->sink->index_size, nnz);
    SAR_TRY(sar_storage_choose(request->net->window, back, bytes, storage));
    card->storage = sar_storage_name(*storage);
    return SAR_OK;
}

enum sar_status sar_card_adopt_storage(struct sar_request *request, size_t nnz, struct sar_storage **storage)
{
    const struct sar_card *first = sar_card_of(request, 0);
    struct sar_sink *sink = request->sink;
    if (request->net->rank != 0)
        SAR_TRY(sar_storage_find(request->net->window, sink->back, &first->storage, storage));
    request->output = sar_run_lay_out(sar_storage_memory(*storage), sink->index_size, nnz);
    sink->adopt(sink, *storage, &request->output);
    return SAR_OK;
}

size_t sar_shelf_fits(const struct sar_shelf *shelf, const struct sar_shape *shape)
{
    size_t bytes = shelf->own.bytes, spare = 2 * SAR_ALIGNMENT;
    return bytes < spare ? 0 : (bytes - spare) / (shape->index_size + shape->element_size);
}

static enum sar_status make_room(const struct sar_request *request, struct sar_card *card,
                                 struct sar_shelf *shelf, size_t nnz, struct sar_segment *before)
{
    const struct sar_shape *shape = &request->agreed->shape;
    SAR_TRY(sar_shelf_replace(shelf, sar_plus(sar_run_bytes(shape, shape->index_size, nnz), 1), before));
    card->shelf = shelf->name;
    card->room = nnz;
    card->fresh |= sar_shelf_tell(request->net->window, shelf);
    return SAR_OK;
}

enum sar_status sar_card_room(const struct sar_request *request, struct sar_card *card,
                              struct sar_shelf *shelf, size_t nnz, struct sar_run *run)
{
    struct sar_segment before;
    SAR_TRY(make_room(request, card, shelf, nnz, &before));
    sar_segment_unmap(&before);
    *run = sar_run_lay_out(shelf->own.memory, request->agreed->shape.index_size, nnz);
    return SAR_OK;
}

/* Values first: where the shelf stays, they move up, and the indices are where they were. */
enum sar_status sar_card_widen(const struct sar_request *request, struct sar_card *card,
                               struct sar_shelf *shelf, size_t nnz, struct sar_run *run)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_segment before;
    SAR_TRY(make_room(request, card, shelf, nnz, &before));
    struct sar_run wider = sar_run_lay_out(shelf->own.memory, shape->index_size, nnz);
    if (run->nnz != 0) {
        memmove(wider.value, run->value, run->nnz * shape->element_size);
        memmove(wider.index, run->index, run->nnz * shape->index_size);
    }
    sar_segment_unmap(&before);
    run->index = wider.index;
    run->value = wider.value;
    return SAR_OK;
}

enum sar_status sar_card_look(const struct sar_request *request, struct sar_shelf *shelf, int rank,
                              struct sar_run *run)
{
    const struct sar_card *card = sar_card_of(request, rank);
    void *memory;
    *run = (struct sar_run){ NULL, NULL, 0 };
    if (card->nnz == 0 && !card->fresh)
        return SAR_OK;
    SAR_TRY(sar_shelf_view(shelf, rank, &card->shelf, &memory));
    if (card->nnz == 0)
        return SAR_OK;
    *run = sar_run_lay_out(memory, request->agreed->shape.index_size, card->room);
    run->nnz = card->nnz;
    return SAR_OK;
}
