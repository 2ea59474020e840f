! SPDX-License-Identifier: BSD-3-Clause
! For programs with "use mpi" or mpif.h, in fixed and in free form: include this behind MPI's. Counts are
! INTEGER(KIND=MPI_COUNT_KIND); results, and what MPIX_SPARSE_RESULT_GET gives, INTEGER(KIND=MPI_ADDRESS_KIND).
! Buffers are anything, as those of MPI: the directives say so to gfortran and to others.
      integer MPIX_SPARSE_VERSION
      parameter (MPIX_SPARSE_VERSION = 256)
      integer(kind=MPI_ADDRESS_KIND) MPIX_SPARSE_RESULT_NULL
      parameter (MPIX_SPARSE_RESULT_NULL = 0)

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
     &   indextype, count, datatype, op, comm, result, request,         &
     &   ierror)
      import
!GCC$ ATTRIBUTES NO_ARG_CHECK :: indices, values
!DIR$ IGNORE_TKR indices, values
      type(*), dimension(*) :: indices, values
      integer(kind=MPI_COUNT_KIND) nnz, count
      integer(kind=MPI_ADDRESS_KIND) result
      integer indextype, datatype, op, comm, request, ierror
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

      subroutine MPIX_SPARSE_GET_VERSION(version, ierror)
      integer version, ierror
      end subroutine
      end interface
