/* SPDX-License-Identifier: BSD-3-Clause */
/* A comm_state is an attribute of its communicator, whose delete function frees it with the communicator.
 * MPI_Finalize does not delete attributes of communicators that still exist, but it deletes those of
 * MPI_COMM_SELF first: a second attribute there frees the remaining comm_states. Sessions have no
 * MPI_COMM_SELF, and no communicator outlives its session: without MPI_COMM_WORLD the last comm_state
 * cleans up the library. */

#include "mpi_ext/attribute.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/parallel.h"
#include "base/trace.h"
#include "device/pinned_ring.h"
#include "mpi_ext/callback_thread.h"
#include "mpi_ext/launcher.h"
#include "mpi_ext/lifecycle.h"
#include "mpi_ext/error.h"
#include "mpi_ext/info.h"
#include "mpi_ext/mpi_request.h"
#include "mpi_ext/datatypes.h"
#include "comm/dense_allreduce.h"
#include "core/lifecycle.h"
#include "core/progress.h"

/* A comm_state and its communicator. */
struct owner {
    MPI_Comm comm;
    struct sar_comm_state *comm_state;
    struct owner *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID, finalize_keyval = MPI_KEYVAL_INVALID;
static struct owner *owners; /* of all existing comm_states; under the lock */

/* The thread's last lookup, cached because MPI_Comm_get_attr takes as long as a small MPI_Allreduce.
 * Freeing any comm_state invalidates it, since MPI may reuse the handle. */
static _Thread_local struct owner_cache {
    MPI_Comm comm;
    struct owner *owner;      /* or NULL */
    uint_fast64_t generation; /* sar_lifecycle_generation at the lookup */
} last;

static void unlink_owner(struct owner *owner)
{
    pthread_mutex_lock(&lock);
    for (struct owner **at = &owners; *at != NULL; at = &(*at)->next) {
        if (*at == owner) {
            *at = owner->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void cleanup_library(void)
{
    sar_progress_thread_stop();
    sar_callback_threads_stop();
    sar_parallel_close();
    sar_pinned_ring_cleanup();
    sar_host_copy_cleanup();
    sar_device_blocks_cleanup();
    sar_accelerator_cleanup();
    sar_trace_close();
    sar_log_close();
    sar_agree_cleanup();
    sar_op16_cleanup();
    sar_datatypes_cleanup();
    sar_error_reset();
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&keyval);
}

/* MPI_Comm_free may hold a lock of MPI, so code under our lock calls MPI only if no comm_state exists. */
static void release_library(void)
{
    pthread_mutex_lock(&lock);
    if (sar_lifecycle_count(-1) == 0 && finalize_keyval == MPI_KEYVAL_INVALID)
        cleanup_library();
    pthread_mutex_unlock(&lock);
}

static int on_comm_free(MPI_Comm comm, int key, void *value, void *extra)
{
    struct owner *owner = value;
    (void)comm, (void)key, (void)extra;
    sar_lifecycle_invalidate();
    unlink_owner(owner);
    sar_progress_drain(owner->comm_state);
    sar_comm_state_close(owner->comm_state);
    /* The session may be finalized next, which requires that all its objects are freed, and no callback
     * announces it. */
    if (!sar_mpi_world_is_up())
        sar_comm_state_reap(true);
    free(owner);
    release_library();
    return MPI_SUCCESS;
}

/* Skips MPI_COMM_SELF, whose attributes MPI is deleting at this moment. */
static struct owner *next_owner(void)
{
    pthread_mutex_lock(&lock);
    struct owner *owner = owners;
    while (owner != NULL && owner->comm == MPI_COMM_SELF)
        owner = owner->next;
    pthread_mutex_unlock(&lock);
    return owner;
}

/* Closing a comm_state waits for the other ranks, whose list may be in another order. So announce the close
 * of all comm_states before waiting for one. */
static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    struct owner *owner;
    for (owner = owners; owner != NULL; owner = owner->next) {
        sar_progress_drain(owner->comm_state);
        sar_comm_state_begin_close(owner->comm_state);
    }
    while ((owner = next_owner()) != NULL && PMPI_Comm_delete_attr(owner->comm, keyval) == MPI_SUCCESS)
        continue;
    sar_comm_state_reap(true);
    PMPI_Comm_free_keyval(&finalize_keyval);
    cleanup_library();
    return MPI_SUCCESS;
}

static void open_logs(void)
{
    int rank = -1;
    if (sar_mpi_world_is_up())
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sar_log_open(rank);
    sar_trace_open(rank);
    if (rank >= 0)
        sar_launcher_check();
}

static enum sar_status setup_library(void)
{
    if (keyval == MPI_KEYVAL_INVALID) {
        open_logs();
        sar_error_setup();
        SAR_TRY(sar_agree_setup());
        SAR_TRY(sar_op16_setup());
        SAR_TRY(sar_datatypes_setup());
        SAR_TRY(sar_mpi(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_comm_free, &keyval, NULL)));
    }
    if (finalize_keyval != MPI_KEYVAL_INVALID || !sar_mpi_world_is_up())
        return SAR_OK;
    SAR_TRY(sar_mpi(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &finalize_keyval, NULL)));
    return sar_mpi(PMPI_Comm_set_attr(MPI_COMM_SELF, finalize_keyval, NULL));
}

