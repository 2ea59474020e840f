/* SPDX-License-Identifier: BSD-3-Clause */
/* Ops for MPI_Allreduce on floats of 16 bits. MPI tells a function of the user's no more than the datatype,
 * so that each op on each type needs one. It folds two vectors at a time, each of which has 16 bits: so every
 * step rounds, other than in this library's own reductions. */

#include "net/halves.h"

enum { HALVES = SAR_BASES - SAR_BF16, OPS = SAR_PROD + 1 /* that halves have */ };

static MPI_Op handles[HALVES][OPS];
static bool ready;

#define DEFINE_CALLBACK(name, base, op)                                     \
    static void name(void *in, void *inout, int *n, MPI_Datatype *datatype) \
    {                                                                       \
        (void)datatype;                                                     \
        sar_kernels_of(base, op)->fold(inout, in, (size_t)*n);              \
    }

DEFINE_CALLBACK(bf16_sum, SAR_BF16, SAR_SUM)
DEFINE_CALLBACK(bf16_max, SAR_BF16, SAR_MAX)
DEFINE_CALLBACK(bf16_min, SAR_BF16, SAR_MIN)
DEFINE_CALLBACK(bf16_prod, SAR_BF16, SAR_PROD)
DEFINE_CALLBACK(fp16_sum, SAR_FP16, SAR_SUM)
DEFINE_CALLBACK(fp16_max, SAR_FP16, SAR_MAX)
DEFINE_CALLBACK(fp16_min, SAR_FP16, SAR_MIN)
DEFINE_CALLBACK(fp16_prod, SAR_FP16, SAR_PROD)

static MPI_User_function *const callbacks[HALVES][OPS] = {
    { bf16_sum, bf16_max, bf16_min, bf16_prod },
    { fp16_sum, fp16_max, fp16_min, fp16_prod },
};

MPI_Op sar_half_op(enum sar_base base, enum sar_op op)
{
    return handles[base - SAR_BF16][op];
}

enum sar_status sar_halves_setup(void)
{
    for (int i = 0; i < HALVES; i++)
        for (int op = 0; op < OPS; op++)
            SAR_TRY(sar_mpi(PMPI_Op_create(callbacks[i][op], 1, &handles[i][op])));
    ready = true;
    return SAR_OK;
}

void sar_halves_cleanup(void)
{
    for (int i = 0; ready && i < HALVES; i++)
        for (int op = 0; op < OPS; op++)
            PMPI_Op_free(&handles[i][op]);
    ready = false;
}
