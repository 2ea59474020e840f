/* SPDX-License-Identifier: BSD-3-Clause */
/* The Fortran bindings: convert the arguments and call the PMPIX function. bindings.h describes the
 * arguments.
 *
 * Fortran's MPI_IN_PLACE is a variable whose address differs between MPI libraries and between their
 * bindings. On the first call, in_place_address.f90 reports the addresses, so that no internal name of an
 * MPI library is needed. */

#include "mpi_ext/fortran/bindings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *in_place_f08, *in_place_mpif;

/* In in_place_address.f90; they call the two functions below. */
void sar_fortran_find_in_place_f08(void);
void sar_fortran_find_in_place_mpif(void);

void sar_fortran_set_in_place_f08(void *variable)
{
    in_place_f08 = variable;
}

void sar_fortran_set_in_place_mpif(void *variable)
{
    in_place_mpif = variable;
}

static void find_addresses(void)
{
    sar_fortran_find_in_place_f08();
    sar_fortran_find_in_place_mpif();
}

static void *map_in_place(void *address)
{
    pthread_once(&once, find_addresses);
    return address == in_place_f08 || address == in_place_mpif ? MPI_IN_PLACE : address;
}

static void set_ierror(MPI_Fint *ierror, int code)
{
    if (ierror != NULL)
        *ierror = code;
}

/* Set *ierror, and *request if the call succeeded. */
static void set_request(MPI_Fint *request, MPI_Request started, MPI_Fint *ierror, int code)
{
    if (code == MPI_SUCCESS)
        *request = MPI_Request_c2f(started);
    set_ierror(ierror, code);
}

void pmpix_sparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                             MPI_Fint *comm, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce(map_in_place(sendbuf), map_in_place(recvbuf), *count,
                                      MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
    set_ierror(ierror, code);
}

void pmpix_isparse_allreduce_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                              MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code =
        PMPIX_Isparse_allreduce(map_in_place(sendbuf), map_in_place(recvbuf), *count, MPI_Type_f2c(*datatype),
                                MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_allreduce_enqueue_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                     MPI_Fint *op, MPI_Fint *comm, void **stream, MPI_Fint *ierror)
{
    void *from = map_in_place(sendbuf), *to = map_in_place(recvbuf);
    int code = PMPIX_Sparse_allreduce_enqueue(from, to, *count, MPI_Type_f2c(*datatype), MPI_Op_f2c(*op),
                                              MPI_Comm_f2c(*comm), *stream);
    set_ierror(ierror, code);
}

void pmpix_sparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                 MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce_coo(map_in_place(indices), map_in_place(values), *nnz,
                                          MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                          MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result);
    set_ierror(ierror, code);
}

void pmpix_isparse_allreduce_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                  MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Isparse_allreduce_coo(map_in_place(indices), map_in_place(values), *nnz,
                                           MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                           MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result, &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_reduce_scatter_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_reduce_scatter(map_in_place(sendbuf), map_in_place(recvbuf), *recvcount,
                                           MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
    set_ierror(ierror, code);
}

void pmpix_isparse_reduce_scatter_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                   MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code =
        PMPIX_Isparse_reduce_scatter(map_in_place(sendbuf), map_in_place(recvbuf), *recvcount,
                                     MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_reduce_scatter_init_(void *sendbuf, void *recvbuf, MPI_Count *recvcount, MPI_Fint *datatype,
                                       MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                       MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_reduce_scatter_init(map_in_place(sendbuf), map_in_place(recvbuf), *recvcount,
                                                MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                                MPI_Info_f2c(*info), plan);
    set_ierror(ierror, code);
}

void pmpix_sparse_reduce_scatter_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                      MPI_Count *count, MPI_Count *block, MPI_Fint *datatype, MPI_Fint *op,
                                      MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    int code =
        PMPIX_Sparse_reduce_scatter_coo(map_in_place(indices), map_in_place(values), *nnz,
                                        MPI_Type_f2c(*indextype), *count, *block, MPI_Type_f2c(*datatype),
                                        MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result);
    set_ierror(ierror, code);
}

void pmpix_isparse_reduce_scatter_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                       MPI_Count *count, MPI_Count *block, MPI_Fint *datatype, MPI_Fint *op,
                                       MPI_Fint *comm, MPIX_Sparse_result *result, MPI_Fint *request,
                                       MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code =
        PMPIX_Isparse_reduce_scatter_coo(map_in_place(indices), map_in_place(values), *nnz,
                                         MPI_Type_f2c(*indextype), *count, *block, MPI_Type_f2c(*datatype),
                                         MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), result, &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_allgather_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                 MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                                 MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allgather_coo(map_in_place(indices), map_in_place(values), *nnz,
                                          MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                          MPI_Comm_f2c(*comm), result);
    set_ierror(ierror, code);
}

