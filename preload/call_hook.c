/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps around an allreduce of the program: check the arguments, probe the data, decide, record the result.
 * Costs a few comparisons for small calls; a probe is one MPI_Allreduce of two numbers. */

#include "preload/call_hook.h"

#include <string.h>

#include "device/accelerator.h"
#include "mpi_ext/datatypes.h"
#include "vector/dense.h"

enum {
    LARGEST_TYPE = 8,       /* bytes of the largest basic type that the library reduces */
    SAMPLE_ELEMENTS = 1024, /* elements that a probe reads */
    DENSITY_SCALE = 1000000 /* makes densities integers, so that all ranks get the same sum */
};

/* No scheme gains enough at this density of nonzeros or above. */
static const double SPARSE_DENSITY = 0.5;

/* A probe cannot read device memory. MPI may accept such a buffer directly. */
static bool is_on_host(const void *buffer)
{
    return buffer == MPI_IN_PLACE || sar_accelerator_both_on_host(buffer, buffer);
}

static bool buffers_are_valid(const struct sar_mpi_args *args)
{
    return args->sendbuf != NULL && args->recvbuf != NULL && args->recvbuf != MPI_IN_PLACE &&
           args->sendbuf != args->recvbuf && is_on_host(args->sendbuf) && is_on_host(args->recvbuf);
}

static bool eligible(const struct sar_mpi_args *args, struct sar_preload_key *key)
{
    struct sar_operation operation = sar_operation_classify(args->op);
    if (!sar_preload.on || args->comm == MPI_COMM_NULL || !operation.native ||
        !sar_datatype_exact_basic(args->datatype, &operation, &key->base))
        return false;
    key->count = (int64_t)args->count;
    key->op = operation.op;
    uint64_t size = sar_op_kernels_of(key->base, key->op)->size;
    return args->count > 0 && (uint64_t)args->count <= INT64_MAX / size &&
           sar_preload_key_bytes(key) >= sar_preload.config.preload_min_bytes && buffers_are_valid(args);
}

/* True if the vector is too small for any type. Most calls of most programs end here, after one
 * comparison. */
static bool is_small(const struct sar_mpi_args *args)
{
    return (uint64_t)args->count < sar_preload.config.preload_min_bytes / LARGEST_TYPE;
}

struct sar_comm_policy *sar_call_hook_find(const struct sar_mpi_args *args, struct sar_preload_key *key)
{
    bool may_gain = !is_small(args) && eligible(args, key);
    struct sar_comm_policy *policy = may_gain ? sar_preload_comm_policy(args->comm) : NULL;
    if (policy != NULL && !policy->excluded)
        return policy;
    if (sar_preload.reporting)
        __atomic_fetch_add(&sar_preload.others, 1, __ATOMIC_RELAXED);
    return NULL;
}

static const void *input_of(const struct sar_mpi_args *args)
{
    return args->sendbuf == MPI_IN_PLACE ? args->recvbuf : args->sendbuf;
}

static struct sar_vec_desc describe_vector(const struct sar_preload_key *key)
{
    return (struct sar_vec_desc){ .count = (uint64_t)key->count,
                                  .row_len = 1,
                                  .element_size = sar_op_kernels_of(key->base, key->op)->size };
}

/* Density of this rank's vector, estimated from SAMPLE_ELEMENTS elements. Local. */
static double sampled_density(const void *buf, const struct sar_preload_key *key)
{
    struct sar_vec_desc desc = describe_vector(key);
    struct sar_quantiles quantiles;
    return (double)sar_dense_estimate_nonzero(&desc, buf, SAMPLE_ELEMENTS, &quantiles) / (double)key->count;
}

/* Density of this rank's vector, of which all elements are read: a sample may miss elements that lie close
 * together. Local. */
static double exact_density(const void *buf, const struct sar_preload_key *key)
{
    struct sar_vec_desc desc = describe_vector(key);
    return (double)sar_dense_count_nonzero(&desc, buf, (size_t)key->count) / (double)key->count;
}

/* Mean density over all ranks, equal on all; 1 if MPI fails. Sets *can_pay if all ranks can. Collective: one
 * MPI_Allreduce of two numbers. */
static double mean_density(const void *buf, const struct sar_preload_key *key, MPI_Comm comm, int ranks,
                           bool *can_pay)
{
    int64_t mine[2] = { (int64_t)(sampled_density(buf, key) * DENSITY_SCALE), *can_pay }, sum[2];
    if (PMPI_Allreduce(mine, sum, 2, MPI_INT64_T, MPI_SUM, comm) != MPI_SUCCESS)
        return 1;
    *can_pay = sum[1] == ranks;
    return (double)sum[0] / DENSITY_SCALE / ranks;
}

void sar_call_hook_describe(const struct sar_mpi_args *args, const struct sar_preload_entry *entry,
                            enum sar_stats_kind kind, int ranks, struct sar_stats_call *stats)
{
    bool due = sar_preload.reporting && (entry->calls & (entry->calls - 1)) == 0;
    *stats = (struct sar_stats_call){ .kind = kind, .key = entry->key, .ranks = ranks };
    stats->density = due ? exact_density(input_of(args), &entry->key) : -1;
}

