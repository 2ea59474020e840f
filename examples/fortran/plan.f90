! A plan for a vector that is reduced in every step, such as a layer's gradient.
!
!     mpifort -o plan_f plan.f90 $(pkg-config --cflags --libs mpix-sparse-fortran)
!     mpirun -n 2 ./plan_f
!
! Output:
!
!     step 0: 3 elements, element 0 is 2.0
!     step 1: 3 elements, element 1 is 2.0
!     step 2: 3 elements, element 2 is 2.0
program plan
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use mpi_f08
  use mpix_sparse
  implicit none

  integer(MPI_COUNT_KIND), parameter :: count = 1000000
  integer, asynchronous :: indices(2) ! asynchronous: read until the request is complete
  real, asynchronous :: values(2) = [1.0, 0.5]
  integer :: rank, step, threads
  type(MPIX_Sparse_plan) :: gradient
  type(MPIX_Sparse_result) :: result ! each call reuses its memory
  type(MPI_Request) :: request
  integer(MPI_COUNT_KIND) :: nnz
  type(c_ptr) :: index_address, value_address
  integer, pointer :: sum_indices(:)
  real, pointer :: sum_values(:)

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads) ! for requests with Open MPI
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPIX_Sparse_allreduce_coo_init(MPI_INTEGER, count, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
      gradient)

  do step = 0, 2
    indices = [step, 1000 + rank] ! counted from 0
    call MPIX_Sparse_plan_start_coo(gradient, indices, values, size(indices, kind=MPI_COUNT_KIND), &
        result, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)

    call MPIX_Sparse_result_get(result, nnz, index_address, value_address)
    call c_f_pointer(index_address, sum_indices, [nnz])
    call c_f_pointer(value_address, sum_values, [nnz])
    if (rank == 0) print '(3(a, i0), a, f0.1)', "step ", step, ": ", nnz, " elements, element ", &
        sum_indices(1), " is ", sum_values(1)
  end do

  call MPIX_Sparse_result_free(result)
  call MPIX_Sparse_plan_free(gradient)
  call MPI_Finalize()
end program
