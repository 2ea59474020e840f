! SPDX-License-Identifier: BSD-3-Clause
! Reports the address of MPI_IN_PLACE in each binding to bindings.c, once per process.

subroutine sar_fortran_find_in_place_f08() bind(C)
  use mpi_f08, only: MPI_IN_PLACE
  implicit none
  interface
    subroutine set_in_place(variable) bind(C, name='sar_fortran_set_in_place_f08')
      type(*) :: variable
    end subroutine
  end interface
  call set_in_place(MPI_IN_PLACE)
end subroutine

subroutine sar_fortran_find_in_place_mpif() bind(C)
  use mpi, only: MPI_IN_PLACE
  implicit none
  interface
    subroutine set_in_place(variable) bind(C, name='sar_fortran_set_in_place_mpif')
      type(*) :: variable
    end subroutine
  end interface
  call set_in_place(MPI_IN_PLACE)
end subroutine
