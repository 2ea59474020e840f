/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests broadcasts of few elements of a long vector: a rank sends one message to each of its children. A
 * PMPI_Isend of this program counts messages. Tests that reports have them. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "check.h"

/** Most messages of a rank: to children in the tree, and the next rank of the node. */
enum { CHILDREN_MAX = 5 };

static long sent;

/* The library calls this name. MPI's own function also has the MPI_ name. */
int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm to_comm,
               MPI_Request *request)
{
    sent++;
    return MPI_Isend(buffer, n, type, to, tag, to_comm, request);
}

static MPI_Comm comm;

static void check_messages(void)
{
    check(sent <= CHILDREN_MAX, "expected at most %d messages, found %ld", CHILDREN_MAX, sent);
}

static void check_report(MPI_Count count, MPI_Count nnz)
{
    MPIX_Sparse_report_t report;
    long long messages = sent, all, received = 0, bytes;
    bool moved = ranks > 1;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, "trees") == 0 && strcmp(report.push_wire, "none") == 0,
          "expected trees without a push, found %s, %s", report.scheme, report.push_wire);
    check(strncmp(report.reason, "a broadcast of 1 pieces over ", 29) == 0, "found %s", report.reason);
    check((strcmp(report.pull_wire, "none") != 0) == moved, "found the format %s", report.pull_wire);
    check(report.count == count && report.row == 1 && report.ranks == ranks, "found another vector");
    check(report.nnz_out == nnz && report.nnz_in_max == nnz && report.nnz_in_sum == nnz,
          "expected %lld elements, found %lld", (long long)nnz, (long long)report.nnz_out);
    check(report.nnz_in == (rank == 0 ? nnz : 0), "found %lld elements of this rank",
          (long long)report.nnz_in);
    check(report.messages_sent == messages, "expected %lld messages, found %lld", messages,
          (long long)report.messages_sent);
    check(report.header_bytes_sent == messages * 32, "expected headers of 32 bytes");
    bytes = report.bytes_sent;
    MPI_Allreduce(&bytes, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    bytes = report.bytes_received;
    MPI_Allreduce(&bytes, &received, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(all == received && (all >= 32 * (ranks - 1)), "sent %lld and received %lld bytes", all, received);
    check(report.measured_seconds > 0 && report.predicted_seconds >= 0, "expected times");
}

/* Indices lie at both ends and close together. */
static void check_coo(MPI_Count count, int nnz)
{
    int64_t indices[64];
    uint16_t values[64];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const void *got_indices, *got_values;
    MPI_Count got;
    for (int i = 0; i < nnz; i++) {
        indices[i] = i % 2 ? count - nnz + i : i;
        values[i] = (uint16_t)(i + 1);
    }
    check_case("coo: %d of %lld elements", nnz, (long long)count);
    sent = 0;
    check_success(MPIX_Sparse_bcast_coo(indices, values, rank == 0 ? nnz : 0, MPI_INT64_T, count,
                                        MPI_UINT16_T, 0, comm, &result),
                  "MPIX_Sparse_bcast_coo");
    check_messages();
    check_report(count, nnz);
    MPIX_Sparse_result_get(result, &got, &got_indices, &got_values);
    check(got == nnz, "expected %d elements, found %lld", nnz, (long long)got);
    for (int k = 0; k < nnz; k++) {
        int64_t index = ((const int64_t *)got_indices)[k];
        int i = index < nnz ? (int)index : (int)(index - count + nnz);
        check(indices[i] == index && ((const uint16_t *)got_values)[k] == values[i],
              "expected the element at %lld, found another one", (long long)indices[i]);
    }
    MPIX_Sparse_result_free(&result);
}

/* The changes are the last ones of the vector, or there are none. */
static void check_delta(size_t count, size_t changes, bool in_place)
{
    uint16_t *before = get_memory(count, sizeof *before), *after = get_memory(count, sizeof *after);
    for (size_t i = 0; i < count; i++)
        before[i] = after[i] = (uint16_t)mix(i);
    for (size_t i = 0; i < changes; i++)
        after[count - 1 - 3 * i] ^= 5;
    check_case("delta: %zu of %zu elements, in place %d", changes, count, in_place);
    sent = 0;
    if (rank == 0) {
        check_success(MPIX_Sparse_bcast_delta(before, after, (MPI_Count)count, MPI_UINT16_T, 0, comm),
                      "root");
    } else {
        uint16_t *buf = get_memory(count, sizeof *buf);
        memcpy(buf, before, in_place ? count * sizeof *buf : 0);
        check_success(MPIX_Sparse_bcast_delta(in_place ? MPI_IN_PLACE : before, buf, (MPI_Count)count,
                                              MPI_UINT16_T, 0, comm),
                      "other ranks");
        check(memcmp(buf, after, count * sizeof *buf) == 0, "expected the new version");
        free(buf);
    }
    check_messages();
    check_report((MPI_Count)count, (MPI_Count)changes);
    free(before);
    free(after);
}

int main(int argc, char **argv)
{
    const struct settings settings = { .scheme = "auto" };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(300);
    const int nodes[] = { 1, 2, ranks };
    for (size_t i = ranks > 2 ? 0 : 1; i < LENGTH(nodes); i++) {
        nodes_set(nodes[i]);
        comm = settings_comm(&settings);
        check_coo(100, 3);
        check_coo(100000000, 0);
        check_coo(100000001, 10);
        check_coo((MPI_Count)1 << 31, 64);
        for (int in_place = 0; in_place < 2; in_place++) {
            check_delta(3000000, 0, in_place);
            check_delta(3000000, 50, in_place);
            check_delta(40001, 7, in_place);
        }
        MPI_Comm_free(&comm);
    }
    return check_end("bcast_few");
}
