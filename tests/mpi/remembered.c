/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of the machine are measured once for the same processes in the same order, and again for others.
 *
 * Link with -Wl,--wrap=PMPI_Sendrecv, and with the library's objects. */

#include <mpix_sparse.h>

#include "check.h"
#include "net/machine.h"

int __real_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);
int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);

static int messages;

int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status)
{
    messages++;
    return __real_PMPI_Sendrecv(out, n, type, to, tag, in, m, type_in, from, tag_in, comm, status);
}

/* Use a communicator for the first time, and free it; whether that took measuring. */
static bool measures(MPI_Comm comm)
{
    int one = 1, sum = 0, size;
    messages = 0;
    MPI_Comm_size(comm, &size);
    check_success(MPIX_Sparse_allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(sum == size, "expected %d, found %d", size, sum);
    MPI_Comm_free(&comm);
    return messages > 0;
}

static MPI_Comm split(int colour, int key)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm);
    return comm;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks < 3)
        return check_pass_over("remembered", "two ranks have too few orders");
    check_case("first use");
    check(measures(split(0, rank)), "expected constants to be measured");
    check_case("the same processes again");
    check(!measures(split(0, rank)), "expected nothing to be measured");
    check_case("another order");
    check(measures(split(0, -rank)), "expected constants to be measured");
    check(!measures(split(0, -rank)), "expected nothing to be measured");
    check_case("fewer processes");
    bool few = rank < 2;
    check(measures(split(few, rank)) || (!few && ranks == 3), "expected constants to be measured");
    check(!measures(split(few, rank)), "expected nothing to be measured");
    check_case("some have forgotten");
    if (rank == 0)
        sar_machine_forget();
    check(measures(split(0, rank)), "expected constants to be measured by all");
    check(!measures(split(0, rank)), "expected nothing to be measured");
    nodes_set(ranks);
    check_case("other nodes");
    MPI_Comm apart = knobs_comm(&(struct knobs){ "balanced", NULL, NULL, NULL, NULL });
    check(messages > 0, "expected constants to be measured");
    MPI_Comm_free(&apart);
    return check_end("remembered");
}
