! SPDX-License-Identifier: BSD-3-Clause
! The module mpix_sparse, for programs that use mpi_f08. Names and meaning of the arguments are those of
! mpix_sparse.h. Arrays must be contiguous; a strided section is an error on all ranks. C names that end in
! _f08 take array descriptors (descriptor.c); the others are those of the mpif.h binding (bindings.c).
module mpix_sparse
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_ptr, c_ptr
  use mpi_f08, only: MPI_Comm, MPI_COUNT_KIND, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
  implicit none
  private :: c_char, c_double, c_int, c_null_ptr, c_ptr
  private :: MPI_Comm, MPI_COUNT_KIND, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request

  integer, parameter :: MPIX_SPARSE_VERSION = 256
  integer, parameter :: MPIX_SPARSE_GAMMA_MAX = 32
  integer, parameter :: MPIX_SPARSE_NAME_MAX = 32
  integer, parameter :: MPIX_SPARSE_REASON_MAX = 160

  ! A result; null until a call sets it.
  type, bind(C) :: MPIX_Sparse_result
    type(c_ptr) :: handle = c_null_ptr
  end type

  type(MPIX_Sparse_result), parameter :: MPIX_SPARSE_RESULT_NULL = MPIX_Sparse_result(c_null_ptr)

  ! A plan; null until a call sets it.
  type, bind(C) :: MPIX_Sparse_plan
    type(c_ptr) :: handle = c_null_ptr
  end type

  type(MPIX_Sparse_plan), parameter :: MPIX_SPARSE_PLAN_NULL = MPIX_Sparse_plan(c_null_ptr)

  type, bind(C) :: MPIX_Sparse_profile_t
    integer(MPI_COUNT_KIND) :: count
    integer(c_int) :: ranks
    real(c_double) :: density, density_max, density_out
    real(c_double) :: overlap, skewness
    integer(c_int) :: gammas
    integer(c_int) :: gamma_ranks(MPIX_SPARSE_GAMMA_MAX)
    real(c_double) :: gamma(MPIX_SPARSE_GAMMA_MAX)
    integer(MPI_COUNT_KIND) :: sampled
  end type

  ! Strings are padded with blanks.
  type, bind(C) :: MPIX_Sparse_report_t
    character(kind=c_char) :: scheme(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: choice(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: reason(MPIX_SPARSE_REASON_MAX)
    character(kind=c_char) :: push_wire(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: pull_wire(MPIX_SPARSE_NAME_MAX)
    character(kind=c_char) :: partition(MPIX_SPARSE_NAME_MAX)
    integer(c_int) :: grain, ranks, nodes, columns, threads
    integer(MPI_COUNT_KIND) :: count, row
    integer(MPI_COUNT_KIND) :: nnz_in, nnz_in_max, nnz_in_sum, nnz_out
    integer(MPI_COUNT_KIND) :: bytes_sent, bytes_received, header_bytes_sent
    integer(MPI_COUNT_KIND) :: messages_sent
    integer(MPI_COUNT_KIND) :: messages_relayed
    integer(MPI_COUNT_KIND) :: hash_reruns
    real(c_double) :: serial_share
    real(c_double) :: push_imbalance
    real(c_double) :: pull_imbalance
    real(c_double) :: predicted_seconds
    real(c_double) :: measured_seconds
  end type

  type, bind(C) :: MPIX_Sparse_dgc_t
    real(c_double) :: ratio
    real(c_double) :: sample
    real(c_double) :: momentum
    real(c_double) :: scale
    integer(c_int) :: seed
    integer(c_int) :: masking
  end type

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

    subroutine MPIX_Sparse_allreduce_enqueue(sendbuf, recvbuf, count, datatype, op, comm, stream, ierror) &
        bind(C, name='mpix_sparse_allreduce_enqueue_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: sendbuf
      type(*), dimension(..), asynchronous :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(c_ptr), intent(in) :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allreduce_coo(indices, values, nnz, indextype, count, datatype, op, comm, &
        result, ierror) bind(C, name='mpix_sparse_allreduce_coo_f08')
      import
      type(*), dimension(..), intent(in) :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_allreduce_coo(indices, values, nnz, indextype, count, datatype, op, comm, &
        result, request, ierror) bind(C, name='mpix_isparse_allreduce_coo_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count
      type(MPI_Datatype), intent(in) :: indextype, datatype
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
        bind(C, name='mpix_sparse_allreduce_coo_init_')
      import
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start(plan, request, ierror) bind(C, name='mpix_sparse_plan_start_')
      import
      type(MPIX_Sparse_plan), intent(in) :: plan
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start_coo(plan, indices, values, nnz, result, request, ierror) &
        bind(C, name='mpix_sparse_plan_start_coo_f08')
      import
      type(MPIX_Sparse_plan), intent(in) :: plan
      type(*), dimension(..), intent(in), asynchronous :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz
      type(MPIX_Sparse_result), intent(inout), asynchronous :: result
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_start_all(n, plans, requests, ierror) &
        bind(C, name='mpix_sparse_plan_start_all_')
      import
      integer(c_int), intent(in) :: n
      type(MPIX_Sparse_plan), intent(in) :: plans(*)
      type(MPI_Request), intent(inout) :: requests(*)
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_plan_free(plan, ierror) bind(C, name='mpix_sparse_plan_free_')
      import
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    ! Use c_f_pointer to read the arrays.
    subroutine MPIX_Sparse_result_get(result, nnz, indices, values, ierror) &
        bind(C, name='mpix_sparse_result_get_')
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

    subroutine MPIX_Sparse_result_free(result, ierror) bind(C, name='mpix_sparse_result_free_')
      import
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_comm_set_info(comm, info, ierror) bind(C, name='mpix_sparse_comm_set_info_')
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_comm_get_info(comm, info_used, ierror) bind(C, name='mpix_sparse_comm_get_info_')
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(out) :: info_used
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_comm_set_label(comm, label, ierror) bind(C, name='mpix_sparse_comm_set_label_')
      import
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(in) :: label
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

    subroutine MPIX_Sparse_get_report(comm, report, ierror) bind(C, name='mpix_sparse_get_report_')
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_report_t), intent(inout) :: report
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_reduce_scatter(sendbuf, recvbuf, recvcount, datatype, op, comm, ierror) &
        bind(C, name='mpix_sparse_reduce_scatter_f08')
      import
      type(*), dimension(..), intent(in) :: sendbuf
      type(*), dimension(..) :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_reduce_scatter(sendbuf, recvbuf, recvcount, datatype, op, comm, request, &
        ierror) bind(C, name='mpix_isparse_reduce_scatter_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: sendbuf
      type(*), dimension(..), asynchronous :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_reduce_scatter_init(sendbuf, recvbuf, recvcount, datatype, op, comm, info, plan, &
        ierror) bind(C, name='mpix_sparse_reduce_scatter_init_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: sendbuf
      type(*), dimension(..), asynchronous :: recvbuf
      integer(MPI_COUNT_KIND), intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_reduce_scatter_coo(indices, values, nnz, indextype, count, block, datatype, &
        op, comm, result, ierror) bind(C, name='mpix_sparse_reduce_scatter_coo_f08')
      import
      type(*), dimension(..), intent(in) :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count, block
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_reduce_scatter_coo(indices, values, nnz, indextype, count, block, datatype, &
        op, comm, result, request, ierror) bind(C, name='mpix_isparse_reduce_scatter_coo_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count, block
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout), asynchronous :: result
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_reduce_scatter_coo_init(indextype, count, block, datatype, op, comm, info, &
        plan, ierror) bind(C, name='mpix_sparse_reduce_scatter_coo_init_')
      import
      integer(MPI_COUNT_KIND), intent(in) :: count, block
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allgather_coo(indices, values, nnz, indextype, count, datatype, comm, &
        result, ierror) bind(C, name='mpix_sparse_allgather_coo_f08')
      import
      type(*), dimension(..), intent(in) :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Isparse_allgather_coo(indices, values, nnz, indextype, count, datatype, comm, &
        result, request, ierror) bind(C, name='mpix_isparse_allgather_coo_f08')
      import
      type(*), dimension(..), intent(in), asynchronous :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout), asynchronous :: result
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_allgather_coo_init(indextype, count, datatype, comm, info, plan, ierror) &
        bind(C, name='mpix_sparse_allgather_coo_init_')
      import
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Info), intent(in) :: info
      type(MPIX_Sparse_plan), intent(inout) :: plan
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_bcast_delta(old_version, new_version, count, datatype, root, comm, ierror) &
        bind(C, name='mpix_sparse_bcast_delta_f08')
      import
      type(*), dimension(..), intent(in) :: old_version
      type(*), dimension(..) :: new_version
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      integer(c_int), intent(in) :: root
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_bcast_coo(indices, values, nnz, indextype, count, datatype, root, comm, result, &
        ierror) bind(C, name='mpix_sparse_bcast_coo_f08')
      import
      type(*), dimension(..), intent(in) :: indices, values
      integer(MPI_COUNT_KIND), intent(in) :: nnz, count
      type(MPI_Datatype), intent(in) :: indextype, datatype
      integer(c_int), intent(in) :: root
      type(MPI_Comm), intent(in) :: comm
      type(MPIX_Sparse_result), intent(inout) :: result
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_topk_threshold(buf, count, datatype, ratio, sample, seed, comm, threshold, &
        ierror) bind(C, name='mpix_sparse_topk_threshold_f08')
      import
      type(*), dimension(..), intent(in) :: buf
      integer(MPI_COUNT_KIND), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      real(c_double), intent(in) :: ratio
      real(c_double), intent(in) :: sample
      integer(c_int), intent(in) :: seed
      type(MPI_Comm), intent(in) :: comm
      real(c_double), intent(inout) :: threshold
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_topk_select(buf, count, datatype, threshold, comm, indextype, capacity, indices, &
        values, nnz, ierror) bind(C, name='mpix_sparse_topk_select_f08')
      import
      type(*), dimension(..), intent(in) :: buf
      integer(MPI_COUNT_KIND), intent(in) :: count, capacity
      type(MPI_Datatype), intent(in) :: datatype, indextype
      real(c_double), intent(in) :: threshold
      type(MPI_Comm), intent(in) :: comm
      type(*), dimension(..) :: indices, values
      integer(MPI_COUNT_KIND), intent(inout) :: nnz
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_dgc_step(gradient, velocity, residual, count, datatype, how, comm, indextype, &
        capacity, indices, values, nnz, ierror) bind(C, name='mpix_sparse_dgc_step_f08')
      import
      type(*), dimension(..), intent(in) :: gradient
      type(*), dimension(..) :: velocity, residual
      integer(MPI_COUNT_KIND), intent(in) :: count, capacity
      type(MPI_Datatype), intent(in) :: datatype, indextype
      type(MPIX_Sparse_dgc_t), intent(in) :: how
      type(MPI_Comm), intent(in) :: comm
      type(*), dimension(..) :: indices, values
      integer(MPI_COUNT_KIND), intent(inout) :: nnz
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Sparse_get_version(version, ierror) bind(C, name='mpix_sparse_get_version_')
      import
      integer(c_int), intent(out) :: version
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  ! Profiling interface: the functions under their PMPI names.
  procedure(MPIX_Sparse_allreduce), bind(C, name='pmpix_sparse_allreduce_f08') :: PMPIX_Sparse_allreduce
  procedure(MPIX_Sparse_allreduce_enqueue), bind(C, name='pmpix_sparse_allreduce_enqueue_f08') :: &
      PMPIX_Sparse_allreduce_enqueue
  procedure(MPIX_Isparse_allreduce), bind(C, name='pmpix_isparse_allreduce_f08') :: PMPIX_Isparse_allreduce
  procedure(MPIX_Sparse_allreduce_coo), bind(C, name='pmpix_sparse_allreduce_coo_f08') :: &
      PMPIX_Sparse_allreduce_coo
  procedure(MPIX_Isparse_allreduce_coo), bind(C, name='pmpix_isparse_allreduce_coo_f08') :: &
      PMPIX_Isparse_allreduce_coo
  procedure(MPIX_Sparse_allreduce_init), bind(C, name='pmpix_sparse_allreduce_init_f08') :: &
      PMPIX_Sparse_allreduce_init
  procedure(MPIX_Sparse_allreduce_coo_init), bind(C, name='pmpix_sparse_allreduce_coo_init_') :: &
      PMPIX_Sparse_allreduce_coo_init
  procedure(MPIX_Sparse_plan_start), bind(C, name='pmpix_sparse_plan_start_') :: PMPIX_Sparse_plan_start
  procedure(MPIX_Sparse_plan_start_coo), bind(C, name='pmpix_sparse_plan_start_coo_f08') :: &
      PMPIX_Sparse_plan_start_coo
  procedure(MPIX_Sparse_plan_start_all), bind(C, name='pmpix_sparse_plan_start_all_') :: &
      PMPIX_Sparse_plan_start_all
  procedure(MPIX_Sparse_plan_free), bind(C, name='pmpix_sparse_plan_free_') :: PMPIX_Sparse_plan_free
  procedure(MPIX_Sparse_result_get), bind(C, name='pmpix_sparse_result_get_') :: PMPIX_Sparse_result_get
  procedure(MPIX_Sparse_result_dense), bind(C, name='pmpix_sparse_result_dense_f08') :: &
      PMPIX_Sparse_result_dense
  procedure(MPIX_Sparse_result_free), bind(C, name='pmpix_sparse_result_free_') :: PMPIX_Sparse_result_free
  procedure(MPIX_Sparse_comm_set_info), bind(C, name='pmpix_sparse_comm_set_info_') :: &
      PMPIX_Sparse_comm_set_info
  procedure(MPIX_Sparse_comm_get_info), bind(C, name='pmpix_sparse_comm_get_info_') :: &
      PMPIX_Sparse_comm_get_info
  procedure(MPIX_Sparse_comm_set_label), bind(C, name='pmpix_sparse_comm_set_label_') :: &
      PMPIX_Sparse_comm_set_label
  procedure(MPIX_Sparse_profile), bind(C, name='pmpix_sparse_profile_f08') :: PMPIX_Sparse_profile
  procedure(MPIX_Sparse_get_report), bind(C, name='pmpix_sparse_get_report_') :: PMPIX_Sparse_get_report
  procedure(MPIX_Sparse_reduce_scatter), bind(C, name='pmpix_sparse_reduce_scatter_f08') :: &
      PMPIX_Sparse_reduce_scatter
  procedure(MPIX_Isparse_reduce_scatter), bind(C, name='pmpix_isparse_reduce_scatter_f08') :: &
      PMPIX_Isparse_reduce_scatter
  procedure(MPIX_Sparse_reduce_scatter_init), bind(C, name='pmpix_sparse_reduce_scatter_init_f08') :: &
      PMPIX_Sparse_reduce_scatter_init
  procedure(MPIX_Sparse_reduce_scatter_coo), bind(C, name='pmpix_sparse_reduce_scatter_coo_f08') :: &
      PMPIX_Sparse_reduce_scatter_coo
  procedure(MPIX_Isparse_reduce_scatter_coo), bind(C, name='pmpix_isparse_reduce_scatter_coo_f08') :: &
      PMPIX_Isparse_reduce_scatter_coo
  procedure(MPIX_Sparse_reduce_scatter_coo_init), bind(C, name='pmpix_sparse_reduce_scatter_coo_init_') :: &
      PMPIX_Sparse_reduce_scatter_coo_init
  procedure(MPIX_Sparse_allgather_coo), bind(C, name='pmpix_sparse_allgather_coo_f08') :: &
      PMPIX_Sparse_allgather_coo
  procedure(MPIX_Isparse_allgather_coo), bind(C, name='pmpix_isparse_allgather_coo_f08') :: &
      PMPIX_Isparse_allgather_coo
  procedure(MPIX_Sparse_allgather_coo_init), bind(C, name='pmpix_sparse_allgather_coo_init_') :: &
      PMPIX_Sparse_allgather_coo_init
  procedure(MPIX_Sparse_bcast_delta), bind(C, name='pmpix_sparse_bcast_delta_f08') :: PMPIX_Sparse_bcast_delta
  procedure(MPIX_Sparse_bcast_coo), bind(C, name='pmpix_sparse_bcast_coo_f08') :: PMPIX_Sparse_bcast_coo
  procedure(MPIX_Sparse_topk_threshold), bind(C, name='pmpix_sparse_topk_threshold_f08') :: &
      PMPIX_Sparse_topk_threshold
  procedure(MPIX_Sparse_topk_select), bind(C, name='pmpix_sparse_topk_select_f08') :: PMPIX_Sparse_topk_select
  procedure(MPIX_Sparse_dgc_step), bind(C, name='pmpix_sparse_dgc_step_f08') :: PMPIX_Sparse_dgc_step
  procedure(MPIX_Sparse_get_version), bind(C, name='pmpix_sparse_get_version_') :: PMPIX_Sparse_get_version
end module
