/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORTRAN_ADDRESS_H
#define SAR_MPI_EXT_FORTRAN_ADDRESS_H

#include <mpix_sparse.h>
#include <stddef.h>

/** @file
 * What Fortran calls where arrays come by their address: all of the binding for mpif.h, and what the module
 * has without arrays. Everything comes by reference, handles as integers, results and plans as integers of an
 * address's size or structures of one pointer, and optional arguments that are absent as null. The functions
 * do what mpix_sparse.h says; here are those that the module's functions with arrays end in. */

_Static_assert(sizeof(MPI_Aint) == sizeof(void *), "a result fits an integer of MPI_ADDRESS_KIND");

void pmpix_sparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                             MPI_Fint *comm, MPI_Fint *ierror);
void pmpix_isparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                              MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror);
void pmpix_sparse_allreduce_enqueue_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                     MPI_Fint *op, MPI_Fint *comm, void **stream, MPI_Fint *ierror);
void pmpix_sparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                 MPIX_Sparse_result *result, MPI_Fint *ierror);
void pmpix_isparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                  MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror);
void pmpix_sparse_allreduce_init_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                  MPI_Fint *ierror);
void pmpix_sparse_plan_start_coo_(MPIX_Sparse_plan *plan, void *indices, void *values, MPI_Count *nnz,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror);
void pmpix_sparse_result_dense_(MPIX_Sparse_result *result, void *recvbuf, MPI_Fint *ierror);
void pmpix_sparse_profile_(void *buf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                           MPIX_Sparse_profile_t *profile, MPI_Fint *ierror);
void pmpix_sparse_topk_threshold_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *ratio,
                                  double *sample, MPI_Fint *seed, MPI_Fint *comm, double *threshold,
                                  MPI_Fint *ierror);
void pmpix_sparse_topk_select_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *threshold,
                               MPI_Fint *comm, MPI_Fint *indextype, MPI_Count *capacity, void *indices,
                               void *values, MPI_Count *nnz, MPI_Fint *ierror);
void pmpix_sparse_dgc_step_(void *gradient, void *velocity, void *residual, MPI_Count *count,
                            MPI_Fint *datatype, MPIX_Sparse_dgc_t *how, MPI_Fint *comm, MPI_Fint *indextype,
                            MPI_Count *capacity, void *indices, void *values, MPI_Count *nnz,
                            MPI_Fint *ierror);

/** Set ierror unless it is absent. */
static inline void sar_fortran_give(MPI_Fint *ierror, int code)
{
    if (ierror != NULL)
        *ierror = code;
}

/** The same after a call that started `started`, which goes to *request unless the call failed. */
static inline void sar_fortran_give_request(MPI_Fint *request, MPI_Request started, MPI_Fint *ierror,
                                            int code)
{
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    sar_fortran_give(ierror, code);
}

#endif
