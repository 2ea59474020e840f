/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts MPI calls below libmpix_sparse_preload with default settings. Dense data cause calls of
 * PMPI_Allreduce and rare probes. When the same vector becomes sparse, the library takes it; when it becomes
 * dense again, the library returns it to MPI. */

#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 1 << 20,
    BYTES = 4 * COUNT,
    LOOK_BYTES = 1 << 18, /* cost that the library assumes for a probe */
    DENSE_CALLS = 60,
    SPARSE_CALLS = 120,
    LAST = 30, /* calls of a phase after adaptation */
    ATTEMPTS = 6,
    SHORTER = 1024 /* elements less in each attempt, so that the library knows nothing of the vector */
};

static int length; /* of the vector */

static struct seen {
    int plain;  /* allreduces of the vector */
    int probes; /* allreduces of two numbers */
    int others; /* other MPI calls of the library */
} seen;

typedef int (*allreduce_fn)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int (*iallreduce_fn)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
typedef int (*isend_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int (*dup_fn)(MPI_Comm, MPI_Comm *);

/* The next definition after this program and the libraries loaded before MPI. */
#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm)
{
    *(count == length ? &seen.plain : count == 2 ? &seen.probes : &seen.others) += 1;
    return NEXT(allreduce_fn, "PMPI_Allreduce")(sendbuf, recvbuf, count, datatype, op, comm);
}

int PMPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    seen.others++;
    return NEXT(iallreduce_fn, "PMPI_Iallreduce")(sendbuf, recvbuf, count, datatype, op, comm, request);
}

int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    seen.others++;
    return NEXT(isend_fn, "MPI_Isend")(buf, count, datatype, to, tag, comm, request);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *twin)
{
    seen.others++;
    return NEXT(dup_fn, "MPI_Comm_dup")(comm, twin);
}

static float in[COUNT], out[COUNT];
static int rank, ranks, failures, wrong;

/* Every `every`-th element is a number; all orders of addition give the same sum. */
static void fill(int every)
{
    memset(in, 0, sizeof in);
    for (int i = 0; i < COUNT; i += every)
        in[i] = (float)(1 + i / every % 7);
}

/* Make the calls of a phase, and count the MPI calls. Some results are checked. */
static struct seen reduce(int calls, int every)
{
    struct seen before = seen;
    for (int c = 0; c < calls; c++) {
        int i = c % 100 * every;
        MPI_Allreduce(in, out, length, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (out[i] != (float)ranks * in[i] || (every > 1 && out[i + 1] != 0))
            wrong++;
    }
    return (struct seen){ seen.plain - before.plain, seen.probes - before.probes,
                          seen.others - before.others };
}

static void require(int holds, const char *what, struct seen s)
{
    if (holds)
        return;
    printf("rank %d of %d: %s: %d plain, %d probes, %d others\n", rank, ranks, what, s.plain, s.probes,
           s.others);
    failures++;
}

/* Only the program's calls, and probes that cost 2 % of their bytes. */
static void test_dense(void)
{
    fill(1);
    struct seen s = reduce(DENSE_CALLS, 1);
    require(s.plain == DENSE_CALLS && s.others == 0, "dense data", s);
    require((double)s.probes * LOOK_BYTES <= 0.02 * s.plain * BYTES, "probes too often", s);
    require((s.probes > 0) == (ranks > 1), "probes", s);
}

static void test_turned_sparse(void)
{
    fill(1000);
    reduce(SPARSE_CALLS - LAST, 1000);
    struct seen s = reduce(LAST, 1000);
    if (ranks > 1) /* the selector tries MPI_Allreduce now and then */
        require(s.plain <= LAST / 3 && s.others > 0, "sparse data", s);
    else
        require(s.plain == LAST && s.others == 0, "one rank", s);
}

static void test_turned_dense(void)
{
    fill(1);
    reduce(DENSE_CALLS - LAST, 1);
    struct seen s = reduce(LAST, 1);
    require(s.plain == LAST && s.others == 0, "dense data again", s);
}

/* Returns the failures of all ranks. */
static int attempt(int shorter)
{
    int mine, all = 0;
    length = COUNT - shorter;
    failures = 0;
    test_dense();
    test_turned_sparse();
    test_turned_dense();
    mine = failures;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Use two nodes, since messages in shared memory cannot be counted. On busy processors a call may take so
 * long that the library rightly prefers MPI for the next thousands: then another vector is tried. */
int main(int argc, char **argv)
{
    setenv("MPIX_SPARSE_NODES", "2", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ATTEMPTS && attempt(i * SHORTER) > 0; i++)
        printf("rank %d of %d: attempt %d failed\n", rank, ranks, i);
    if (rank == 0)
        printf("%d probes\n", seen.probes);
    MPI_Finalize();
    return failures + wrong != 0;
}
