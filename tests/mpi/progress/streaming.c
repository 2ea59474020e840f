/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that each part of a push is sent as soon as it is encoded, and that messages are received in between.
 * A rank that fails to encode a part notifies all ranks that still expect one, so nobody waits.
 *
 * Link with -Wl,--wrap= of PMPI_Isend, PMPI_Iprobe, PMPI_Irecv, PMPI_Testsome and sar_msg_encode, and with
 * the library's objects. */

#include <mpix_sparse.h>
#include <time.h>

#include "check.h"
#include "wire/message.h"

enum {
    NNZ = 20000,
    MANY = 300000, /* a part then has many chunks */
    STEP = 7,
    PUSH = 5000 /* lower bound in bytes */,
    TAG = 77,
    REQUESTS_EACH = 4, /* requests for one peer: two channels, both directions */
    LOOKS = 50,
    TRIES = 500,
    TIMEOUT = 200 /* seconds */
};

static bool armed, notified;
static int encoded, sent, received; /* counters of the call */
static int fails;                   /* number of the encoding that fails, from 1; or 0 */
static bool blind;                  /* PMPI_Testsome rarely reports completions */
static int looks;

enum sar_status __real_sar_msg_encode(const struct sar_msg_key *msg_key, const struct sar_wire *wire,
                                      const struct sar_spvec *run, struct sar_arena *arena,
                                      struct sar_msg *message);
enum sar_status __wrap_sar_msg_encode(const struct sar_msg_key *msg_key, const struct sar_wire *wire,
                                      const struct sar_spvec *run, struct sar_arena *arena,
                                      struct sar_msg *message);
int __real_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __real_PMPI_Testsome(int n, MPI_Request requests[], int *over, int list[], MPI_Status statuses[]);
int __wrap_PMPI_Testsome(int n, MPI_Request requests[], int *over, int list[], MPI_Status statuses[]);
int __real_PMPI_Iprobe(int from, int tag, MPI_Comm comm, int *seen, MPI_Status *status);
int __wrap_PMPI_Iprobe(int from, int tag, MPI_Comm comm, int *seen, MPI_Status *status);
int __real_PMPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request);

/* On rank 0, wait until all others have sent their parts to it. */
static void receive_from_all(void)
{
    for (int r = 1; r < ranks; r++)
        MPI_Recv(NULL, 0, MPI_BYTE, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void check_order(void)
{
    check(sent == encoded, "expected %d messages before part %d is encoded, found %d", encoded, encoded + 1,
          sent);
    if (rank == 0 && encoded == 0)
        receive_from_all();
    if (rank == 0 && encoded == ranks - 2)
        check(received > 0, "expected that parts are received before the last is encoded");
}

enum sar_status __wrap_sar_msg_encode(const struct sar_msg_key *msg_key, const struct sar_wire *wire,
                                      const struct sar_spvec *run, struct sar_arena *arena,
                                      struct sar_msg *message)
{
    if (armed && encoded < ranks - 1)
        check_order();
    if (blind && rank == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL); /* others send in the meantime */
    if (++encoded == fails)
        return SAR_NO_MEMORY;
    return __real_sar_msg_encode(msg_key, wire, run, arena, message);
}

/* A message longer than those of the consistency check belongs to the push, and later to the pull. */
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    int code = __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
    sent += n > PUSH;
    if (armed && n > PUSH && to == 0 && !notified) {
        notified = true;
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
    return code;
}

int __wrap_PMPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    received += n > PUSH;
    return __real_PMPI_Irecv(buf, n, type, from, tag, comm, request);
}

/* Report completions late, as MPI may. */
int __wrap_PMPI_Testsome(int n, MPI_Request requests[], int *over, int list[], MPI_Status statuses[])
{
    check(n <= REQUESTS_EACH * ranks, "expected at most %d requests under way, found %d",
          REQUESTS_EACH * ranks, n);
    if (blind && ++looks % LOOKS != 0) {
        *over = 0;
        return MPI_SUCCESS;
    }
    return __real_PMPI_Testsome(n, requests, over, list, statuses);
}

/* Report a message late, as MPI may. */
int __wrap_PMPI_Iprobe(int from, int tag, MPI_Comm comm, int *seen, MPI_Status *status)
{
    int code = __real_PMPI_Iprobe(from, tag, comm, seen, status);
    for (int i = 0; blind && rank == 0 && code == MPI_SUCCESS && !*seen && i < TRIES; i++)
        code = __real_PMPI_Iprobe(from, tag, comm, seen, status);
    return code;
}

static int call(MPI_Comm comm, int nnz)
{
    static int32_t index[MANY];
    static float value[MANY];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < nnz; i++) {
        index[i] = i * STEP;
        value[i] = (float)(rank + 1);
    }
    encoded = sent = received = 0;
    notified = false;
    int code = MPIX_Sparse_allreduce_coo(index, value, nnz, MPI_INT32_T, nnz * STEP, MPI_FLOAT, MPI_SUM, comm,
                                         &result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    return code;
}

static void try_scheme(const char *scheme)
{
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, "coo", NULL, NULL, NULL });
    check_case("scheme %s", scheme);
    armed = true;
    check_success(call(comm, NNZ), "MPIX_Sparse_allreduce_coo");
    armed = false;
    check(encoded >= ranks - 1, "expected %d messages of the push", ranks - 1);
    for (int part = 1; part < ranks; part++) {
        check_case("scheme %s, encoding %d fails on the last rank", scheme, part);
        fails = rank == ranks - 1 ? part : 0;
        check(call(comm, NNZ) != MPI_SUCCESS, "expected that the call fails");
        fails = 0;
        check_success(call(comm, NNZ), "the next call");
    }
    MPI_Comm_free(&comm);
}

/* Messages in many chunks, more than the receives that may be posted at a time. */
static void try_pieces(const char *scheme)
{
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, "coo", NULL, NULL, "1073741824" });
    check_case("scheme %s, in pieces", scheme);
    blind = true;
    check_success(call(comm, MANY), "MPIX_Sparse_allreduce_coo");
    blind = false;
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_OWNER_SCHEME, NULL };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks < 3)
        return check_skip("streaming", "two parts to be sent are needed");
    check_alarm(TIMEOUT);
    for (int i = 0; schemes[i] != NULL; i++)
        try_scheme(schemes[i]);
    try_pieces("sparse_ps");
    return check_end("streaming");
}
