/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI requests for calls in flight: generalized requests. MPICH's extended ones ask us for progress when
 * the user waits or tests, so nothing runs in between. Elsewhere, or when MPIX_SPARSE_PROGRESS=thread
 * asks for it, a thread makes progress and MPI only hears of the end. */

#include "mpi_ext/request.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_ext/alive.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/thread.h"
#include "plan/progress.h"

static int query(void *state, MPI_Status *status)
{
    const struct sar_flight *flight = state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return flight->code;
}

/* MPICH calls this for a request that is freed before its end, and forgets the request. */
static int release(void *state)
{
    struct sar_flight *flight = state;
    flight->abandoned = !atomic_load(&flight->done);
    if (flight->abandoned)
        return MPI_SUCCESS;
    flight->taken = false;
    if (!flight->kept)
        free(flight);
    return MPI_SUCCESS;
}

/* A collective call cannot be taken back. */
static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* The function, and which of its plans. */
static const char *title(const struct sar_flight *flight, char *text, size_t room)
{
    char others[48] = "";
    if (flight->place == 0)
        return flight->function;
    if (flight->others != 0)
        snprintf(others, sizeof others, " and %zu fused with it", flight->others);
    snprintf(text, room, "%s: plans[%d]%s", flight->function, flight->place - 1, others);
    return text;
}

int sar_flight_judge(const struct sar_flight *flight)
{
    char text[96];
    return sar_raise(flight->comm, title(flight, text, sizeof text), &flight->call.verdict, NULL);
}

void sar_flight_end(struct sar_flight *flight, int code)
{
    MPI_Request request = flight->request;
    flight->code = code;
    atomic_store(&flight->done, true);
    if (flight->abandoned)
        release(flight);
    else
        PMPI_Grequest_complete(request);
}

void sar_flight_land(struct sar_pending *pending)
{
    struct sar_flight *flight = (struct sar_flight *)pending;
    struct sar_call *call = &flight->call;
    int code = sar_flight_judge(flight);
    if (!call->dense_face)
        code = sar_result_close(flight->comm, flight->function, &flight->into, call, code);
    code = sar_memory_write(flight->comm, flight->function, call, code);
    if (!flight->kept)
        sar_memory_release(call);
    sar_flight_end(flight, code);
}

#ifdef HAVE_MPIX_GREQUEST_START
static int poll(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    sar_progress();
    return MPI_SUCCESS;
}

/* MPI waits for its requests one after another, ranks perhaps in different orders: all move. */
static int wait(int n, void **states, double timeout, MPI_Status *status)
{
    (void)timeout, (void)status;
    for (int i = 0; i < n; i++) {
        const struct sar_flight *flight = states[i];
        int looks = 0;
        while (!atomic_load(&flight->done)) {
            sar_progress();
            sar_net_pause(&flight->pending.context->net, &looks);
        }
    }
    return MPI_SUCCESS;
}

static enum sar_status open_request(const struct sar_context *context, struct sar_flight *flight)
{
    if (context->policy.config.progress == SAR_PROGRESS_THREAD)
        SAR_TRY(sar_thread_need());
    return sar_mpi(PMPIX_Grequest_start(query, release, cancel, poll, wait, flight, &flight->request));
}
#else
static enum sar_status open_request(const struct sar_context *context, struct sar_flight *flight)
{
    (void)context;
    SAR_TRY(sar_thread_need());
    return sar_mpi(PMPI_Grequest_start(query, release, cancel, flight, &flight->request));
}
#endif

static enum sar_status make_flight(struct sar_context *context, struct sar_flight **made)
{
    struct sar_flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return SAR_NO_MEMORY;
    enum sar_status status = open_request(context, flight);
    if (status != SAR_OK)
        free(flight);
    else
        *made = flight;
    return status;
}

