/* SPDX-License-Identifier: BSD-3-Clause */
#include "contexts.h"

#include <mpix_sparse.h>

#include "check.h"

/* Use MPI_Comm_split, which oversubscribed_mpi.c does not replace. */
int contexts_left(void)
{
#ifdef MPICH_VERSION
    enum { MOST = 4096 };
    static MPI_Comm copies[MOST];
    MPI_Errhandler old;
    int n = 0;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &old);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (n < MOST && MPI_Comm_split(MPI_COMM_SELF, 0, 0, &copies[n]) == MPI_SUCCESS)
        n++;
    for (int i = 0; i < n; i++)
        MPI_Comm_free(&copies[i]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, old);
    MPI_Errhandler_free(&old);
    return n;
#else
    return 0;
#endif
}

static void use_another(void)
{
    MPI_Comm alone;
    int none = 0, sum;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    check_success(MPIX_Sparse_allreduce(&none, &sum, 0, MPI_INT, MPI_SUM, alone), "the first call");
    MPI_Comm_free(&alone);
}

int contexts_left_again(int before)
{
    int found = contexts_left();
    for (int i = 0; i < 100 && found < before; i++) {
        use_another();
        found = contexts_left();
    }
    return found;
}
