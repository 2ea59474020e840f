/* SPDX-License-Identifier: BSD-3-Clause */
/* Broken messages and lacking memory: the k-th message of one rank is truncated or has a bit flipped, and the
 * k-th allocation of one rank fails, for k = 0, 1, 2 … until there is no k-th any more. Every rank returns,
 * with success or an error, and the next call on the communicator works. */

#include <mpix_sparse.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 5000, MOST_FAULTS = 200, PATIENCE = 280 /* seconds */ };

/* What to do to which message or allocation of this rank; counts down. */
static struct {
    bool armed;
    long left; /* messages or allocations before the one at fault */
    bool happened;
    int kind; /* of fault in a message */
} message_fault, memory_fault;

static const char *const schemes[] = { "allgather", "recursive_doubling", "balanced", "dense" };
static const char *const wires[] = { "coo", "hash_bitmap", "dense" };

enum {
    TRUNCATE_ALL,
    TRUNCATE_HEADER,
    TRUNCATE_HALF,
    TRUNCATE_ONE,
    FLIP_HEADER,
    FLIP_LENGTH,
    FLIP_PAYLOAD,
    KINDS
};

static unsigned char broken[1 << 20];

static int break_message(const void *buf, int count)
{
    static const int flipped[] = { [FLIP_HEADER] = 8, [FLIP_LENGTH] = 32, [FLIP_PAYLOAD] = 70 };
    int kind = message_fault.kind;
    memcpy(broken, buf, (size_t)count);
    if (kind >= FLIP_HEADER && flipped[kind] < count)
        broken[flipped[kind]] ^= 0x10;
    switch (kind) {
    case TRUNCATE_ALL: return 0;
    case TRUNCATE_HEADER: return 40;
    case TRUNCATE_HALF: return count / 2;
    case TRUNCATE_ONE: return count - 1;
    default: return count;
    }
}

/* The library sends bytes only. */
int MPI_Isend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (message_fault.armed && message_fault.left-- == 0) {
        message_fault.happened = true;
        count = break_message(buf, count);
        buf = broken;
    }
    return PMPI_Isend(buf, count, type, to, tag, comm, request);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool memory_fails(void)
{
    if (!memory_fault.armed || memory_fault.left-- != 0)
        return false;
    memory_fault.happened = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return memory_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return memory_fails() ? NULL : __real_calloc(n, size);
}

struct input {
    int rank, ranks, nnz;
    int index[COUNT];
    float value[COUNT], dense[COUNT], sum[COUNT], out[COUNT];
    unsigned char present[COUNT];
};

static void make_input(struct input *in)
{
    static float absent_too[COUNT];
    MPI_Comm_rank(MPI_COMM_WORLD, &in->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &in->ranks);
    for (int i = in->rank % 3; i < COUNT; i += 3 + (i * 7 + in->rank) % 11) {
        in->index[in->nnz] = i;
        in->value[in->nnz++] = in->dense[i] = (float)(1 + (i + in->rank) % 9);
    }
    memcpy(absent_too, in->dense, sizeof absent_too);
    MPI_Allreduce(absent_too, in->sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int call(struct input *in, bool coo, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    if (!coo)
        return MPIX_Sparse_allreduce(in->dense, in->out, COUNT, MPI_FLOAT, MPI_SUM, comm);
    int code = MPIX_Sparse_allreduce_coo(in->index, in->value, in->nnz, MPI_INT32_T, COUNT, MPI_FLOAT,
                                         MPI_SUM, comm, &result);
    if (code == MPI_SUCCESS)
        MPIX_Sparse_result_dense(result, in->out);
    else if (result != MPIX_SPARSE_RESULT_NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPIX_Sparse_result_free(&result);
    return code;
}

static void expect_right(struct input *in, bool coo, MPI_Comm comm, const char *what)
{
    int code = call(in, coo, comm);
    if (code == MPI_SUCCESS && memcmp(in->out, in->sum, sizeof in->out) == 0)
        return;
    printf("rank %d: the call after %s gives code %d or a wrong sum\n", in->rank, what, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Comm communicator(const char *scheme, const char *wire)
{
    MPI_Comm comm;
    setenv("MPIX_SPARSE_SCHEME", scheme, 1);
    setenv("MPIX_SPARSE_WIRE", wire, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

static bool any(bool mine)
{
    int one = mine, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return all != 0;
}

/* Break message k of the last rank; whether there was one. A damaged header must be noticed. */
static bool break_one(struct input *in, bool coo, MPI_Comm comm, long k, int kind)
{
    message_fault.armed = in->rank == in->ranks - 1;
    message_fault.left = k;
    message_fault.kind = kind;
    message_fault.happened = false;
    int code = call(in, coo, comm);
    message_fault.armed = false;
    bool happened = any(message_fault.happened), noticed = any(code != MPI_SUCCESS);
    if (happened && kind != FLIP_PAYLOAD && !noticed) {
        printf("message fault %d at message %ld went unnoticed\n", kind, k);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return happened;
}

static long break_messages(struct input *in)
{
    long faults = 0;
    for (size_t i = 0; i < 12; i++) {
        MPI_Comm comm = communicator(schemes[i % 4], wires[i / 4]);
        for (int kind = 0; kind < KINDS; kind++) {
            bool coo = (i + (size_t)kind) % 2 == 0;
            expect_right(in, coo, comm, "nothing");
            for (long k = 0; k < MOST_FAULTS && break_one(in, coo, comm, k, kind); k++, faults++)
                expect_right(in, coo, comm, "a broken message");
        }
        MPI_Comm_free(&comm);
    }
    return faults;
}

/* Allocation k of the last rank fails, in the first call on a communicator or in a later one. */
static bool starve_one(struct input *in, bool coo, MPI_Comm comm, long k)
{
    memory_fault.armed = in->rank == in->ranks - 1;
    memory_fault.left = k;
    memory_fault.happened = false;
    int code = call(in, coo, comm);
    memory_fault.armed = false;
    bool happened = any(memory_fault.happened);
    if (!happened && any(code != MPI_SUCCESS))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return happened;
}

static long starve(struct input *in)
{
    long faults = 0;
    bool more = true;
    for (size_t i = 0; i < 8; i++, more = true) {
        for (long k = 0; k < MOST_FAULTS && more; k++) {
            MPI_Comm comm = communicator(schemes[i / 2], "auto");
            more = starve_one(in, i % 2 == 0, comm, k);
            faults += more;
            expect_right(in, i % 2 == 0, comm, "an allocation that failed");
            MPI_Comm_free(&comm);
        }
    }
    return faults;
}

int main(int argc, char **argv)
{
    static struct input in;
    MPI_Init(&argc, &argv);
    alarm(PATIENCE);
    make_input(&in);
    long messages = break_messages(&in), allocations = starve(&in);
    if (in.rank == 0)
        printf("# faults: %ld broken messages, %ld failing allocations\n", messages, allocations);
    MPI_Finalize();
    return allocations == 0 || (in.ranks > 1 && messages == 0);
}
