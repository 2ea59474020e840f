/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments and result of one call: the data that mpi_ext/ hands to core. */

#ifndef SAR_CORE_CALL_ARGS_H
#define SAR_CORE_CALL_ARGS_H

#include <string.h>

#include "comm/agree.h"
#include "comm/dense_allreduce.h"
#include "device/ops.h"
#include "scheme/scheme.h"
#include "vector/packed_vec.h"

/** An error of a call. Equal on all ranks if `agreed`. */
struct sar_error {
    enum sar_status status;
    bool agreed;
    int64_t value;               /**< the wrong value; for a real number sar_error_bits_of it */
    int64_t rank;                /**< rank that has the wrong value */
    int64_t low, high;           /**< if an argument differs between ranks: its minimum and maximum; else,
                                  * if agreed, those of count */
    int64_t low_rank, high_rank; /**< ranks that have the minimum and the maximum */
};

/** Records an error, unless an earlier one is recorded. No effect if status is SAR_OK. */
static inline void sar_error_set(struct sar_error *error, enum sar_status status, int64_t value)
{
    if (error->status == SAR_OK)
        *error = (struct sar_error){ .status = status, .value = value };
}

/** Returns the bits of a real number, to store it in sar_error.value. */
static inline int64_t sar_error_bits_of(double real)
{
    int64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

/** Returns the real number that sar_error_bits_of stored. */
static inline double sar_error_real_of(int64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

/** The arguments that all ranks must agree on. Written by the argument checks of mpi_ext/, and by
 * sar_call_args_resolve_types; read-only once the call is enqueued. */
struct sar_call_sig {
    int64_t field[SAR_AGREE_FIELDS]; /**< compared between ranks by the agree step; key of the tensor state */
    struct sar_vec_desc desc;        /**< count, element type and op; valid if native */
    enum sar_collective_kind collective;
    uint64_t block;      /**< reduce_scatter: elements of a block of the caller's map */
    bool native;         /**< the library has kernels for this type and op */
    bool int16_as_float; /**< 2-byte integers: the setting `element` may declare them fp16 or bf16 */
    bool dense_face;     /**< dense buffers; false: coordinates */
    bool in_place;       /**< MPI_IN_PLACE */
};

/** The caller's arrays. Written by mpi_ext/; each rank's own. */
struct sar_call_data {
    struct sar_coo_args coo;        /**< input, if coordinates */
    struct sar_dense_args buffers;  /**< input and output, if dense buffers */
    struct sar_output_dest *output; /**< receives coordinates; NULL for dense buffers */
};

/** Location of the caller's arrays. Written by mpi_ext/ when it classifies the buffers. */
struct sar_call_device {
    struct sar_device_ctx memory; /**< accelerator, device and stream of the arrays */
    bool resident;                /**< the arrays stay in device memory; the host has no copy of them */
    bool cuda_aware;              /**< MPI accepts pointers into this memory */
    bool direct;                  /**< if MPI reduces the vector, MPI gets the caller's own pointers */
    bool fused;         /**< the vector is a fusion buffer, and some member of it is in device memory */
    size_t block_bytes; /**< size of a pinned block for copies; set by sar_call_args_resolve_types */
    /** Packed input and output of an enqueued call, in the memory of `copy`; or NULL. */
    struct sar_packed_vec *packed[2];
    /** Host copies of the send and the receive buffer; data.buffers points to them. */
    struct sar_host_copy copy[2];
};

/** Result of the call. */
struct sar_call_result {
    struct sar_error error; /**< in: error of this rank's arguments; out: error of the call */
    size_t nnz;             /**< out: elements in data.output, if coordinates */
};

/** Arguments and result of one allreduce. Owned by mpi_ext/, must outlive the active call. */
struct sar_call_args {
    struct sar_call_sig sig;
    struct sar_call_data data;
    struct sar_call_device device;
    struct sar_call_result result;
};

/** True if the input is packed and holds elements, not the whole vector. */
static inline bool sar_call_args_has_packed(const struct sar_call_args *args)
{
    return args->device.packed[0] != NULL && sar_packed_vec_is_sparse(args->device.packed[0]);
}

#endif
