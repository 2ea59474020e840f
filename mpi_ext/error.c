/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes MPI error codes: two error classes of the library, and one code per status. Calls that differ between
 * ranks have a class of their own, so that programs need not read texts. SAR_UNDEFINED_OP has a code of
 * MPI's class MPI_ERR_OP, as in MPI_Allreduce. The text of a code is that of its last use: MPI cannot free
 * codes, so a code per sentence would leak. */

#include "mpi_ext/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comm/watchdog.h"
#include "mpi_ext/lifecycle.h"
#include "mpi_ext/datatypes.h"
#include "core/persistent.h"

enum { OTHER_CLASS, MISMATCH_CLASS, CLASSES };

/* Text of MPI_Error_string for each class. Programs compare these texts, so they are part of the
 * interface. */
static const char *const class_names[CLASSES] = {
    [OTHER_CLASS] = "MPIX_Sparse: error",
    [MISMATCH_CLASS] = "MPIX_Sparse: calls differ between ranks",
};

/* 0: not made yet. Atomics instead of a lock, since MPI may hold its own lock when an active call fails. */
static atomic_int classes[CLASSES], codes[SAR_STATUSES];

/* If two threads make a number at the same time, the second one is not used. */
static int publish(atomic_int *number, int made)
{
    int expected = 0;
    return atomic_compare_exchange_strong(number, &expected, made) ? made : expected;
}

static int library_class(enum sar_status status)
{
    int which = status >= SAR_MISMATCHED_CALL ? MISMATCH_CLASS : OTHER_CLASS;
    int made = atomic_load(&classes[which]);
    if (made != 0)
        return made;
    if (PMPI_Add_error_class(&made) != MPI_SUCCESS)
        return 0;
    PMPI_Add_error_string(made, class_names[which]);
    return publish(&classes[which], made);
}

/* Returns a new code of an MPI class with our text, or the class itself where MPI takes no text for it, as
 * MPICH. */
static int code_in_mpi_class(int mpi_class, const char *text)
{
    char found[MPI_MAX_ERROR_STRING] = "";
    int code, length;
    if (PMPI_Add_error_code(mpi_class, &code) != MPI_SUCCESS)
        return mpi_class;
    PMPI_Add_error_string(code, text);
    PMPI_Error_string(code, found, &length);
    return strcmp(found, text) == 0 ? code : mpi_class;
}

static int library_code(enum sar_status status, const char *text)
{
    int made = atomic_load(&codes[status]);
    if (made != 0)
        return made;
    if (status == SAR_UNDEFINED_OP)
        return publish(&codes[status], code_in_mpi_class(MPI_ERR_OP, text));
    int own_class = library_class(status);
    return own_class != 0 && PMPI_Add_error_code(own_class, &made) == MPI_SUCCESS
               ? publish(&codes[status], made)
               : 0;
}

static int code_with_text(enum sar_status status, const char *text, bool mpi_usable)
{
    int code = mpi_usable ? library_code(status, text) : 0;
    if (code == 0)
        return MPI_ERR_OTHER;
    if (code != MPI_ERR_OP)
        PMPI_Add_error_string(code, text);
    return code;
}

static void describe_fork(char *text, size_t capacity)
{
    snprintf(text, capacity, sar_status_text(SAR_FORKED), "", "");
}

static const char *const function_names[SAR_FUNCTIONS] = {
    [SAR_FUNCTION_DENSE] = "MPIX_Sparse_allreduce",
    [SAR_FUNCTION_COO] = "MPIX_Sparse_allreduce_coo",
    [SAR_FUNCTION_PROFILE] = "MPIX_Sparse_profile",
    [SAR_FUNCTION_INIT] = "MPIX_Sparse_allreduce_init",
    [SAR_FUNCTION_COO_INIT] = "MPIX_Sparse_allreduce_coo_init",
    [SAR_FUNCTION_START] = "MPIX_Sparse_plan_start",
    [SAR_FUNCTION_COO_START] = "MPIX_Sparse_plan_start_coo",
    [SAR_FUNCTION_TOPK] = "MPIX_Sparse_topk_threshold",
    [SAR_FUNCTION_DGC] = "MPIX_Sparse_dgc_step",
    [SAR_FUNCTION_REDUCE_SCATTER] = "MPIX_Sparse_reduce_scatter",
    [SAR_FUNCTION_REDUCE_SCATTER_INIT] = "MPIX_Sparse_reduce_scatter_init",
    [SAR_FUNCTION_REDUCE_SCATTER_START] = "MPIX_Sparse_plan_start of a reduce_scatter",
    [SAR_FUNCTION_REDUCE_SCATTER_COO] = "MPIX_Sparse_reduce_scatter_coo",
    [SAR_FUNCTION_REDUCE_SCATTER_COO_INIT] = "MPIX_Sparse_reduce_scatter_coo_init",
    [SAR_FUNCTION_REDUCE_SCATTER_COO_START] = "MPIX_Sparse_plan_start_coo of a reduce_scatter",
    [SAR_FUNCTION_ALLGATHER_COO] = "MPIX_Sparse_allgather_coo",
    [SAR_FUNCTION_ALLGATHER_COO_INIT] = "MPIX_Sparse_allgather_coo_init",
    [SAR_FUNCTION_ALLGATHER_COO_START] = "MPIX_Sparse_plan_start_coo of an allgather",
    [SAR_FUNCTION_BCAST_DELTA] = "MPIX_Sparse_bcast_delta",
    [SAR_FUNCTION_BCAST_COO] = "MPIX_Sparse_bcast_coo",
};

