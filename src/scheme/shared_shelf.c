/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank's elements come to lie on its shelf: dense buffers are compacted onto it, coordinates copied,
 * unless whoever made them put them there in the first place. */

#include "scheme/shared_parts.h"
#include "tensor/dense.h"

struct sar_shelf *sar_shared_shelf(const struct sar_request *request)
{
    struct sar_window *window = request->net->window;
    return &window->shelves[window->turn];
}

/* The shelf that inputs lie on, while a dense buffer is compacted onto it. */
struct shelf_space {
    struct sar_space space; /* first */
    struct sar_request *request;
    struct sar_card *card;
};

/* Room for at least nnz elements. */
static enum sar_status enlarge_shelf(struct sar_request *request, struct sar_card *card, size_t nnz,
                                     struct sar_run *run)
{
    struct sar_shelf *shelf = sar_shared_shelf(request);
    size_t fits = sar_shelf_fits(shelf, &request->agreed->shape);
    return sar_card_widen(request, card, shelf, fits > nnz ? fits : nnz, run);
}

static enum sar_status enlarge(struct sar_space *space, size_t nnz, struct sar_run *run)
{
    const struct shelf_space *on = (struct shelf_space *)space;
    SAR_TRY(enlarge_shelf(on->request, on->card, nnz, run));
    space->nnz = (size_t)on->card->room;
    return SAR_OK;
}

static enum sar_status room_on_shelf(struct sar_sink *sink, struct sar_request *request, size_t nnz,
                                     struct sar_run *run)
{
    struct sar_card *card = &((struct sar_shared_sink *)sink)->card;
    bool first = run->index == NULL;
    if (!first && nnz <= card->room)
        return SAR_OK;
    return enlarge_shelf(request, card, first ? nnz : nnz + nnz / 2, run);
}

struct sar_shared_sink sar_shared_sink(void)
{
    return (struct sar_shared_sink){ .sink.room = room_on_shelf };
}

enum sar_status sar_shared_compact(struct sar_request *request, struct sar_card *card)
{
    const struct sar_agreed *agreed = request->agreed;
    struct sar_run *input = &request->input;
    struct shelf_space space = { { enlarge, 0 }, request, card };
    const void *buf = agreed->in_place ? request->buffers.recvbuf : request->buffers.sendbuf;
    struct sar_span span = sar_request_span(request, "compact");
    SAR_TRY(sar_dense_compact_into(&agreed->shape, buf, (size_t)agreed->nnz_max, &space.space, input));
    span.work = sar_work_on("compact", input->nnz, agreed->shape.element_size,
                            agreed->shape.count * agreed->shape.row);
    sar_request_span_end(request, &span);
    request->minus_zero =
        sar_has_negative_zero(agreed->shape.base, input->value, input->nnz * agreed->shape.row);
    return SAR_OK;
}

/* Others can read the copy: what the input was made with is free for the reduction. */
static void move_input(struct sar_request *request, const struct sar_run *copy)
{
    if (request->before_input.newest == NULL)
        return;
    sar_arena_return(request->arena, request->before_input);
    request->before_input = (struct sar_arena_mark){ 0 };
    request->input = *copy;
    request->input_moved = true;
}

void sar_shared_put(const struct sar_request *request, const struct sar_shape *shape,
                    const struct sar_run *from, struct sar_run *to)
{
    sar_request_copy(request, shape, from, to, request->net->window->far);
}

/* Unless it is there. */
static enum sar_status copy_in(struct sar_request *request, struct sar_card *card)
{
    struct sar_run copy;
    if (card->room != 0)
        return SAR_OK;
    SAR_TRY(sar_card_room(request, card, sar_shared_shelf(request), request->input.nnz, &copy));
    sar_shared_put(request, &request->agreed->shape, &request->input, &copy);
    move_input(request, &copy);
    return SAR_OK;
}

enum sar_status sar_shared_shelve(struct sar_request *request, struct sar_card *card)
{
    if (request->raw)
        SAR_TRY(sar_shared_compact(request, card));
    return request->net->ranks > 1 ? copy_in(request, card) : SAR_OK;
}
