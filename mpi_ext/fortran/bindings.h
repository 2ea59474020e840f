/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORTRAN_BINDINGS_H
#define SAR_MPI_EXT_FORTRAN_BINDINGS_H

#include <mpix_sparse.h>
#include <stddef.h>

/** @file The C functions of the Fortran bindings, with arrays passed by address: the binding for mpif.h,
 * and the functions of the module without array arguments. All arguments are passed by reference. Handles
 * are integers; results and plans are integers of an address's size, or structures of one pointer; an
 * absent optional argument is null. Behaviour, errors and collectivity are those of mpix_sparse.h. Declared
 * here are the functions that descriptor.c calls. */

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
void pmpix_sparse_reduce_scatter_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror);
void pmpix_isparse_reduce_scatter_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                   MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror);
void pmpix_sparse_reduce_scatter_init_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                       MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                       MPI_Fint *ierror);
void pmpix_sparse_reduce_scatter_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                      MPI_Count *count, MPI_Count *block, MPI_Fint *datatype, MPI_Fint *op,
                                      MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *ierror);
void pmpix_isparse_reduce_scatter_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                       MPI_Count *count, MPI_Count *block, MPI_Fint *datatype, MPI_Fint *op,
                                       MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *request,
                                       MPI_Fint *ierror);
void pmpix_sparse_allgather_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                                 MPIX_Sparse_result *result, MPI_Fint *ierror);
void pmpix_isparse_allgather_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                  MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror);
void pmpix_sparse_bcast_delta_(void *old_version, void *new_version, MPI_Count *count, MPI_Fint *datatype,
                               MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierror);
void pmpix_sparse_bcast_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                             MPI_Count *count, MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *comm,
                             MPIX_Sparse_result *result, MPI_Fint *ierror);
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

#endif
