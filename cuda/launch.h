/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the CUDA plug-in, a section for each source file. The plug-in's table of functions, the twin
 * tests and the kernel benchmarks call them.
 *
 * Each function works on the calling thread's device and is local. Unless its comment says that it waits, a
 * function returns when its work is queued in the stream. Temporary memory comes from the device's pool, in
 * the order of the stream. Callers own all arrays. Where no comment follows, struct sar_accelerator
 * (device/accelerator.h) has the contract of the member of that name. */

#ifndef SAR_CUDA_LAUNCH_H
#define SAR_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"
#include "hash/hierarchical.h"
#include "wire/wire.h"

/** Convert an error of the CUDA runtime. Clears the runtime's last error, so that the program does not see
 * it. */
static inline enum sar_status sar_cuda_status(cudaError_t error)
{
    if (error == cudaSuccess)
        return SAR_OK;
    (void)cudaGetLastError();
    return error == cudaErrorMemoryAllocation ? SAR_NO_MEMORY : SAR_DEVICE_FAILED;
}

/* pool.cu */

/** Devices that can have a pool. */
enum { SAR_CUDA_DEVICES = 64 };

/** Allocate memory of the calling thread's device from its pool, in the order of a stream. The pool keeps
 * freed memory for later calls. Free with cudaFreeAsync. */
enum sar_status sar_cuda_pool_alloc(size_t bytes, cudaStream_t stream, void **memory);

/** True if a device has a pool. */
bool sar_cuda_pool_exists(int device_id);

/** Return the pool's memory to the system once none of it is allocated. The device must be the calling
 * thread's. */
void sar_cuda_pool_close(int device_id);

/* dense.cu */

enum sar_status sar_cuda_find_nonzeros(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask);
void sar_cuda_free_mask(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask);
enum sar_status sar_cuda_compact(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                                 const struct sar_spvec *vec);
enum sar_status sar_cuda_compact_parts(const struct sar_device_vec *vector,
                                       const struct sar_nonzero_mask *mask,
                                       const struct sar_partition_layout *layout, const struct sar_spvec *vec,
                                       unsigned long long first[]);
enum sar_status sar_cuda_scatter(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                                 bool clear);
enum sar_status sar_cuda_pack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed);
enum sar_status sar_cuda_unpack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed);

/** Count the bits that are set in a bitmap. Waits for the stream. */
enum sar_status sar_cuda_count_bits(const uint32_t *bits, size_t words, size_t *n, cudaStream_t stream);

/* reduce.cu */

/** Reduce sorted vectors in device memory into one, with the same bits as sar_reduce except for NaNs. The
 * indices of each vector ascend and differ. Takes 3/8 desc->count bytes of the pool. Waits for the stream to
 * set out->nnz.
 * @param out  arrays of the capacity that sar_reduce needs */
enum sar_status sar_cuda_reduce(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                struct sar_spvec *out, cudaStream_t stream);

/* coalesce.cu */

/** Sort elements by index, and reduce elements of equal index in their input order, as sar_sort does. Waits
 * for the stream to set out->nnz.
 * @param from  fewer than 2^32 elements, indices of desc->index_size bytes
 * @param max_index  the largest index */
enum sar_status sar_cuda_coalesce(const struct sar_vec_desc *desc, const struct sar_spvec *from,
                                  uint64_t max_index, struct sar_spvec *out, cudaStream_t stream);
enum sar_status sar_cuda_canonicalize(const struct sar_device_vec *vector, const struct sar_coo_args *coo,
                                      struct sar_spvec *vec, bool *is_sorted);
enum sar_status sar_cuda_partition(const struct sar_device_vec *vector,
                                   const struct sar_partition_layout *layout, const struct sar_spvec *from,
                                   const struct sar_spvec *to, unsigned long long first[]);

/* topk.cu */

enum sar_status sar_cuda_sample(const struct sar_device_vec *vector, const struct sar_dgc *dgc, size_t n,
                                uint32_t seed, uint64_t *magnitudes);
enum sar_status sar_cuda_select(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                const struct sar_topk_limit *limit, struct sar_nonzero_mask *mask);
enum sar_status sar_cuda_clear_selected(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                        uint64_t mask_threshold, const struct sar_nonzero_mask *mask);

/* codec.cu */

enum sar_status sar_cuda_find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                         struct sar_device_flags *flags);
enum sar_status sar_cuda_encode(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                const struct sar_encoded *payload);
enum sar_status sar_cuda_decode(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                                struct sar_spvec *vec, struct sar_device_flags *flags);
enum sar_status sar_cuda_slots_to_indices(const struct sar_device_vec *vector,
                                          const struct sar_map_part *part, const struct sar_spvec *vec,
                                          void *index);
enum sar_status sar_cuda_hash_indices(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                      uint32_t *hash);
enum sar_status sar_cuda_expect_hash(const struct sar_device_vec *vector, const uint32_t *hash,
                                     uint32_t expected, struct sar_device_flags *flags);

/* hierarchical.cu */

/** Sort the elements of a sorted vector into the cells of a layout by hierarchical hashing, with the paper's
 * parameters. An index occurs once; input->nnz is below 2^32 - 1. Waits for the stream once for each attempt.
 * @param position  device memory: positions in the input, by segment, part and index
 * @param first     device memory: where each cell begins, and the end; cells + 1 numbers */
enum sar_status sar_cuda_hash_positions(const struct sar_partition_layout *layout,
                                        const struct sar_hash_input *input, uint32_t *position,
                                        unsigned long long *first, cudaStream_t stream);

/** For the benchmark and the twin test. Sort occurrences into a map's parts as sar_hierarchical_hash does.
 * Each part receives the same occurrences, in the order of the cells even if params->sorted is set. All
 * arrays are in device memory. Waits for the stream once for each attempt, to see if the cells overflowed.
 * @param out  the caller's arrays index, first and, unless NULL, value and position; serial_count and
 *             reruns are set */
enum sar_status sar_cuda_hierarchical_hash(const struct sar_hierarchical_params *params,
                                           const struct sar_partition_map *map,
                                           const struct sar_hash_input *input, struct sar_hash_output *out,
                                           cudaStream_t stream);

/* baseline.cu: for the benchmark, not in the plug-in */

/** Do the work of sar_cuda_find_nonzeros and sar_cuda_compact_parts with CUB's own algorithms, for
 * comparison. Elements have 4 bytes. All arrays are in device memory. Waits for the stream to set
 * vec->nnz. */
enum sar_status sar_cuda_baseline_partition(const struct sar_device_vec *vector,
                                            const struct sar_partition_map *map, struct sar_spvec *vec);

#ifdef __cplusplus
}
#endif

#endif
