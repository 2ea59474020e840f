/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_TYPES_H
#define SAR_MPI_EXT_TYPES_H

#include <mpi.h>

#include "mpi_ext/predefined.h"
#include "tensor/ingest.h"

/** What a user's datatype is to us. */
struct sar_datatype {
    bool valid;  /**< not MPI_DATATYPE_NULL */
    bool native; /**< a basic type that we reduce, or a contiguous row of them */
    bool narrow; /**< an integer of 2 bytes, or a row of them, that may stand for a float */
    enum sar_base base;
    enum sar_kind kind; /**< of the basic type; SAR_KIND_DERIVED for what is no row of one of MPI's own */
    size_t row;         /**< basic values in an element */
    size_t extent;      /**< bytes from one element to the next */
    MPI_Datatype basic; /**< MPI's name of the basic type, or the derived one itself */
    int64_t number;     /**< the same for the same type on all ranks */
};

/** What a user's op is to us. */
struct sar_operation {
    bool valid; /**< not MPI_OP_NULL */
    bool native;
    enum sar_op op;
    unsigned kinds; /**< kinds of datatypes that it takes */
    int64_t number;
};

/** Create and free what sar_datatype_look needs of MPI to remember rows; at any time, local. */
enum sar_status sar_types_setup(void);
void sar_types_cleanup(void);

struct sar_datatype sar_datatype_look(MPI_Datatype datatype);
struct sar_operation sar_operation_look(MPI_Op op);

/** Whether MPI defines the op for the type, and we reduce it. */
bool sar_pair_is_defined(const struct sar_datatype *type, const struct sar_operation *op);

/** Whether so in dense buffers, too. What comes out is to be MPI's bits. So logical ops are not among these
 * pairs: what an MPI makes of numbers that are neither 0 nor 1, and whether it does where there is one rank,
 * are its own ways. Nor are pairs of integers with which this MPI does otherwise than the kernels. */
bool sar_pair_is_for_vectors(const struct sar_datatype *type, const struct sar_operation *op);

/** Whether so with one of MPI's own types, other than integers of 2 bytes. The handle need not be valid. */
bool sar_datatype_basic(MPI_Datatype datatype, const struct sar_operation *op, enum sar_base *base);

/** False for what is no index type of the interface. */
bool sar_index_type_look(MPI_Datatype indextype, enum sar_index_type *type);

/** "float", "int32" and so on. */
const char *sar_base_name(enum sar_base base);

/** Describe the numbers above in words. */
void sar_datatype_describe(int64_t number, char *text, size_t room);
void sar_operation_describe(int64_t number, char *text, size_t room);

#endif
