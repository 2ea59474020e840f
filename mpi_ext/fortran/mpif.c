/* SPDX-License-Identifier: BSD-3-Clause */
/* What `use mpi` and mpif.h programs call: handles are integers, results addresses, buffers whatever
 * comes. */

#include <mpix_sparse.h>

#include "mpi_ext/fortran/in_place.h"

/* A result as mpix_sparsef.h declares it. */
typedef MPI_Aint handle;

void mpix_sparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                            MPI_Fint *comm, MPI_Fint *ierror)
{
    *ierror = MPIX_Sparse_allreduce(sar_buffer_mpif(sendbuf), sar_buffer_mpif(recvbuf), *count,
                                    MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
}

void mpix_isparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                             MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started;
    *ierror = MPIX_Isparse_allreduce(sar_buffer_mpif(sendbuf), sar_buffer_mpif(recvbuf), *count,
                                     MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), &started);
    if (*ierror == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
}

void mpix_sparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                handle *result, MPI_Fint *ierror)
{
    *ierror = MPIX_Sparse_allreduce_coo(indices, values, *nnz, MPI_Type_f2c(*indextype), *count,
                                        MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                        (MPIX_Sparse_result *)result);
}

void mpix_isparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                 handle *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started;
    *ierror = MPIX_Isparse_allreduce_coo(indices, values, *nnz, MPI_Type_f2c(*indextype), *count,
                                         MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                         (MPIX_Sparse_result *)result, &started);
    if (*ierror == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
}

void mpix_sparse_result_get_(handle *result, MPI_Count *nnz, MPI_Aint *indices, MPI_Aint *values,
                             MPI_Fint *ierror)
{
    const void *index, *value;
    *ierror = MPIX_Sparse_result_get((MPIX_Sparse_result)*result, nnz, &index, &value);
    if (*ierror == MPI_SUCCESS) {
        *indices = (MPI_Aint)index;
        *values = (MPI_Aint)value;
    }
}

void mpix_sparse_result_dense_(handle *result, void *recvbuf, MPI_Fint *ierror)
{
    *ierror = MPIX_Sparse_result_dense((MPIX_Sparse_result)*result, recvbuf);
}

void mpix_sparse_result_free_(handle *result, MPI_Fint *ierror)
{
    *ierror = MPIX_Sparse_result_free((MPIX_Sparse_result *)result);
}

void mpix_sparse_get_version_(MPI_Fint *version, MPI_Fint *ierror)
{
    *ierror = MPIX_Sparse_get_version(version);
}
