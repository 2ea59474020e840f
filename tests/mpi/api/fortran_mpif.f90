! SPDX-License-Identifier: BSD-3-Clause
! The binding for mpif.h: integer handles, addresses in place of pointers.
program fortran_mpif
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr, c_null_ptr
  use fortran_check, only: check_begin, check_end, check, check_success, check_error, check_sum, &
    count, fill, module_comm => comm, rank, ranks
  use mpix_sparse, only: MPIX_SPARSE_NAME_MAX, MPIX_SPARSE_DGC_T, MPIX_SPARSE_PROFILE_T, MPIX_SPARSE_REPORT_T
  implicit none
  include 'mpif.h'
  include 'mpix_sparsef.h'

  integer(MPI_COUNT_KIND), parameter :: none = 0, two = 2, bad = -1
  integer :: comm

  call check_begin()
  comm = module_comm%MPI_VAL
  call try_dense()
  call try_refused()
  call try_coo()
  call try_halves()
  call try_dense_parts()
  call try_nonblocking()
  call try_plans()
  call try_refused_plans()
  call try_inquiry()
  call try_topk()
  call try_bcast()
  call try_hints()
  call try_profiling_names()
  call check_end('fortran_mpif')

contains

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

  ! Checks this rank's part of the sum of try_coo, and copies it.
  subroutine check_part(part, block, indices, values, what)
    integer(MPI_ADDRESS_KIND), intent(inout) :: part
    integer(MPI_COUNT_KIND), intent(in) :: block
    integer, allocatable, intent(out) :: indices(:), values(:)
    character(*), intent(in) :: what
    integer :: whole(ranks + 1)
    logical :: mine(ranks + 1)
    integer(MPI_ADDRESS_KIND) :: index_address, value_address
    integer, pointer :: found(:), sums(:)
    integer(MPI_COUNT_KIND) :: nnz
    integer :: i, code
    whole = [9, (98 + i, i = 1, ranks)]
    mine = mod(whole / int(block), ranks) == rank
    call MPIX_SPARSE_RESULT_GET(part, nnz, index_address, value_address, code)
    allocate(indices(nnz), values(nnz))
    if (nnz > 0) then
      call c_f_pointer(transfer(index_address, c_null_ptr), found, [nnz])
      call c_f_pointer(transfer(value_address, c_null_ptr), sums, [nnz])
      indices = found
      values = sums
    end if
    call check(nnz == size(pack(whole, mine)), what // ': nnz of a part')
    call check(all(indices == pack(whole, mine)), what // ': indices of a part')
    call check(all(values == pack(merge(ranks, 5, whole == 9), mine)), what // ': values of a part')
    call MPIX_SPARSE_RESULT_FREE(part, code)
    call check_success(code, what // ': free')
  end subroutine

  ! Each rank passes its number from 1 on in the first element of every part.
  subroutine try_dense_parts()
    integer(MPI_COUNT_KIND), parameter :: part = 50
    integer, asynchronous :: from(part * ranks), to(part)
    integer :: code, request
    integer(MPI_ADDRESS_KIND) :: plan
    from = 0
    from(1::part) = rank + 1
    to = -1
    call MPIX_SPARSE_REDUCE_SCATTER(from, to, part, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'dense reduce_scatter')
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'dense reduce_scatter: sums')
    to = -1
    call MPIX_ISPARSE_REDUCE_SCATTER(from, to, part, MPI_INTEGER, MPI_SUM, comm, request, code)
    call check_success(code, 'starting a dense reduce_scatter')
    call MPI_WAIT(request, MPI_STATUS_IGNORE, code)
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'nonblocking: sums')
    to = -1
    plan = MPIX_SPARSE_PLAN_NULL
    call MPIX_SPARSE_REDUCE_SCATTER_INIT(from, to, part, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, plan, &
        code)
    call check_success(code, 'a plan of a dense reduce_scatter')
    call MPIX_SPARSE_PLAN_START(plan, request, code)
    call MPI_WAIT(request, MPI_STATUS_IGNORE, code)
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'plan: sums')
    call MPIX_SPARSE_PLAN_FREE(plan, code)
    call MPIX_SPARSE_REDUCE_SCATTER(MPI_IN_PLACE, from, part, MPI_INTEGER, MPI_SUM, comm, code)
    call check(from(1) == ranks * (ranks + 1) / 2 .and. all(from(2:part) == 0), 'in place: sums')
    call MPIX_SPARSE_REDUCE_SCATTER(from, to, bad, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument recvcount', 'a negative recvcount')
  end subroutine

  ! An allgather of all parts of a reduce_scatter gives the result of an allreduce.
  subroutine try_halves()
    integer, asynchronous :: indices(2), values(2)
    integer, allocatable, asynchronous :: own(:), sums(:)
    integer(MPI_COUNT_KIND), parameter :: one = 1
    integer(MPI_COUNT_KIND) :: nnz
    integer(MPI_ADDRESS_KIND), asynchronous :: part, whole
    integer(MPI_ADDRESS_KIND) :: scatter, gather
    integer :: request, code
    indices = [99 + rank, 9]
    values = [5, 1]
    part = MPIX_SPARSE_RESULT_NULL
    whole = MPIX_SPARSE_RESULT_NULL
    call MPIX_SPARSE_REDUCE_SCATTER_COO(indices, values, two, MPI_INTEGER, count, one, MPI_INTEGER, MPI_SUM, &
        comm, part, code)
    call check_success(code, 'reduce_scatter')
    call check_part(part, one, own, sums, 'reduce_scatter')
    nnz = size(own)
    call MPIX_SPARSE_ALLGATHER_COO(own, sums, nnz, MPI_INTEGER, count, MPI_INTEGER, comm, whole, code)
    call check_success(code, 'allgather')
    call check_result(whole, 'allgather')

    call MPIX_ISPARSE_REDUCE_SCATTER_COO(indices, values, two, MPI_INTEGER, count, two, MPI_INTEGER, &
        MPI_SUM, comm, part, request, code)
    call check_success(code, 'starting a reduce_scatter')
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call check_part(part, two, own, sums, 'nonblocking reduce_scatter')
    nnz = size(own)
    call MPIX_ISPARSE_ALLGATHER_COO(own, sums, nnz, MPI_INTEGER, count, MPI_INTEGER, comm, whole, request, &
        code)
    call check_success(code, 'starting an allgather')
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call check_result(whole, 'nonblocking allgather')

    call MPIX_SPARSE_REDUCE_SCATTER_COO_INIT(MPI_INTEGER, count, two, MPI_INTEGER, MPI_SUM, comm, &
        MPI_INFO_NULL, scatter, code)
    call check_success(code, 'a plan of reduce_scatter')
    call MPIX_SPARSE_ALLGATHER_COO_INIT(MPI_INTEGER, count, MPI_INTEGER, comm, MPI_INFO_NULL, gather, code)
    call check_success(code, 'a plan of allgather')
    call MPIX_SPARSE_PLAN_START_COO(scatter, indices, values, two, part, request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call check_part(part, two, own, sums, 'plan of reduce_scatter')
    call MPIX_SPARSE_PLAN_START_COO(gather, own, sums, nnz, whole, request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call check_result(whole, 'plan of allgather')
    call MPIX_SPARSE_PLAN_FREE(scatter, code)
    call MPIX_SPARSE_PLAN_FREE(gather, code)
    call MPIX_SPARSE_REDUCE_SCATTER_COO(indices, values, two, MPI_INTEGER, count, none, MPI_INTEGER, &
        MPI_SUM, comm, part, code)
    call check_error(code, 'argument block', 'blocks of no element')
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

  subroutine try_plans()
    integer, asynchronous :: buffers(count, 2), indices(2), values(2)
    integer :: requests(3), call_number, i, code
    integer(MPI_ADDRESS_KIND) :: plans(2), coo
    integer(MPI_ADDRESS_KIND), asynchronous :: result
    do i = 1, 2
      call MPIX_SPARSE_ALLREDUCE_INIT(MPI_IN_PLACE, buffers(1, i), count, MPI_INTEGER, MPI_SUM, comm, &
          MPI_INFO_NULL, plans(i), code)
      call check_success(code, 'a plan')
    end do
    call MPIX_SPARSE_ALLREDUCE_COO_INIT(MPI_INTEGER, count, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, coo, &
        code)
    call check_success(code, 'a plan of coordinates')
    indices = [99 + rank, 9]
    values = [5, 1]
    do call_number = 1, 3
      result = MPIX_SPARSE_RESULT_NULL
      call fill(buffers(:, 1))
      call fill(buffers(:, 2))
      call MPIX_SPARSE_PLAN_START_ALL(2, plans, requests, code)
      call check_success(code, 'starting plans')
      call MPIX_SPARSE_PLAN_START_COO(coo, indices, values, two, result, requests(3), code)
      call check_success(code, 'starting a plan of coordinates')
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, code)
      call check_success(code, 'waiting for plans')
      call check_sum(buffers(:, 1), 'first plan')
      call check_sum(buffers(:, 2), 'second plan')
      call check_result(result, 'plan of coordinates')
    end do
    call fill(buffers(:, 1))
    call MPIX_SPARSE_PLAN_START(plans(1), requests(1), code)
    call check_success(code, 'starting a plan')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
    call check_sum(buffers(:, 1), 'first plan again')
    do i = 1, 2
      call MPIX_SPARSE_PLAN_FREE(plans(i), code)
      call check_success(code, 'freeing a plan')
    end do
    call MPIX_SPARSE_PLAN_FREE(coo, code)
    call check(coo == MPIX_SPARSE_PLAN_NULL, 'a freed plan')
  end subroutine

  subroutine try_refused_plans()
    integer :: requests(1), code, whole(count)
    integer(MPI_ADDRESS_KIND) :: plans(1), result
    result = MPIX_SPARSE_RESULT_NULL
    call MPIX_SPARSE_ALLREDUCE_INIT(whole, MPI_IN_PLACE, count, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        plans(1), code)
    call check_error(code, 'argument recvbuf is MPI_IN_PLACE', 'a plan into MPI_IN_PLACE')
    call MPIX_SPARSE_ALLREDUCE_COO_INIT(MPI_REAL, count, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        plans(1), code)
    call check_error(code, 'argument indextype', 'indices that are not integers')
    plans = MPIX_SPARSE_PLAN_NULL
    call MPIX_SPARSE_PLAN_START(plans(1), requests(1), code)
    call check_error(code, 'MPIX_Sparse_plan_start: argument plan is null', 'no plan')
    call MPIX_SPARSE_PLAN_START_ALL(1, plans, requests, code)
    call check_error(code, 'MPIX_Sparse_plan_start_all: plans[0]: argument plan is null', 'no plan among all')
    call MPIX_SPARSE_PLAN_START_ALL(-1, plans, requests, code)
    call check_error(code, 'n is -1', 'a negative number of plans')
    call MPIX_SPARSE_PLAN_START_COO(plans(1), whole, whole, none, result, requests(1), code)
    call check_error(code, 'MPIX_Sparse_plan_start_coo: argument plan is null', 'no plan of coordinates')
    call MPIX_SPARSE_PLAN_FREE(plans(1), code)
    call check_success(code, 'freeing no plan')
  end subroutine

  subroutine try_topk()
    real :: gradient(count), velocity(count), residual(count), values(20)
    integer :: indices(20), i, code
    integer(MPI_COUNT_KIND) :: nnz, room
    double precision :: threshold
    type(MPIX_SPARSE_DGC_T) :: how
    how = MPIX_SPARSE_DGC_T(10d0 / count, 1d0, 0.5d0, 2d0, 1, 1)
    gradient = [(real(i), i = 1, int(count))]
    velocity = 0
    residual = 0
    room = 20
    call MPIX_SPARSE_TOPK_THRESHOLD(gradient, count, MPI_REAL, 10d0 / count, 1d0, 1, MPI_COMM_SELF, &
        threshold, code)
    call check_success(code, 'a threshold')
    call check(nint(threshold) == count - 9, 'a threshold')
    call MPIX_SPARSE_TOPK_SELECT(gradient, count, MPI_REAL, threshold, MPI_COMM_SELF, MPI_INTEGER4, room, &
        indices, values, nnz, code)
    call check_success(code, 'a selection')
    call check(nnz == 10 .and. indices(10) == count - 1 .and. nint(values(1)) == count - 9, 'selected')
    call MPIX_SPARSE_DGC_STEP(gradient, velocity, residual, count, MPI_REAL, how, MPI_COMM_SELF, &
        MPI_INTEGER4, room, indices, values, nnz, code)
    call check_success(code, 'a step of DGC')
    call check(nnz == 10 .and. nint(values(10)) == 2 * count, 'what a step selects')
    call check(abs(residual(count)) < 1e-9, 'error feedback')
  end subroutine

  subroutine try_bcast()
    integer :: before(count), after(count), code, i
    integer :: indices(2) = [5, 3]
    integer(MPI_COUNT_KIND) :: nnz, two_elements = 2
    integer(kind=MPI_ADDRESS_KIND) :: result, at, values
    result = 0
    before = [(i, i = 1, int(count))]
    after = before
    if (rank == 0) then
      after(count) = -1
      call MPIX_SPARSE_BCAST_DELTA(before, after, count, MPI_INTEGER, 0, comm, code)
    else
      call MPIX_SPARSE_BCAST_DELTA(MPI_IN_PLACE, after, count, MPI_INTEGER, 0, comm, code)
    end if
    call check_success(code, 'a broadcast of changes')
    call check(after(count) == -1 .and. all(after(:count - 1) == before(:count - 1)), 'changes')
    call MPIX_SPARSE_BCAST_COO(indices, indices, two_elements, MPI_INTEGER4, count, MPI_INTEGER, 0, comm, &
        result, code)
    call check_success(code, 'a broadcast of coordinates')
    call MPIX_SPARSE_RESULT_GET(result, nnz, at, values, code)
    call check(nnz == 2, 'elements of a broadcast')
    call MPIX_SPARSE_RESULT_FREE(result, code)
  end subroutine

  subroutine try_inquiry()
    integer :: buffer(count), code
    type(MPIX_SPARSE_PROFILE_T) :: profile
    type(MPIX_SPARSE_REPORT_T) :: report
    character(MPIX_SPARSE_NAME_MAX) :: scheme
    call fill(buffer)
    call MPIX_SPARSE_PROFILE(buffer, count, MPI_INTEGER, comm, profile, code)
    call check_success(code, 'profile')
    call check(profile%count == count .and. profile%sampled == count, 'first and last field of a profile')
    call check(abs(profile%density - 0.002d0) < 1d-9, 'density')
    call MPIX_SPARSE_PROFILE(buffer, bad, MPI_INTEGER, comm, profile, code)
    call check_error(code, 'argument count is -1', 'a profile of a negative count')
    call MPIX_SPARSE_ALLREDUCE(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, code)
    call MPIX_SPARSE_GET_REPORT(comm, report, code)
    call check_success(code, 'report')
    scheme = transfer(report%scheme, scheme)
    call check(verify(scheme, 'abcdefghijklmnopqrstuvwxyz_ ') == 0 .and. scheme /= '', 'a name in a report')
    call check(report%ranks == ranks .and. report%count == count .and. report%row == 1, 'report')
    call check(report%measured_seconds > 0 .and. report%measured_seconds < 300, 'last field of a report')
    call MPIX_SPARSE_GET_REPORT(MPI_COMM_NULL, report, code)
    call check_error(code, 'argument comm', 'a report on no communicator')
  end subroutine

  subroutine try_hints()
    integer :: hinted, info, used, code
    character(16) :: scheme
    logical :: found
    call MPI_COMM_DUP(comm, hinted, code)
    call MPI_INFO_CREATE(info, code)
    call MPI_INFO_SET(info, 'mpix_sparse_scheme', 'ring', code)
    call MPIX_SPARSE_COMM_SET_INFO(hinted, info, code)
    call check_success(code, 'hints')
    call MPIX_SPARSE_COMM_GET_INFO(hinted, used, code)
    call check_success(code, 'hints read back')
    call MPI_INFO_GET(used, 'mpix_sparse_scheme', len(scheme), scheme, found, code)
    call check(found .and. scheme == 'ring', 'a hint read back')
    call MPIX_SPARSE_COMM_SET_LABEL(hinted, 7, code)
    call check_success(code, 'a label')
    call MPI_INFO_FREE(used, code)
    call MPI_INFO_FREE(info, code)
    call MPI_COMM_FREE(hinted, code)
  end subroutine

  subroutine try_profiling_names()
    integer :: buffer(count), version, code
    call fill(buffer)
    call PMPIX_SPARSE_ALLREDUCE(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'in place under its PMPI name')
    call check_sum(buffer, 'in place under its PMPI name')
    call PMPIX_SPARSE_GET_VERSION(version, code)
    call check(version == MPIX_SPARSE_VERSION, 'version')
  end subroutine
end program
