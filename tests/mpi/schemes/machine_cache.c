/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that machine constants are measured once for the same processes in the same order, and again for
 * others. All ranks use equal constants, whatever their own caches hold.
 *
 * Link with -Wl,--wrap=PMPI_Sendrecv,--wrap=sar_comm_max, and with the library's objects. */

#include <mpix_sparse.h>

#include "check.h"
#include "mpi_ext/attribute.h"
#include "core/comm_state.h"

enum sar_status __real_sar_comm_max(const struct sar_comm *net, double *values, int n);
enum sar_status __wrap_sar_comm_max(const struct sar_comm *net, double *values, int n);

int __real_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);
int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);

static int messages;
static bool differs; /* the measured value, on rank 0 */

enum sar_status __wrap_sar_comm_max(const struct sar_comm *net, double *values, int n)
{
    enum sar_status status = __real_sar_comm_max(net, values, n);
    if (differs && rank == 0 && n > 1)
        values[0] *= 2;
    return status;
}

int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status)
{
    messages++;
    return __real_PMPI_Sendrecv(out, n, type, to, tag, in, m, type_in, from, tag_in, comm, status);
}

/* Use a communicator for the first time, and free it. Returns true if that measured constants. */
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

/* Open a communicator's state; returns its constants. */
static struct sar_machine look_at(MPI_Comm comm)
{
    struct sar_comm_state *context = NULL;
    char sentence[SAR_ERROR_TEXT_SIZE];
    check(sar_comm_state_get_status(comm, &context, sentence) == SAR_OK, "expected a context: %s", sentence);
    struct sar_machine machine = context->settings.machine;
    MPI_Comm_free(&comm);
    return machine;
}

static void remember_differently(void)
{
    check_case("ranks remember different constants");
    sar_machine_forget();
    differs = true;
    double alpha = look_at(split(0, rank)).alpha, alphas[2] = { alpha, -alpha };
    differs = false;
    MPI_Allreduce(MPI_IN_PLACE, alphas, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    check(alphas[0] != -alphas[1], "expected ranks to have measured different constants");
    struct sar_machine again = look_at(split(0, rank));
    check_equal_on_ranks(hash_bytes(&again.alpha, sizeof again.alpha, 1),
                         "a constant of the next communicator");
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks < 3)
        return check_skip("machine_cache", "two ranks have too few orders");
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
    remember_differently();
    nodes_set(ranks);
    check_case("other nodes");
    MPI_Comm separate = settings_comm(&(struct settings){ "balanced", NULL, NULL, NULL, NULL });
    check(messages > 0, "expected constants to be measured");
    MPI_Comm_free(&separate);
    return check_end("machine_cache");
}
