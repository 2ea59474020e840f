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
 * An *element* is the unit that is present or absent. It is one number when the datatype is a basic type,
 * and a row of D numbers when the datatype is MPI_Type_contiguous(D, basic). A *count* is a number of
 * elements; an *index* is the number of an element, in [0, count).
 *
 * The COO interface, and the fast paths of the dense one, take real numbers of 32 and 64 bits and integers of 8
 * to 64, of C and of Fortran, and floats of 16 bits where MPI has them or MPIX_SPARSE_ELEMENT says that integers
 * of 16 bits are such, with MPI_SUM, MPI_MAX, MPI_MIN and MPI_PROD; integers and bytes also with MPI_BAND,
 * MPI_BOR and MPI_BXOR. The COO interface takes integers of C and its logicals with MPI_LAND, MPI_LOR and
 * MPI_LXOR, of which values come out as 0 or 1.
 *
 * @par Memory
 * The arrays of a call are in memory of the host or, where the library was configured with CUDA, all in memory of one
 * device. Sizes are numbers of elements and times are seconds, unless a name says otherwise.
 *
 * @par Errors
 * Every function returns MPI_SUCCESS or an error code whose text (MPI_Error_string) names the argument at
 * fault and its value. Before returning, a function that has a communicator calls that communicator's error
 * handler, so that the default, MPI_ERRORS_ARE_FATAL, ends the program. A collective function gives every
 * rank an error when an argument is wrong on any rank, but where MPIX_Sparse_allreduce says otherwise. Output
 * arguments keep their values after an error.
 *
 * @par Threads
 * Calls on different communicators may run at the same time under MPI_THREAD_MULTIPLE. Calls on one
 * communicator follow MPI's rule for collectives: one after another, in the same order on every rank.
 */

/** Version of this header, (major << 16) + (minor << 8) + patch. @see MPIX_Sparse_get_version */
#define MPIX_SPARSE_VERSION 0x000100

/** What a binding for another language passes for an array that it cannot pass, for its elements are apart: a
 * collective call fails on all ranks and names the argument. */
#define MPIX_SPARSE_STRIDED ((void *)-13)

/** @defgroup results Results of the COO interface
 * @{ */

/** The outcome of a sparse allreduce. Belongs to the caller until MPIX_Sparse_result_free. */
typedef struct MPIX_Sparse_result_s *MPIX_Sparse_result;

/** No result. */
#define MPIX_SPARSE_RESULT_NULL ((MPIX_Sparse_result)0)

/** Look at a result. Not collective.
 *
 * The indices ascend without duplicates and have the index type of the call that made the result; the
 * values are nnz elements of its datatype, in the same order. Both arrays are read-only, belong to the
 * result, and stay valid until it is freed or handed to another call. They are in memory of the host or of the
 * device, as the arrays of that call were. Any output pointer may be NULL.
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
 * @param[out] recvbuf  all count elements of the call that made the result, in memory of the host or of the device,
 *                      as the result is; an absent element becomes zero bits
 * @return MPI_SUCCESS, or an error code if an argument is null or recvbuf is elsewhere */
int MPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf);

/** Free a result and set it to MPIX_SPARSE_RESULT_NULL. Not collective. Freeing a null result does nothing.
 *
 * @param[in,out] result  address of a result
 * @return MPI_SUCCESS, or an error code if the address is null or the result is in a call that is not complete */
int MPIX_Sparse_result_free(MPIX_Sparse_result *result);

/** @} */

/** @defgroup allreduce Sparse allreduce
 * @{ */

