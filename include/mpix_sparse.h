/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_SPARSE_H
#define MPIX_SPARSE_H

#include <mpi.h>

#include "mpix_sparse_topk.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @file
 * Allreduce for vectors that are mostly zero.
 *
 * An *element* is the unit that is present or absent: one number if the datatype is a basic type, or a row of D
 * numbers if the datatype is MPI_Type_contiguous(D, basic). A *count* is a number of elements. An *index* is the
 * position of an element, in [0, count). *Settings* are the environment variables and info keys of
 * mpix_sparse_environment(7).
 *
 * @par Types and ops
 * The COO interface, and the sparse schemes of the dense interface, support
 * - floats of 32 and 64 bits and integers of 8 to 64 bits, of C and of Fortran: MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD
 * - floats of 16 bits: the same ops. MPI must have such types, or MPIX_SPARSE_ELEMENT must declare 16-bit integers floats
 * - integers and bytes: MPI_BAND, MPI_BOR, MPI_BXOR
 * - C integers and C logicals: MPI_LAND, MPI_LOR, MPI_LXOR, in the COO interface only. Results are 0 or 1
 *
 * @par Memory
 * All arrays of a call are in host memory or, if the library was configured with CUDA, all in memory of one device.
 * Sizes are in elements and times are in seconds, unless a name says otherwise.
 *
 * @par Errors
 * Every function returns MPI_SUCCESS or an error code. The text of the code (MPI_Error_string) names the invalid argument
 * and its value. A function with a communicator first calls the error handler of that communicator; the default handler,
 * MPI_ERRORS_ARE_FATAL, ends the program. If an argument of a collective function is invalid on one rank, every rank gets
 * an error; MPIX_Sparse_allreduce documents exceptions. After an error, output arguments are unchanged, or results are empty.
 *
 * @par Threads
 * Calls on different communicators may run concurrently under MPI_THREAD_MULTIPLE. Calls on one communicator follow
 * MPI's rule for collectives: one after another, in the same order on every rank.
 */

/** Version of this header, (major << 16) + (minor << 8) + patch. @see MPIX_Sparse_get_version */
#define MPIX_SPARSE_VERSION 0x000100

/** Marks an array whose elements are not contiguous; used by bindings for other languages. A collective call with this
 * argument fails on all ranks, with an error that names the argument. */
#define MPIX_SPARSE_STRIDED ((void *)-13)

/** @defgroup results Results of the COO interface
 * @{ */

/** The result of a sparse allreduce. Owned by the caller; freed by MPIX_Sparse_result_free. */
typedef struct MPIX_Sparse_result_s *MPIX_Sparse_result;

/** No result. */
#define MPIX_SPARSE_RESULT_NULL ((MPIX_Sparse_result)0)

/** Get the elements of a result. Not collective.
 *
 * The indices are ascending and unique, and have the index type of the call that made the result. The values are
 * elements of its datatype, in the same order. Both arrays are read-only and owned by the result; they are valid until
 * the result is freed or passed to another call. They are in the same kind of memory, host or device, as the arrays of
 * that call. Any output pointer may be NULL.
 *
 * @param[in]  result   a result; not MPIX_SPARSE_RESULT_NULL
 * @param[out] nnz      number of elements present on at least one rank
 * @param[out] indices  nnz indices
 * @param[out] values   nnz elements
 * @return MPI_SUCCESS, or an error code if result is null */
int MPIX_Sparse_result_get(MPIX_Sparse_result result, MPI_Count *nnz, const void **indices, const void **values);

/** Write a result as a dense vector. Not collective.
 *
 * @param[in]  result   a result; not MPIX_SPARSE_RESULT_NULL
 * @param[out] recvbuf  all count elements of the call that made the result; absent elements become zero bits. In host or
 *                      device memory, as the result
 * @return MPI_SUCCESS, or an error code if an argument is null or recvbuf is in other memory than the result */
int MPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf);

/** Free a result and set it to MPIX_SPARSE_RESULT_NULL. Not collective. A null result is ignored.
 *
 * @param[in,out] result  address of a result
 * @return MPI_SUCCESS, or an error code if the address is null or a call that is not complete uses the result */
int MPIX_Sparse_result_free(MPIX_Sparse_result *result);

/** @} */

/** @defgroup allreduce Sparse allreduce
 * @{ */

