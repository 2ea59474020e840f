! SPDX-License-Identifier: BSD-3-Clause
! For programs with "use mpi" or mpif.h, in fixed and in free form: include this behind MPI's. Counts are
! INTEGER(KIND=MPI_COUNT_KIND); results, and what MPIX_SPARSE_RESULT_GET gives, INTEGER(KIND=MPI_ADDRESS_KIND).
      integer MPIX_SPARSE_VERSION
      parameter (MPIX_SPARSE_VERSION = 256)
      integer(kind=MPI_ADDRESS_KIND) MPIX_SPARSE_RESULT_NULL
      parameter (MPIX_SPARSE_RESULT_NULL = 0)
      external MPIX_SPARSE_ALLREDUCE, MPIX_SPARSE_ALLREDUCE_COO
      external MPIX_ISPARSE_ALLREDUCE, MPIX_ISPARSE_ALLREDUCE_COO
      external MPIX_SPARSE_RESULT_GET, MPIX_SPARSE_RESULT_DENSE
      external MPIX_SPARSE_RESULT_FREE, MPIX_SPARSE_GET_VERSION