/* A rank that cannot make a request still takes part, and tells why. */
static int run_without(struct sar_context *context, MPI_Comm comm, const char *function,
                       const struct sar_call *call, enum sar_status status)
{
    struct sar_call refused = *call;
    sar_blame(&refused.verdict, status, 0);
    sar_call_run(context, &refused);
    return sar_raise(comm, function, &refused.verdict, NULL);
}

static void take_off(struct sar_context *context, struct sar_flight *flight,
                     void (*finished)(struct sar_pending *pending))
{
    flight->taken = true;
    flight->pending.finished = finished;
    sar_call_post(context, &flight->call, &flight->pending);
    sar_thread_wake();
}

int sar_request_post(MPI_Comm comm, const char *function, struct sar_context *context,
                     const struct sar_call *call, MPIX_Sparse_result **result, MPI_Request *request)
{
    struct sar_flight *flight = NULL;
    enum sar_status status = request == NULL ? SAR_BAD_REQUEST : make_flight(context, &flight);
    if (status != SAR_OK)
        return run_without(context, comm, function, call, status);
    flight->call = *call;
    flight->comm = comm;
    flight->function = function;
    *request = flight->request;
    if (result != NULL)
        sar_result_open(&flight->into, *result, &flight->call);
    sar_memory_enter(&flight->call, context);
    take_off(context, flight, sar_flight_land);
    return MPI_SUCCESS;
}

/* Open MPI wakes who waits for a request before the thread that completed it lets go of it. */
bool sar_flight_is_taken(struct sar_flight *flight)
{
    enum { LOOKS = 10000 };
    for (int i = 0; i < LOOKS && atomic_load(&flight->taken); i++) {
        if (!atomic_load(&flight->done))
            return true;
        sched_yield();
    }
    return atomic_load(&flight->taken);
}

struct sar_verdict sar_flight_take(struct sar_flight *flight)
{
    struct sar_context *context = flight->plan->context;
    if (sar_is_forked())
        return (struct sar_verdict){ .status = SAR_FORKED };
    if (context == NULL)
        return (struct sar_verdict){ .status = SAR_BAD_PLAN, .value = SAR_FAULT_ORPHANED };
    if (sar_flight_is_taken(flight))
        return (struct sar_verdict){ .status = SAR_BAD_PLAN, .value = SAR_FAULT_IN_USE };
    struct sar_verdict verdict = { .status = open_request(context, flight) };
    flight->taken = verdict.status == SAR_OK;
    return verdict;
}

void sar_flight_drop(struct sar_flight *flight)
{
    MPI_Request request = flight->request;
    sar_flight_end(flight, MPI_SUCCESS);
    PMPI_Request_free(&request);
}

void sar_flight_join(struct sar_flight *flight, struct sar_context *context)
{
    flight->pending.context = context;
    atomic_store(&flight->done, false);
}

void sar_flight_leave(struct sar_flight *flight, struct sar_plan *plan,
                      void (*finished)(struct sar_pending *pending))
{
    flight->pending = (struct sar_pending){ .plan = plan };
    atomic_store(&flight->done, false);
    take_off(flight->plan->context, flight, finished);
}

int sar_request_restart(struct sar_flight *flight, MPIX_Sparse_result **result, MPI_Request *request)
{
    struct sar_verdict verdict = { .status = SAR_BAD_REQUEST };
    if (request != NULL)
        verdict = sar_flight_take(flight);
    if (verdict.status != SAR_OK)
        return sar_raise(flight->plan->context == NULL ? MPI_COMM_NULL : flight->comm, flight->function,
                         &verdict, NULL);
    flight->place = 0;
    *request = flight->request;
    if (result != NULL)
        sar_result_open(&flight->into, *result, &flight->call);
    sar_memory_use_stream(&flight->call, flight->call.memory.stream);
    sar_memory_defer(&flight->call, flight->plan->context);
    sar_flight_leave(flight, flight->plan, sar_flight_land);
    return MPI_SUCCESS;
}
