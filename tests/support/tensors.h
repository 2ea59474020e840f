/* SPDX-License-Identifier: BSD-3-Clause */
/* Test vectors, and their reduction by MPI_Allreduce. */
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

/** Type, op and size of a vector; equal on all ranks. */
struct tensor_desc {
    enum base base;
    enum op op;
    size_t row; /**< numbers per element */
    int64_t count;
};

/** One rank's coordinates, in insertion order. */
struct tensor {
    struct tensor_desc desc;
    size_t nnz, room;
    uint64_t *index;
    unsigned char *value;
};

/** Expected result of a call. */
struct oracle {
    struct tensor_desc desc;
    size_t nnz;
    uint64_t *index;
    unsigned char *value; /**< elements of the union of all ranks' indices */
    unsigned char *mine;  /**< this rank's dense buffer */
    unsigned char *dense; /**< MPI_Allreduce of all ranks' dense buffers */
};

size_t element_bytes(const struct tensor_desc *desc);

/** Make the datatype of an element; row_type_free frees it. */
MPI_Datatype row_type(const struct tensor_desc *desc);
void row_type_free(const struct tensor_desc *desc, MPI_Datatype *type);

/** Add an element of zero bits; returns a pointer to its numbers. */
void *tensor_add(struct tensor *tensor, uint64_t index);
void tensor_free(struct tensor *tensor);

/** Compute inout = inout op in for n numbers. */
void reduce_numbers(enum base base, enum op op, void *inout, const void *in, size_t n);

/** Write n identities of the op. */
void put_identity(enum base base, enum op op, void *out, size_t n);

/** Compute the expected result. Collective. */
void oracle_make(const struct tensor *tensor, struct oracle *oracle);
void oracle_free(struct oracle *oracle);

/** Owner of an element in blocks that are dealt out cyclically. */
int owner_of(uint64_t index, int64_t block);

/** Elements of an expected result that this rank owns, without dense buffers; oracle_free frees it. */
struct oracle oracle_owned(const struct oracle *oracle, int64_t block);

/** True if numbers are equal bit for bit. NaNs may differ in their bits, and zeros of MAX and MIN in their
 * sign, since MPI leaves both open. */
bool equal_numbers(const struct tensor_desc *desc, const void *found, const void *expected, size_t elements);

/** Convert a tensor's indices to an index type. The caller frees them. */
void *typed_indices(const struct tensor *tensor, const struct index_type *type);

/** Check a result object against the oracle. */
void compare_result(const struct oracle *oracle, const struct index_type *type, MPIX_Sparse_result result);

/** Make one call, and check its complete result against the oracle. Collective. */
void call_coo(const struct tensor *tensor, const struct oracle *oracle, const struct index_type *type,
              MPI_Comm comm, MPIX_Sparse_result *result);
void call_dense(const struct oracle *oracle, bool in_place, MPI_Comm comm);

/** True if a result has no elements. */
bool result_is_empty(MPIX_Sparse_result result);

/** Hash the contents of a result. */
uint64_t result_hash(MPIX_Sparse_result result, const struct tensor_desc *desc,
                     const struct index_type *type);

#endif
