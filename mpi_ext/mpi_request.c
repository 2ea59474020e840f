/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI requests of nonblocking calls are generalized requests. MPICH's extended ones call the progress
 * engine while the user waits or tests. Elsewhere, and with MPIX_SPARSE_PROGRESS=thread, the progress thread
 * advances the calls and completes the requests. */

#include "mpi_ext/mpi_request.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "mpi_ext/lifecycle.h"
#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"
#include "core/progress.h"

/* The progress thread advances the calls of all communicators. It exists after the first call that needs it,
 * and sleeps while no call is active. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool running, stopping;

/* Sleep until a call is active. Returns false when the thread must end. */
static bool wait_for_work(void)
{
    pthread_mutex_lock(&lock);
    while (!stopping && !sar_comm_state_any_active())
        pthread_cond_wait(&wake, &lock);
    bool stop = stopping;
    pthread_mutex_unlock(&lock);
    return !stop;
}

static void *work(void *unused)
{
    sar_parallel_forbid();
    while (wait_for_work()) {
        sar_progress();
        sched_yield();
    }
    return unused;
}

/* Start the thread unless it runs. */
static enum sar_status ensure_thread(void)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return SAR_NO_THREADS;
    pthread_mutex_lock(&lock);
    if (!running)
        running = pthread_create(&thread, NULL, work, NULL) == 0;
    bool started = running;
    pthread_mutex_unlock(&lock);
    return started ? SAR_OK : SAR_NO_MEMORY;
}

