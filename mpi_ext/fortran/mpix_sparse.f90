! SPDX-License-Identifier: BSD-3-Clause
! The module mpix_sparse, on top of mpi_f08. Arguments have the names and the meaning of mpix_sparse.h. Arrays
! are contiguous; a strided section is an error on all ranks.
module mpix_sparse
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_ptr, c_ptr
  use mpi_f08, only: MPI_Comm, MPI_COUNT_KIND, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
  implicit none
  private

  integer, parameter, public :: MPIX_SPARSE_VERSION = 256
  integer, parameter, public :: MPIX_SPARSE_GAMMA_MAX = 32
  integer, parameter, public :: MPIX_SPARSE_NAME_MAX = 32
  integer, parameter, public :: MPIX_SPARSE_REASON_MAX = 160

  ! Null until a call makes it a result.
  type, bind(C), public :: MPIX_Sparse_result
    type(c_ptr) :: handle = c_null_ptr
  end type

  type(MPIX_Sparse_result), parameter, public :: MPIX_SPARSE_RESULT_NULL = MPIX_Sparse_result(c_null_ptr)

  ! Likewise.
  type, bind(C), public :: MPIX_Sparse_plan
    type(c_ptr) :: handle = c_null_ptr
  end type

  type(MPIX_Sparse_plan), parameter, public :: MPIX_SPARSE_PLAN_NULL = MPIX_Sparse_plan(c_null_ptr)

  type, bind(C), public :: MPIX_Sparse_profile_t
    integer(MPI_COUNT_KIND) :: count
    integer(c_int) :: ranks
    real(c_double) :: density
    real(c_double) :: density_max
    real(c_double) :: density_out
    real(c_double) :: overlap
    real(c_double) :: skewness
    integer(c_int) :: gammas
    integer(c_int) :: gamma_ranks(MPIX_SPARSE_GAMMA_MAX)
    real(c_double) :: gamma(MPIX_SPARSE_GAMMA_MAX)
    integer(MPI_COUNT_KIND) :: sampled
  end type

  ! Texts end with blanks.
  type, bind(C), public :: MPIX_Sparse_report_t
    character(kind=c_char) :: scheme(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: choice(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: reason(MPIX_SPARSE_REASON_MAX)
    character(kind=c_char) :: push_wire(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: pull_wire(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: partition(MPIX_SPARSE_NAME_MAX)
    integer(c_int) :: grain
    integer(c_int) :: ranks
    integer(c_int) :: nodes
    integer(MPI_COUNT_KIND) :: count
    integer(MPI_COUNT_KIND) :: row
    integer(MPI_COUNT_KIND) :: nnz_in
    integer(MPI_COUNT_KIND) :: nnz_in_max
    integer(MPI_COUNT_KIND) :: nnz_in_sum
    integer(MPI_COUNT_KIND) :: nnz_out
    integer(MPI_COUNT_KIND) :: bytes_sent
    integer(MPI_COUNT_KIND) :: bytes_received
    integer(MPI_COUNT_KIND) :: header_bytes_sent
    integer(MPI_COUNT_KIND) :: messages_sent
    real(c_double) :: push_imbalance
    real(c_double) :: pull_imbalance
    real(c_double) :: predicted_seconds
    real(c_double) :: measured_seconds
  end type

  public :: MPIX_Sparse_allreduce, MPIX_Isparse_allreduce
  public :: MPIX_Sparse_allreduce_coo, MPIX_Isparse_allreduce_coo
  public :: MPIX_Sparse_allreduce_init, MPIX_Sparse_allreduce_coo_init
  public :: MPIX_Sparse_plan_start, MPIX_Sparse_plan_start_coo, MPIX_Sparse_plan_start_all
  public :: MPIX_Sparse_plan_free
  public :: MPIX_Sparse_result_get, MPIX_Sparse_result_dense, MPIX_Sparse_result_free
  public :: MPIX_Sparse_profile, MPIX_Sparse_get_report, MPIX_Sparse_get_version

  interface
    subroutine MPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror) &
        bind(C, name='mpix_sparse_allreduce_f08')
      import
      type(*), dimension(..), intent(in) :: sendbuf
      type(*), dimension(..) :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) &
        bind(C, name='mpix_isparse_allreduce_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: sendbuf
      type(*), dimension(..), asynchronous :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allreduce_coo(indices, values, nnz, indextype, count, datatype, op, comm, &
        result, ierror) bind(C, name='mpix_sparse_allreduce_coo_f08')
      import
      type(*), dimension(..), intent(in) :: indices
      type(*), dimension(..), intent(in) :: values
      integer(MPI_COUNT_KIND), intent(in) :: nnz
      type(MPI_Datatype), intent(in) :: indextype
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_allreduce_coo(indices, values, nnz, indextype, count, datatype, op, comm, &
        result, request, ierror) bind(C, name='mpix_isparse_allreduce_coo_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: indices
      type(*), dimension(..), intent(in), asynchronous :: values
      integer(MPI_COUNT_KIND), intent(in) :: nnz
      type(MPI_Datatype), intent(in) :: indextype
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout), asynchronous :: result
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, info, plan, ierror) &
        bind(C, name='mpix_sparse_allreduce_init_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: sendbuf
      type(*), dimension(..), asynchronous :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allreduce_coo_init(indextype, count, datatype, op, comm, info, plan, ierror) &
        bind(C, name='mpix_sparse_allreduce_coo_init_f08')
      import
      type(MPI_Datatype), intent(in) :: indextype
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start(plan, request, ierror) bind(C, name='mpix_sparse_plan_start_f08')
      import
      type(MPIX_Sparse_plan), intent(in) :: plan
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start_coo(plan, indices, values, nnz, result, request, ierror) &
        bind(C, name='mpix_sparse_plan_start_coo_f08')
      import
      type(MPIX_Sparse_plan), intent(in) :: plan
      type(*), dimension(..), intent(in), asynchronous :: indices
      type(*), dimension(..), intent(in), asynchronous :: values
      integer(MPI_COUNT_KIND), intent(in) :: nnz
      type(MPIX_Sparse_result), intent(inout), asynchronous :: result
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start_all(n, plans, requests, ierror) &
        bind(C, name='mpix_sparse_plan_start_all_f08')
      import
      integer(c_int), intent(in) :: n
      type(MPIX_Sparse_plan), intent(in) :: plans(*)
      type(MPI_Request), intent(inout) :: requests(*)
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_free(plan, ierror) bind(C, name='mpix_sparse_plan_free_f08')
      import
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    ! Read the arrays through c_f_pointer.
    subroutine MPIX_Sparse_result_get(result, nnz, indices, values, ierror) &
        bind(C, name='mpix_sparse_result_get_f08')
      import
      type(MPIX_Sparse_result), intent(in) :: result
      integer(MPI_COUNT_KIND), intent(out), optional :: nnz
      type(c_ptr), intent(out), optional :: indices
      type(c_ptr), intent(out), optional :: values
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_result_dense(result, recvbuf, ierror) bind(C, name='mpix_sparse_result_dense_f08')
      import
      type(MPIX_Sparse_result), intent(in) :: result
      type(*), dimension(..) :: recvbuf
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_result_free(result, ierror) bind(C, name='mpix_sparse_result_free_f08')
      import
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_profile(buf, count, datatype, comm, profile, ierror) &
        bind(C, name='mpix_sparse_profile_f08')
      import
      type(*), dimension(..), intent(in) :: buf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_profile_t), intent(inout) :: profile
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_get_report(comm, report, ierror) bind(C, name='mpix_sparse_get_report_f08')
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_report_t), intent(inout) :: report
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_get_version(version, ierror) bind(C, name='mpix_sparse_get_version_f08')
      import
      integer(c_int), intent(out) :: version
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface
end module
