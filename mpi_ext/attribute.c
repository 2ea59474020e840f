/* SPDX-License-Identifier: BSD-3-Clause */
/* A context hangs on its communicator as an attribute, whose delete function frees it with the communicator.
 * MPI_Finalize does not delete the attributes of communicators that live until then; it does delete those
 * of MPI_COMM_SELF, first of all, so a second attribute there frees the contexts that are left. Sessions have
 * no such communicator, nor may one outlive them: where there is no world the last context takes all else
 * with it. */

#include "mpi_ext/attribute.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/trace.h"
#include "device/staging.h"
#include "mpi_ext/alive.h"
#include "mpi_ext/error.h"
#include "mpi_ext/info.h"
#include "mpi_ext/thread.h"
#include "mpi_ext/types.h"
#include "net/halves.h"
#include "plan/progress.h"

struct owner {
    MPI_Comm comm;
    struct sar_context *context;
    struct owner *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID, farewell = MPI_KEYVAL_INVALID;
static struct owner *owners; /* all that are alive */

/* What a thread has found last, since asking MPI takes as long as handing it a small vector. It holds until a
 * context goes: its communicator's handle may become another's then. */
static _Thread_local struct sighting {
    MPI_Comm comm;
    struct owner *owner; /* or NULL */
    uint_fast64_t age;   /* sar_alive_age by then */
} last;

static void forget(struct owner *owner)
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

static void tear_down(void)
{
    sar_thread_end();
    sar_staging_cleanup();
    sar_mirror_cleanup();
    sar_berths_cleanup();
    sar_accelerator_cleanup();
    sar_trace_close();
    sar_log_close();
    sar_agree_cleanup();
    sar_halves_cleanup();
    sar_types_cleanup();
    sar_error_forget();
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&keyval);
}

/* In MPI_Comm_free MPI may hold a lock of its own. Whoever holds ours calls MPI only where no context is. */
static void let_go(void)
{
    pthread_mutex_lock(&lock);
    if (sar_alive_count(-1) == 0 && farewell == MPI_KEYVAL_INVALID)
        tear_down();
    pthread_mutex_unlock(&lock);
}

static int delete_context(MPI_Comm comm, int key, void *value, void *extra)
{
    struct owner *owner = value;
    (void)comm, (void)key, (void)extra;
    sar_alive_overturn();
    forget(owner);
    sar_progress_drain(owner->context);
    sar_context_close(owner->context);
    /* The session may be closed next, when MPI wants all that came of it to be gone; of that it tells nobody:
     * sessions have neither attributes nor a communicator like MPI_COMM_SELF. */
    if (!sar_net_world_is_up())
        sar_context_sweep(true);
    free(owner);
    let_go();
    return MPI_SUCCESS;
}

/* Contexts of MPI_COMM_SELF are left to MPI, which is deleting that communicator's attributes right now. */
static struct owner *any_owner(void)
{
    pthread_mutex_lock(&lock);
    struct owner *owner = owners;
    while (owner != NULL && owner->comm == MPI_COMM_SELF)
        owner = owner->next;
    pthread_mutex_unlock(&lock);
    return owner;
}

/* Whoever closes a context waits for the other ranks, and threads may have opened them in another order
 * there: so all are left before one is closed. */
static void leave_all(void)
{
    for (struct owner *owner = owners; owner != NULL; owner = owner->next) {
        sar_progress_drain(owner->context);
        sar_context_leave(owner->context);
    }
}

static int say_farewell(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    struct owner *owner;
    leave_all();
    while ((owner = any_owner()) != NULL && PMPI_Comm_delete_attr(owner->comm, keyval) == MPI_SUCCESS)
        continue;
    sar_context_sweep(true);
    PMPI_Comm_free_keyval(&farewell);
    tear_down();
    return MPI_SUCCESS;
}

static enum sar_status promise_farewell(void)
{
    SAR_TRY(sar_mpi(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say_farewell, &farewell, NULL)));
    return sar_mpi(PMPI_Comm_set_attr(MPI_COMM_SELF, farewell, NULL));
}

static void open_logs(void)
{
    int rank = -1;
    if (sar_net_world_is_up())
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sar_log_open(rank);
    sar_trace_open(rank);
}

static enum sar_status set_up(void)
{
    if (keyval == MPI_KEYVAL_INVALID) {
        open_logs();
        sar_error_prepare();
        SAR_TRY(sar_agree_setup());
        SAR_TRY(sar_halves_setup());
        SAR_TRY(sar_types_setup());
        SAR_TRY(sar_mpi(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_context, &keyval, NULL)));
    }
    return farewell == MPI_KEYVAL_INVALID && sar_net_world_is_up() ? promise_farewell() : SAR_OK;
}

