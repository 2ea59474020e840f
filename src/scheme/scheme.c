/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of all schemes. Programs, the environment, the selector and the tests find schemes in it. */

#include "scheme/scheme.h"

#include <string.h>

enum { SPECULATED_BYTES = 2048 /* of a mean message, at most; MPI libraries send twice as much at once */ };

const struct sar_scheme *const sar_schemes[] = {
    &sar_scheme_dense,
    &sar_scheme_allgather,
    &sar_scheme_recursive_doubling,
    &sar_scheme_recursive_halving,
    &sar_scheme_balanced,
    &sar_scheme_split_allgather,
    &sar_scheme_split_dense,
    &sar_scheme_ring,
    &sar_scheme_hybrid,
    &sar_scheme_omni,
    &sar_scheme_sparse_ps,
    &sar_scheme_oktopk,
    &sar_scheme_shared,
    &sar_scheme_two_level,
    NULL,
};

_Static_assert(sizeof sar_schemes / sizeof sar_schemes[0] <= SAR_SCHEMES_MAX + 1, "raise SAR_SCHEMES_MAX");

bool sar_scheme_serves(const struct sar_scheme *scheme, enum sar_collective_kind collective)
{
    unsigned served = scheme->collectives != 0 ? scheme->collectives : 1u << SAR_ALLREDUCE;
    return (served & 1u << collective) != 0;
}

const char *sar_scheme_unsupported_reason(const struct sar_scheme *scheme, const struct sar_agreed *agreed)
{
    static const char *const others[SAR_COLLECTIVES] = { "it has no allreduce", "it has no reduce_scatter",
                                                         "it has no allgather" };
    enum sar_collective_kind kind = agreed->call.collective;
    return sar_scheme_serves(scheme, kind) ? scheme->unsupported_reason(agreed) : others[kind];
}

bool sar_scheme_speculates(const struct sar_scheme *scheme, const struct sar_agreed *agreed)
{
    double element = (double)(agreed->desc.element_size + agreed->desc.index_size);
    double parts = scheme->pushes_whole ? 1 : agreed->machine.ranks;
    return agreed->call.speculates && scheme->stages_to_push > 0 &&
           agreed->data.nnz_max * element <= SPECULATED_BYTES * parts;
}

const struct sar_scheme *sar_scheme_find(const char *name)
{
    for (size_t i = 0; sar_schemes[i] != NULL; i++)
        if (strcmp(sar_schemes[i]->name, name) == 0)
            return sar_schemes[i];
    return NULL;
}
