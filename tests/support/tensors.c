/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

const struct base_type base_types[BASES] = {
    { "float", MPI_FLOAT, 4 },   { "double", MPI_DOUBLE, 8 },   { "int32", MPI_INT32_T, 4 },
    { "int64", MPI_INT64_T, 8 }, { "uint32", MPI_UINT32_T, 4 }, { "uint64", MPI_UINT64_T, 8 },
};

const struct op_type op_types[OPS] = {
    { "MPI_SUM", MPI_SUM }, { "MPI_MAX", MPI_MAX }, { "MPI_MIN", MPI_MIN }, { "MPI_PROD", MPI_PROD }
};

const struct index_type index_types[INDEX_TYPES] = {
    { "int32 indices", MPI_INT32_T, 4 },
    { "uint32 indices", MPI_UINT32_T, 4 },
    { "int64 indices", MPI_INT64_T, 8 },
    { "uint64 indices", MPI_UINT64_T, 8 },
};

size_t element_bytes(const struct tensor_desc *desc)
{
    return desc->row * base_types[desc->base].size;
}

MPI_Datatype row_type(const struct tensor_desc *desc)
{
    MPI_Datatype type = base_types[desc->base].type;
    if (desc->row == 1)
        return type;
    MPI_Type_contiguous((int)desc->row, type, &type);
    MPI_Type_commit(&type);
    return type;
}

void row_type_free(const struct tensor_desc *desc, MPI_Datatype *type)
{
    if (desc->row != 1)
        MPI_Type_free(type);
}

void *tensor_add(struct tensor *tensor, uint64_t index)
{
    size_t bytes = element_bytes(&tensor->desc);
    if (tensor->nnz == tensor->room) {
        tensor->room = 2 * tensor->room + 16;
        tensor->index = realloc(tensor->index, tensor->room * sizeof *tensor->index);
        tensor->value = realloc(tensor->value, tensor->room * bytes);
        check(tensor->index != NULL && tensor->value != NULL, "no memory for the test itself");
    }
    tensor->index[tensor->nnz] = index;
    return memset(tensor->value + tensor->nnz++ * bytes, 0, bytes);
}

void tensor_free(struct tensor *tensor)
{
    free(tensor->index);
    free(tensor->value);
    tensor->index = NULL;
    tensor->value = NULL;
    tensor->nnz = tensor->room = 0;
}

/* Integers wrap around as unsigned ones; all known MPI libraries do the same. */
#define REDUCE(type, wide)                                         \
    do {                                                           \
        type *a = inout;                                           \
        const type *b = in;                                        \
        for (size_t i = 0; i < n; i++) {                           \
            if (op == SUM)                                         \
                a[i] = (type)((wide)a[i] + (wide)b[i]);            \
            else if (op == PROD)                                   \
                a[i] = (type)((wide)a[i] * (wide)b[i]);            \
            else                                                   \
                a[i] = (op == MAX) == (a[i] > b[i]) ? a[i] : b[i]; \
        }                                                          \
    } while (0)

void reduce_numbers(enum base base, enum op op, void *inout, const void *in, size_t n)
{
    switch (base) {
    case FLOAT32: REDUCE(float, float); break;
    case FLOAT64: REDUCE(double, double); break;
    case INT32: REDUCE(int32_t, uint32_t); break;
    case INT64: REDUCE(int64_t, uint64_t); break;
    case UINT32: REDUCE(uint32_t, uint32_t); break;
    default: REDUCE(uint64_t, uint64_t); break;
    }
}

/* MPICH 4.0.2 compares unsigned numbers as signed, so identities for MAX and MIN leave the sign bit clear. */
static void put_one_identity(enum base base, enum op op, void *out)
{
    static const float single[OPS] = { -0.0f, -INFINITY, INFINITY, 1 };
    static const double twofold[OPS] = { -0.0, -INFINITY, INFINITY, 1 };
    static const int32_t narrow[OPS] = { 0, INT32_MIN, INT32_MAX, 1 };
    static const int64_t wide[OPS] = { 0, INT64_MIN, INT64_MAX, 1 };
    static const uint32_t whole[OPS] = { 0, 0, INT32_MAX, 1 };
    static const uint64_t long_whole[OPS] = { 0, 0, INT64_MAX, 1 };
    const void *all[BASES] = {
        &single[op], &twofold[op], &narrow[op], &wide[op], &whole[op], &long_whole[op]
    };
    memcpy(out, all[base], base_types[base].size);
}

void put_identity(enum base base, enum op op, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_one_identity(base, op, (unsigned char *)out + i * base_types[base].size);
}

/* Write this rank's elements to a dense buffer of identities, reducing equal indices. `there` marks the
 * elements that are present. */