/** Allreduce of dense buffers that hold mostly zeros. Collective over comm.
 *
 * Takes the arguments of MPI_Allreduce and gives what it gives, up to the order of floating-point
 * additions. All ranks receive the same bits, but where MPI reduces and does not promise that. An element
 * whose bits are all zero is left out of the messages; it still takes part in MPI_MAX, MPI_MIN, MPI_PROD and
 * MPI_BAND as a zero.
 *
 * What this library cannot speed up goes to MPI_Allreduce on comm as it is: other types and ops, users' ops,
 * vectors of at most 16384 bytes (2048 within shared memory), intercommunicators, and most calls of a tensor
 * that turned out dense. What is wrong on one rank, or differs between ranks, then has the consequences that
 * it has there. The knob MPIX_SPARSE_FORWARD=0 has every call on an intracommunicator agreed on.
 *
 * @param[in]  sendbuf   count elements, or MPI_IN_PLACE on every rank
 * @param[out] recvbuf   count elements; no memory in common with sendbuf
 * @param[in]  count     number of elements, equal on all ranks
 * @param[in]  datatype  type of an element, equal on all ranks
 * @param[in]  op        reduction, equal on all ranks
 * @param[in]  comm      a communicator
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm);

/** Nonblocking MPIX_Sparse_allreduce. Collective over comm; completed by MPI_Wait, MPI_Test and their kin.
 *
 * Buffers belong to the library until then. Calls on one communicator must be started in the same order on all
 * ranks, those on different communicators may be waited for in any order. The first call of this library on a
 * communicator may wait for its other ranks, as MPI_Comm_dup does. What is wrong with an argument comes out of
 * the request, on all ranks; MPI_Request_get_status does not move the call. Needs MPI_THREAD_MULTIPLE where MPI
 * has no MPIX_Grequest_start, as Open MPI, and with MPIX_SPARSE_PROGRESS=thread.
 *
 * @param[in]  sendbuf, count, datatype, op, comm  as of MPIX_Sparse_allreduce
 * @param[out] recvbuf  count elements, when the request is complete
 * @param[out] request  the request
 * @return MPI_SUCCESS, or an error code if there is no request */
int MPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Request *request);

/** MPIX_Sparse_allreduce in the order of a stream of CUDA. Collective over comm.
 *
 * Buffers are in device memory. The call takes place behind what was queued on the stream, and what is queued later
 * behind it; this function does not wait for it. Until then buffers, datatype, op and comm must stay, and comm has
 * calls of this function only, in the same order on all ranks. So have all communicators used in this way, since
 * CUDA may carry out the functions of all streams one after another. Needs MPI_THREAD_MULTIPLE. A rank that finds an
 * argument wrong takes part at once, waiting for the others, and returns the error; they learn of it when their streams
 * come to the call. What goes wrong then calls the error handler of comm, from a thread of CUDA; recvbuf is undefined.
 *
 * @param[in]  sendbuf, count, datatype, op  as of MPIX_Sparse_allreduce
 * @param[out] recvbuf  count elements, for what follows on the stream
 * @param[in]  comm     an intracommunicator
 * @param[in]  stream   a cudaStream_t; NULL for the default stream
 * @return MPI_SUCCESS, or an error code for what is wrong on this rank */
int MPIX_Sparse_allreduce_enqueue(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, void *stream);

/** Allreduce of coordinate (COO) buffers. Collective over comm.
 *
 * An absent element contributes nothing: the result holds the union of all ranks' indices. Elements that
 * are present with the value zero are kept. Indices may come in any order; the values of one index that
 * comes several times on a rank are reduced too, in the order given.
 *
 * @param[in]     indices    nnz indices in [0, count); may be NULL when nnz is 0
 * @param[in]     values     nnz elements; may be NULL when nnz is 0
 * @param[in]     nnz        number of elements present on this rank; may differ between ranks
 * @param[in]     indextype  MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T or MPI_UINT64_T, wide enough for count - 1
 * @param[in]     count      length of the whole vector, equal on all ranks
 * @param[in]     datatype   type of an element, equal on all ranks
 * @param[in]     op         an op of MPI's that it defines for the datatype, equal on all ranks
 * @param[in]     comm       an intracommunicator
 * @param[in,out] result     address of MPIX_SPARSE_RESULT_NULL, or of a result to be overwritten, whose
 *                           memory is then reused
 * @return MPI_SUCCESS or an error code; on error *result is as it was, or empty */
int MPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                              MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPIX_Sparse_result *result);

/** Nonblocking MPIX_Sparse_allreduce_coo, as MPIX_Isparse_allreduce is of MPIX_Sparse_allreduce. Collective over comm.
 *
 * @param[in]     indices, values, nnz, indextype, count, datatype, op, comm  as of MPIX_Sparse_allreduce_coo
 * @param[in,out] result   set when the request is complete; neither used nor freed before
 * @param[out]    request  the request
 * @return MPI_SUCCESS, or an error code if there is no request */
int MPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result, MPI_Request *request);

/** @} */

/** @defgroup plans Plans: the same tensor again and again, such as a layer's gradient
 * @{ */

/** A tensor that is reduced repeatedly: its arguments, the knobs for it, and what was learnt of it. */
typedef struct MPIX_Sparse_plan_s *MPIX_Sparse_plan;

/** No plan. */
#define MPIX_SPARSE_PLAN_NULL ((MPIX_Sparse_plan)0)

