/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases: types and sizes of one tensor. */

#include "bench/lib/case.h"

#include <math.h>

void perf_case_make(struct perf_case *c, const struct perf_world *world, const struct perf_options *options,
                    int type, int op)
{
    c->world = world;
    c->options = options;
    c->type = &perf_types[type];
    c->op = op;
    c->row_len = (size_t)options->row_len;
    c->element_bytes = c->row_len * c->type->size;
    c->mpi_op = perf_op_mpi(op);
    c->basic = c->element = perf_type_mpi(type);
    if (c->row_len > 1) {
        MPI_Type_contiguous((int)c->row_len, c->basic, &c->element);
        MPI_Type_commit(&c->element);
    }
}

void perf_case_size(struct perf_case *c, size_t count, double density)
{
    c->count = count;
    c->density = density;
    c->index = c->options->index;
    if (c->index == PERF_INDEX_AUTO)
        c->index = count <= (size_t)INT32_MAX + 1 ? PERF_INT32 : PERF_INT64;
    c->index_bytes = c->index == PERF_INT32 || c->index == PERF_UINT32 ? 4 : 8;
    c->index_type = perf_index_mpi(c->index);
}

void perf_case_free(struct perf_case *c)
{
    if (c->row_len > 1)
        MPI_Type_free(&c->element);
}

int perf_case_values(const struct perf_case *c)
{
    bool has_16bit = c->type->has_16bit && c->op != PERF_PROD && c->world->ranks > 1;

    return has_16bit ? c->options->values : PERF_FULL;
}

bool perf_case_is_exact(const struct perf_case *c)
{
    static const double largest[] = { [PERF_FULL] = INFINITY, [PERF_BF16] = 256, [PERF_FP16] = 2048 };

    return c->op != PERF_SUM || (double)c->world->ranks * PERF_LARGEST <= largest[perf_case_values(c)];
}