/** Allreduce of dense buffers that hold mostly zeros. Collective over comm.
 *
 * Same arguments and result as MPI_Allreduce, up to the order of floating-point additions. All ranks receive the same
 * bits, unless the call is passed to an MPI_Allreduce that does not guarantee that. An element whose bits are all zero is
 * not sent, but it takes part in MPI_MAX, MPI_MIN, MPI_PROD and MPI_BAND as a zero.
 *
 * Calls that the library cannot speed up are passed to MPI_Allreduce on comm: other types and ops, user-defined ops,
 * vectors of at most 16384 bytes (2048 if all ranks share memory), intercommunicators, and most calls on a tensor that
 * turned out to be dense. Errors in such calls, and arguments that differ between ranks, behave as in MPI_Allreduce. With
 * MPIX_SPARSE_FORWARD=0 the arguments of every call on an intracommunicator are checked for consistency.
 *
 * @param[in]  sendbuf   count elements, or MPI_IN_PLACE on every rank
 * @param[out] recvbuf   count elements; must not overlap sendbuf
 * @param[in]  count     number of elements, equal on all ranks
 * @param[in]  datatype  type of an element, equal on all ranks
 * @param[in]  op        reduction, equal on all ranks
 * @param[in]  comm      a communicator
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm);

/** Nonblocking MPIX_Sparse_allreduce. Collective over comm. Complete the request with MPI_Wait, MPI_Test or the like.
 *
 * Do not read or write the buffers before the request is complete. Start calls on one communicator in the same order on
 * all ranks; requests of different communicators may be completed in any order. The first call of this library on a
 * communicator may wait for its other ranks, as MPI_Comm_dup does. Errors in arguments are returned on all ranks when the
 * request completes. MPI_Request_get_status does not make progress. Needs MPI_THREAD_MULTIPLE with
 * MPIX_SPARSE_PROGRESS=thread, and if MPI has no MPIX_Grequest_start, as Open MPI.
 *
 * @param[in]  sendbuf, count, datatype, op, comm  see MPIX_Sparse_allreduce
 * @param[out] recvbuf  count elements, when the request is complete
 * @param[out] request  the request
 * @return MPI_SUCCESS, or an error code if no request was made */
int MPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Request *request);

/** MPIX_Sparse_allreduce in the order of a CUDA stream. Collective over comm.
 *
 * The buffers are in device memory. The call runs after the work queued on the stream before, and before the work queued
 * later; this function does not wait for it. Until the call has run, keep the buffers, datatype, op and comm, and call no
 * other function of this library on comm. Make the calls of this function in the same order on all ranks, over all
 * communicators together: CUDA may run the host functions of all streams one after another. Needs MPI_THREAD_MULTIPLE.
 *
 * A rank with an invalid argument takes part at once, waits for the other ranks, and returns the error. The other ranks
 * get the error when their streams reach the call. Errors at that time call the error handler of comm in a thread of CUDA,
 * and recvbuf is undefined.
 *
 * @param[in]  sendbuf, count, datatype, op  see MPIX_Sparse_allreduce
 * @param[out] recvbuf  count elements, for work queued later on the stream
 * @param[in]  comm     an intracommunicator
 * @param[in]  stream   a cudaStream_t; NULL for the default stream
 * @return MPI_SUCCESS, or the error code of this rank */
int MPIX_Sparse_allreduce_enqueue(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, void *stream);

/** Allreduce of coordinate (COO) buffers. Collective over comm.
 *
 * The result holds the union of all ranks' indices; an absent element contributes nothing. Elements that are present with
 * the value zero are kept. Indices may be in any order. If a rank has an index several times, its values are reduced in
 * the order given.
 *
 * @param[in]     indices    nnz indices in [0, count); may be NULL if nnz is 0
 * @param[in]     values     nnz elements; may be NULL if nnz is 0
 * @param[in]     nnz        number of elements present on this rank; may differ between ranks
 * @param[in]     indextype  MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T or MPI_UINT64_T, wide enough for count - 1
 * @param[in]     count      length of the whole vector, equal on all ranks
 * @param[in]     datatype   type of an element, equal on all ranks
 * @param[in]     op         a predefined op that MPI defines for the datatype, equal on all ranks
 * @param[in]     comm       an intracommunicator
 * @param[in,out] result     address of MPIX_SPARSE_RESULT_NULL, or of a result that is overwritten and whose memory is
 *                           reused
 * @return MPI_SUCCESS or an error code; on error *result is unchanged or empty */
int MPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                              MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPIX_Sparse_result *result);

