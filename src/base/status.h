/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes of internal functions, and the messages that users read. */

#ifndef SAR_BASE_STATUS_H
#define SAR_BASE_STATUS_H

/** All codes with their messages. The first %s is the bad value; the second one is another rank's value, a
 * note on the rank, or empty. If ranks fail with different codes, the last code in this list is reported. */
#define SAR_STATUS_MAP(X)                                                                           \
    X(OK, "no error%s%s")                                                                           \
    X(UNSUPPORTED, "the scheme asked for cannot carry out this call%s%s")                           \
    X(SHM_RETRY, "a rank cannot share memory, so that all send messages%s%s")                       \
    X(NO_MEMORY, "out of memory%s%s")                                                               \
    X(NO_SHM, "cannot allocate shared memory%s%s")                                                  \
    X(NO_FDS, "no file descriptor is left for shared memory: see ulimit -n%s%s")                    \
    X(MANY_RESULTS, "as many results are kept as may share memory: free some%s%s")                  \
    X(CORRUPT, "a message arrived truncated or inconsistent%s%s")                                   \
    X(PEER_FAILED, "another rank could not carry out its part of the call%s%s")                     \
    X(MPI_FAILED, "an MPI function failed%s%s")                                                     \
    X(STALE_VERSION, "argument old_version is not the old version of the root%s%s")                 \
    X(DEVICE_FAILED, "a function of CUDA failed%s%s")                                               \
    X(CAPTURED, "%s is being captured into a CUDA graph, which calls cannot be part of%s")          \
    X(NO_THREADS, "the call would run in another thread, which needs MPI_THREAD_MULTIPLE%s%s")      \
    X(FORKED, "this process is a child of fork(), and MPI does not work in it%s%s")                 \
    X(BAD_SETTING, "configuration: %s%s")                                                           \
    X(BAD_COUNT, "argument count is %s, which is negative or too large%s")                          \
    X(BAD_RECVCOUNT, "argument recvcount is %s, which is negative or too large%s")                  \
    X(BAD_BLOCK, "argument block is %s, which is not positive%s")                                   \
    X(LONG_BLOCK, "argument block is %s, which is not below 2^32, and a rank has two blocks%s")     \
    X(BAD_NNZ, "argument nnz is %s, which is negative%s")                                           \
    X(BAD_N, "argument n is %s, which is negative%s")                                               \
    X(BAD_ROOT, "argument root is %s, which is not a rank of comm%s")                               \
    X(BAD_CAPACITY, "argument capacity is %s, which is negative or too large%s")                    \
    X(BAD_RATIO, "argument ratio is %s, which is not in (0, 1] or not that of rank 0%s")            \
    X(BAD_SAMPLE, "argument sample is %s, which is not in (0, 1] or not that of rank 0%s")          \
    X(BAD_MOMENTUM, "argument momentum is %s, which is not in [0, 1)%s")                            \
    X(BAD_SCALE, "argument scale is %s, which is not finite%s")                                     \
    X(BAD_THRESHOLD, "argument threshold is %s, which is not 0 or more%s")                          \
    X(BAD_DATATYPE, "argument datatype is %s, which the call does not take%s")                      \
    X(BAD_INDEXTYPE, "argument indextype is %s, which is no integer of 32 or 64 bits that holds "   \
                     "count - 1%s")                                                                 \
    X(BAD_OP, "argument op is %s, which the call does not take%s")                                  \
    X(UNDEFINED_OP, "argument op is %s, which MPI does not define for the datatype%s")              \
    X(BAD_SENDBUF, "argument sendbuf is %s%s")                                                      \
    X(BAD_RECVBUF, "argument recvbuf is %s%s")                                                      \
    X(BAD_BUF, "argument buf is %s%s")                                                              \
    X(BAD_INDICES, "argument indices is %s%s")                                                      \
    X(BAD_VALUES, "argument values is %s%s")                                                        \
    X(BAD_GRADIENT, "argument gradient is %s%s")                                                    \
    X(BAD_VELOCITY, "argument velocity is %s%s")                                                    \
    X(BAD_RESIDUAL, "argument residual is %s%s")                                                    \
    X(BAD_HOW, "argument how is %s%s")                                                              \
    X(BAD_OLD_VERSION, "argument old_version is %s%s")                                              \
    X(BAD_NEW_VERSION, "argument new_version is %s%s")                                              \
    X(BAD_INDEX, "argument indices holds %s, which is outside [0, count)%s")                        \
    X(BAD_UNSIGNED_INDEX, "argument indices holds %s, which is not below count%s")                  \
    X(COMMON_INDEX, "argument indices holds an index that occurs twice, on one rank or on two%s%s") \
    X(BAD_RESULT, "argument result is %s%s")                                                        \
    X(BAD_REQUEST, "argument request is %s%s")                                                      \
    X(BAD_PLAN, "argument plan is %s%s")                                                            \
    X(BAD_PLANS, "argument plans%s%s")                                                              \
    X(BAD_OUTPUT, "argument %s is null%s")                                                          \
    X(BAD_COMM, "argument comm is %s%s")                                                            \
    X(INTERCOMMUNICATOR, "argument comm is an intercommunicator%s%s")                               \
    X(NO_REPORT, "argument comm has no completed call to report on%s%s")                            \
    X(MISMATCHED_CALL, "ranks call different functions: %s and %s")                                 \
    X(MISMATCHED_PLANS, "ranks start different plans together: %s and %s")                          \
    X(MISMATCHED_COUNT, "argument count differs between ranks: %s and %s")                          \
    X(MISMATCHED_DATATYPE, "argument datatype differs between ranks: %s and %s")                    \
    X(MISMATCHED_OP, "argument op differs between ranks: %s and %s")                                \
    X(MISMATCHED_IN_PLACE, "argument sendbuf differs between ranks: %s and %s")                     \
    X(MISMATCHED_BLOCK, "argument block differs between ranks: %s and %s")                          \
    X(MISMATCHED_RECVCOUNT, "argument recvcount differs between ranks: %s and %s")                  \
    X(MISMATCHED_ROOT, "argument root differs between ranks: %s and %s")                            \
    X(MISMATCHED_PLAN, "ranks start different plans: %s and %s")                                    \
    X(MISMATCHED_LABEL, "the label of the call differs between ranks: %s and %s")

enum sar_status {
#define SAR_STATUS_NAME(name, text) SAR_##name,
    SAR_STATUS_MAP(SAR_STATUS_NAME)
#undef SAR_STATUS_NAME
        SAR_STATUSES
};

/** Returns the message of a status: a printf format with two %s. */
const char *sar_status_text(enum sar_status status);

/** Returns from the current function with the status of the call if it failed. */
#define SAR_TRY(call)                         \
    do {                                      \
        enum sar_status try_status_ = (call); \
        if (try_status_ != SAR_OK)            \
            return try_status_;               \
    } while (0)

#endif
