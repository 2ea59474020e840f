/* SPDX-License-Identifier: BSD-3-Clause */
/* What `shared` costs, and where each rank had better reduce what all have brought than its part of that:
 * where this takes less than to meet once more, and where sums are folded straight into dense buffers, since
 * then no outcome is made that all would have to read. */

#include <math.h>

#include "scheme/shared_parts.h"

enum {
    FEW = 150,        /* values of a rank that each rank had better reduce itself */
    FEW_OTHERS = 1024 /* and at most of all others */
};

/* Measured on four ranks, 6.4e7 floats, 1 %; told by what plain sums take. */
static const double MEETING = 0.5, /* of alpha */
    FOLD = 0.55,                   /* of gamma: to fold an element into a buffer */
    PUT = 0.7;                     /* of gamma: to put one of the outcome there, which other schemes do */

static bool is_little(const struct sar_agreed *a, double nnz)
{
    double values = nnz * (double)a->shape.row, others = a->machine.ranks - 1;
    return others < 1 || (values <= FEW && values * others <= FEW_OTHERS);
}

static double seconds_of_parts(const struct sar_agreed *a)
{
    double meeting = MEETING * a->machine.alpha, ranks = a->machine.ranks;
    double element = (double)(a->shape.element_size + a->shape.index_size);
    double outcome = sar_agreed_union(a, ranks);
    double moved = outcome / ranks + a->nnz_mean + (a->dense_face ? outcome : a->nnz_mean);
    return (a->dense_face ? 2 : 3) * meeting + a->nnz_mean * a->machine.gamma +
           element * moved * a->machine.memory;
}

/* Beyond what it takes to put an outcome into a buffer; no end of time where that cannot be. */
static double seconds_of_folding(const struct sar_agreed *a, const struct sar_shape *shape)
{
    double ranks = a->machine.ranks, outcome = sar_agreed_union(a, ranks);
    double beyond = FOLD * ranks * a->nnz_mean - PUT * outcome;
    if (!a->dense_face || a->disjoint || !sar_dense_folds(shape, NULL, (size_t)a->machine.ranks))
        return INFINITY;
    return MEETING * a->machine.alpha + fmax(beyond, 0) * a->machine.gamma;
}

bool sar_shared_reduces_all(const struct sar_agreed *agreed, const struct sar_shape *shape, double nnz)
{
    bool little = is_little(agreed, nnz);
    if (little || !agreed->dense_face)
        return little;
    struct sar_agreed brought = *agreed;
    brought.nnz_mean = nnz;
    return seconds_of_folding(&brought, shape) < seconds_of_parts(&brought);
}

double sar_shared_seconds(const struct sar_agreed *a)
{
    double element = (double)(a->shape.element_size + a->shape.index_size), ranks = a->machine.ranks;
    if (a->machine.ranks == 1)
        return element * a->nnz_mean * a->machine.memory;
    double otherwise = is_little(a, a->nnz_mean)
                           ? MEETING * a->machine.alpha + ranks * a->nnz_mean * a->machine.gamma
                           : seconds_of_parts(a);
    return fmin(seconds_of_folding(a, &a->shape), otherwise);
}

/* The caller's buffer may be misaligned, or be a device's, on this rank alone. */
static bool folds_here(const struct sar_request *request, const struct sar_shape *shape)
{
    return request->may_fold && !request->agreed->disjoint &&
           sar_dense_folds(shape, request->buffers.recvbuf, (size_t)request->net->ranks);
}

static enum sar_status copy(struct sar_request *request, const struct sar_shape *shape)
{
    struct sar_run out = { NULL, NULL, 0 };
    request->output = request->input;
    if (request->agreed->dense_face)
        return SAR_OK;
    SAR_TRY(request->sink->room(request->sink, request, request->input.nnz, &out));
    sar_request_copy(request, shape, &request->input, &out, false);
    request->output.index = out.index;
    request->output.value = out.value;
    return SAR_OK;
}

enum sar_status sar_shared_reduce_all(struct sar_request *request, const struct sar_run inputs[])
{
    struct sar_shape shape = sar_request_shape(request);
    size_t ranks = (size_t)request->net->ranks;
    if (ranks == 1)
        return copy(request, &shape);
    if (!folds_here(request, &shape))
        return sar_request_deliver(request, &shape, inputs, ranks);
    request->pieces = inputs;
    request->pieces_n = ranks;
    request->folds = true;
    for (size_t r = 0; r < ranks; r++)
        request->output.nnz += inputs[r].nnz;
    return SAR_OK;
}
