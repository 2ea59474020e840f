/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors to reduce, and what MPI_Allreduce makes of them. */
#ifndef SAR_TESTS_SUPPORT_TENSORS_H
#define SAR_TESTS_SUPPORT_TENSORS_H

#include <mpix_sparse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum base { FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, BASES };
enum op { SUM, MAX, MIN, PROD, OPS };
enum { INDEX_TYPES = 4 };

extern const struct base_type {
    const char *name;
    MPI_Datatype type;
    size_t size;
} base_types[BASES];

extern const struct op_type {
    const char *name;
    MPI_Op op;
} op_types[OPS];

extern const struct index_type {
    const char *name;
    MPI_Datatype type;
    size_t size;
} index_types[INDEX_TYPES];

/** What is equal on all ranks. */
struct kind {
    enum base base;
    enum op op;
    size_t row; /**< numbers in an element */
    int64_t count;
};

/** One rank's coordinates, in the order in which they were added. */
struct tensor {
    struct kind kind;
    size_t nnz, room;
    uint64_t *index;
    unsigned char *value;
};

/** What the calls should give. */
struct oracle {
    struct kind kind;
    size_t nnz;
    uint64_t *index;
    unsigned char *value; /**< of the union of all ranks' indices */
    unsigned char *mine;  /**< this rank's dense buffer */
    unsigned char *dense; /**< what MPI_Allreduce makes of all ranks' dense buffers */
};

size_t element_bytes(const struct kind *kind);

/** The datatype of an element; row_type_free takes it back. */
MPI_Datatype row_type(const struct kind *kind);
void row_type_free(const struct kind *kind, MPI_Datatype *type);

/** Add an element whose bits are all zero; returns where its numbers belong. */
void *tensor_add(struct tensor *tensor, uint64_t index);
void tensor_free(struct tensor *tensor);

/** inout = inout op in, for n numbers. */
void reduce_numbers(enum base base, enum op op, void *inout, const void *in, size_t n);

/** Write n numbers that leave anything they are reduced with as it is. */
void put_identity(enum base base, enum op op, void *out, size_t n);

/** Collective. */
void oracle_make(const struct tensor *tensor, struct oracle *oracle);
void oracle_free(struct oracle *oracle);

/** Equal bits, but that NaNs need not agree in their bits, nor in MAX and MIN zeros in their sign, since
 * MPI leaves both open. */
bool equal_numbers(const struct kind *kind, const void *found, const void *expected, size_t elements);

/** Indices of a tensor in an index type; to be freed. */
void *typed_indices(const struct tensor *tensor, const struct index_type *type);

/** Check what a result holds against the oracle. */
void compare_result(const struct oracle *oracle, const struct index_type *type, MPIX_Sparse_result result);

/** Do one call with a tensor, and check the whole outcome against the oracle. Collective. */
void call_coo(const struct tensor *tensor, const struct oracle *oracle, const struct index_type *type,
              MPI_Comm comm, MPIX_Sparse_result *result);
void call_dense(const struct oracle *oracle, bool in_place, MPI_Comm comm);

/** Whether a result has no elements. */
bool result_is_empty(MPIX_Sparse_result result);

/** Hash of what a result holds. */
uint64_t result_hash(MPIX_Sparse_result result, const struct kind *kind, const struct index_type *type);

#endif