/** Nonblocking MPIX_Sparse_allreduce_coo. Collective over comm. The rules of MPIX_Isparse_allreduce apply.
 *
 * @param[in]     indices, values, nnz, indextype, count, datatype, op, comm  see MPIX_Sparse_allreduce_coo
 * @param[in,out] result   set when the request is complete; do not use or free it before
 * @param[out]    request  the request
 * @return MPI_SUCCESS, or an error code if no request was made */
int MPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result, MPI_Request *request);

/** @} */

/** @defgroup plans Plans: repeated allreduce of one tensor, such as a layer's gradient
 * @{ */

/** A repeated allreduce: its arguments, its settings, and the measurements that guide its choice of scheme. */
typedef struct MPIX_Sparse_plan_s *MPIX_Sparse_plan;

/** No plan. */
#define MPIX_SPARSE_PLAN_NULL ((MPIX_Sparse_plan)0)

/** Make a plan for MPIX_Sparse_allreduce. Collective over comm, in the same order as other calls on comm.
 *
 * This function checks that the arguments are consistent on all ranks. The first calls of the plan try several schemes, as
 * other calls do. Once the choice is settled, calls exchange only the messages of the scheme; after
 * MPIX_SPARSE_PROFILE_EVERY calls the tensor is profiled again. Free the plan with MPIX_Sparse_plan_free.
 *
 * @param[in]  sendbuf, recvbuf, count, datatype, op, comm  see MPIX_Sparse_allreduce; used by every call of the plan
 * @param[in]  info  hints as in MPIX_Sparse_comm_set_info, which they override; or MPI_INFO_NULL
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Make a plan for MPIX_Sparse_allreduce_coo. Collective over comm. The elements are arguments of each call; all else is
 * as in MPIX_Sparse_allreduce_init.
 *
 * @param[in]  indextype, count, datatype, op, comm  see MPIX_Sparse_allreduce_coo; used by every call of the plan
 * @param[in]  info  see MPIX_Sparse_allreduce_init
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Start a call of a plan of MPIX_Sparse_allreduce_init. Collective and nonblocking; see MPIX_Isparse_allreduce.
 *
 * A plan runs one call at a time: before the request is complete, it can be neither started nor freed.
 *
 * @param[in]  plan     the plan
 * @param[out] request  the request
 * @return MPI_SUCCESS, or an error code, on this rank only, if the plan is null, in use, of MPIX_Sparse_allreduce_coo_init,
 *         or if its communicator was freed */
int MPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request);

/** Start a call of a plan of MPIX_Sparse_allreduce_coo_init. Collective and nonblocking, one call at a time, as
 * MPIX_Sparse_plan_start. If the call makes no consistency check, an invalid index is named on its own rank only; the other
 * ranks report that another rank failed.
 *
 * @param[in]     plan     the plan
 * @param[in]     indices, values, nnz  see MPIX_Sparse_allreduce_coo; do not change them before the request is complete
 * @param[in,out] result   see MPIX_Isparse_allreduce_coo
 * @param[out]    request  the request
 * @return see MPIX_Sparse_plan_start */
int MPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                               MPIX_Sparse_result *result, MPI_Request *request);

/** Start n plans of MPIX_Sparse_allreduce_init, such as those of a model's layers. Collective and nonblocking; pass the
 * same plans in the same order on all ranks.
 *
 * Small plans with the same communicator, type, op and settings are fused into one vector and one call. Their requests
 * complete together and may be waited for in any order. Start the same plans together each time: the first plan of a group
 * keeps the group's measurements.
 *
 * @param[in]  n         number of plans
 * @param[in]  plans     n plans, each at most once
 * @param[out] requests  n requests
 * @return MPI_SUCCESS, or the error code of the first plan that cannot be started; then no plan is started. With the hint
 *         mpix_sparse_check_starts the rank blocks then until the others start theirs, which fail */
int MPIX_Sparse_plan_start_all(int n, MPIX_Sparse_plan plans[], MPI_Request requests[]);

/** Free a plan. Not collective. No call of the plan may be in progress. A null plan is ignored.
 *
 * @param[in,out] plan  address of the plan; set to MPIX_SPARSE_PLAN_NULL
 * @return MPI_SUCCESS, or an error code if the address is null or a call of the plan is not complete */
int MPIX_Sparse_plan_free(MPIX_Sparse_plan *plan);

/** @} */

/** @defgroup hints Hints for a communicator
 * @{ */

