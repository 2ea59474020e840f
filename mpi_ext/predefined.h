/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's own datatypes. */

#ifndef SAR_MPI_EXT_PREDEFINED_H
#define SAR_MPI_EXT_PREDEFINED_H

#include <mpi.h>
#include <stddef.h>

/** Kinds of datatypes: the groups for which MPI defines its ops (MPI-4, 6.9.2 and 6.9.4), one bit each. */
enum sar_kind {
    SAR_KIND_SIGNED = 1 << 0,
    SAR_KIND_UNSIGNED = 1 << 1,
    SAR_KIND_FORTRAN_INTEGER = 1 << 2,
    SAR_KIND_ADDRESS = 1 << 3, /**< MPI_AINT, MPI_OFFSET, MPI_COUNT */
    SAR_KIND_FLOAT = 1 << 4,
    SAR_KIND_COMPLEX = 1 << 5,
    SAR_KIND_LOGICAL = 1 << 6,
    SAR_KIND_BYTE = 1 << 7,
    SAR_KIND_PAIR = 1 << 8,  /**< a number and its place */
    SAR_KIND_OTHER = 1 << 9, /**< characters, and what this MPI alone has */
    SAR_KIND_DERIVED = 1 << 10,
    SAR_KIND_WHOLE = SAR_KIND_SIGNED | SAR_KIND_UNSIGNED | SAR_KIND_FORTRAN_INTEGER | SAR_KIND_ADDRESS,
    SAR_KIND_REAL = SAR_KIND_WHOLE | SAR_KIND_FLOAT,
    SAR_KIND_ANY = (1 << 11) - 1
};

/** A datatype of MPI's of one of the first nine kinds. */
struct sar_predefined {
    MPI_Datatype type;
    enum sar_kind kind;
    size_t size; /**< bytes, from one element to the next too; 0 for those of which MPI must be asked */
};

/** The entry of a datatype, or NULL for others. Takes nanoseconds. */
const struct sar_predefined *sar_predefined_find(MPI_Datatype datatype);

#endif
