/* SPDX-License-Identifier: BSD-3-Clause */
/* Classification of the caller's datatypes and ops: which library type and kernel they correspond to. Runs
 * in every call that the fallback cache does not answer. Predefined types cost nanoseconds; a derived type
 * that is not in the thread's cache costs some calls of MPI. */

#ifndef SAR_MPI_EXT_DATATYPES_H
#define SAR_MPI_EXT_DATATYPES_H

#include <mpi.h>

#include "vector/canonicalize.h"

/** Kinds of datatypes, one bit each: the groups for which MPI defines its ops (MPI-4, 6.9.2 and 6.9.4). */
enum sar_datatype_kind {
    SAR_KIND_SIGNED = 1 << 0,
    SAR_KIND_UNSIGNED = 1 << 1,
    SAR_KIND_FORTRAN_INTEGER = 1 << 2,
    SAR_KIND_ADDRESS = 1 << 3, /**< MPI_AINT, MPI_OFFSET, MPI_COUNT */
    SAR_KIND_FLOAT = 1 << 4,
    SAR_KIND_COMPLEX = 1 << 5,
    SAR_KIND_LOGICAL = 1 << 6,
    SAR_KIND_BYTE = 1 << 7,
    SAR_KIND_PAIR = 1 << 8,     /**< value and index, for MPI_MINLOC and MPI_MAXLOC */
    SAR_KIND_OTHER = 1 << 9,    /**< characters, and types that only this MPI defines */
    SAR_KIND_DERIVED = 1 << 10, /**< user-defined, and not a contiguous row of one predefined type */
    SAR_KIND_INTEGER = SAR_KIND_SIGNED | SAR_KIND_UNSIGNED | SAR_KIND_FORTRAN_INTEGER | SAR_KIND_ADDRESS,
    SAR_KIND_REAL = SAR_KIND_INTEGER | SAR_KIND_FLOAT,
    SAR_KIND_ANY = (1 << 11) - 1
};

/** A predefined datatype of one of the first nine kinds. */
struct sar_predefined {
    MPI_Datatype type;
    enum sar_datatype_kind kind;
    size_t size; /**< size and extent in bytes; 0: MPI must be asked */
};

/** Classification of a datatype. Written by sar_datatype_classify. */
struct sar_datatype {
    bool valid;    /**< not MPI_DATATYPE_NULL */
    bool native;   /**< a basic type with library kernels, or a contiguous row of such values */
    bool is_int16; /**< a 2-byte integer or a row of them; the setting `element` may declare it a float */
    enum sar_dtype dtype;        /**< library type of a basic value; valid if native */
    enum sar_datatype_kind kind; /**< kind of a basic value, or SAR_KIND_DERIVED */
    size_t row_len;              /**< basic values in an element */
    size_t extent;               /**< bytes from one element to the next */
    MPI_Datatype basic;          /**< predefined type of a basic value; a derived type itself */
    int64_t id;                  /**< identifier of the type, equal on all ranks */
};

/** Classification of an op. Written by sar_operation_classify. */
struct sar_operation {
    bool valid;     /**< not MPI_OP_NULL, MPI_REPLACE or MPI_NO_OP */
    bool native;    /**< one of the ops of enum sar_op */
    enum sar_op op; /**< valid if native */
    unsigned kinds; /**< datatype kinds that the op accepts */
    int64_t id;     /**< identifier of the op, equal on all ranks */
};

/** Creates the attribute key that invalidates cached derived types when they are freed. Local.
 * Fails if MPI does. */
enum sar_status sar_datatypes_setup(void);

/** Frees the attribute key and invalidates the caches of all threads. Local. */
void sar_datatypes_cleanup(void);

/** Returns the table entry of a predefined datatype, or NULL for any other type. Local; nanoseconds. */
const struct sar_predefined *sar_predefined_find(MPI_Datatype datatype);

/** Returns the classification of a datatype; invalid handles have valid = false. Local. */
struct sar_datatype sar_datatype_classify(MPI_Datatype datatype);

/** Returns the classification of an op; invalid handles have valid = false. Local. */
struct sar_operation sar_operation_classify(MPI_Op op);

/** True if MPI defines the op for the type and the library has a kernel for the pair. Local. */
bool sar_datatype_op_defined(const struct sar_datatype *type, const struct sar_operation *op);

/** True if our kernels reproduce MPI_Allreduce bit for bit on dense buffers of this type and op. Logical ops
 * do not: MPI libraries differ on values other than 0 and 1, and copy them if there is one rank. Local. */
bool sar_datatype_op_exact(const struct sar_datatype *type, const struct sar_operation *op);

/** sar_datatype_op_exact for a handle that need not be valid: true only for predefined types other than
 * 2-byte integers. Local.
 * @param base  set to the library type, if the handle is a predefined type */
bool sar_datatype_exact_basic(MPI_Datatype datatype, const struct sar_operation *op, enum sar_dtype *base);

/** Sets *type to the index type of an MPI datatype. Returns false if the datatype is not an index type of the
 * interface; *type is then unchanged. Local. */
bool sar_index_type_classify(MPI_Datatype indextype, enum sar_index_type *type);

/** Returns the name of a library type, such as "float" or "int32". */
const char *sar_dtype_name(enum sar_dtype base);

/** Returns the number of a datatype that coordinates cannot have, for the error SAR_BAD_DATATYPE: one that
 * stands for its name if MPI predefines it, else its id. Local. */
int64_t sar_datatype_fault(MPI_Datatype datatype, const struct sar_datatype *found);

/** Writes the description of a datatype id, a fault or op id into `text`, for error messages.
 * @param capacity  bytes in text */
void sar_datatype_describe(int64_t id, char *text, size_t capacity);
void sar_operation_describe(int64_t id, char *text, size_t capacity);

#endif
