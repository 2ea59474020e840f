! SPDX-License-Identifier: BSD-3-Clause
! The binding for mpif.h: integer handles, addresses in place of pointers.
program fortran_mpif
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr, c_null_ptr
  use fortran_check, only: check_begin, check_end, check, check_success, check_error, &
    module_comm => comm, rank, ranks
  implicit none
  include 'mpif.h'
  include 'mpix_sparsef.h'

  integer(MPI_COUNT_KIND), parameter :: count = 1000, two = 2, bad = -1
  integer :: comm

  call check_begin()
  comm = module_comm%MPI_VAL
  call try_dense()
  call try_refused()
  call try_coo()
  call try_nonblocking()
  call check_end('fortran_mpif')

contains

  subroutine check_sum(buffer, what)
    integer, intent(in) :: buffer(count)
    character(*), intent(in) :: what
    integer :: expected(count)
    expected = 0
    expected(10) = ranks
    expected(100:99 + ranks) = 5
    call check(all(buffer == expected), what)
  end subroutine

  subroutine fill(buffer)
    integer, intent(out) :: buffer(count)
    buffer = 0
    buffer(10) = 1
    buffer(100 + rank) = 5
  end subroutine

  subroutine try_dense()
    integer :: from(count), to(count), version, code
    call fill(from)
    to = -1
    call MPIX_SPARSE_ALLREDUCE(from, to, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'dense')
    call check_sum(to, 'dense')
    call MPIX_SPARSE_ALLREDUCE(MPI_IN_PLACE, from, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'in place')
    call check_sum(from, 'in place')
    call MPIX_SPARSE_GET_VERSION(version, code)
    call check(version == MPIX_SPARSE_VERSION, 'version')
  end subroutine

  subroutine try_refused()
    integer :: from(count), to(count), code
    integer(MPI_ADDRESS_KIND) :: result
    integer(MPI_COUNT_KIND) :: nnz
    integer(MPI_ADDRESS_KIND) :: indices, values
    from = 0
    call MPIX_SPARSE_ALLREDUCE(from, to, bad, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument count', 'a negative count')
    call MPIX_SPARSE_ALLREDUCE(from, MPI_IN_PLACE, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument recvbuf', 'MPI_IN_PLACE as recvbuf')
    call MPIX_SPARSE_ALLREDUCE(from, to, count, MPI_DATATYPE_NULL, MPI_SUM, comm, code)
    call check_error(code, 'argument datatype', 'no datatype')
    result = MPIX_SPARSE_RESULT_NULL
    call MPIX_SPARSE_RESULT_GET(result, nnz, indices, values, code)
    call check_error(code, 'argument result', 'no result')
  end subroutine

  subroutine check_result(result, what)
    integer(MPI_ADDRESS_KIND), intent(inout) :: result
    character(*), intent(in) :: what
    integer(MPI_ADDRESS_KIND) :: index_address, value_address
    integer(MPI_COUNT_KIND) :: nnz
    integer, pointer :: indices(:), values(:)
    integer :: whole(count), code, i
    call MPIX_SPARSE_RESULT_GET(result, nnz, index_address, value_address, code)
    call check_success(code, what)
    call check(nnz == ranks + 1, what // ': nnz')
    call c_f_pointer(transfer(index_address, c_null_ptr), indices, [nnz])
    call c_f_pointer(transfer(value_address, c_null_ptr), values, [nnz])
    call check(all(indices == [9, (98 + i, i = 1, ranks)]), what // ': indices')
    call check(all(values == [ranks, (5, i = 1, ranks)]), what // ': values')
    call MPIX_SPARSE_RESULT_DENSE(result, whole, code)
    call check_success(code, what)
    call check_sum(whole, what // ', dense')
    call MPIX_SPARSE_RESULT_FREE(result, code)
    call check_success(code, 'free')
    call check(result == MPIX_SPARSE_RESULT_NULL, 'a freed result')
  end subroutine

  subroutine try_coo()
    integer :: indices(2), values(2), code
    integer(MPI_ADDRESS_KIND) :: result
    indices = [99 + rank, 9]
    values = [5, 1]
    result = MPIX_SPARSE_RESULT_NULL
    call MPIX_SPARSE_ALLREDUCE_COO(indices, values, two, MPI_INTEGER, count, MPI_INTEGER, MPI_SUM, comm, &
        result, code)
    call check_success(code, 'coo')
    call check_result(result, 'coo')
  end subroutine

  subroutine try_nonblocking()
    integer, asynchronous :: buffer(count), indices(2), values(2)
    integer :: requests(2), code
    integer(MPI_ADDRESS_KIND), asynchronous :: result
    call fill(buffer)
    indices = [99 + rank, 9]
    values = [5, 1]
    result = MPIX_SPARSE_RESULT_NULL
    call MPIX_ISPARSE_ALLREDUCE(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, requests(1), code)
    call check_success(code, 'starting a dense call')
    call MPIX_ISPARSE_ALLREDUCE_COO(indices, values, two, MPI_INTEGER, count, MPI_INTEGER, MPI_SUM, comm, &
        result, requests(2), code)
    call check_success(code, 'starting a call of coordinates')
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    call check_success(code, 'waiting')
    call check_sum(buffer, 'nonblocking, dense')
    call check_result(result, 'nonblocking, coordinates')
  end subroutine
end program
