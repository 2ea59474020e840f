/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload/state.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/calibration.h"
#include "plan/context.h"

enum { FIRST_CALLS = 3 };

struct sar_preload sar_preload;

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag)
{
    const struct sar_followed *old = from;
    struct sar_followed *made = calloc(1, sizeof *made);
    (void)comm, (void)key, (void)extra;
    if (made == NULL)
        return MPI_ERR_NO_MEM;
    made->never = old->never;
    made->ranks = old->ranks;
    sar_shapes_inherit(&made->table, &old->table);
    *(void **)to = made;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra)
{
    struct sar_followed *followed = value;
    (void)comm, (void)key, (void)extra;
    for (int i = 0; i < followed->owned; i++)
        PMPI_Comm_free(&followed->own[i]);
    free(followed);
    return MPI_SUCCESS;
}

/* Whether the library's nonblocking calls can do without what the program has not asked for. */
static bool can_fly(const struct sar_config *config)
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

static void leave_nonblocking(struct sar_config *config)
{
    if (!config->preload_nonblocking || can_fly(config))
        return;
    config->preload_nonblocking = false;
    fprintf(stderr, "mpix_sparse_preload: the program has not asked for MPI_THREAD_MULTIPLE; nonblocking and "
                    "persistent calls are left to MPI\n");
}

/* A file with constants for another machine is left alone, as the library does. */
static enum sar_status check_calibration(const struct sar_config *config, char *sentence, size_t room)
{
    struct sar_config tried = *config;
    struct sar_machine machine;
    bool fits;
    if (strcmp(config->calibration, "none") == 0)
        return SAR_OK;
    return sar_calibration_apply(&tried, NULL, &machine, &fits, sentence, room);
}

/* What cannot be taken would fail the call that sets the first communicator up, in a program that knows
 * nothing of knobs. */
static enum sar_status load(struct sar_config *config, char *sentence, size_t room)
{
    SAR_TRY(sar_config_load(config, sar_environment, NULL, sentence, room));
    SAR_TRY(sar_context_check(config, sentence, room));
    return check_calibration(config, sentence, room);
}

/* The knobs are rank 0's, since ranks with different ones would part ways. */
void sar_preload_begin(void)
{
    struct {
        enum sar_status status;
        struct sar_config config;
    } told;
    char sentence[256];
    int rank;
    memset(&told, 0, sizeof told);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        told.status = load(&told.config, sentence, sizeof sentence);
        if (told.status != SAR_OK)
            fprintf(stderr, "mpix_sparse_preload: %s; all calls are left to MPI\n", sentence);
        else
            leave_nonblocking(&told.config);
    }
    PMPI_Bcast(&told, (int)sizeof told, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (told.status != SAR_OK || PMPI_Comm_create_keyval(copy, drop, &keyval, NULL) != MPI_SUCCESS)
        return;
    sar_preload.config = told.config;
    sar_preload.chooses = strcmp(told.config.scheme, "auto") == 0;
    sar_preload.habits =
        (struct sar_habits){ told.config.preload_limit, sar_preload.chooses ? FIRST_CALLS : 0 };
    sar_preload.reporting = rank == 0 && strcmp(told.config.preload_report, "none") != 0;
    sar_preload.on = true;
}

static void report(void)
{
    const char *path = sar_preload.config.preload_report;
    FILE *file = fopen(path, "w");
    if (file != NULL)
        sar_tally_write(file, sar_preload.rows, sar_preload.others);
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
    sar_tally_free(&sar_preload.rows);
    PMPI_Comm_free_keyval(&keyval);
}

static struct sar_followed *start(MPI_Comm comm)
{
    struct sar_followed *made = calloc(1, sizeof *made);
    int inter;
    if (made == NULL)
        return NULL;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &made->ranks);
    made->never = inter || made->ranks == 1;
    if (PMPI_Comm_set_attr(comm, keyval, made) == MPI_SUCCESS)
        return made;
    free(made);
    return NULL;
}

struct sar_followed *sar_preload_follow(MPI_Comm comm)
{
    struct sar_followed *followed;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &followed, &found) != MPI_SUCCESS)
        return NULL;
    return found ? followed : start(comm);
}

bool sar_preload_can_pay(void)
{
    pthread_mutex_lock(&lock);
    bool can_pay = sar_preload.debt == 0;
    pthread_mutex_unlock(&lock);
    return can_pay;
}

void sar_preload_owe(void)
{
    pthread_mutex_lock(&lock);
    sar_preload.debt = sar_debt_add(sar_preload.debt, &sar_preload.habits);
    pthread_mutex_unlock(&lock);
}

void sar_preload_pay(const struct sar_shape_key *key, bool gained)
{
    pthread_mutex_lock(&lock);
    sar_preload.debt = sar_debt_pay(sar_preload.debt, key, &sar_preload.habits, gained);
    pthread_mutex_unlock(&lock);
}

void sar_preload_note(const struct sar_note *note)
{
    if (!sar_preload.reporting)
        return;
    pthread_mutex_lock(&lock);
    sar_tally_add(&sar_preload.rows, note);
    pthread_mutex_unlock(&lock);
}
