/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/cards.h"

_Static_assert(sizeof(struct sar_card) <= SAR_CARD, "cards are handed over at meetings");

void sar_card_show(struct sar_request *request, struct sar_card *card)
{
    card->status = (int64_t)request->exchange.status;
    sar_window_arrive(request->net->window, "scheme shared", card, sizeof *card);
}

const struct sar_card *sar_card_of(const struct sar_request *request, int rank)
{
    return sar_window_card(request->net->window, rank);
}

enum sar_status sar_cards_hear(const struct sar_request *request)
{
    for (int r = 0; r < request->net->ranks; r++)
        if (sar_card_of(request, r)->status != SAR_OK)
            return SAR_PEER_FAILED;
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

size_t sar_shelf_fits(const struct sar_shelf *shelf, const struct sar_shape *shape)
{
    size_t bytes = shelf->own.bytes, spare = 2 * SAR_ALIGNMENT;
    return bytes < spare ? 0 : (bytes - spare) / (shape->index_size + shape->element_size);
}

enum sar_status sar_card_room(const struct sar_request *request, struct sar_card *card,
                              struct sar_shelf *shelf, size_t nnz, struct sar_run *run)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_segment_name before = shelf->name;
    SAR_TRY(sar_shelf_room(shelf, sar_plus(sar_run_bytes(shape, shape->index_size, nnz), 1)));
    card->shelf = shelf->name;
    card->room = nnz;
    card->fresh |= !sar_segment_same(&before, &shelf->name);
    *run = sar_run_lay_out(shelf->own.memory, shape->index_size, nnz);
    return SAR_OK;
}

enum sar_status sar_card_look(const struct sar_request *request, struct sar_shelf *shelf, int rank,
                              struct sar_run *run)
{
    const struct sar_card *card = sar_card_of(request, rank);
    void *memory;
    *run = (struct sar_run){ NULL, NULL, 0 };
    if (card->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_shelf_view(shelf, rank, &card->shelf, &memory));
    *run = sar_run_lay_out(memory, request->agreed->shape.index_size, card->room);
    run->nnz = card->nnz;
    return SAR_OK;
}