void pmpix_isparse_allgather_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                                  MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Isparse_allgather_coo(map_in_place(indices), map_in_place(values), *nnz,
                                           MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                           MPI_Comm_f2c(*comm), result, &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_bcast_delta_(void *old_version, void *new_version, MPI_Count *count, MPI_Fint *datatype,
                               MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_bcast_delta(map_in_place(old_version), map_in_place(new_version), *count,
                                        MPI_Type_f2c(*datatype), *root, MPI_Comm_f2c(*comm));
    set_ierror(ierror, code);
}

void pmpix_sparse_bcast_coo_(void *indices, void *values, MPI_Count *nnz, MPI_Fint *indextype,
                             MPI_Count *count, MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *comm,
                             MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    int code =
        PMPIX_Sparse_bcast_coo(map_in_place(indices), map_in_place(values), *nnz, MPI_Type_f2c(*indextype),
                               *count, MPI_Type_f2c(*datatype), *root, MPI_Comm_f2c(*comm), result);
    set_ierror(ierror, code);
}

void pmpix_sparse_result_get_(MPIX_Sparse_result *result, MPI_Count *nnz, const void **indices,
                              const void **values, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_result_get(*result, nnz, indices, values));
}

void pmpix_sparse_result_dense_(MPIX_Sparse_result *result, void *recvbuf, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_result_dense(*result, map_in_place(recvbuf)));
}

void pmpix_sparse_result_free_(MPIX_Sparse_result *result, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_result_free(result));
}

void pmpix_sparse_allreduce_init_(void *sendbuf, void *recvbuf, MPI_Count *count, MPI_Fint *datatype,
                                  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                  MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allreduce_init(map_in_place(sendbuf), map_in_place(recvbuf), *count,
                                           MPI_Type_f2c(*datatype), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm),
                                           MPI_Info_f2c(*info), plan);
    set_ierror(ierror, code);
}

void pmpix_sparse_allreduce_coo_init_(MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *op,
                                      MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                      MPI_Fint *ierror)
{
    int code =
        PMPIX_Sparse_allreduce_coo_init(MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                        MPI_Op_f2c(*op), MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), plan);
    set_ierror(ierror, code);
}

void pmpix_sparse_reduce_scatter_coo_init_(MPI_Fint *indextype, MPI_Count *count, MPI_Count *block,
                                           MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,
                                           MPIX_Sparse_plan *plan, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_reduce_scatter_coo_init(MPI_Type_f2c(*indextype), *count, *block,
                                                    MPI_Type_f2c(*datatype), MPI_Op_f2c(*op),
                                                    MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), plan);
    set_ierror(ierror, code);
}

void pmpix_sparse_allgather_coo_init_(MPI_Fint *indextype, MPI_Count *count, MPI_Fint *datatype,
                                      MPI_Fint *comm, MPI_Fint *info, MPIX_Sparse_plan *plan,
                                      MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_allgather_coo_init(MPI_Type_f2c(*indextype), *count, MPI_Type_f2c(*datatype),
                                               MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), plan);
    set_ierror(ierror, code);
}

void pmpix_sparse_plan_start_(MPIX_Sparse_plan *plan, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Sparse_plan_start(*plan, &started);
    set_request(request, started, ierror, code);
}

void pmpix_sparse_plan_start_coo_(MPIX_Sparse_plan *plan, void *indices, void *values, MPI_Count *nnz,
                                  MPIX_Sparse_result *result, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request started = MPI_REQUEST_NULL;
    int code = PMPIX_Sparse_plan_start_coo(*plan, map_in_place(indices), map_in_place(values), *nnz, result,
                                           &started);
    set_request(request, started, ierror, code);
}

