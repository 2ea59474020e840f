/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the settings at MPI_Init, keeps the tables as attributes, and writes the report at MPI_Finalize. */

#include "preload/state.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "comm/calibration.h"
#include "core/policy.h"
#include "mpi_ext/launcher.h"

enum { FIRST_CALLS = 3 };

struct sar_preload sar_preload;

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag)
{
    const struct sar_comm_policy *source = from;
    struct sar_comm_policy *policy = calloc(1, sizeof *policy);
    (void)comm, (void)key, (void)extra;
    if (policy == NULL)
        return MPI_ERR_NO_MEM;
    policy->excluded = source->excluded;
    policy->ranks = source->ranks;
    sar_preload_table_inherit(&policy->table, &source->table);
    *(void **)to = policy;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra)
{
    struct sar_comm_policy *policy = value;
    (void)comm, (void)key, (void)extra;
    for (int i = 0; i < policy->dup_count; i++)
        PMPI_Comm_free(&policy->dups[i]);
    free(policy);
    return MPI_SUCCESS;
}

/* True if nonblocking calls can run at the thread level that the program has requested. */
static bool can_run_nonblocking(const struct sar_config *config)
{
    int level = MPI_THREAD_SINGLE;
#ifdef HAVE_MPIX_GREQUEST_START
    if (config->progress == SAR_PROGRESS_WAIT)
        return true;
#else
    (void)config;
#endif
    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

static void check_nonblocking(struct sar_config *config)
{
    if (!config->preload_nonblocking || can_run_nonblocking(config))
        return;
    config->preload_nonblocking = false;
    fprintf(stderr, "mpix_sparse_preload: the program has not asked for MPI_THREAD_MULTIPLE; nonblocking and "
                    "persistent calls are left to MPI\n");
}

/* Ignores a file with constants of another machine, as the library does. */
static enum sar_status check_calibration(const struct sar_config *config, char *error_text, size_t capacity)
{
    struct sar_config tried = *config;
    struct sar_machine machine;
    bool fits;
    if (strcmp(config->calibration, "none") == 0)
        return SAR_OK;
    return sar_calibration_apply(&tried, NULL, &machine, &fits, error_text, capacity);
}

/* Checks all settings here: a bad one would otherwise fail a call of a program that knows no settings. */
static enum sar_status load(struct sar_config *config, char *error_text, size_t capacity)
{
    SAR_TRY(sar_config_load(config, sar_env_setting, NULL, error_text, capacity));
    SAR_TRY(sar_policy_check(config, error_text, capacity));
    return check_calibration(config, error_text, capacity);
}

/* All ranks use rank 0's settings, since their decisions must be equal. */
void sar_preload_begin(void)
{
    struct {
        enum sar_status status;
        struct sar_config config;
    } settings;
    char error_text[256];
    int rank;
    memset(&settings, 0, sizeof settings);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sar_launcher_check();
    if (rank == 0) {
        sar_config_warn_unknown();
        settings.status = load(&settings.config, error_text, sizeof error_text);
        if (settings.status != SAR_OK)
            fprintf(stderr, "mpix_sparse_preload: %s; all calls are left to MPI\n", error_text);
        else
            check_nonblocking(&settings.config);
    }
    PMPI_Bcast(&settings, (int)sizeof settings, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (settings.status != SAR_OK || PMPI_Comm_create_keyval(copy, drop, &keyval, NULL) != MPI_SUCCESS)
        return;
    sar_preload.config = settings.config;
    sar_preload.chooses = strcmp(settings.config.scheme, "auto") == 0;
    sar_preload.params =
        (struct sar_preload_params){ settings.config.preload_limit, sar_preload.chooses ? FIRST_CALLS : 0 };
    sar_preload.reporting = rank == 0 && strcmp(settings.config.preload_report, "none") != 0;
    sar_preload.on = true;
}

static void report(void)
{
    const char *path = sar_preload.config.preload_report;
    FILE *file = fopen(path, "w");
    if (file != NULL)
        sar_stats_write(file, sar_preload.rows, sar_preload.others);
    if (file == NULL || fclose(file) != 0)
        fprintf(stderr, "mpix_sparse_preload: cannot write %s: %s\n", path, strerror(errno));
}

void sar_preload_end(void)
{
    if (!sar_preload.on)
        return;
    if (sar_preload.reporting)
        report();
    sar_preload.on = false;
    sar_stats_free(&sar_preload.rows);
    PMPI_Comm_free_keyval(&keyval);
}

static struct sar_comm_policy *comm_policy_create(MPI_Comm comm)
{
    struct sar_comm_policy *policy = calloc(1, sizeof *policy);
    int inter;
    if (policy == NULL)
        return NULL;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &policy->ranks);
    policy->excluded = inter || policy->ranks == 1;
    if (PMPI_Comm_set_attr(comm, keyval, policy) == MPI_SUCCESS)
        return policy;
    free(policy);
    return NULL;
}

struct sar_comm_policy *sar_preload_comm_policy(MPI_Comm comm)
{
    struct sar_comm_policy *policy;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &policy, &found) != MPI_SUCCESS)
        return NULL;
    return found ? policy : comm_policy_create(comm);
}

bool sar_preload_has_budget(void)
{
    pthread_mutex_lock(&lock);
    bool can_pay = sar_preload.budget_used == 0;
    pthread_mutex_unlock(&lock);
    return can_pay;
}

void sar_preload_charge_setup(void)
{
    pthread_mutex_lock(&lock);
    sar_preload.budget_used = sar_budget_charge_setup(sar_preload.budget_used, &sar_preload.params);
    pthread_mutex_unlock(&lock);
}

void sar_preload_repay(const struct sar_preload_key *key, bool gained)
{
    pthread_mutex_lock(&lock);
    sar_preload.budget_used = sar_budget_repay(sar_preload.budget_used, key, &sar_preload.params, gained);
    pthread_mutex_unlock(&lock);
}

void sar_preload_count(const struct sar_stats_call *stats)
{
    if (!sar_preload.reporting)
        return;
    pthread_mutex_lock(&lock);
    sar_stats_add(&sar_preload.rows, stats);
    pthread_mutex_unlock(&lock);
}