void sar_error_setup(void)
{
    char text[MPI_MAX_ERROR_STRING];
    sar_watchdog_name_functions(function_names, SAR_FUNCTIONS);
    describe_fork(text, sizeof text);
    code_with_text(SAR_FORKED, text, true);
}

void sar_error_reset(void)
{
    for (int i = 0; i < CLASSES; i++)
        atomic_store(&classes[i], 0);
    for (int i = 0; i < SAR_STATUSES; i++)
        atomic_store(&codes[i], 0);
}

static int warn_in_child(const char *function)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    char text[MPI_MAX_ERROR_STRING];
    describe_fork(text, sizeof text);
    if (!atomic_flag_test_and_set(&warned))
        SAR_LOG(WARN, MPI, "%s: %s", function, text);
    int code = atomic_load(&codes[SAR_FORKED]);
    return code == 0 ? MPI_ERR_OTHER : code;
}

static void describe_plans(int64_t number, char *text, size_t capacity)
{
    if (number == 0)
        snprintf(text, capacity, "one alone");
    else
        snprintf(text, capacity, "%lld of them (%08llx)", (long long)(number >> SAR_FUSION_SHIFT),
                 (unsigned long long)number & UINT32_MAX);
}

/* Describe a value of an argument that must be equal on all ranks. */
static void describe_field(enum sar_agree_field field, int64_t number, char *text, size_t capacity)
{
    if (field == SAR_AGREE_DATATYPE)
        sar_datatype_describe(number, text, capacity);
    else if (field == SAR_AGREE_OP)
        sar_operation_describe(number, text, capacity);
    else if (field == SAR_AGREE_FUSION)
        describe_plans(number, text, capacity);
    else if (field == SAR_AGREE_FUNCTION && number >= 0 && number < SAR_FUNCTIONS)
        snprintf(text, capacity, "%s", function_names[number]);
    else if (field == SAR_AGREE_IN_PLACE && number > 1)
        snprintf(text, capacity, "number %lld of the communicator", (long long)(number >> 1));
    else if (field == SAR_AGREE_IN_PLACE)
        snprintf(text, capacity, "%s", number != 0 ? "MPI_IN_PLACE" : "a buffer");
    else
        snprintf(text, capacity, "%lld", (long long)number);
}

static void describe_mismatch(const struct sar_error *error, char *text, size_t capacity)
{
    char low[64], high[64], left[96], right[96];
    bool number = error->status == SAR_MISMATCHED_BLOCK || error->status == SAR_MISMATCHED_RECVCOUNT;
    enum sar_agree_field field = number ? SAR_AGREE_COUNT
                                 : error->status == SAR_MISMATCHED_PLAN
                                     ? SAR_AGREE_IN_PLACE
                                     : (enum sar_agree_field)(error->status - SAR_MISMATCHED_CALL);
    describe_field(field, error->low, low, sizeof low);
    describe_field(field, error->high, high, sizeof high);
    snprintf(left, sizeof left, "%s on rank %lld", low, (long long)error->low_rank);
    snprintf(right, sizeof right, "%s on rank %lld", high, (long long)error->high_rank);
    snprintf(text, capacity, sar_status_text(error->status), left, right);
}

enum { VALUE_CHARS = 128 };

/* One literal: in an array of literals, two beside each other look like a missing comma. */
#define WRONG_KIND                                                     \
    "of the other kind: MPIX_Sparse_plan_start is for dense buffers, " \
    "MPIX_Sparse_plan_start_coo for coordinates"

static const char *const faults[] = {
    [SAR_FAULT_NULL] = "null",
    [SAR_FAULT_ALIASED] = "the other buffer",
    [SAR_FAULT_NOT_IN_PLACE] = "the other buffer; pass MPI_IN_PLACE instead",
    [SAR_FAULT_IN_PLACE] = "MPI_IN_PLACE, which has no meaning here",
    [SAR_FAULT_WRONG_KIND] = (WRONG_KIND),
    [SAR_FAULT_IN_USE] = "in use by a call that is not done",
    [SAR_FAULT_COMM_FREED] = "of a communicator that was freed",
    [SAR_FAULT_STRIDED] = "not contiguous",
    [SAR_FAULT_ON_HOST] = "memory of the host, where the call has device memory",
    [SAR_FAULT_ON_DEVICE] = "device memory, where the call has memory of the host",
    [SAR_FAULT_OVERLAPPING] = "overlapping another array of the call",
    [SAR_FAULT_OTHER_DEVICE] = "memory of another device than the call's other arrays",
    [SAR_FAULT_NO_PLUGIN] = "device memory, and libmpix_sparse_cuda.so, which would reach it, cannot be used",
    [SAR_FAULT_NO_REQUEST] = "without a request, which MPI could not make",
};