/* A C request may be larger than a Fortran one, hence the array of its own. */
void pmpix_sparse_plan_start_all_(MPI_Fint *n, MPIX_Sparse_plan *plans, MPI_Fint *requests, MPI_Fint *ierror)
{
    size_t plans_n = *n > 0 ? (size_t)*n : 0;
    MPI_Request *started = malloc((plans_n + 1) * sizeof *started);
    int code = started == NULL ? MPI_ERR_NO_MEM : PMPIX_Sparse_plan_start_all(*n, plans, started);
    for (size_t i = 0; i < plans_n && code == MPI_SUCCESS; i++)
        requests[i] = MPI_Request_c2f(started[i]);
    free(started);
    set_ierror(ierror, code);
}

void pmpix_sparse_plan_free_(MPIX_Sparse_plan *plan, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_plan_free(plan));
}

void pmpix_sparse_comm_set_info_(MPI_Fint *comm, MPI_Fint *info, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_comm_set_info(MPI_Comm_f2c(*comm), MPI_Info_f2c(*info)));
}

void pmpix_sparse_comm_get_info_(MPI_Fint *comm, MPI_Fint *info_used, MPI_Fint *ierror)
{
    MPI_Info used = MPI_INFO_NULL;
    int code = PMPIX_Sparse_comm_get_info(MPI_Comm_f2c(*comm), &used);
    if (code == MPI_SUCCESS)
        *info_used = MPI_Info_c2f(used);
    set_ierror(ierror, code);
}

void pmpix_sparse_comm_set_label_(MPI_Fint *comm, MPI_Fint *label, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_comm_set_label(MPI_Comm_f2c(*comm), *label));
}

void pmpix_sparse_profile_(void *buf, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *comm,
                           MPIX_Sparse_profile_t *profile, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_profile(map_in_place(buf), *count, MPI_Type_f2c(*datatype), MPI_Comm_f2c(*comm),
                                    profile);
    set_ierror(ierror, code);
}

/* Fortran pads strings with blanks. */
static void pad(char *text, size_t capacity)
{
    size_t used = strnlen(text, capacity);
    memset(text + used, ' ', capacity - used);
}

void pmpix_sparse_get_report_(MPI_Fint *comm, MPIX_Sparse_report_t *report, MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_get_report(MPI_Comm_f2c(*comm), report);
    if (code == MPI_SUCCESS) {
        pad(report->scheme, sizeof report->scheme);
        pad(report->choice, sizeof report->choice);
        pad(report->reason, sizeof report->reason);
        pad(report->push_wire, sizeof report->push_wire);
        pad(report->pull_wire, sizeof report->pull_wire);
        pad(report->partition, sizeof report->partition);
    }
    set_ierror(ierror, code);
}

void pmpix_sparse_get_version_(MPI_Fint *version, MPI_Fint *ierror)
{
    set_ierror(ierror, PMPIX_Sparse_get_version(version));
}

void pmpix_sparse_topk_threshold_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *ratio,
                                  double *sample, MPI_Fint *seed, MPI_Fint *comm, double *threshold,
                                  MPI_Fint *ierror)
{
    int code = PMPIX_Sparse_topk_threshold(map_in_place(buf), *count, MPI_Type_f2c(*datatype), *ratio,
                                           *sample, *seed, MPI_Comm_f2c(*comm), threshold);
    set_ierror(ierror, code);
}

void pmpix_sparse_topk_select_(void *buf, MPI_Count *count, MPI_Fint *datatype, double *threshold,
                               MPI_Fint *comm, MPI_Fint *indextype, MPI_Count *capacity, void *indices,
                               void *values, MPI_Count *nnz, MPI_Fint *ierror)
{
    void *out_indices = map_in_place(indices), *out_values = map_in_place(values);
    int code = PMPIX_Sparse_topk_select(map_in_place(buf), *count, MPI_Type_f2c(*datatype), *threshold,
                                        MPI_Comm_f2c(*comm), MPI_Type_f2c(*indextype), *capacity, out_indices,
                                        out_values, nnz);
    set_ierror(ierror, code);
}

