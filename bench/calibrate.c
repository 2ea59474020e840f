/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library measures when a communicator is first used, but more often: the least of many rounds is
 * what the machine can do. */

#include "calibrate.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "net/calibration.h"

static void keep_least(struct sar_machine *least, const struct sar_machine *m)
{
#define KEEP(constant) least->constant = fmin(least->constant, m->constant);
    SAR_MACHINE_CONSTANTS(KEEP)
}

static enum sar_status measure(const struct sar_net *net, int rounds, struct sar_calibration *calibration)
{
    SAR_TRY(sar_fingerprint_make(net, &calibration->fingerprint));
    SAR_TRY(sar_machine_measure(net, &calibration->machine));
    for (int i = 1; i < rounds; i++) {
        struct sar_machine again;
        sar_machine_forget();
        SAR_TRY(sar_machine_measure(net, &again));
        keep_least(&calibration->machine, &again);
    }
    return SAR_OK;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

static void print(const char *path, const struct sar_calibration *c)
{
    const struct sar_fingerprint *f = &c->fingerprint;
    const struct sar_machine *m = &c->machine;

    printf("# %s, %d rank%s on %d node%s, %s, %d processor%s\n", f->mpi, f->ranks, plural(f->ranks), f->nodes,
           plural(f->nodes), f->cpu, f->processors, plural(f->processors));
    printf("alpha %.3g s, overhead %.3g s, beta %.3g s/B, gamma %.3g s/element, memory %.3g s/B\n", m->alpha,
           m->overhead, m->beta, m->gamma, m->memory);
    printf("dense_alpha %.3g s, dense_beta %.3g s/B, near_alpha %.3g s, near_overhead %.3g s, "
           "near_beta %.3g s/B\n# written to %s\n",
           m->dense_alpha, m->dense_beta, m->near_alpha, m->near_overhead, m->near_beta, path);
}

/* On rank 0. */
static enum sar_status save(const char *path, const struct sar_calibration *calibration)
{
    char why[256] = "out of memory";
    enum sar_status status = sar_calibration_write(path, calibration, why, sizeof why);

    if (status == SAR_OK)
        print(path, calibration);
    else
        fprintf(stderr, "mpix_sparse_perf: option --calibrate: %s\n", why);
    return status;
}

bool perf_calibrate(const char *path, int rounds)
{
    struct sar_calibration calibration;
    struct sar_net net;
    enum sar_status status = sar_net_open(MPI_COMM_WORLD, &net);

    if (status != SAR_OK)
        return false;
    memset(&calibration, 0, sizeof calibration);
    status = measure(&net, rounds, &calibration);
    if (status == SAR_OK && net.rank == 0)
        status = save(path, &calibration);
    status = sar_net_worst(&net, status);
    sar_net_close(&net);
    return status == SAR_OK;
}