/** Make a plan for MPIX_Sparse_allreduce. Collective over comm, in the order of other calls there.
 *
 * The arguments are agreed on here. Calls of the plan try the schemes, as other calls do; once the choice is
 * settled a call agrees on nothing but what its messages carry, until MPIX_SPARSE_PROFILE_EVERY calls later the
 * tensor is looked at again.
 *
 * @param[in]  sendbuf, recvbuf, count, datatype, op, comm  as of MPIX_Sparse_allreduce; the same in every call
 * @param[in]  info  hints, or MPI_INFO_NULL: as of MPIX_Sparse_comm_set_info, before which they go
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Make a plan for MPIX_Sparse_allreduce_coo, whose elements come with each call. Collective over comm, and in all else
 * as MPIX_Sparse_allreduce_init.
 *
 * @param[in]  indextype, count, datatype, op, comm  as of MPIX_Sparse_allreduce_coo; the same in every call
 * @param[in]  info  as of MPIX_Sparse_allreduce_init
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allreduce_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Start a call of a plan of MPIX_Sparse_allreduce_init. Collective, nonblocking: see MPIX_Isparse_allreduce.
 *
 * A plan is in one call at a time: until its request is complete it can be neither started nor freed.
 *
 * @param[in]  plan     the plan
 * @param[out] request  the request
 * @return MPI_SUCCESS, or an error code, on this rank only, if the plan is null, in use, of the other kind or of a
 *         communicator that was freed */
int MPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request);

/** Start a call of a plan of MPIX_Sparse_allreduce_coo_init. Collective, nonblocking, and one at a time, as
 * MPIX_Sparse_plan_start. In a call that agrees on nothing, a wrong index is named on its own rank only: the others learn
 * that another rank failed.
 *
 * @param[in]     plan     the plan
 * @param[in]     indices, values, nnz  as of MPIX_Sparse_allreduce_coo; to be left alone until the request is complete
 * @param[in,out] result   as of MPIX_Isparse_allreduce_coo
 * @param[out]    request  the request
 * @return as of MPIX_Sparse_plan_start */
int MPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                               MPIX_Sparse_result *result, MPI_Request *request);

/** Start n plans of MPIX_Sparse_allreduce_init, such as those of a model's layers. Collective, nonblocking: all
 * ranks name the same plans in the same order.
 *
 * Small plans of one communicator, type, op and set of knobs are fused: they travel as one vector, and come apart
 * again when it has arrived. Their requests complete together, and may be waited for in any order. The same plans
 * should be started together each time: what is learnt of them is kept by the first.
 *
 * @param[in]  n         plans
 * @param[in]  plans     the plans, each named once
 * @param[out] requests  one for each
 * @return MPI_SUCCESS, or the code of the first that cannot be started: then none is */
int MPIX_Sparse_plan_start_all(int n, MPIX_Sparse_plan plans[], MPI_Request requests[]);

/** Free a plan that is in no call. Not collective.
 *
 * @param[in,out] plan  set to MPIX_SPARSE_PLAN_NULL, which may be freed too
 * @return MPI_SUCCESS, or an error code if the address is null or the plan is in a call that is not complete */
int MPIX_Sparse_plan_free(MPIX_Sparse_plan *plan);

/** @} */

/** @defgroup hints Hints for a communicator
 * @{ */

/** Set hints for calls and plans to come on a communicator. Collective over comm; calls in flight there are waited
 * for.
 *
 * MPI_Comm_set_info would be the place, but MPI libraries may drop keys that they do not know. Where MPI keeps
 * them, they are read when this library is first used on comm; this function adds to them. Hints go before the
 * environment, and those of a plan before both. A duplicate of comm has none of them.
 *
 * @param[in] comm  an intracommunicator
 * @param[in] info  the same hints on all ranks: keys mpix_sparse_scheme, mpix_sparse_wire, … for the knobs of
 *                  mpix_sparse(7); keys that are no knobs are ignored
 * @return MPI_SUCCESS or an error code, and then all hints are as they were */
int MPIX_Sparse_comm_set_info(MPI_Comm comm, MPI_Info info);

/** Get the values of all knobs that hold for a communicator. Not collective.
 *
 * @param[in]  comm       an intracommunicator
 * @param[out] info_used  a new info object, to be freed by the caller; empty if this library has not been used
 *                        on comm
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_comm_get_info(MPI_Comm comm, MPI_Info *info_used);

/** @} */

/** @defgroup looking Looking at tensors and at what the library did
 * @{ */

/** Entries that the table of densification ratios can hold. */
#define MPIX_SPARSE_GAMMA_MAX 32