/* What the first context needs is there until let_go. */
static enum sar_status hold(void)
{
    pthread_mutex_lock(&lock);
    enum sar_status status = set_up();
    if (status == SAR_OK)
        sar_alive_count(1);
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

/* With the hints that MPI has kept for the communicator. */
static enum sar_status open_context(MPI_Comm comm, struct sar_context **context, char *sentence)
{
#ifdef HAVE_MPI_COMM_SET_INFO
    struct sar_info from;
    struct sar_source hints = { SAR_FROM_COMM_INFO, sar_info_lookup, &from };
    if (PMPI_Comm_get_info(comm, &from.info) != MPI_SUCCESS)
        from.info = MPI_INFO_NULL;
    enum sar_status status = sar_context_open(comm, &hints, context, sentence);
    if (from.info != MPI_INFO_NULL)
        PMPI_Info_free(&from.info);
    return status;
#else
    return sar_context_open(comm, NULL, context, sentence);
#endif
}

/* All ranks open the context or none: memory for the owner is part of the vote. */
static enum sar_status create(MPI_Comm comm, struct owner **created, char *sentence)
{
    struct owner *owner = calloc(1, sizeof *owner);
    struct sar_context *context = NULL;
    enum sar_status status = open_context(comm, &context, sentence);
    if (status == SAR_OK) {
        status = sar_net_worst(&context->net, owner == NULL ? SAR_NO_MEMORY : SAR_OK);
        if (status != SAR_OK)
            sar_context_close(context);
    }
    if (status != SAR_OK) {
        free(owner);
        return status;
    }
    owner->comm = comm;
    owner->context = context;
    *created = owner;
    return attach(comm, owner);
}

static enum sar_status check(MPI_Comm comm, char *sentence)
{
    int inter = 0;
    const char *wrong = NULL;
    if (sar_is_forked())
        return SAR_FORKED;
    if (comm == MPI_COMM_NULL)
        wrong = "MPI_COMM_NULL";
    else if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        wrong = "not a communicator, or one that was freed";
    if (wrong == NULL)
        return inter ? SAR_INTERCOMMUNICATOR : SAR_OK;
    snprintf(sentence, SAR_SENTENCE, "%s", wrong);
    return SAR_BAD_COMM;
}

static struct owner *ask(MPI_Comm comm)
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
    uint_fast64_t age = sar_alive_age();
    if (last.owner == NULL || last.comm != comm || last.age != age)
        last = (struct sighting){ comm, ask(comm), age };
    return last.owner;
}

/* The usual case comes first: a communicator that has a context needs no more looks. */
enum sar_status sar_attribute_context(MPI_Comm comm, struct sar_context **context, char *sentence)
{
    struct owner *owner = comm == MPI_COMM_NULL || sar_is_forked() ? NULL : find(comm);
    sentence[0] = '\0';
    if (owner == NULL) {
        SAR_TRY(check(comm, sentence));
        SAR_TRY(hold());
        enum sar_status status = create(comm, &owner, sentence);
        if (status != SAR_OK)
            let_go();
        SAR_TRY(status);
    }
    *context = owner->context;
    return SAR_OK;
}

enum sar_status sar_attribute_peek(MPI_Comm comm, struct sar_context **context, char *sentence)
{
    sentence[0] = '\0';
    SAR_TRY(check(comm, sentence));
    struct owner *owner = find(comm);
    *context = owner == NULL ? NULL : owner->context;
    return SAR_OK;
}

int sar_attribute_want(MPI_Comm comm, const char *function, struct sar_context **context)
{
    char sentence[SAR_SENTENCE];
    struct sar_verdict verdict = { .status = sar_attribute_context(comm, context, sentence) };
    if (verdict.status == SAR_OK)
        return MPI_SUCCESS;
    *context = NULL;
    if (verdict.status == SAR_INTERCOMMUNICATOR)
        return MPI_SUCCESS;
    return sar_raise(verdict.status == SAR_BAD_COMM ? MPI_COMM_NULL : comm, function, &verdict, sentence);
}

int sar_attribute_need(MPI_Comm comm, const char *function, struct sar_context **context)
{
    struct sar_verdict verdict = { .status = SAR_INTERCOMMUNICATOR };
    int code = sar_attribute_want(comm, function, context);
    return code == MPI_SUCCESS && *context == NULL ? sar_raise(comm, function, &verdict, NULL) : code;
}
