! SPDX-License-Identifier: BSD-3-Clause
! A tool as a profiler would be: it takes the place of a function and calls it by its PMPI name.
module fortran_tool
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi_f08, only: MPI_Comm, MPI_COUNT_KIND, MPI_Datatype, MPI_Op
  use mpix_sparse, only: PMPIX_Sparse_allreduce
  implicit none
  private

  integer, public :: seen = 0

contains

  subroutine see_allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror) &
      bind(C, name='mpix_sparse_allreduce_f08')
    type(*), dimension(..), intent(in) :: sendbuf
    type(*), dimension(..) :: recvbuf
    integer(MPI_COUNT_KIND), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    seen = seen + 1
    call PMPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror)
  end subroutine
end module