static unsigned char *expand(const struct tensor *t, unsigned char *there)
{
    const struct tensor_desc *k = &t->desc;
    size_t bytes = element_bytes(k);
    unsigned char *out = get_memory((size_t)k->count, bytes);
    put_identity(k->base, k->op, out, (size_t)k->count * k->row);
    for (size_t i = 0; i < t->nnz; i++) {
        unsigned char *at = out + t->index[i] * bytes;
        if (there[t->index[i]])
            reduce_numbers(k->base, k->op, at, t->value + i * bytes, k->row);
        else
            memcpy(at, t->value + i * bytes, bytes);
        there[t->index[i]] = 1;
    }
    return out;
}

static void gather_union(struct oracle *o, const unsigned char *sums, const unsigned char *there)
{
    size_t bytes = element_bytes(&o->desc), count = (size_t)o->desc.count;
    o->index = get_memory(count, sizeof *o->index);
    o->value = get_memory(count, bytes);
    for (size_t i = 0; i < count; i++) {
        if (!there[i])
            continue;
        memcpy(o->value + o->nnz * bytes, sums + i * bytes, bytes);
        o->index[o->nnz++] = i;
    }
}

void oracle_make(const struct tensor *t, struct oracle *o)
{
    const struct tensor_desc *k = &t->desc;
    size_t count = (size_t)k->count, bytes = element_bytes(k);
    int numbers = (int)(count * k->row);
    MPI_Datatype type = base_types[k->base].type;
    MPI_Op op = op_types[k->op].op;
    unsigned char *there = get_memory(count, 1), *sums = expand(t, there);
    *o = (struct oracle){ .desc = *k };
    o->mine = get_memory(count, bytes);
    o->dense = get_memory(count, bytes);
    for (size_t i = 0; i < count; i++)
        if (there[i])
            memcpy(o->mine + i * bytes, sums + i * bytes, bytes);
    MPI_Allreduce(MPI_IN_PLACE, sums, numbers, type, op, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, there, (int)count, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(o->mine, o->dense, numbers, type, op, MPI_COMM_WORLD);
    gather_union(o, sums, there);
    free(there);
    free(sums);
}

void oracle_free(struct oracle *o)
{
    free(o->index);
    free(o->value);
    free(o->mine);
    free(o->dense);
}

int owner_of(uint64_t index, int64_t block)
{
    return (int)(index / (uint64_t)block % (uint64_t)ranks);
}

struct oracle oracle_owned(const struct oracle *all, int64_t block)
{
    struct oracle part = { .desc = all->desc };
    size_t bytes = element_bytes(&all->desc);
    part.index = get_memory(all->nnz, sizeof *part.index);
    part.value = get_memory(all->nnz, bytes);
    for (size_t i = 0; i < all->nnz; i++) {
        if (owner_of(all->index[i], block) != rank)
            continue;
        memcpy(part.value + part.nnz * bytes, all->value + i * bytes, bytes);
        part.index[part.nnz++] = all->index[i];
    }
    return part;
}

static double as_double(enum base base, const void *at)
{
    float single;
    double twofold;
    if (base == FLOAT32) {
        memcpy(&single, at, sizeof single);
        return single;
    }
    memcpy(&twofold, at, sizeof twofold);
    return twofold;
}

static bool equal_number(const struct tensor_desc *k, const void *found, const void *expected)
{
    if (memcmp(found, expected, base_types[k->base].size) == 0)
        return true;
    if (k->base != FLOAT32 && k->base != FLOAT64)
        return false;
    double a = as_double(k->base, found), b = as_double(k->base, expected);
    if (isnan(a) && isnan(b))
        return true;
    return (k->op == MAX || k->op == MIN) && a == 0 && b == 0;
}

bool equal_numbers(const struct tensor_desc *k, const void *found, const void *expected, size_t elements)
{
    size_t bytes = elements * element_bytes(k), size = base_types[k->base].size;
    const unsigned char *a = found, *b = expected;
    if (bytes == 0 || memcmp(a, b, bytes) == 0)
        return true;
    for (size_t i = 0; i < bytes; i += size)
        if (!equal_number(k, a + i, b + i))
            return false;
    return true;
}

bool result_is_empty(MPIX_Sparse_result result)
{
    MPI_Count nnz;
    check_success(MPIX_Sparse_result_get(result, &nnz, NULL, NULL), "MPIX_Sparse_result_get");
    return nnz == 0;
}

uint64_t result_hash(MPIX_Sparse_result result, const struct tensor_desc *desc, const struct index_type *type)
{
    MPI_Count nnz;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    uint64_t hash = hash_bytes(indices, (size_t)nnz * type->size, (uint64_t)nnz);
    return hash_bytes(values, (size_t)nnz * element_bytes(desc), hash);
}
