/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of users: the arguments are looked at and agreed on once, and each start is a nonblocking call. */

#include "mpi_ext/plan.h"

#include <stdlib.h>

#include "mpi_ext/alive.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/info.h"
#include "mpi_ext/memory.h"
#include "plan/progress.h"

/* The call that the ranks agree on, and what this one needs for it. */
static void prepare(const struct sar_context *context, struct sar_call *call, MPI_Info info, char *sentence)
{
    call->field[SAR_FIELD_CALL] = call->dense_face ? SAR_CALL_INIT : SAR_CALL_COO_INIT;
    call->memory.stream = context->stream;
    if (call->verdict.status == SAR_OK)
        call->verdict.status = sar_info_stream(info, &call->memory.stream, sentence);
    if (call->dense_face)
        sar_memory_take(call);
    if (!call->native)
        sar_memory_hold(call);
}

/* What all starts have in common. What its numbers are the plan's hints may tell. */
static void open_plan(struct sar_context *context, struct sar_call *call, MPI_Info info,
                      struct MPIX_Sparse_plan_s *made, char *sentence)
{
    struct sar_info from = { .info = info };
    struct sar_source hints = { SAR_FROM_PLAN_INFO, sar_info_lookup, &from };
    call->verdict.status = sar_plan_open(context, &hints, &made->call, &made->plan, sentence);
    if (call->verdict.status != SAR_OK)
        return;
    made->call = *call;
    made->call.verdict = (struct sar_verdict){ .status = SAR_OK };
    made->call.field[SAR_FIELD_CALL] = call->dense_face ? SAR_CALL_START : SAR_CALL_COO_START;
    sar_call_interpret(&made->call, &made->plan.policy);
    call->verdict = made->call.verdict;
    if (call->verdict.status != SAR_OK)
        sar_plan_close(&made->plan);
}

/* The sentence is of this rank's key, or of hints that all ranks know. It goes with no other error, and other
 * ranks have none for the key. */
static int refuse(MPI_Comm comm, const char *function, const struct sar_verdict *verdict,
                  const char *sentence)
{
    if (verdict->status != SAR_BAD_KNOB)
        return sar_raise(comm, function, verdict, NULL);
    return sar_raise(comm, function, verdict,
                     sentence[0] != '\0' ? sentence : "mpix_sparse_stream is no address");
}

/* A plan whose arguments all ranks agree on; collective. */
static int make(const struct sar_call *template, MPI_Comm comm, MPI_Info info, const char *function,
                MPIX_Sparse_plan *plan)
{
    struct sar_context *context;
    char sentence[SAR_SENTENCE] = "";
    struct sar_call call = *template;
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    struct MPIX_Sparse_plan_s *made = calloc(1, sizeof *made);
    sar_blame(&call.verdict, plan == NULL ? SAR_BAD_PLAN : made == NULL ? SAR_NO_MEMORY : SAR_OK, 0);
    prepare(context, &call, info, sentence);
    sar_progress_drain(context);
    sar_call_check(context, &call);
    if (call.verdict.status == SAR_OK)
        open_plan(context, &call, info, made, sentence);
    if (call.verdict.status != SAR_OK) {
        sar_memory_release(&call);
        free(made);
        return refuse(comm, function, &call.verdict, sentence);
    }
    made->flight.kept = true;
    made->flight.comm = comm;
    made->flight.plan = &made->plan;
    *plan = made;
    return MPI_SUCCESS;
}

int PMPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct sar_call call;
    sar_look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return make(&call, comm, info, "MPIX_Sparse_allreduce_init", plan);
}

int PMPIX_Sparse_allreduce_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct sar_call call;
    sar_look_at_coo(&call, indextype, count, datatype, op);
    return make(&call, comm, info, "MPIX_Sparse_allreduce_coo_init", plan);
}

int sar_plan_refuse(MPIX_Sparse_plan plan, const char *function)
{
    return sar_error_code(function, SAR_BAD_PLAN,
                          plan == MPIX_SPARSE_PLAN_NULL ? SAR_FAULT_NULL : SAR_FAULT_ALIEN);
}

int PMPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request)
{
    static const char function[] = "MPIX_Sparse_plan_start";
    if (!sar_plan_fits(plan, true))
        return sar_plan_refuse(plan, function);
    if (!sar_flight_is_taken(&plan->flight))
        plan->flight.call = plan->call;
    plan->flight.function = function;
    return sar_request_restart(&plan->flight, NULL, request);
}

int PMPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                                MPIX_Sparse_result *result, MPI_Request *request)
{
    static const char function[] = "MPIX_Sparse_plan_start_coo";
    if (!sar_plan_fits(plan, false))
        return sar_plan_refuse(plan, function);
    if (!sar_flight_is_taken(&plan->flight)) {
        plan->flight.call = plan->call;
        sar_look_at_elements(&plan->flight.call, indices, values, nnz);
    }
    plan->flight.function = function;
    return sar_request_restart(&plan->flight, &result, request);
}

/* Calls of other plans on its communicator may be in flight, and take the time of its last one along. In a
 * child of fork() nothing moves, and whoever held the lock is gone. */
static void close_plan(struct sar_plan *plan)
{
    const struct sar_context *context = sar_is_forked() ? NULL : plan->context;
    if (context != NULL)
        sar_progress_halt(context);
    sar_plan_close(plan);
    if (context != NULL)
        sar_progress_resume();
}

bool sar_plan_alive(MPIX_Sparse_plan plan)
{
    return plan->plan.context != NULL;
}

struct sar_told sar_plan_told(MPIX_Sparse_plan plan)
{
    const struct sar_pending *last = &plan->flight.pending;
    const struct sar_selection *s = &last->selection;
    return (struct sar_told){ sar_schemes[s->runs]->name, sar_schemes[s->choice]->name,
                              s->prices[s->runs].price,
                              last->agreed.nnz_mean / (double)last->call->shape.count };
}

int PMPIX_Sparse_plan_free(MPIX_Sparse_plan *plan)
{
    static const char function[] = "MPIX_Sparse_plan_free";
    if (plan == NULL)
        return sar_error_code(function, SAR_BAD_PLAN, SAR_FAULT_NULL);
    if (*plan != MPIX_SPARSE_PLAN_NULL && sar_flight_is_taken(&(*plan)->flight))
        return sar_error_code(function, SAR_BAD_PLAN, SAR_FAULT_IN_USE);
    if (*plan != MPIX_SPARSE_PLAN_NULL) {
        close_plan(&(*plan)->plan);
        sar_memory_release(&(*plan)->call);
        free(*plan);
    }
    *plan = MPIX_SPARSE_PLAN_NULL;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_allreduce_init = PMPIX_Sparse_allreduce_init
#pragma weak MPIX_Sparse_allreduce_coo_init = PMPIX_Sparse_allreduce_coo_init
#pragma weak MPIX_Sparse_plan_start = PMPIX_Sparse_plan_start
#pragma weak MPIX_Sparse_plan_start_coo = PMPIX_Sparse_plan_start_coo
#pragma weak MPIX_Sparse_plan_free = PMPIX_Sparse_plan_free