static const char *const outputs[] = {
    [SAR_NULL_INFO] = "info_used",      [SAR_NULL_NNZ] = "nnz",         [SAR_NULL_PLANS] = "plans",
    [SAR_NULL_PROFILE] = "profile",     [SAR_NULL_REPORT] = "report",   [SAR_NULL_REQUESTS] = "requests",
    [SAR_NULL_THRESHOLD] = "threshold", [SAR_NULL_VERSION] = "version",
};

static void describe_value(const struct sar_error *error, char *text, size_t capacity)
{
    if (error->status == SAR_BAD_DATATYPE || error->status == SAR_BAD_INDEXTYPE)
        sar_datatype_describe(error->value, text, capacity);
    else if (error->status == SAR_BAD_OP || error->status == SAR_UNDEFINED_OP)
        sar_operation_describe(error->value, text, capacity);
    else if (error->status >= SAR_BAD_RATIO && error->status <= SAR_BAD_THRESHOLD)
        snprintf(text, capacity, "%g", sar_error_real_of(error->value));
    else if ((error->status >= SAR_BAD_COUNT && error->status <= SAR_BAD_CAPACITY) ||
             error->status == SAR_BAD_INDEX)
        snprintf(text, capacity, "%lld", (long long)error->value);
    else if (error->status == SAR_BAD_UNSIGNED_INDEX)
        snprintf(text, capacity, "%llu", (unsigned long long)error->value);
    else if (error->status == SAR_CAPTURED && error->value == 0)
        snprintf(text, capacity, "the default stream, or one that waits for it,");
    else if (error->status == SAR_CAPTURED)
        snprintf(text, capacity, "stream 0x%llx", (unsigned long long)error->value);
    else if (error->status == SAR_BAD_OUTPUT)
        snprintf(text, capacity, "%s", outputs[error->value]);
    else if (error->status == SAR_BAD_PLANS)
        snprintf(text, capacity, "[%lld] is %s", (long long)(error->value >> 8), faults[error->value & 255]);
    else if (error->status >= SAR_BAD_SENDBUF && error->status <= SAR_BAD_PLAN &&
             error->status != SAR_COMMON_INDEX)
        snprintf(text, capacity, "%s", faults[error->value]);
    else
        text[0] = '\0';
}

static void describe(const struct sar_error *error, const char *detail, char *text, size_t capacity)
{
    char value[VALUE_CHARS], rank[64] = "";
    bool of_index = error->status == SAR_BAD_INDEX || error->status == SAR_BAD_UNSIGNED_INDEX;
    if (error->status >= SAR_MISMATCHED_CALL) {
        describe_mismatch(error, text, capacity);
        return;
    }
    describe_value(error, value, sizeof value);
    if (error->agreed && of_index && error->low == error->high)
        snprintf(rank, sizeof rank, " (on rank %lld, count %lld)", (long long)error->rank,
                 (long long)error->low);
    else if (error->agreed && error->status >= SAR_NO_MEMORY)
        snprintf(rank, sizeof rank, " (on rank %lld)", (long long)error->rank);
    snprintf(text, capacity, sar_status_text(error->status), detail != NULL ? detail : value, rank);
}

static int code_of_error(const char *function, const struct sar_error *error, const char *detail,
                         bool mpi_usable)
{
    char sentence[MPI_MAX_ERROR_STRING - 64], text[MPI_MAX_ERROR_STRING];
    describe(error, detail, sentence, sizeof sentence);
    snprintf(text, sizeof text, "%s: %s", function, sentence);
    int code = code_with_text(error->status, text, mpi_usable);
    if (code == MPI_ERR_OP)
        SAR_LOG(WARN, MPI, "%s", text);      /* MPI_ERR_OP does not carry the text */
    else if (error->status != SAR_NO_REPORT) /* programs ask whether there is one */
        SAR_LOG(INFO, MPI, "%s", text);
    return code;
}

int sar_error_raise(MPI_Comm comm, const char *function, const struct sar_error *error, const char *detail)
{
    if (error->status == SAR_OK)
        return MPI_SUCCESS;
    if (sar_lifecycle_is_forked())
        return warn_in_child(function);
    int code = code_of_error(function, error, detail, comm != MPI_COMM_NULL || sar_lifecycle_mpi_usable());
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_call_errhandler(comm, code);
    else if (sar_mpi_world_is_up())
        PMPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    return code;
}

int sar_error_code(const char *function, enum sar_status status, int64_t value)
{
    struct sar_error error = { .status = status, .value = value };
    if (sar_lifecycle_is_forked())
        return warn_in_child(function);
    return code_of_error(function, &error, NULL, sar_lifecycle_mpi_usable());
}
