/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the throttle. A rank posts at most a given number of long messages to other nodes at a time, or more
 * while their bytes are within the window. It posts short messages, and messages within the node, at once.
 * All messages arrive, whatever the chunk size.
 *
 * Link with -Wl,--wrap=PMPI_Isend, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "comm/exchange.h"

int __real_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);

static int sent; /* messages posted to MPI */

int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    sent++;
    return __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
}

enum { LANES = SAR_CHANNEL_CLASSES, NODES = 2, COUNT = 200000, LONG = 65536 };

/* Number of ranks on other nodes. */
static int far_ranks(const struct sar_comm *net)
{
    return ranks - sar_nodes_size(&net->nodes, net->nodes.node[rank]);
}

static void check_arrived(const struct sar_exchange *x, uint64_t bytes)
{
    for (int port = 0; port < LANES * ranks; port++) {
        const unsigned char *data = x->arrived[port].buffer;
        if (port % ranks == rank)
            continue;
        check(x->arrived[port].bytes == bytes && data[0] == port % ranks && data[bytes - 1] == port % ranks,
              "expected %llu bytes at port %d, found %llu", (unsigned long long)bytes, port,
              (unsigned long long)x->arrived[port].bytes);
    }
}

/* Send messages of this size to all other ranks on all channels; the first `at_once` are posted
 * immediately. */
static void exchange(struct sar_exchange *x, uint64_t bytes, int at_once, int most_long)
{
    unsigned char *buffer = malloc(bytes);
    bool done = false;
    memset(buffer, rank, bytes);
    sar_exchange_begin_phase(x, 1, 0);
    sent = 0;
    for (int port = 0; port < LANES * ranks; port++)
        if (port % ranks != rank) {
            sar_exchange_expect(x, port);
            sar_exchange_send(x, port, &(struct sar_msg){ .buffer = buffer, .bytes = bytes });
        }
    check(sent == at_once, "expected %d messages to be sent at first, found %d", at_once, sent);
    while (!done) {
        sar_exchange_advance(x, false, &done);
        check(x->long_in_flight <= most_long, "found %d long messages under way", x->long_in_flight);
    }
    check(sent == LANES * (ranks - 1), "expected %d messages to be sent, found %d", LANES * (ranks - 1),
          sent);
    check(x->status == SAR_OK, "expected no failure");
    check_arrived(x, bytes);
    free(buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void try_exchanges(struct sar_comm *net, int throttle, int window)
{
    struct sar_arena arena = { 0 };
    struct sar_exchange x;
    int all = LANES * (ranks - 1), far = LANES * far_ranks(net), most = window > throttle ? window : throttle;
    check_case("%d long messages at a time, a window of %d", throttle, window);
    net->throttle = throttle;
    net->window_bytes = (uint64_t)window * LONG;
    check(sar_exchange_open(net, &arena, &x) == SAR_OK, "expected memory");
    exchange(&x, LONG - 1, all, 0);
    exchange(&x, LONG, throttle == 0 || far < most ? all : all - far + most, most);
    sar_arena_free(&arena);
}

/* Complete calls with long messages in chunks. */
static void try_calls(void)
{
    float *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);
    MPI_Comm comm;
    check_case("calls of messages in pieces, one long message at a time");
    setenv("MPIX_SPARSE_THROTTLE", "1", 1);
    setenv("MPIX_SPARSE_CHUNK", "20000", 1);
    setenv("MPIX_SPARSE_NODES", "64", 1);
    setenv("MPIX_SPARSE_SCHEME", "balanced", 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = rank % 2; i < COUNT; i += 2)
        in[i] = (float)(rank + 1);
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    MPI_Allreduce(MPI_IN_PLACE, in, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check(memcmp(in, out, COUNT * sizeof *in) == 0, "expected the sums of MPI_Allreduce");
    MPI_Comm_free(&comm);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    struct sar_comm net;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check(sar_comm_open(MPI_COMM_WORLD, &net) == SAR_OK, "expected a communicator");
    net.chunk = 1 << 30;
    net.long_message = LONG;
    sar_nodes_override(&net.nodes, ranks, NODES);
    for (int throttle = 0; throttle < 4; throttle++)
        try_exchanges(&net, throttle, 0);
    try_exchanges(&net, 1, 3);
    try_exchanges(&net, 3, 1);
    sar_comm_close(&net);
    try_calls();
    return check_end("send_window");
}