/* Probes the data. If the result is sparse, but a rank has no budget for the set-up, the probe has no
 * effect. */
static void probe(const struct sar_mpi_args *args, bool is_set_up, struct sar_call_hook *hook)
{
    struct sar_stats_call *stats = &hook->stats;
    double start = PMPI_Wtime();
    bool can_pay = is_set_up || sar_preload_has_budget();
    stats->sampled = true;
    stats->density = mean_density(input_of(args), &stats->key, args->comm, stats->ranks, &can_pay);
    stats->sample_seconds = PMPI_Wtime() - start;
    bool is_sparse = stats->density < SPARSE_DENSITY || !sar_preload.chooses;
    if (can_pay || !is_sparse)
        sar_preload_entry_sampled(hook->entry, is_sparse);
    stats->taken = hook->entry->taken;
}

static void set_up(struct sar_comm_policy *policy, struct sar_preload_entry *entry)
{
    policy->is_set_up = true;
    sar_preload_entry_charge_setup(entry, &sar_preload.params);
    sar_preload_charge_setup();
}

bool sar_call_hook_begin(const struct sar_mpi_args *args, struct sar_call_hook *hook)
{
    struct sar_preload_key key;
    struct sar_comm_policy *policy = sar_call_hook_find(args, &key);
    if (policy == NULL)
        return false;
    hook->comm = args->comm;
    hook->entry = sar_preload_table_find(&policy->table, &key);
    enum sar_decision decision = sar_preload_entry_decide(hook->entry, &sar_preload.params);
    sar_call_hook_describe(args, hook->entry, SAR_STATS_BLOCKING, policy->ranks, &hook->stats);
    hook->stats.taken = decision == SAR_DECISION_SPARSE;
    if (decision == SAR_DECISION_SAMPLE)
        probe(args, policy->is_set_up, hook);
    if (hook->stats.taken && !policy->is_set_up)
        set_up(policy, hook->entry);
    hook->start = sar_preload.reporting ? PMPI_Wtime() : 0;
    return true;
}

/* A scheme that the user has set is no trial. If the data are dense, another scheme than `dense` was chosen
 * because of noise in its times. */
enum sar_call_gain sar_call_hook_classify(const char *scheme, const char *choice, double density)
{
    bool ran_dense = strcmp(scheme, "dense") == 0, chose_dense = strcmp(choice, "dense") == 0;
    if (!sar_preload.chooses)
        return ran_dense ? SAR_GAIN_NONE : SAR_GAIN_FASTER;
    if (density >= SPARSE_DENSITY)
        return ran_dense ? SAR_GAIN_NONE : SAR_GAIN_LOSS;
    return ran_dense != chose_dense ? SAR_GAIN_TRIAL : ran_dense ? SAR_GAIN_NONE : SAR_GAIN_FASTER;
}

/* Updates the entry from the report of a call that the library ran. */
static enum sar_call_gain update_entry(struct sar_call_hook *hook)
{
    MPIX_Sparse_report_t report;
    PMPIX_Sparse_get_report(hook->comm, &report);
    double density = (double)report.nnz_in_sum / ((double)report.count * report.ranks);
    enum sar_call_gain gain = sar_call_hook_classify(report.scheme, report.choice, density);
    sar_preload_entry_update(hook->entry, &sar_preload.params, gain);
    hook->stats.density = density;
    hook->stats.predicted = report.predicted_seconds;
    memcpy(hook->stats.scheme, report.scheme, sizeof hook->stats.scheme);
    return gain;
}

int sar_call_hook_end(struct sar_call_hook *hook, int code)
{
    if (code != MPI_SUCCESS)
        return code;
    hook->stats.seconds = sar_preload.reporting ? PMPI_Wtime() - hook->start : 0;
    bool gained = hook->stats.taken && update_entry(hook) == SAR_GAIN_FASTER;
    if (gained || !hook->stats.taken)
        sar_preload_repay(&hook->stats.key, gained);
    sar_preload_count(&hook->stats);
    return code;
}

/* Nonblocking calls follow the results of blocking calls. Their own scheme is known only on completion, which
 * ranks may see before different later calls. And a probe or a set-up may wait for other ranks. */
bool sar_call_hook_takes_nonblocking(const struct sar_mpi_args *args)
{
    struct sar_preload_key key;
    struct sar_stats_call stats;
    struct sar_comm_policy *policy = sar_call_hook_find(args, &key);
    if (policy == NULL)
        return false;
    struct sar_preload_entry *entry = sar_preload_table_find(&policy->table, &key);
    entry->calls++;
    sar_call_hook_describe(args, entry, SAR_STATS_NONBLOCKING, policy->ranks, &stats);
    stats.taken = sar_preload.config.preload_nonblocking && entry->sparse;
    sar_preload_count(&stats);
    return stats.taken;
}