void pmpix_sparse_dgc_step_(void *gradient, void *velocity, void *residual, MPI_Count *count,
                            MPI_Fint *datatype, MPIX_Sparse_dgc_t *how, MPI_Fint *comm, MPI_Fint *indextype,
                            MPI_Count *capacity, void *indices, void *values, MPI_Count *nnz,
                            MPI_Fint *ierror)
{
    void *out_indices = map_in_place(indices), *out_values = map_in_place(values);
    int code = PMPIX_Sparse_dgc_step(map_in_place(gradient), map_in_place(velocity), map_in_place(residual),
                                     *count, MPI_Type_f2c(*datatype), how, MPI_Comm_f2c(*comm),
                                     MPI_Type_f2c(*indextype), *capacity, out_indices, out_values, nnz);
    set_ierror(ierror, code);
}

#pragma weak mpix_sparse_allreduce_ = pmpix_sparse_allreduce_
#pragma weak mpix_isparse_allreduce_ = pmpix_isparse_allreduce_
#pragma weak mpix_sparse_allreduce_enqueue_ = pmpix_sparse_allreduce_enqueue_
#pragma weak mpix_sparse_allreduce_coo_ = pmpix_sparse_allreduce_coo_
#pragma weak mpix_isparse_allreduce_coo_ = pmpix_isparse_allreduce_coo_
#pragma weak mpix_sparse_result_get_ = pmpix_sparse_result_get_
#pragma weak mpix_sparse_result_dense_ = pmpix_sparse_result_dense_
#pragma weak mpix_sparse_result_free_ = pmpix_sparse_result_free_
#pragma weak mpix_sparse_allreduce_init_ = pmpix_sparse_allreduce_init_
#pragma weak mpix_sparse_allreduce_coo_init_ = pmpix_sparse_allreduce_coo_init_
#pragma weak mpix_sparse_plan_start_ = pmpix_sparse_plan_start_
#pragma weak mpix_sparse_plan_start_coo_ = pmpix_sparse_plan_start_coo_
#pragma weak mpix_sparse_plan_start_all_ = pmpix_sparse_plan_start_all_
#pragma weak mpix_sparse_plan_free_ = pmpix_sparse_plan_free_
#pragma weak mpix_sparse_comm_set_info_ = pmpix_sparse_comm_set_info_
#pragma weak mpix_sparse_comm_get_info_ = pmpix_sparse_comm_get_info_
#pragma weak mpix_sparse_comm_set_label_ = pmpix_sparse_comm_set_label_
#pragma weak mpix_sparse_profile_ = pmpix_sparse_profile_
#pragma weak mpix_sparse_get_report_ = pmpix_sparse_get_report_
#pragma weak mpix_sparse_get_version_ = pmpix_sparse_get_version_
#pragma weak mpix_sparse_reduce_scatter_ = pmpix_sparse_reduce_scatter_
#pragma weak mpix_isparse_reduce_scatter_ = pmpix_isparse_reduce_scatter_
#pragma weak mpix_sparse_reduce_scatter_init_ = pmpix_sparse_reduce_scatter_init_
#pragma weak mpix_sparse_reduce_scatter_coo_ = pmpix_sparse_reduce_scatter_coo_
#pragma weak mpix_isparse_reduce_scatter_coo_ = pmpix_isparse_reduce_scatter_coo_
#pragma weak mpix_sparse_reduce_scatter_coo_init_ = pmpix_sparse_reduce_scatter_coo_init_
#pragma weak mpix_sparse_allgather_coo_ = pmpix_sparse_allgather_coo_
#pragma weak mpix_isparse_allgather_coo_ = pmpix_isparse_allgather_coo_
#pragma weak mpix_sparse_allgather_coo_init_ = pmpix_sparse_allgather_coo_init_
#pragma weak mpix_sparse_bcast_delta_ = pmpix_sparse_bcast_delta_
#pragma weak mpix_sparse_bcast_coo_ = pmpix_sparse_bcast_coo_
#pragma weak mpix_sparse_topk_threshold_ = pmpix_sparse_topk_threshold_
#pragma weak mpix_sparse_topk_select_ = pmpix_sparse_topk_select_
#pragma weak mpix_sparse_dgc_step_ = pmpix_sparse_dgc_step_
