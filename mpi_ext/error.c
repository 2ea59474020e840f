/* SPDX-License-Identifier: BSD-3-Clause */
/* One error class and one code for each status; MPI's own class where MPI_Allreduce would have refused the
 * call. The text of a code is that of its last use: codes cannot be given back, so one for each sentence
 * would pile up. */

#include "mpi_ext/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "mpi_ext/alive.h"
#include "mpi_ext/types.h"
#include "plan/group.h"

/* 0: not made yet. There is no lock: MPI may hold one of its own when a call in flight fails. */
static atomic_int class, codes[SAR_STATUSES];

/* Of two threads that make a number, the second one's is lost. */
static int keep(atomic_int *number, int made)
{
    int known = 0;
    return atomic_compare_exchange_strong(number, &known, made) ? made : known;
}

static int our_class(void)
{
    int made = atomic_load(&class);
    if (made != 0)
        return made;
    return PMPI_Add_error_class(&made) == MPI_SUCCESS ? keep(&class, made) : 0;
}

/* A code of a class of MPI's, with a text of ours where MPI takes one: MPICH does not, and there the class
 * itself is the code. */
static int code_of_mpi(int of, const char *text)
{
    char found[MPI_MAX_ERROR_STRING] = "";
    int code, length;
    if (PMPI_Add_error_code(of, &code) != MPI_SUCCESS)
        return of;
    PMPI_Add_error_string(code, text);
    PMPI_Error_string(code, found, &length);
    return strcmp(found, text) == 0 ? code : of;
}

static int our_code(enum sar_status status, const char *text)
{
    int made = atomic_load(&codes[status]);
    if (made != 0)
        return made;
    if (status == SAR_UNDEFINED_OP)
        return keep(&codes[status], code_of_mpi(MPI_ERR_OP, text));
    int of = our_class();
    return of != 0 && PMPI_Add_error_code(of, &made) == MPI_SUCCESS ? keep(&codes[status], made) : 0;
}

static int code_for(enum sar_status status, const char *text, bool alive)
{
    int code = alive ? our_code(status, text) : 0;
    if (code == 0)
        return MPI_ERR_OTHER;
    if (code != MPI_ERR_OP)
        PMPI_Add_error_string(code, text);
    return code;
}

static void describe_fork(char *text, size_t room)
{
    snprintf(text, room, sar_status_text(SAR_FORKED), "", "");
}

void sar_error_prepare(void)
{
    char text[MPI_MAX_ERROR_STRING];
    describe_fork(text, sizeof text);
    code_for(SAR_FORKED, text, true);
}

void sar_error_forget(void)
{
    atomic_store(&class, 0);
    for (int i = 0; i < SAR_STATUSES; i++)
        atomic_store(&codes[i], 0);
}

static int complain_in_child(const char *function)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char text[MPI_MAX_ERROR_STRING];
    describe_fork(text, sizeof text);
    if (!atomic_flag_test_and_set(&told))
        SAR_LOG(WARN, MPI, "%s: %s", function, text);
    int code = atomic_load(&codes[SAR_FORKED]);
    return code == 0 ? MPI_ERR_OTHER : code;
}

static void describe_plans(int64_t number, char *text, size_t room)
{
    if (number == 0)
        snprintf(text, room, "one alone");
    else
        snprintf(text, room, "%lld of them (%08llx)", (long long)(number >> SAR_GROUP_SHIFT),
                 (unsigned long long)number & UINT32_MAX);
}

/* What must be equal on all ranks, by the number that stands for it in an agreement. */
static void describe_field(enum sar_field field, int64_t number, char *text, size_t room)
{
    static const char *const calls[SAR_CALLS] = { [SAR_CALL_DENSE] = "MPIX_Sparse_allreduce",
                                                  [SAR_CALL_COO] = "MPIX_Sparse_allreduce_coo",
                                                  [SAR_CALL_PROFILE] = "MPIX_Sparse_profile",
                                                  [SAR_CALL_INIT] = "MPIX_Sparse_allreduce_init",
                                                  [SAR_CALL_COO_INIT] = "MPIX_Sparse_allreduce_coo_init",
                                                  [SAR_CALL_START] = "MPIX_Sparse_plan_start",
                                                  [SAR_CALL_COO_START] = "MPIX_Sparse_plan_start_coo",
                                                  [SAR_CALL_TOPK] = "MPIX_Sparse_topk_threshold",
                                                  [SAR_CALL_DGC] = "MPIX_Sparse_dgc_step" };
    if (field == SAR_FIELD_DATATYPE)
        sar_datatype_describe(number, text, room);
    else if (field == SAR_FIELD_OP)
        sar_operation_describe(number, text, room);
    else if (field == SAR_FIELD_PLANS)
        describe_plans(number, text, room);
    else if (field == SAR_FIELD_CALL && number >= 0 && number < SAR_CALLS)
        snprintf(text, room, "%s", calls[number]);
    else if (field == SAR_FIELD_IN_PLACE)
        snprintf(text, room, "%s", number != 0 ? "MPI_IN_PLACE" : "a buffer");
    else
        snprintf(text, room, "%lld", (long long)number);
}

