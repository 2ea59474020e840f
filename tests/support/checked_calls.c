/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of both interfaces, with a check of every part of the result. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensors.h"

void *typed_indices(const struct tensor *t, const struct index_type *type)
{
    unsigned char *out = get_memory(t->nnz, type->size);
    for (size_t i = 0; i < t->nnz; i++) {
        uint32_t narrow = (uint32_t)t->index[i];
        memcpy(out + i * type->size, type->size == 4 ? (const void *)&narrow : &t->index[i], type->size);
    }
    return out;
}

static uint64_t index_at(const void *indices, const struct index_type *type, size_t i)
{
    if (type->size == 4)
        return ((const uint32_t *)indices)[i];
    return ((const uint64_t *)indices)[i];
}

static void print_number(enum base base, const void *at, char *text, size_t room)
{
    uint64_t bits = 0;
    double number = 0;
    float single;
    memcpy(&bits, at, base_types[base].size);
    memcpy(&single, at, sizeof single);
    if (base == FLOAT64)
        memcpy(&number, at, sizeof number);
    if (base == FLOAT32 || base == FLOAT64)
        snprintf(text, room, "%.9g (bits %llx)", base == FLOAT32 ? single : number, (unsigned long long)bits);
    else
        snprintf(text, room, "%llx", (unsigned long long)bits);
}

/* Report the first number that differs. */
static void compare(const struct tensor_desc *k, const void *found, const void *expected, size_t n,
                    const uint64_t *index, const char *what)
{
    char left[64] = "", right[64] = "";
    size_t size = base_types[k->base].size, bytes = element_bytes(k), i = 0, j = 0;
    const unsigned char *a = found, *b = expected;
    bool equal = equal_numbers(k, found, expected, n);
    if (!equal) {
        while (equal_numbers(k, a + i * bytes, b + i * bytes, 1))
            i++;
        struct tensor_desc one = { k->base, k->op, 1, 1 };
        while (equal_numbers(&one, a + i * bytes + j * size, b + i * bytes + j * size, 1))
            j++;
        print_number(k->base, a + i * bytes + j * size, left, sizeof left);
        print_number(k->base, b + i * bytes + j * size, right, sizeof right);
    }
    check(equal, "%s, element %llu, number %zu: expected %s, found %s", what,
          (unsigned long long)(index == NULL ? i : index[i]), j, right, left);
}

void compare_result(const struct oracle *o, const struct index_type *type, MPIX_Sparse_result result)
{
    MPI_Count nnz = -1;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    check((size_t)nnz == o->nnz, "expected %zu elements in the result, found %lld", o->nnz, (long long)nnz);
    for (size_t i = 0; i < o->nnz; i++) {
        if (index_at(indices, type, i) != o->index[i])
            check(false, "expected index %llu at place %zu of the result, found %llu",
                  (unsigned long long)o->index[i], i, (unsigned long long)index_at(indices, type, i));
    }
    compare(&o->desc, values, o->value, o->nnz, o->index, "result");
}

static void compare_result_dense(const struct oracle *o, MPIX_Sparse_result result)
{
    size_t bytes = element_bytes(&o->desc), count = (size_t)o->desc.count;
    unsigned char *found = get_memory(count, bytes), *expected = get_memory(count, bytes);
    memset(found, 0xa5, count * bytes);
    for (size_t i = 0; i < o->nnz; i++)
        memcpy(expected + o->index[i] * bytes, o->value + i * bytes, bytes);
    check_success(MPIX_Sparse_result_dense(result, found), "MPIX_Sparse_result_dense");
    compare(&o->desc, found, expected, count, NULL, "result as a dense vector");
    free(found);
    free(expected);
}

void call_coo(const struct tensor *t, const struct oracle *o, const struct index_type *type, MPI_Comm comm,
              MPIX_Sparse_result *result)
{
    void *indices = typed_indices(t, type);
    size_t index_bytes = t->nnz * type->size, value_bytes = t->nnz * element_bytes(&t->desc);
    MPI_Datatype element = row_type(&t->desc);
    uint64_t before = hash_bytes(indices, index_bytes, hash_bytes(t->value, value_bytes, 1));
    check_success(MPIX_Sparse_allreduce_coo(indices, t->value, (MPI_Count)t->nnz, type->type, t->desc.count,
                                            element, op_types[t->desc.op].op, comm, result),
                  "MPIX_Sparse_allreduce_coo");
    check(before == hash_bytes(indices, index_bytes, hash_bytes(t->value, value_bytes, 1)),
          "expected the caller's coordinates as they were, found them changed");
    compare_result(o, type, *result);
    compare_result_dense(o, *result);
    row_type_free(&t->desc, &element);
    free(indices);
}

void call_dense(const struct oracle *o, bool in_place, MPI_Comm comm)
{
    const struct tensor_desc *k = &o->desc;
    size_t count = (size_t)k->count, bytes = element_bytes(k);
    unsigned char *out = get_memory(count, bytes);
    uint64_t before = hash_bytes(o->mine, count * bytes, 2);
    MPI_Datatype element = row_type(k);
    if (in_place)
        memcpy(out, o->mine, count * bytes);
    else
        memset(out, 0xa5, count * bytes);
    check_success(MPIX_Sparse_allreduce(in_place ? MPI_IN_PLACE : o->mine, out, k->count, element,
                                        op_types[k->op].op, comm),
                  "MPIX_Sparse_allreduce");
    check(before == hash_bytes(o->mine, count * bytes, 2), "expected sendbuf as it was, found it changed");
    compare(k, out, o->dense, count, NULL, in_place ? "dense, in place" : "dense");
    row_type_free(k, &element);
    free(out);
}