/* A call became active. */
static void wake_thread(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void sar_progress_thread_stop(void)
{
    pthread_mutex_lock(&lock);
    bool join = running;
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(thread, NULL);
    running = stopping = false;
}

static int query(void *state, MPI_Status *status)
{
    const struct sar_mpi_request *req = state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return req->code;
}

/* MPICH also calls this for a request that the user frees before the call is complete, and then never
 * again. */
static int release(void *state)
{
    struct sar_mpi_request *req = state;
    req->freed = !atomic_load(&req->done);
    if (req->freed)
        return MPI_SUCCESS;
    req->in_use = false;
    if (!req->persistent)
        free(req);
    return MPI_SUCCESS;
}

/* A collective call cannot be cancelled. */
static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* Returns the function and, if it starts several plans, the plan; in `text` if it needs memory. */
static const char *request_title(const struct sar_mpi_request *req, char *text, size_t capacity)
{
    char others[48] = "";
    if (req->plan_number == 0 || req->args.result.error.status == SAR_BAD_PLANS)
        return req->function;
    if (req->fused_count != 0)
        snprintf(others, sizeof others, " and %zu fused with it", req->fused_count);
    snprintf(text, capacity, "%s: plans[%d]%s", req->function, req->plan_number - 1, others);
    return text;
}

int sar_mpi_request_raise(const struct sar_mpi_request *req)
{
    char text[96];
    return sar_error_raise(req->comm, request_title(req, text, sizeof text), &req->args.result.error, NULL);
}

void sar_mpi_request_finish(struct sar_mpi_request *req, int code)
{
    MPI_Request request = req->request;
    req->code = code;
    atomic_store(&req->done, true);
    if (req->freed)
        release(req);
    else
        PMPI_Grequest_complete(request);
}

void sar_mpi_request_complete(struct sar_active_call *active)
{
    struct sar_mpi_request *req = (struct sar_mpi_request *)active;
    struct sar_call_args *call = &req->args;
    int code = sar_mpi_request_raise(req);
    if (!call->sig.dense_face)
        code = sar_result_guard_close(req->comm, req->function, &req->guard, call, code);
    code = sar_user_buffers_write(req->comm, req->function, call, code);
    if (!req->persistent)
        sar_user_buffers_release(call);
    sar_mpi_request_finish(req, code);
}

#ifdef HAVE_MPIX_GREQUEST_START
static int poll(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    sar_progress();
    return MPI_SUCCESS;
}

/* MPI may wait for requests in different orders on different ranks, so each wait advances all active
 * calls. */
static int wait(int n, void **states, double timeout, MPI_Status *status)
{
    (void)timeout, (void)status;
    for (int i = 0; i < n; i++) {
        const struct sar_mpi_request *req = states[i];
        int spins = 0;
        while (!atomic_load(&req->done)) {
            sar_progress();
            sar_comm_backoff(&req->active.comm_state->comm, &spins);
        }
    }
    return MPI_SUCCESS;
}

static enum sar_status make_mpi_request(const struct sar_comm_state *comm_state, struct sar_mpi_request *req)
{
    if (comm_state->settings.policy.config.progress == SAR_PROGRESS_THREAD)
        SAR_TRY(ensure_thread());
    return sar_mpi(PMPIX_Grequest_start(query, release, cancel, poll, wait, req, &req->request));
}
#else
static enum sar_status make_mpi_request(const struct sar_comm_state *comm_state, struct sar_mpi_request *req)
{
    (void)comm_state;
    SAR_TRY(ensure_thread());
    return sar_mpi(PMPI_Grequest_start(query, release, cancel, req, &req->request));
}
#endif

static enum sar_status make_request(struct sar_comm_state *comm_state, struct sar_mpi_request **made)
{
    struct sar_mpi_request *req = calloc(1, sizeof *req);
    if (req == NULL)
        return SAR_NO_MEMORY;
    enum sar_status status = make_mpi_request(comm_state, req);
    if (status != SAR_OK)
        free(req);
    else
        *made = req;
    return status;
}

/* A rank that cannot make a request still takes part in the collective, and returns the error. */
static int run_without_request(struct sar_comm_state *comm_state, MPI_Comm comm, const char *function,
                               const struct sar_call_args *call, enum sar_status status)
{
    struct sar_call_args failed = *call;
    sar_error_set(&failed.result.error, status, 0);
    sar_progress_run(comm_state, &failed);
    return sar_error_raise(comm, function, &failed.result.error, NULL);
}

static void start_call(struct sar_comm_state *comm_state, struct sar_mpi_request *req,
                       void (*finished)(struct sar_active_call *active))
{
    req->in_use = true;
    req->active.on_done = finished;
    sar_progress_post(comm_state, &req->args, &req->active);
    wake_thread();
}

int sar_mpi_request_post(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                         const struct sar_call_args *call, MPIX_Sparse_result **result, MPI_Request *request)
{
    struct sar_mpi_request *req = NULL;
    enum sar_status status = request == NULL ? SAR_BAD_REQUEST : make_request(comm_state, &req);
    if (status != SAR_OK)
        return run_without_request(comm_state, comm, function, call, status);
    req->args = *call;
    req->comm = comm;
    req->function = function;
    *request = req->request;
    if (result != NULL)
        sar_result_guard_open(&req->guard, *result, &req->args);
    sar_user_buffers_open(&req->args, comm_state);
    start_call(comm_state, req, sar_mpi_request_complete);
    return MPI_SUCCESS;
}

/* Open MPI returns from MPI_Wait before the completing thread has called `release`, so wait briefly for
 * that. */
bool sar_mpi_request_in_use(struct sar_mpi_request *req)
{
    enum { SPINS = 10000 };
    for (int i = 0; i < SPINS && atomic_load(&req->in_use); i++) {
        if (!atomic_load(&req->done))
            return true;
        sched_yield();
    }
    return atomic_load(&req->in_use);
}

struct sar_error sar_mpi_request_acquire(struct sar_mpi_request *req)
{
    struct sar_comm_state *comm_state = req->plan->comm_state;
    if (sar_lifecycle_is_forked())
        return (struct sar_error){ .status = SAR_FORKED };
    if (comm_state == NULL)
        return (struct sar_error){ .status = SAR_BAD_PLAN, .value = SAR_FAULT_COMM_FREED };
    if (sar_mpi_request_in_use(req))
        return (struct sar_error){ .status = SAR_BAD_PLAN, .value = SAR_FAULT_IN_USE };
    struct sar_error error = { .status = make_mpi_request(comm_state, req) };
    req->in_use = error.status == SAR_OK;
    return error;
}

void sar_mpi_request_drop(struct sar_mpi_request *req)
{
    MPI_Request request = req->request;
    sar_mpi_request_finish(req, MPI_SUCCESS);
    PMPI_Request_free(&request);
}

void sar_mpi_request_start(struct sar_mpi_request *req, struct sar_plan *plan,
                           void (*finished)(struct sar_active_call *active))
{
    req->active = (struct sar_active_call){ .plan = plan, .group = req->group };
    atomic_store(&req->done, false);
    start_call(req->plan->comm_state, req, finished);
}

int sar_mpi_request_restart(struct sar_mpi_request *req, MPIX_Sparse_result **result, MPI_Request *request)
{
    struct sar_error error = { .status = SAR_BAD_REQUEST };
    if (request != NULL)
        error = sar_mpi_request_acquire(req);
    if (error.status != SAR_OK)
        return sar_error_raise(req->plan->comm_state == NULL ? MPI_COMM_NULL : req->comm, req->function,
                               &error, NULL);
    req->plan_number = 0;
    req->group = 0;
    *request = req->request;
    if (result != NULL)
        sar_result_guard_open(&req->guard, *result, &req->args);
    sar_user_buffers_set_stream(&req->args, req->args.device.memory.stream);
    sar_user_buffers_classify(&req->args, req->plan->comm_state);
    sar_mpi_request_start(req, req->plan, sar_mpi_request_complete);
    return MPI_SUCCESS;
}