/* Set up the library for the first comm_state. Each success is paired with release_library. */
static enum sar_status acquire_library(void)
{
    pthread_mutex_lock(&lock);
    enum sar_status status = setup_library();
    if (status == SAR_OK)
        sar_lifecycle_count(1);
    pthread_mutex_unlock(&lock);
    return status;
}

static enum sar_status attach(MPI_Comm comm, struct owner *owner)
{
    SAR_TRY(sar_mpi(PMPI_Comm_set_attr(comm, keyval, owner)));
    pthread_mutex_lock(&lock);
    owner->next = owners;
    owners = owner;
    pthread_mutex_unlock(&lock);
    return SAR_OK;
}

/* Open a comm_state with the hints that MPI keeps for the communicator. */
static enum sar_status open_comm_state(MPI_Comm comm, struct sar_comm_state **comm_state, char *error_text)
{
#ifdef HAVE_MPI_COMM_SET_INFO
    struct sar_info from;
    struct sar_config_layer hints = { SAR_SOURCE_COMM_INFO, sar_info_lookup, &from };
    if (PMPI_Comm_get_info(comm, &from.info) != MPI_SUCCESS)
        from.info = MPI_INFO_NULL;
    enum sar_status status = sar_comm_state_open(comm, &hints, comm_state, error_text);
    if (from.info != MPI_INFO_NULL)
        PMPI_Info_free(&from.info);
    return status;
#else
    return sar_comm_state_open(comm, NULL, comm_state, error_text);
#endif
}

/* All ranks create the comm_state or none does, so the allocation of the owner is part of the vote. */
static enum sar_status create(MPI_Comm comm, struct owner **created, char *error_text)
{
    struct owner *owner = calloc(1, sizeof *owner);
    struct sar_comm_state *comm_state = NULL;
    enum sar_status status = open_comm_state(comm, &comm_state, error_text);
    if (status == SAR_OK) {
        status = sar_comm_max_status(&comm_state->comm, owner == NULL ? SAR_NO_MEMORY : SAR_OK);
        if (status != SAR_OK)
            sar_comm_state_close(comm_state);
    }
    if (status != SAR_OK) {
        free(owner);
        return status;
    }
    owner->comm = comm;
    owner->comm_state = comm_state;
    *created = owner;
    return attach(comm, owner);
}

static enum sar_status check_comm(MPI_Comm comm, char *error_text)
{
    int inter = 0;
    const char *problem = NULL;
    if (sar_lifecycle_is_forked())
        return SAR_FORKED;
    if (comm == MPI_COMM_NULL)
        problem = "MPI_COMM_NULL";
    else if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        problem = "not a communicator, or one that was freed";
    if (problem == NULL)
        return inter ? SAR_INTERCOMMUNICATOR : SAR_OK;
    snprintf(error_text, SAR_ERROR_TEXT_SIZE, "%s", problem);
    return SAR_BAD_COMM;
}

static struct owner *query_owner(MPI_Comm comm)
{
    struct owner *owner;
    int found = 0;
    pthread_mutex_lock(&lock);
    int key = keyval;
    pthread_mutex_unlock(&lock);
    if (key == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, key, &owner, &found) != MPI_SUCCESS)
        return NULL;
    return found ? owner : NULL;
}

static struct owner *find(MPI_Comm comm)
{
    uint_fast64_t generation = sar_lifecycle_generation();
    if (last.owner == NULL || last.comm != comm || last.generation != generation)
        last = (struct owner_cache){ comm, query_owner(comm), generation };
    return last.owner;
}

/* A cached owner proves that the communicator is valid, so it skips the checks. */
enum sar_status sar_comm_state_get_status(MPI_Comm comm, struct sar_comm_state **comm_state, char *error_text)
{
    struct owner *owner = comm == MPI_COMM_NULL || sar_lifecycle_is_forked() ? NULL : find(comm);
    error_text[0] = '\0';
    if (owner == NULL) {
        SAR_TRY(check_comm(comm, error_text));
        SAR_TRY(acquire_library());
        enum sar_status status = create(comm, &owner, error_text);
        if (status != SAR_OK)
            release_library();
        SAR_TRY(status);
    }
    *comm_state = owner->comm_state;
    return SAR_OK;
}

static int raise_lookup(MPI_Comm comm, const char *function, enum sar_status status, const char *error_text)
{
    struct sar_error error = { .status = status };
    return sar_error_raise(status == SAR_BAD_COMM ? MPI_COMM_NULL : comm, function, &error, error_text);
}

int sar_comm_state_find(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state)
{
    char error_text[SAR_ERROR_TEXT_SIZE] = "";
    enum sar_status status = check_comm(comm, error_text);
    struct owner *owner = status == SAR_OK ? find(comm) : NULL;
    *comm_state = owner == NULL ? NULL : owner->comm_state;
    return raise_lookup(comm, function, status, error_text);
}

int sar_comm_state_get_opt(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state)
{
    char error_text[SAR_ERROR_TEXT_SIZE];
    enum sar_status status = sar_comm_state_get_status(comm, comm_state, error_text);
    if (status == SAR_OK)
        return MPI_SUCCESS;
    *comm_state = NULL;
    return status == SAR_INTERCOMMUNICATOR ? MPI_SUCCESS : raise_lookup(comm, function, status, error_text);
}

int sar_comm_state_get(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state)
{
    int code = sar_comm_state_get_opt(comm, function, comm_state);
    if (code == MPI_SUCCESS && *comm_state == NULL)
        code = raise_lookup(comm, function, SAR_INTERCOMMUNICATOR, "");
    return code;
}
