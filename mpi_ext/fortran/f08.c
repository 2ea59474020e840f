/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of the module mpix_sparse: everything comes by reference, buffers by descriptor, and optional
 * arguments that are absent as null pointers. */

#include <mpix_sparse.h>
#include <string.h>

#include "mpi_ext/fortran/descriptor.h"

void mpix_sparse_allreduce_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                               MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_allreduce(sar_buffer_of(sendbuf), sar_buffer_of(recvbuf), *count,
                                           MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm)));
}

void mpix_isparse_allreduce_f08(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count,
                                MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request,
                                int *ierror)
{
    MPI_Request started;
    int code =
        MPIX_Isparse_allreduce(sar_buffer_of(sendbuf), sar_buffer_of(recvbuf), *count,
                               MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), &started);
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    sar_give(ierror, code);
}

void mpix_sparse_allreduce_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                   MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                   MPI_Fint *comm, MPIX_Sparse_result *result, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_allreduce_coo(sar_buffer_of(indices), sar_buffer_of(values), *nnz,
                                               MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                               MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result));
}

void mpix_isparse_allreduce_coo_f08(CFI_cdesc_t *indices, CFI_cdesc_t *values, MPI_Count *nnz,
                                    MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                    MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *request,
                                    int *ierror)
{
    MPI_Request started;
    int code = MPIX_Isparse_allreduce_coo(sar_buffer_of(indices), sar_buffer_of(values), *nnz,
                                          MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                          MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result, &started);
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    sar_give(ierror, code);
}

void mpix_sparse_result_get_f08(MPIX_Sparse_result *result, MPI_Count *nnz, const void **indices,
                                const void **values, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_result_get(*result, nnz, indices, values));
}

void mpix_sparse_result_dense_f08(MPIX_Sparse_result *result, CFI_cdesc_t *recvbuf, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_result_dense(*result, sar_buffer_of(recvbuf)));
}

void mpix_sparse_result_free_f08(MPIX_Sparse_result *result, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_result_free(result));
}

void mpix_sparse_profile_f08(CFI_cdesc_t *buf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                             MPIX_Sparse_profile_t *profile, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_profile(sar_buffer_of(buf), *count, MPI_Type_f2c(*datatype),
                                         MPI_Comm_f2c(*comm), profile));
}

/* As Fortran ends its texts. */
static void pad(char *text, size_t room)
{
    size_t used = strnlen(text, room);
    memset(text + used, ' ', room - used);
}

void mpix_sparse_get_report_f08(MPI_Fint *comm, MPIX_Sparse_report_t *report, int *ierror)
{
    int code = MPIX_Sparse_get_report(MPI_Comm_f2c(*comm), report);
    if (code == MPI_SUCCESS) {
        pad(report->scheme, sizeof report->scheme);
        pad(report->choice, sizeof report->choice);
        pad(report->reason, sizeof report->reason);
        pad(report->push_wire, sizeof report->push_wire);
        pad(report->pull_wire, sizeof report->pull_wire);
        pad(report->partition, sizeof report->partition);
    }
    sar_give(ierror, code);
}

void mpix_sparse_get_version_f08(int *version, int *ierror)
{
    sar_give(ierror, MPIX_Sparse_get_version(version));
}
