/* SPDX-License-Identifier: BSD-3-Clause */
/* What mpix_sparse_kernels works on: a vector of floats on a device and on the host, and what comes of it. */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device/accelerator.h"
#include "hash/hierarchical.h"
#include "tensor/sort.h"
#include "wire/wire.h"

struct kernels_options {
    size_t count;
    double density;
    int parts, iterations, runs; /* runs of Algorithm 1 in which nothing may be lost */
};

struct kernels {
    const struct kernels_options *options;
    struct sar_shape shape;
    struct sar_map map;
    struct sar_arena arena;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    struct sar_vector vector;    /* the device's */
    float *dense;                /* the same on the host */
    struct sar_run host, device; /* its elements */
    struct sar_run *parts;       /* and split by the map, on the host */
    struct sar_run parted;       /* these, one after the other, on the device */
    uint32_t *shuffled;          /* the host's and the device's indices, in any order */
    void *unsorted;
    struct sar_run out;          /* the device's room for an outcome */
    void *other;                 /* another vector, or a message */
    const struct sar_wire *wire; /* of the present job */
    float *velocity;             /* of as many elements */
    struct sar_findings *findings;
    unsigned long long *first;
    uint64_t *magnitudes; /* on the host, for a sample */
};

/* End the program where something is amiss. */
void kernels_require(bool good, const char *what);

/* Draw the vector and all that goes with it, and give it back. */
void kernels_open(struct kernels *k, const struct kernels_options *options);
void kernels_close(struct kernels *k);

/* One thing to measure. */
struct kernels_job {
    const char *name;
    enum sar_status (*run)(struct kernels *k);
    /* Bytes that have to be read and written. */
    double (*bytes)(const struct kernels *k);
    /* Whether the device has what the host makes of the same; or NULL. */
    bool (*right)(struct kernels *k);
    /* What is to be there before; or NULL. */
    void (*prepare)(struct kernels *k);
    const struct sar_wire *wire; /* whose format it reads or writes, or NULL */
};

/* Each ended by one without a name; the first of all is what the others are compared with. */
extern const struct kernels_job kernels_of_vectors[], kernels_of_payloads[], kernels_of_selections[];

/* Bytes of the vector, of a bit for each of its elements, and of the indices and values of those present. */
double kernels_vector_bytes(const struct kernels *k);
double kernels_bitmap_bytes(const struct kernels *k);
double kernels_run_bytes(const struct kernels *k);

/* Whether an array of the device's has these bytes, and whether k->out is this run of the host's. */
bool kernels_have(const void *device, const void *host, size_t bytes);
bool kernels_out_is(const struct kernels *k, const struct sar_run *run);

/* How a vector's elements are laid out in one payload, and the most bytes that any has. */
struct sar_layout kernels_layout(const struct kernels *k);
size_t kernels_largest_payload(const struct kernels *k);

/* Elements that are sampled. */
size_t kernels_samples(const struct kernels *k);

/* Median milliseconds of a call. */
double kernels_time(struct kernels *k, enum sar_status (*run)(struct kernels *k));

/* Print Algorithm 1 over hashes and memory, and whether it loses anything. False if it does. */
bool kernels_study_hash(struct kernels *k);

#endif