static void describe_mismatch(const struct sar_verdict *v, char *text, size_t room)
{
    char low[64], high[64], left[96], right[96];
    enum sar_field field = (enum sar_field)(v->status - SAR_MISMATCHED_CALL);
    describe_field(field, v->low, low, sizeof low);
    describe_field(field, v->high, high, sizeof high);
    snprintf(left, sizeof left, "%s on rank %lld", low, (long long)v->low_rank);
    snprintf(right, sizeof right, "%s on rank %lld", high, (long long)v->high_rank);
    snprintf(text, room, sar_status_text(v->status), left, right);
}

static const char *const faults[] = {
    [SAR_FAULT_NULL] = "null",
    [SAR_FAULT_SHARED] = "the other buffer",
    [SAR_FAULT_MISPLACED] = "out of place",
    [SAR_FAULT_ALIEN] = "of the other kind of buffers",
    [SAR_FAULT_IN_USE] = "in use by a call that is not done",
    [SAR_FAULT_ORPHANED] = "of a communicator that was freed",
    [SAR_FAULT_STRIDED] = "not contiguous",
    [SAR_FAULT_ON_HOST] = "memory of the host, where the call has device memory",
    [SAR_FAULT_ON_DEVICE] = "device memory, where the call has memory of the host",
    [SAR_FAULT_OVERLAPPING] = "overlapping another array of the call",
    [SAR_FAULT_ELSEWHERE] = "memory of another device than the call's other arrays",
    [SAR_FAULT_OUT_OF_REACH] =
        "device memory, and libmpix_sparse_cuda.so, which would reach it, cannot be used",
};

static const char *const outputs[] = {
    [SAR_OUTPUT_INFO] = "info_used",      [SAR_OUTPUT_NNZ] = "nnz",
    [SAR_OUTPUT_PLANS] = "plans",         [SAR_OUTPUT_PROFILE] = "profile",
    [SAR_OUTPUT_REPORT] = "report",       [SAR_OUTPUT_REQUESTS] = "requests",
    [SAR_OUTPUT_THRESHOLD] = "threshold", [SAR_OUTPUT_VERSION] = "version",
};

/* The value at fault in words. */
static void describe_value(const struct sar_verdict *v, char *text, size_t room)
{
    if (v->status == SAR_BAD_DATATYPE || v->status == SAR_BAD_INDEXTYPE)
        sar_datatype_describe(v->value, text, room);
    else if (v->status == SAR_BAD_OP || v->status == SAR_UNDEFINED_OP)
        sar_operation_describe(v->value, text, room);
    else if (v->status >= SAR_BAD_RATIO && v->status <= SAR_BAD_THRESHOLD)
        snprintf(text, room, "%g", sar_real_of(v->value));
    else if ((v->status >= SAR_BAD_COUNT && v->status <= SAR_BAD_CAPACITY) || v->status == SAR_BAD_INDEX)
        snprintf(text, room, "%lld", (long long)v->value);
    else if (v->status == SAR_BAD_UNSIGNED_INDEX)
        snprintf(text, room, "%llu", (unsigned long long)v->value);
    else if (v->status == SAR_CAPTURED && v->value == 0)
        snprintf(text, room, "the default stream, or one that waits for it,");
    else if (v->status == SAR_CAPTURED)
        snprintf(text, room, "stream 0x%llx", (unsigned long long)v->value);
    else if (v->status == SAR_BAD_OUTPUT)
        snprintf(text, room, "%s", outputs[v->value]);
    else if (v->status >= SAR_BAD_SENDBUF && v->status <= SAR_BAD_PLAN)
        snprintf(text, room, "%s", faults[v->value]);
    else
        text[0] = '\0';
}

static void describe(const struct sar_verdict *v, const char *detail, char *text, size_t room)
{
    char value[64], rank[32] = "";
    if (v->status >= SAR_MISMATCHED_CALL) {
        describe_mismatch(v, text, room);
        return;
    }
    describe_value(v, value, sizeof value);
    if (v->agreed && v->status >= SAR_NO_MEMORY && v->status < SAR_MISMATCHED_CALL)
        snprintf(rank, sizeof rank, " (on rank %lld)", (long long)v->rank);
    snprintf(text, room, sar_status_text(v->status), detail != NULL ? detail : value, rank);
}

/* The code of a verdict that is not SAR_OK, with the text that goes with it. */
static int code_of(const char *function, const struct sar_verdict *verdict, const char *detail, bool alive)
{
    char sentence[MPI_MAX_ERROR_STRING - 64], text[MPI_MAX_ERROR_STRING];
    describe(verdict, detail, sentence, sizeof sentence);
    snprintf(text, sizeof text, "%s: %s", function, sentence);
    int code = code_for(verdict->status, text, alive);
    if (code == MPI_ERR_OP)
        SAR_LOG(WARN, MPI, "%s", text); /* which the code does not carry */
    else
        SAR_LOG(INFO, MPI, "%s", text);
    return code;
}

int sar_raise(MPI_Comm comm, const char *function, const struct sar_verdict *verdict, const char *detail)
{
    if (verdict->status == SAR_OK)
        return MPI_SUCCESS;
    if (sar_is_forked())
        return complain_in_child(function);
    int code = code_of(function, verdict, detail, comm != MPI_COMM_NULL || sar_is_alive());
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_call_errhandler(comm, code);
    else if (sar_net_world_is_up())
        PMPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    return code;
}

int sar_error_code(const char *function, enum sar_status status, int64_t value)
{
    struct sar_verdict verdict = { .status = status, .value = value };
    if (sar_is_forked())
        return complain_in_child(function);
    return code_of(function, &verdict, NULL, sar_is_alive());
}