/** Set hints for later calls and plans on a communicator. Collective over comm; waits for calls in progress there.
 *
 * MPI libraries may drop info keys that they do not know, hence this function beside MPI_Comm_set_info. If MPI keeps the
 * keys, the library reads them at its first use of comm, and this function adds to them. Hints override the environment,
 * and hints of a plan override both. A duplicate of comm does not inherit hints.
 *
 * @param[in] comm  an intracommunicator
 * @param[in] info  the same hints on all ranks: keys mpix_sparse_scheme, mpix_sparse_wire, … for the settings of
 *                  mpix_sparse_environment(7); other keys are ignored
 * @return MPI_SUCCESS or an error code; on error all hints are unchanged */
int MPIX_Sparse_comm_set_info(MPI_Comm comm, MPI_Info info);

/** Get the values of all settings in force on a communicator. Not collective.
 *
 * @param[in]  comm       an intracommunicator
 * @param[out] info_used  a new info object, freed by the caller; empty if this library has not been used on comm
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_comm_get_info(MPI_Comm comm, MPI_Info *info_used);

/** Set the label of the next allreduce on a communicator: a number of the caller's, such as that of a tensor, which ranks
 * compare together with the arguments. Labels that differ are an error on all ranks. Collective if it is this library's
 * first use of comm, else local.
 *
 * The label holds for the next call of MPIX_Sparse_allreduce, MPIX_Sparse_allreduce_coo, or one of their nonblocking
 * variants. A call that is passed to MPI unchecked (hint mpix_sparse_forward) does not compare it. Later calls have label 0.
 * MPIX_Sparse_get_report does not report on calls with a negative label.
 *
 * @param[in] comm   an intracommunicator
 * @param[in] label  any number
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_comm_set_label(MPI_Comm comm, int label);

/** @} */

/** @defgroup looking Profiles of tensors and reports of calls
 * @{ */

/** Capacity of the table of densification ratios. */
#define MPIX_SPARSE_GAMMA_MAX 32

/** Sparsity of a tensor over all ranks of a communicator: the characteristics C1 to C3 of the Zen paper. */
typedef struct {
    MPI_Count count;        /**< elements of the vector */
    int       ranks;        /**< ranks of the communicator */
    double    density;      /**< mean over ranks of (elements present / count) */
    double    density_max;  /**< maximum over ranks of (elements present / count) */
    double    density_out;  /**< elements present on at least one rank / count */
    double    overlap;      /**< C1: mean of |I1 & I2| / mean of min(|I1|, |I2|), over pairs of ranks with index sets I1 and I2 */
    double    skewness;     /**< C3: density of the densest of `ranks` equal contiguous parts / density, mean over ranks */
    int       gammas;       /**< entries used in the two arrays below */
    int       gamma_ranks[MPIX_SPARSE_GAMMA_MAX]; /**< 2, 4, 8 … and last `ranks` itself */
    double    gamma[MPIX_SPARSE_GAMMA_MAX]; /**< C2: density of the union over that many ranks / density */
    MPI_Count sampled;      /**< elements examined; equal to count if the figures are exact */
} MPIX_Sparse_profile_t;

/** Measure how sparse a dense buffer is. Collective over comm.
 *
 * @param[in]  buf       count elements
 * @param[in]  count     number of elements, equal on all ranks
 * @param[in]  datatype  type of an element, as in MPIX_Sparse_allreduce_coo, equal on all ranks
 * @param[in]  comm      an intracommunicator
 * @param[out] profile   equal on all ranks
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                        MPIX_Sparse_profile_t *profile);

/** Size of a name in a report, including the terminating null. */
#define MPIX_SPARSE_NAME_MAX 32
/** Size of the sentence in a report, including the terminating null. */
#define MPIX_SPARSE_REASON_MAX 160

