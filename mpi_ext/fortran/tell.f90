! SPDX-License-Identifier: BSD-3-Clause
! Tell in_place.c where MPI_IN_PLACE is.

subroutine sar_fortran_tell_f08() bind(C)
  use mpi_f08, only: MPI_IN_PLACE
  implicit none
  interface
    subroutine told(variable) bind(C, name='sar_fortran_told_f08')
      type(*) :: variable
    end subroutine
  end interface
  call told(MPI_IN_PLACE)
end subroutine

subroutine sar_fortran_tell_mpif() bind(C)
  use mpi, only: MPI_IN_PLACE
  implicit none
  interface
    subroutine told(variable) bind(C, name='sar_fortran_told_mpif')
      type(*) :: variable
    end subroutine
  end interface
  call told(MPI_IN_PLACE)
end subroutine
