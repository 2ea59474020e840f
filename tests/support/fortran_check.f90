! SPDX-License-Identifier: BSD-3-Clause
! How the Fortran tests begin, complain and end.
module fortran_check
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use mpi_f08
  implicit none
  private
  public :: check_begin, check_end, check, check_success, check_error, check_sum, fill

  integer(MPI_COUNT_KIND), parameter, public :: count = 1000 ! elements of a filled vector

  integer, public :: rank, ranks
  type(MPI_Comm), public :: comm ! returns errors
  integer :: checks = 0

contains

  ! Turns the fallback off, so that all ranks learn of an error on one rank.
  subroutine check_begin()
    interface
      integer(c_int) function setenv(name, value, overwrite) bind(C)
        import
        character(kind=c_char), intent(in) :: name(*), value(*)
        integer(c_int), value :: overwrite
      end function
    end interface
    integer :: level
    call check(setenv('MPIX_SPARSE_FORWARD' // c_null_char, '0' // c_null_char, 1_c_int) == 0, 'setenv')
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, level)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
  end subroutine

  subroutine check_end(program)
    character(*), intent(in) :: program
    call check(checks > 0, 'checks')
    call MPI_Comm_free(comm)
    if (rank == 0) print '(a, a, i0, a)', program, ': ', checks, ' checks on each rank'
    call MPI_Finalize()
  end subroutine

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    checks = checks + 1
    if (good) return
    print '(a, i0, a, a)', 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine check_success(code, what)
    integer, intent(in) :: code
    character(*), intent(in) :: what
    call check_code(code, '', what)
  end subroutine

  subroutine check_error(code, says, what)
    integer, intent(in) :: code
    character(*), intent(in) :: says, what
    call check(code /= MPI_SUCCESS, what // ' was not refused')
    call check_code(code, says, what)
  end subroutine

  ! Sets element 10 on all ranks, and element 100 + rank on this rank.
  subroutine fill(buffer)
    integer, intent(out) :: buffer(count)
    buffer = 0
    buffer(10) = 1
    buffer(100 + rank) = 5
  end subroutine

  subroutine check_sum(buffer, what)
    integer, intent(in) :: buffer(count)
    character(*), intent(in) :: what
    integer :: expected(count)
    expected = 0
    expected(10) = ranks
    expected(100:99 + ranks) = 5
    call check(all(buffer == expected), what)
  end subroutine

  ! An empty text means success.
  subroutine check_code(code, says, what)
    integer, intent(in) :: code
    character(*), intent(in) :: says, what
    character(MPI_MAX_ERROR_STRING) :: text
    integer :: length
    text = ''
    if (code /= MPI_SUCCESS) call MPI_Error_string(code, text, length)
    call check(merge(code == MPI_SUCCESS, index(text, says) > 0, says == ''), what // ': ' // trim(text))
  end subroutine
end module
