/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/contiguous.h"

#include <math.h>

#include "tensor/stretch.h"

struct sar_map sar_contiguous_map(const struct sar_agreed *a)
{
    return sar_map_make(SAR_PARTITION_RANGE, a->shape.count, (uint32_t)a->machine.ranks, 1, 0);
}

/* What all ranks have there varies by chance at least, also where nothing is known of a tensor yet. */
double sar_contiguous_share(const struct sar_agreed *a)
{
    return fmin(fmax(a->skewness, sar_agreed_fullest_push(a)) / a->machine.ranks, 1);
}

/* At least what a single rank has there. The exponent is 1 where no two ranks meet; it is chosen to come
 * close to the shares of tensors that are as skewed as those of the paper's models. */
double sar_contiguous_union_share(const struct sar_agreed *a, double k)
{
    double ratio = fmax(sar_gamma_at(&a->gamma, k), 1);
    double most = fmax(pow(a->skewness, sqrt(ratio / k)), sar_agreed_fullest(a, k, 1));
    return fmin(fmax(most / a->machine.ranks, sar_contiguous_share(a) / ratio), 1);
}

enum sar_status sar_contiguous_bounds(struct sar_request *request, const struct sar_map *map,
                                      const uint64_t **bounds)
{
    uint64_t *taken;
    SAR_TRY(sar_request_take(request, (size_t)map->parts + 1, sizeof *taken, &taken));
    for (uint32_t r = 0; r < map->parts; r++)
        taken[r + 1] = taken[r] + sar_map_slots(map, r);
    *bounds = taken;
    return SAR_OK;
}

struct sar_layout sar_contiguous_layout(const struct sar_request *request, const uint64_t *bounds, int rank)
{
    uint64_t span = bounds[rank + 1] - bounds[rank];
    return sar_agreed_layout(request->agreed, span, sar_index_size(span));
}

enum sar_status sar_contiguous_split(struct sar_request *request, const uint64_t *bounds,
                                     struct sar_run parts[])
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_span span = sar_request_span(request, "partition");
    size_t from = 0;
    for (int r = 0; r < request->net->ranks; r++) {
        size_t to = sar_run_find(shape, &request->input, from, bounds[r + 1]);
        unsigned index_size = sar_contiguous_layout(request, bounds, r).index_size;
        parts[r] = sar_run_slice(shape, &request->input, from, to);
        SAR_TRY(sar_run_rebase(shape, bounds[r], index_size, request->passing, &parts[r]));
        from = to;
    }
    span.work = sar_work_on("rebase", request->input.nnz, shape->element_size, 0);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

enum sar_status sar_contiguous_deliver(struct sar_request *request, const uint64_t *bounds,
                                       const struct sar_run parts[])
{
    struct sar_run *out = &request->output;
    struct sar_span span = sar_request_span(request, "deliver");
    size_t nnz = 0;
    for (int r = 0; r < request->net->ranks; r++)
        nnz += parts[r].nnz;
    SAR_TRY(request->sink->room(request->sink, request, nnz, out));
    for (int r = 0; r < request->net->ranks; r++)
        sar_run_append(&request->agreed->shape, &parts[r],
                       sar_contiguous_layout(request, bounds, r).index_size, bounds[r], out);
    span.work = sar_work_on("append", nnz, request->agreed->shape.element_size, 0);
    sar_request_span_end(request, &span);
    return SAR_OK;
}