/** Description of the last call on a communicator. Names are those of the settings in mpix_sparse_environment(7). */
typedef struct {
    char      scheme[MPIX_SPARSE_NAME_MAX];    /**< scheme that ran */
    char      choice[MPIX_SPARSE_NAME_MAX];    /**< scheme that the cost model prefers, even if a setting forced another one */
    char      reason[MPIX_SPARSE_REASON_MAX];  /**< why `scheme` ran; one sentence */
    char      push_wire[MPIX_SPARSE_NAME_MAX]; /**< format of the messages, in two-step schemes of the push; "mixed", "none" */
    char      pull_wire[MPIX_SPARSE_NAME_MAX]; /**< format of the pull; "none" for one-step schemes */
    char      partition[MPIX_SPARSE_NAME_MAX]; /**< partition map; "recomputed" for oktopk, "none" without a map */
    int       grain;              /**< consecutive elements that stay in one part; 0 without a partition map */
    int       ranks;              /**< ranks of the communicator */
    int       nodes;              /**< distinct nodes among them */
    int       columns;            /**< most ranks that own slices of one row; 1: whole rows; 0 without a partition map */
    int       threads;            /**< threads that a large loop could have at the end of the call, the calling one included */
    MPI_Count count;              /**< elements of the vector */
    MPI_Count row;                /**< basic values in an element */
    MPI_Count nnz_in;             /**< elements present on this rank */
    MPI_Count nnz_in_max;         /**< maximum over ranks; estimate for `dense`, `shared` on dense buffers; -1 if passed to MPI */
    MPI_Count nnz_in_sum;         /**< sum over ranks; estimated or -1 like nnz_in_max */
    MPI_Count nnz_out;            /**< elements of the result; -1 if not counted */
    MPI_Count bytes_sent;         /**< by this rank, including headers; for `dense` the volume of a ring algorithm */
    MPI_Count bytes_received;     /**< by this rank, including headers */
    MPI_Count header_bytes_sent;  /**< headers in bytes_sent */
    MPI_Count messages_sent;      /**< by this rank */
    MPI_Count messages_relayed;   /**< of messages_sent: sums of other ranks that this rank has sent on */
    MPI_Count hash_reruns;        /**< runs of hierarchical hashing whose serial memory overflowed; 0 for other partitions */
    double    serial_share;       /**< share of this rank's elements that hierarchical hashing put in serial memory; 0 likewise */
    double    push_imbalance;     /**< ranks * largest part / elements of this rank (Zen paper, Definition 5); 0 without parts */
    double    pull_imbalance;     /**< ranks * largest reduced part / elements of the result; 0 without parts */
    double    predicted_seconds;  /**< cost of `scheme` in the model; -1 if the call was passed to MPI_Allreduce */
    double    measured_seconds;   /**< time of this rank in the call; -1 if the call was passed to MPI_Allreduce unmeasured */
} MPIX_Sparse_report_t;

/** Get a report of the last call on a communicator. Not collective.
 *
 * @param[in]  comm    a communicator on which a call of this library has completed
 * @param[out] report  description of that call, on this rank
 * @return MPI_SUCCESS, or an error code if no call has completed on comm */
int MPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report);

/** Get the version of the library, to compare with MPIX_SPARSE_VERSION. Not collective; may be called before MPI_Init.
 *
 * @param[out] version  (major << 16) + (minor << 8) + patch
 * @return MPI_SUCCESS, or an error code if version is null */
int MPIX_Sparse_get_version(int *version);

/** @} */

/** @defgroup profiling Profiling interface: the functions under their PMPI names
 * @{ */
int PMPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                           MPI_Comm comm);
int PMPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Op op, MPI_Comm comm, MPI_Request *request);
int PMPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                MPIX_Sparse_result *result, MPI_Request *request);
int PMPIX_Sparse_allreduce_enqueue(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm, void *stream);
int PMPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result);
int PMPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);
int PMPIX_Sparse_allreduce_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);
int PMPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request);
int PMPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                               MPIX_Sparse_result *result, MPI_Request *request);
int PMPIX_Sparse_plan_start_all(int n, MPIX_Sparse_plan plans[], MPI_Request requests[]);
int PMPIX_Sparse_plan_free(MPIX_Sparse_plan *plan);
int PMPIX_Sparse_result_get(MPIX_Sparse_result result, MPI_Count *nnz, const void **indices, const void **values);
int PMPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf);
int PMPIX_Sparse_result_free(MPIX_Sparse_result *result);
int PMPIX_Sparse_comm_set_info(MPI_Comm comm, MPI_Info info);
int PMPIX_Sparse_comm_get_info(MPI_Comm comm, MPI_Info *info_used);
int PMPIX_Sparse_comm_set_label(MPI_Comm comm, int label);
int PMPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                         MPIX_Sparse_profile_t *profile);
int PMPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report);
int PMPIX_Sparse_get_version(int *version);
/** @} */

#ifdef __cplusplus
}
#endif

#include "mpix_sparse_bcast.h"
#include "mpix_sparse_reduce_scatter.h"

#endif
