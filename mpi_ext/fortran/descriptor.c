/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/fortran/descriptor.h"

#include <mpix_sparse.h>
#include <stdbool.h>

#include "mpi_ext/fortran/in_place.h"

/* The stride of a dimension with one element says nothing, and the last extent of an assumed-size array is
 * -1: CFI_is_contiguous refuses the first. */
static bool contiguous(const CFI_cdesc_t *array)
{
    CFI_index_t stride = (CFI_index_t)array->elem_len;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent > 1 && array->dim[i].sm != stride)
            return false;
        stride *= array->dim[i].extent;
    }
    return true;
}

/* A copy of a strided section would be gone before a nonblocking call ends: none is passed on, and all
 * ranks learn of it. */
void *sar_buffer_of(const CFI_cdesc_t *array)
{
    return contiguous(array) ? sar_buffer_f08(array->base_addr) : MPIX_SPARSE_STRIDED;
}

void sar_give(int *ierror, int code)
{
    if (ierror != NULL)
        *ierror = code;
}
