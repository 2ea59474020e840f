/* SPDX-License-Identifier: BSD-3-Clause */
/* Each part of a push leaves as soon as it is encoded, and messages of others are taken in between. A rank
 * that fails to encode a part still tells all whom it has not sent theirs: nobody waits.
 *
 * Link with -Wl,--wrap= of PMPI_Isend, PMPI_Irecv and sar_message_encode, and with the library's objects. */

#include <mpix_sparse.h>

#include "check.h"
#include "wire/message.h"

enum {
    NNZ = 20000,
    STEP = 7,
    COUNT = NNZ * STEP,
    PUSH = 5000 /* bytes, at least */,
    TAG = 77,
    PATIENCE = 200 /* seconds */
};

static bool armed, told;
static int encoded, sent, received; /* of the call */
static int fails;                   /* the encoding that does, from 1 on; or 0 */

enum sar_status __real_sar_message_encode(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                          const struct sar_run *run, struct sar_arena *arena,
                                          struct sar_message *message);
enum sar_status __wrap_sar_message_encode(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                          const struct sar_run *run, struct sar_arena *arena,
                                          struct sar_message *message);
int __real_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __real_PMPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request);

/* On rank 0 until all others have sent it their parts. */
static void hear_from_all(void)
{
    for (int r = 1; r < ranks; r++)
        MPI_Recv(NULL, 0, MPI_BYTE, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void check_order(void)
{
    check(sent == encoded, "expected %d messages before part %d is encoded, found %d", encoded, encoded + 1,
          sent);
    if (rank == 0 && encoded == 0)
        hear_from_all();
    if (rank == 0 && encoded == ranks - 2)
        check(received > 0, "expected that parts are received before the last is encoded");
}

enum sar_status __wrap_sar_message_encode(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                          const struct sar_run *run, struct sar_arena *arena,
                                          struct sar_message *message)
{
    if (armed && encoded < ranks - 1)
        check_order();
    if (++encoded == fails)
        return SAR_NO_MEMORY;
    return __real_sar_message_encode(envelope, wire, run, arena, message);
}

/* What is longer than the messages about a call is the push, and later the pull. */
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    int code = __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
    sent += n > PUSH;
    if (armed && n > PUSH && to == 0 && !told) {
        told = true;
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

static int call(MPI_Comm comm)
{
    static int32_t index[NNZ];
    static float value[NNZ];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < NNZ; i++) {
        index[i] = i * STEP;
        value[i] = (float)(rank + 1);
    }
    encoded = sent = received = 0;
    told = false;
    int code =
        MPIX_Sparse_allreduce_coo(index, value, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, &result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    return code;
}

static void try_scheme(const char *scheme)
{
    MPI_Comm comm = knobs_comm(&(struct knobs){ scheme, "coo", NULL, NULL, NULL });
    check_case("scheme %s", scheme);
    armed = true;
    check_success(call(comm), "MPIX_Sparse_allreduce_coo");
    armed = false;
    check(encoded >= ranks - 1, "expected %d messages of the push", ranks - 1);
    for (int part = 1; part < ranks; part++) {
        check_case("scheme %s, encoding %d fails on the last rank", scheme, part);
        fails = rank == ranks - 1 ? part : 0;
        check(call(comm) != MPI_SUCCESS, "expected that the call fails");
        fails = 0;
        check_success(call(comm), "the next call");
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "balanced", "omni", "split_allgather", "split_dense", "sparse_ps",
                                           "oktopk",   NULL };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks < 3)
        return check_pass_over("streaming", "two parts to be sent are needed");
    check_alarm(PATIENCE);
    for (int i = 0; schemes[i] != NULL; i++)
        try_scheme(schemes[i]);
    return check_end("streaming");
}
