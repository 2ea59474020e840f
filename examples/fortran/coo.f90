! Every rank adds 1 to element 7 and 0.5 to an element of its own, in a vector of a million elements.
!
!     mpifort -o coo_f coo.f90 $(pkg-config --cflags --libs mpix-sparse-fortran)
!     mpirun -n 2 ./coo_f
!
! Output:
!
!     7: 2.0
!     1000: .5
!     1001: .5
program coo
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use mpi_f08
  use mpix_sparse
  implicit none

  integer(MPI_COUNT_KIND), parameter :: count = 1000000
  integer :: indices(2), rank, i
  real :: values(2) = [1.0, 0.5]
  type(MPIX_Sparse_result) :: result
  integer(MPI_COUNT_KIND) :: nnz
  type(c_ptr) :: index_address, value_address
  integer, pointer :: sum_indices(:)
  real, pointer :: sum_values(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  indices = [7, 1000 + rank] ! counted from 0
  call MPIX_Sparse_allreduce_coo(indices, values, size(indices, kind=MPI_COUNT_KIND), MPI_INTEGER, count, &
      MPI_REAL, MPI_SUM, MPI_COMM_WORLD, result)

  call MPIX_Sparse_result_get(result, nnz, index_address, value_address)
  call c_f_pointer(index_address, sum_indices, [nnz])
  call c_f_pointer(value_address, sum_values, [nnz])
  if (rank == 0) print '(i0, ": ", f0.1)', (sum_indices(i), sum_values(i), i = 1, int(nnz))

  call MPIX_Sparse_result_free(result)
  call MPI_Finalize()
end program
