! SPDX-License-Identifier: BSD-3-Clause
! Interfaces for programs with "use mpi" or mpif.h, in fixed and in free form; include this file after MPI's.
! Counts are INTEGER(KIND=MPI_COUNT_KIND). Results, plans, and the addresses from MPIX_SPARSE_RESULT_GET are
! INTEGER(KIND=MPI_ADDRESS_KIND). Profiles, reports and the parameters of DGC have the types of the module mpix_sparse.
! Buffers may have any type, as in MPI: the directives declare this to gfortran and to other compilers.
      integer MPIX_SPARSE_VERSION
      parameter (MPIX_SPARSE_VERSION = 256)
      integer(kind=MPI_ADDRESS_KIND) MPIX_SPARSE_RESULT_NULL
      parameter (MPIX_SPARSE_RESULT_NULL = 0)
      integer(kind=MPI_ADDRESS_KIND) MPIX_SPARSE_PLAN_NULL
      parameter (MPIX_SPARSE_PLAN_NULL = 0)

      interface
      subroutine MPIX_SPARSE_ALLREDUCE(sendbuf, recvbuf, count,         &
     &   datatype, op, comm, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) count
      integer datatype, op, comm, ierror
      end subroutine

      subroutine MPIX_ISPARSE_ALLREDUCE(sendbuf, recvbuf, count,        &
     &   datatype, op, comm, request, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) count
      integer datatype, op, comm, request, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLREDUCE_ENQUEUE(sendbuf, recvbuf, count, &
     &   datatype, op, comm, stream, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) count
      integer(kind=MPI_ADDRESS_KIND) stream
      integer datatype, op, comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLREDUCE_COO(indices, values, nnz,        &
     &   indextype, count, datatype, op, comm, result, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, op, comm, ierror
      end subroutine

      subroutine MPIX_ISPARSE_ALLREDUCE_COO(indices, values, nnz,       &
     &   indextype, count, datatype, op, comm, result, request, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, op, comm, request, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLREDUCE_INIT(sendbuf, recvbuf, count,    &
     &   datatype, op, comm, info, plan, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) count
      integer(kind=MPI_ADDRESS_KIND) plan
      integer datatype, op, comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLREDUCE_COO_INIT(indextype, count,       &
     &   datatype, op, comm, info, plan, ierror)
      import
      integer(kind=MPI_COUNT_KIND) count
      integer(kind=MPI_ADDRESS_KIND) plan
      integer indextype, datatype, op, comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_PLAN_START(plan, request, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) plan
      integer request, ierror
      end subroutine

      subroutine MPIX_SPARSE_PLAN_START_COO(plan, indices, values, nnz, &
     &   result, request, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz
      integer(kind=MPI_ADDRESS_KIND) plan, result
      integer request, ierror
      end subroutine

      subroutine MPIX_SPARSE_PLAN_START_ALL(n, plans, requests, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) plans(*)
      integer n, requests(*), ierror
      end subroutine

      subroutine MPIX_SPARSE_PLAN_FREE(plan, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) plan
      integer ierror
      end subroutine

      subroutine MPIX_SPARSE_RESULT_GET(result, nnz, indices, values,   &
     &   ierror)
      import
      integer(kind=MPI_COUNT_KIND) nnz
      integer(kind=MPI_ADDRESS_KIND) result, indices, values
      integer ierror
      end subroutine

      subroutine MPIX_SPARSE_RESULT_DENSE(result, recvbuf, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: recvbuf
!DIR$ IGNORE_TKR recvbuf
      type(*), dimension(*) :: recvbuf
      integer(kind=MPI_ADDRESS_KIND) result
      integer ierror
      end subroutine

      subroutine MPIX_SPARSE_RESULT_FREE(result, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) result
      integer ierror
      end subroutine

      subroutine MPIX_SPARSE_COMM_SET_INFO(comm, info, ierror)
      integer comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_COMM_GET_INFO(comm, info_used, ierror)
      integer comm, info_used, ierror
      end subroutine

      subroutine MPIX_SPARSE_COMM_SET_LABEL(comm, label, ierror)
      integer comm, label, ierror
      end subroutine

      subroutine MPIX_SPARSE_PROFILE(buf, count, datatype, comm,        &
     &   profile, ierror)
      use mpix_sparse, only: MPIX_SPARSE_PROFILE_T
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
!DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(kind=MPI_COUNT_KIND) count
      type(MPIX_SPARSE_PROFILE_T) profile
      integer datatype, comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_GET_REPORT(comm, report, ierror)
      use mpix_sparse, only: MPIX_SPARSE_REPORT_T
      import
      type(MPIX_SPARSE_REPORT_T) report
      integer comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_REDUCE_SCATTER(sendbuf, recvbuf,           &
     &   recvcount, datatype, op, comm, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) recvcount
      integer datatype, op, comm, ierror
      end subroutine

      subroutine MPIX_ISPARSE_REDUCE_SCATTER(sendbuf, recvbuf,          &
     &   recvcount, datatype, op, comm, request, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) recvcount
      integer datatype, op, comm, request, ierror
      end subroutine

      subroutine MPIX_SPARSE_REDUCE_SCATTER_INIT(sendbuf, recvbuf,      &
     &   recvcount, datatype, op, comm, info, plan, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: sendbuf, recvbuf
!DIR$ IGNORE_TKR sendbuf, recvbuf
      type(*), dimension(*) :: sendbuf, recvbuf
      integer(kind=MPI_COUNT_KIND) recvcount
      integer(kind=MPI_ADDRESS_KIND) plan
      integer datatype, op, comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_REDUCE_SCATTER_COO(indices, values, nnz,   &
     &   indextype, count, block, datatype, op, comm, result, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count, block
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, op, comm, ierror
      end subroutine

      subroutine MPIX_ISPARSE_REDUCE_SCATTER_COO(indices, values, nnz,  &
     &   indextype, count, block, datatype, op, comm, result, request,  &
     &   ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count, block
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, op, comm, request, ierror
      end subroutine

      subroutine MPIX_SPARSE_REDUCE_SCATTER_COO_INIT(indextype, count,  &
     &   block, datatype, op, comm, info, plan, ierror)
      import
      integer(kind=MPI_COUNT_KIND) count, block
      integer(kind=MPI_ADDRESS_KIND) plan
      integer indextype, datatype, op, comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLGATHER_COO(indices, values, nnz,        &
     &   indextype, count, datatype, comm, result, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, comm, ierror
      end subroutine

      subroutine MPIX_ISPARSE_ALLGATHER_COO(indices, values, nnz,       &
     &   indextype, count, datatype, comm, result, request, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, comm, request, ierror
      end subroutine

      subroutine MPIX_SPARSE_ALLGATHER_COO_INIT(indextype, count,       &
     &   datatype, comm, info, plan, ierror)
      import
      integer(kind=MPI_COUNT_KIND) count
      integer(kind=MPI_ADDRESS_KIND) plan
      integer indextype, datatype, comm, info, ierror
      end subroutine

      subroutine MPIX_SPARSE_BCAST_DELTA(old_version, new_version,      &
     &   count, datatype, root, comm, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: old_version, new_version
!DIR$ IGNORE_TKR old_version, new_version
      type(*), dimension(*) :: old_version, new_version
      integer(kind=MPI_COUNT_KIND) count
      integer datatype, root, comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_BCAST_COO(indices, values, nnz,            &
     &   indextype, count, datatype, root, comm, result, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, root, comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_TOPK_THRESHOLD(buf, count, datatype,       &
     &   ratio, sample, seed, comm, threshold, ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
!DIR$ IGNORE_TKR buf
      type(*), dimension(*) :: buf
      integer(kind=MPI_COUNT_KIND) count
      double precision ratio, sample, threshold
      integer datatype, seed, comm, ierror
      end subroutine

      subroutine MPIX_SPARSE_TOPK_SELECT(buf, count, datatype,          &
     &   threshold, comm, indextype, capacity, indices, values, nnz,    &
     &   ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf, indices, values
!DIR$ IGNORE_TKR buf, indices, values
      type(*), dimension(*) :: buf, indices, values
      integer(kind=MPI_COUNT_KIND) count, capacity, nnz
      double precision threshold
      integer datatype, comm, indextype, ierror
      end subroutine

      subroutine MPIX_SPARSE_DGC_STEP(gradient, velocity, residual,     &
     &   count, datatype, how, comm, indextype, capacity, indices,      &
     &   values, nnz, ierror)
      use mpix_sparse, only: MPIX_SPARSE_DGC_T
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: gradient, velocity, residual
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR gradient, velocity, residual, indices, values
      type(*), dimension(*) :: gradient, velocity, residual
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) count, capacity, nnz
      type(MPIX_SPARSE_DGC_T) how
      integer datatype, comm, indextype, ierror
      end subroutine

      subroutine MPIX_SPARSE_GET_VERSION(version, ierror)
      integer version, ierror
      end subroutine
      end interface

! Profiling interface: the procedures under their PMPI names.
      procedure(MPIX_SPARSE_ALLREDUCE)::PMPIX_SPARSE_ALLREDUCE
      procedure(MPIX_ISPARSE_ALLREDUCE)::PMPIX_ISPARSE_ALLREDUCE
      procedure(MPIX_SPARSE_ALLREDUCE_ENQUEUE)                          &
     &   ::PMPIX_SPARSE_ALLREDUCE_ENQUEUE
      procedure(MPIX_SPARSE_ALLREDUCE_COO)::PMPIX_SPARSE_ALLREDUCE_COO
      procedure(MPIX_ISPARSE_ALLREDUCE_COO)::PMPIX_ISPARSE_ALLREDUCE_COO
      procedure(MPIX_SPARSE_ALLREDUCE_INIT)::PMPIX_SPARSE_ALLREDUCE_INIT
      procedure(MPIX_SPARSE_ALLREDUCE_COO_INIT)                         &
     &   ::PMPIX_SPARSE_ALLREDUCE_COO_INIT
      procedure(MPIX_SPARSE_PLAN_START)::PMPIX_SPARSE_PLAN_START
      procedure(MPIX_SPARSE_PLAN_START_COO)::PMPIX_SPARSE_PLAN_START_COO
      procedure(MPIX_SPARSE_PLAN_START_ALL)::PMPIX_SPARSE_PLAN_START_ALL
      procedure(MPIX_SPARSE_PLAN_FREE)::PMPIX_SPARSE_PLAN_FREE
      procedure(MPIX_SPARSE_RESULT_GET)::PMPIX_SPARSE_RESULT_GET
      procedure(MPIX_SPARSE_RESULT_DENSE)::PMPIX_SPARSE_RESULT_DENSE
      procedure(MPIX_SPARSE_RESULT_FREE)::PMPIX_SPARSE_RESULT_FREE
      procedure(MPIX_SPARSE_COMM_SET_INFO)::PMPIX_SPARSE_COMM_SET_INFO
      procedure(MPIX_SPARSE_COMM_GET_INFO)::PMPIX_SPARSE_COMM_GET_INFO
      procedure(MPIX_SPARSE_COMM_SET_LABEL)::PMPIX_SPARSE_COMM_SET_LABEL
      procedure(MPIX_SPARSE_PROFILE)::PMPIX_SPARSE_PROFILE
      procedure(MPIX_SPARSE_GET_REPORT)::PMPIX_SPARSE_GET_REPORT
      procedure(MPIX_SPARSE_REDUCE_SCATTER)::PMPIX_SPARSE_REDUCE_SCATTER
      procedure(MPIX_ISPARSE_REDUCE_SCATTER)                            &
     &   ::PMPIX_ISPARSE_REDUCE_SCATTER
      procedure(MPIX_SPARSE_REDUCE_SCATTER_INIT)                        &
     &   ::PMPIX_SPARSE_REDUCE_SCATTER_INIT
      procedure(MPIX_SPARSE_REDUCE_SCATTER_COO)                         &
     &   ::PMPIX_SPARSE_REDUCE_SCATTER_COO
      procedure(MPIX_ISPARSE_REDUCE_SCATTER_COO)                        &
     &   ::PMPIX_ISPARSE_REDUCE_SCATTER_COO
      procedure(MPIX_SPARSE_REDUCE_SCATTER_COO_INIT)                    &
     &   ::PMPIX_SPARSE_REDUCE_SCATTER_COO_INIT
      procedure(MPIX_SPARSE_ALLGATHER_COO)::PMPIX_SPARSE_ALLGATHER_COO
      procedure(MPIX_ISPARSE_ALLGATHER_COO)::PMPIX_ISPARSE_ALLGATHER_COO
      procedure(MPIX_SPARSE_ALLGATHER_COO_INIT)                         &
     &   ::PMPIX_SPARSE_ALLGATHER_COO_INIT
      procedure(MPIX_SPARSE_BCAST_DELTA)::PMPIX_SPARSE_BCAST_DELTA
      procedure(MPIX_SPARSE_BCAST_COO)::PMPIX_SPARSE_BCAST_COO
      procedure(MPIX_SPARSE_TOPK_THRESHOLD)::PMPIX_SPARSE_TOPK_THRESHOLD
      procedure(MPIX_SPARSE_TOPK_SELECT)::PMPIX_SPARSE_TOPK_SELECT
      procedure(MPIX_SPARSE_DGC_STEP)::PMPIX_SPARSE_DGC_STEP
      procedure(MPIX_SPARSE_GET_VERSION)::PMPIX_SPARSE_GET_VERSION
