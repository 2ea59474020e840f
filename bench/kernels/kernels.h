/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_kernels: a vector of floats on the device and on the host, and the measured kernels. */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device/accelerator.h"
#include "hash/hierarchical.h"
#include "vector/sort.h"
#include "wire/wire.h"

/** Values of the options. */
struct kernels_options {
    size_t count;
    double density;
    int parts, iterations, runs; /**< runs: repetitions of Algorithm 1 that must not lose an element */
};

/** The data of all jobs. kernels_open sets all fields but `wire`. */
struct kernels {
    const struct kernels_options *options;
    struct sar_vec_desc desc;
    struct sar_partition_map map;
    struct sar_arena arena;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    struct sar_device_vec vector;  /**< in device memory */
    float *dense;                  /**< its copy on the host */
    struct sar_spvec host, device; /**< its nonzero elements on the host and on the device */
    struct sar_spvec *parts;       /**< on the host: the elements split by `map` */
    struct sar_spvec partitioned;  /**< on the device: all parts, one after the other */
    uint32_t *shuffled;            /**< on the host: the indices in random order */
    void *unsorted;
    struct sar_spvec out;        /**< on the device: output of a kernel */
    void *scratch;               /**< on the device: a second vector, or an encoded message */
    const struct sar_wire *wire; /**< format of the current job */
    float *velocity;             /**< on the device: velocity of DGC, one float an element */
    struct sar_device_flags *flags;
    unsigned long long *first;
    uint64_t *magnitudes; /**< on the host: magnitudes of a sample */
};

/** Ends the program, after a sentence, if `good` is false. */
void kernels_require(bool good, const char *what);

/** Draw the vector and allocate all buffers; free them. */
void kernels_open(struct kernels *k, const struct kernels_options *options);
void kernels_close(struct kernels *k);

/** One kernel to measure. */
struct kernels_job {
    const char *name;
    enum sar_status (*run)(struct kernels *k);
    /** Returns the least bytes that must be read and written. */
    double (*bytes)(const struct kernels *k);
    /** True if the output equals the host's; or NULL. */
    bool (*correct)(struct kernels *k);
    /** Sets up inputs before the calls; or NULL. */
    void (*prepare)(struct kernels *k);
    const struct sar_wire *wire; /**< format to encode or decode, or NULL */
};

/** Tables of jobs, each ended by a job without a name. All rates are compared with that of the first job. */
extern const struct kernels_job kernels_of_vectors[], kernels_of_payloads[], kernels_of_selections[];

/** Return the bytes of the vector, of one bit an element, and of indices and values of the nonzero elements.
 */
double kernels_vector_bytes(const struct kernels *k);
double kernels_bitmap_bytes(const struct kernels *k);
double kernels_vector_coo_bytes(const struct kernels *k);

/** True if a device array, or k->out, equals the host's. */
bool kernels_device_equals(const void *device, const void *host, size_t bytes);
bool kernels_out_equals(const struct kernels *k, const struct sar_spvec *vec);

/** Return the layout of all elements in one message, and the size of the largest message of any format. */
struct sar_wire_layout kernels_layout(const struct kernels *k);
size_t kernels_largest_payload(const struct kernels *k);

/** Returns the number of sampled elements. */
size_t kernels_samples(const struct kernels *k);

/** Returns the median time of a call in milliseconds. */
double kernels_time(struct kernels *k, enum sar_status (*run)(struct kernels *k));

/** Prints Algorithm 1 for several numbers of hashes and sizes of memory. Returns false if it loses elements.
 */
bool kernels_study_hash(struct kernels *k);

#endif