/** How sparse a tensor is, over all ranks of a communicator: the characteristics C1 to C3 of the Zen paper. */
typedef struct {
    MPI_Count count;        /**< elements of the vector */
    int       ranks;        /**< ranks of the communicator */
    double    density;      /**< mean over ranks of (elements present / count) */
    double    density_max;  /**< the largest of any rank */
    double    density_out;  /**< elements present on at least one rank / count */
    double    overlap;      /**< C1: mean over pairs of ranks of |I1 & I2| / that of min(|I1|, |I2|) */
    double    skewness;     /**< C3: density of the densest of `ranks` equal contiguous parts / density, mean over ranks */
    int       gammas;       /**< entries used in the two arrays below */
    int       gamma_ranks[MPIX_SPARSE_GAMMA_MAX]; /**< 2, 4, 8 … and last `ranks` itself */
    double    gamma[MPIX_SPARSE_GAMMA_MAX]; /**< C2: density of the union over that many ranks / density */
    MPI_Count sampled;      /**< elements looked at; equal to count when the figures are exact */
} MPIX_Sparse_profile_t;

/** Measure how sparse a dense buffer is. Collective over comm.
 *
 * @param[in]  buf       count elements
 * @param[in]  count     number of elements, equal on all ranks
 * @param[in]  datatype  type of an element, as of MPIX_Sparse_allreduce_coo, equal on all ranks
 * @param[in]  comm      an intracommunicator
 * @param[out] profile   equal on all ranks
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                        MPIX_Sparse_profile_t *profile);

/** Room for a name in a report, with its final null. */
#define MPIX_SPARSE_NAME_MAX 32
/** Room for the sentence in a report, with its final null. */
#define MPIX_SPARSE_REASON_MAX 160

/** What the last call on a communicator did. Names are those of the knobs in mpix_sparse(7). */
typedef struct {
    char      scheme[MPIX_SPARSE_NAME_MAX];    /**< scheme that ran */
    char      choice[MPIX_SPARSE_NAME_MAX];    /**< scheme that the selector prefers, also when another was forced */
    char      reason[MPIX_SPARSE_REASON_MAX];  /**< why `scheme` ran, in a sentence */
    char      push_wire[MPIX_SPARSE_NAME_MAX]; /**< format of the messages, of the push for two-step schemes; "mixed", "none" */
    char      pull_wire[MPIX_SPARSE_NAME_MAX]; /**< format of the pull; "none" for one-step schemes */
    char      partition[MPIX_SPARSE_NAME_MAX]; /**< map, "recomputed" by oktopk, "none" without one */
    int       grain;              /**< consecutive elements that stay in one part; 0 without a partition map */
    int       ranks;              /**< ranks of the communicator */
    int       nodes;              /**< distinct nodes among them */
    MPI_Count count;              /**< elements of the vector */
    MPI_Count row;                /**< basic values in an element */
    MPI_Count nnz_in;             /**< elements present on this rank */
    MPI_Count nnz_in_max;         /**< the largest of any rank; estimated by `dense` and `shared` on dense buffers, -1 unseen */
    MPI_Count nnz_in_sum;         /**< sum over all ranks; likewise */
    MPI_Count nnz_out;            /**< elements of the result; -1 where nobody counted them */
    MPI_Count bytes_sent;         /**< by this rank, headers included; for `dense` the volume of a ring */
    MPI_Count bytes_received;     /**< likewise */
    MPI_Count header_bytes_sent;  /**< bytes of bytes_sent that are headers */
    MPI_Count messages_sent;      /**< by this rank */
    double    push_imbalance;     /**< ranks * largest part / elements of this rank (Zen, Definition 5); 0 without parts */
    double    pull_imbalance;     /**< ranks * largest aggregated part / elements of the result; 0 without parts */
    double    predicted_seconds;  /**< price of `scheme` in the cost model */
    double    measured_seconds;   /**< time this rank spent in the call; -1 where it went to MPI_Allreduce unseen */
} MPIX_Sparse_report_t;

/** Report on the last call on a communicator. Not collective.
 *
 * @param[in]  comm    a communicator on which a call of this library has completed
 * @param[out] report  what that call did, on this rank
 * @return MPI_SUCCESS, or an error code if no call has completed on comm */
int MPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report);

/** Version of the library, to compare with MPIX_SPARSE_VERSION. Not collective; may be called before MPI_Init.
 *
 * @param[out] version  (major << 16) + (minor << 8) + patch
 * @return MPI_SUCCESS, or an error code if version is null */
int MPIX_Sparse_get_version(int *version);

/** @} */

/** @defgroup profiling Profiling interface: the same functions under their PMPI names
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
int PMPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                         MPIX_Sparse_profile_t *profile);
int PMPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report);
int PMPIX_Sparse_get_version(int *version);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
