/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests elements that only one rank has, including NaNs, infinities and zeros of both signs. They keep their
 * bits in every scheme, and in those that automatic selection tries. */

#include <math.h>
#include <mpix_sparse.h>
#include <string.h>

#include "check.h"

enum { EACH = 700, TRIALS = 24 };

static const char *const schemes[] = { "auto", "dense", EVERY_SPARSE_SCHEME };

static const struct {
    const char *name;
    MPI_Op op;
} ops[] = {
    { "MPI_MAX", MPI_MAX }, { "MPI_MIN", MPI_MIN }, { "MPI_SUM", MPI_SUM }, { "MPI_PROD", MPI_PROD }
};

/* Element i of the vector, which rank i mod ranks has. */
static float value_of(int i)
{
    static const float values[] = { NAN, 5, -INFINITY, -0.25F, INFINITY, 1e-40F, -NAN };
    return values[(unsigned)i / (unsigned)ranks % (sizeof values / sizeof values[0])];
}

static bool is_same(float found, float expected)
{
    return isnan(expected) ? isnan(found) : memcmp(&found, &expected, sizeof found) == 0;
}

static void reduce(MPI_Comm comm, MPI_Op op, MPIX_Sparse_result *result)
{
    static int32_t index[EACH];
    static float value[EACH];
    const void *indices, *values;
    MPI_Count nnz;
    for (int i = 0; i < EACH; i++) {
        index[i] = i * ranks + rank;
        value[i] = value_of(index[i]);
    }
    check_success(MPIX_Sparse_allreduce_coo(index, value, EACH, MPI_INT32_T, EACH * ranks, MPI_FLOAT, op,
                                            comm, result),
                  "MPIX_Sparse_allreduce_coo");
    check_success(MPIX_Sparse_result_get(*result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    check(nnz == EACH * ranks, "expected %d elements, found %lld", EACH * ranks, (long long)nnz);
    for (int i = 0; i < (int)nnz; i++) {
        float found = ((const float *)values)[i];
        check(is_same(found, value_of(i)), "expected %g at index %d, found %g", (double)value_of(i), i,
              (double)found);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    for (size_t s = 0; s < sizeof schemes / sizeof schemes[0]; s++) {
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
            MPI_Comm comm = settings_comm(&(struct settings){ .scheme = schemes[s] });
            check_case("%s of %s", ops[o].name, schemes[s]);
            for (int i = 0; i < (s == 0 ? TRIALS : 2); i++)
                reduce(comm, ops[o].op, &result);
            check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
            MPI_Comm_free(&comm);
        }
    }
    return check_end("singletons");
}
