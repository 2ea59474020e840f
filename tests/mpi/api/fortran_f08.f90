! SPDX-License-Identifier: BSD-3-Clause
! The module mpix_sparse: what comes out, and what is refused.
program fortran_f08
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_ptr
  use mpi_f08
  use mpix_sparse
  use fortran_check
  use fortran_tool, only: seen
  implicit none

  call check_begin()
  call try_dense()
  call try_in_place()
  call try_sections()
  call try_strided()
  call try_arguments()
  call try_coo()
  call try_halves()
  call try_dense_parts()
  call try_types()
  call try_nonblocking()
  call try_plans()
  call try_inquiry()
  call try_topk()
  call try_bcast()
  call try_hints()
  call try_profiling_names()
  call check_end('fortran_f08')

contains

  subroutine try_dense()
    integer :: from(count), to(count), code
    call fill(from)
    to = -1
    call MPIX_Sparse_allreduce(from, to, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'dense')
    call check_sum(to, 'dense')
    to = -1
    call MPIX_Sparse_allreduce(sendbuf=from, recvbuf=to, count=count, datatype=MPI_INTEGER, op=MPI_SUM, &
        comm=comm)
    call check_sum(to, 'dense, by keywords and without ierror')
  end subroutine

  subroutine try_in_place()
    integer :: buffer(count), code
    call fill(buffer)
    call MPIX_Sparse_allreduce(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'in place')
    call check_sum(buffer, 'in place')
    call MPIX_Sparse_allreduce(buffer, MPI_IN_PLACE, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument recvbuf', 'MPI_IN_PLACE as recvbuf')
  end subroutine

  ! Sections of matrices, explicit and assumed shapes, and one element in place of an array.
  subroutine try_sections()
    integer :: matrix(count, 3), wide(2 * count), code
    integer, allocatable :: some(:)
    call fill(matrix(:, 2))
    call MPIX_Sparse_allreduce(matrix(:, 2), matrix(:, 3:3), count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'columns')
    call check_sum(matrix(:, 3), 'columns')
    wide = 0
    call fill(wide(count + 1:))
    call MPIX_Sparse_allreduce(MPI_IN_PLACE, wide(count + 1), count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'first element')
    call check_sum(wide(count + 1:), 'first element')
    allocate(some(4))
    some = 1
    call MPIX_Sparse_allreduce(MPI_IN_PLACE, some(2:3:2), 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'a section of one element')
    call check(all(some == [1, ranks, 1, 1]), 'a section of one element')
  end subroutine

  ! A strided section on one rank or on all: every rank gets an error.
  subroutine try_strided()
    integer :: buffer(2 * count), matrix(2, count), other(count), code, stride, indices(4), values(4)
    type(MPIX_Sparse_result) :: result
    buffer = 0
    matrix = 0
    call MPIX_Sparse_allreduce(matrix(1, :), other, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument sendbuf is not contiguous', 'a row')
    stride = merge(2, 1, rank == 0)
    call MPIX_Sparse_allreduce(MPI_IN_PLACE, buffer(1:stride * count:stride), count, MPI_INTEGER, MPI_SUM, &
        comm, code)
    call check_error(code, 'argument recvbuf is not contiguous (on rank 0)', 'a strided section on one rank')
    indices = [0, 9, 1, 9]
    values = 1
    call MPIX_Sparse_allreduce_coo(indices(1::2), values, 2_MPI_COUNT_KIND, MPI_INTEGER, count, MPI_INTEGER, &
        MPI_SUM, comm, result, code)
    call check_error(code, 'argument indices is not contiguous', 'strided indices')
    call MPIX_Sparse_allreduce_coo(indices, values(4:1:-1), 4_MPI_COUNT_KIND, MPI_INTEGER, count, &
        MPI_INTEGER, MPI_SUM, comm, result, code)
    call check_error(code, 'argument values is not contiguous', 'values from the end')
    call check(.not. c_associated(result%handle), 'a result after an error')
  end subroutine

  subroutine try_arguments()
    integer :: from(count), to(count), code, indices(1), values(1)
    type(MPIX_Sparse_result) :: result
    from = 0
    to = 0
    call MPIX_Sparse_allreduce(from, to, -1_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument count', 'a negative count')
    call MPIX_Sparse_allreduce(from, to, count, MPI_DATATYPE_NULL, MPI_SUM, comm, code)
    call check_error(code, 'argument datatype', 'no datatype')
    call MPIX_Sparse_allreduce(from, to, count, MPI_INTEGER, MPI_OP_NULL, comm, code)
    call check_error(code, 'argument op', 'no op')
    call MPIX_Sparse_allreduce(from, to, count, MPI_INTEGER, MPI_SUM, MPI_COMM_NULL, code)
    call check_error(code, 'argument comm', 'no communicator')
    call MPIX_Sparse_allreduce(from, from, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument sendbuf', 'one buffer twice')
    indices = int(count)
    values = 1
    call MPIX_Sparse_allreduce_coo(indices, values, 1_MPI_COUNT_KIND, MPI_INTEGER, count, MPI_INTEGER, &
        MPI_SUM, comm, result, code)
    call check_error(code, 'argument indices', 'an index behind the last')
    call MPIX_Sparse_result_get(result, ierror=code)
    call check_error(code, 'argument result', 'no result')
    call MPIX_Sparse_result_dense(MPIX_SPARSE_RESULT_NULL, to, code)
    call check_error(code, 'argument result', 'no result to write')
  end subroutine

  ! Indices start from 0: element i of a dense array has index i - 1.
  subroutine check_result(result, what)
    type(MPIX_Sparse_result), intent(inout) :: result
    character(*), intent(in) :: what
    type(c_ptr) :: index_address, value_address
    integer, pointer :: indices(:), values(:)
    integer :: whole(count), strided(2 * count), code, i
    integer(MPI_COUNT_KIND) :: nnz
    call MPIX_Sparse_result_get(result, nnz, index_address, value_address)
    call check(nnz == ranks + 1, what // ': nnz')
    call c_f_pointer(index_address, indices, [nnz])
    call c_f_pointer(value_address, values, [nnz])
    call check(all(indices == [9, (98 + i, i = 1, ranks)]), what // ': indices')
    call check(all(values == [ranks, (5, i = 1, ranks)]), what // ': values')
    call MPIX_Sparse_result_dense(result, whole)
    call check_sum(whole, what // ', dense')
    call MPIX_Sparse_result_dense(result, strided(::2), code)
    call check_error(code, 'argument recvbuf is not contiguous', what // ', strided')
  end subroutine

  subroutine try_coo()
    integer :: indices(2), values(2), code
    type(MPIX_Sparse_result) :: result
    indices = [99 + rank, 9]
    values = [5, 1]
    call MPIX_Sparse_allreduce_coo(indices, values, 2_MPI_COUNT_KIND, MPI_INTEGER, count, MPI_INTEGER, &
        MPI_SUM, comm, result, code)
    call check_success(code, 'coo')
    call check_result(result, 'coo')
    call MPIX_Sparse_allreduce_coo(indices, values, 2_MPI_COUNT_KIND, MPI_INTEGER, count, MPI_INTEGER, &
        MPI_SUM, comm, result)
    call check_result(result, 'coo into an old result')
    call MPIX_Sparse_result_free(result, code)
    call check_success(code, 'free')
    call check(.not. c_associated(result%handle), 'a freed result')
  end subroutine

  ! Checks this rank's part of the sum of try_coo, and copies it.
  subroutine check_part(part, block, indices, values, what)
    type(MPIX_Sparse_result), intent(in) :: part
    integer(MPI_COUNT_KIND), intent(in) :: block
    integer, allocatable, intent(out) :: indices(:), values(:)
    character(*), intent(in) :: what
    integer :: whole(ranks + 1)
    logical :: mine(ranks + 1)
    type(c_ptr) :: index_address, value_address
    integer, pointer :: found(:), sums(:)
    integer(MPI_COUNT_KIND) :: nnz
    integer :: i
    whole = [9, (98 + i, i = 1, ranks)]
    mine = mod(whole / int(block), ranks) == rank
    call MPIX_Sparse_result_get(part, nnz, index_address, value_address)
    allocate(indices(nnz), values(nnz))
    if (nnz > 0) then
      call c_f_pointer(index_address, found, [nnz])
      call c_f_pointer(value_address, sums, [nnz])
      indices = found
      values = sums
    end if
    call check(nnz == size(pack(whole, mine)), what // ': nnz of a part')
    call check(all(indices == pack(whole, mine)), what // ': indices of a part')
    call check(all(values == pack(merge(ranks, 5, whole == 9), mine)), what // ': values of a part')
  end subroutine

  ! Each rank passes its number from 1 on in the first element of every part.
  subroutine try_dense_parts()
    integer(MPI_COUNT_KIND), parameter :: part = 50, bad = -1
    integer, asynchronous :: from(part * ranks), to(part)
    integer :: code
    type(MPIX_Sparse_plan) :: plan
    type(MPI_Request) :: request
    from = 0
    from(1::part) = rank + 1
    to = -1
    call MPIX_Sparse_reduce_scatter(from, to, part, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'dense reduce_scatter')
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'dense reduce_scatter: sums')
    to = -1
    call MPIX_Isparse_reduce_scatter(from, to, part, MPI_INTEGER, MPI_SUM, comm, request, code)
    call check_success(code, 'starting a dense reduce_scatter')
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'nonblocking: sums')
    to = -1
    call MPIX_Sparse_reduce_scatter_init(from, to, part, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, plan, &
        code)
    call check_success(code, 'a plan of a dense reduce_scatter')
    call MPIX_Sparse_plan_start(plan, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(to(1) == ranks * (ranks + 1) / 2 .and. all(to(2:) == 0), 'plan: sums')
    call MPIX_Sparse_plan_free(plan)
    call MPIX_Sparse_reduce_scatter(MPI_IN_PLACE, from, part, MPI_INTEGER, MPI_SUM, comm)
    call check(from(1) == ranks * (ranks + 1) / 2 .and. all(from(2:part) == 0), 'in place: sums')
    call MPIX_Sparse_reduce_scatter(from, to, bad, MPI_INTEGER, MPI_SUM, comm, code)
    call check_error(code, 'argument recvcount', 'a negative recvcount')
  end subroutine

  ! An allgather of all parts of a reduce_scatter gives the result of an allreduce.
  subroutine try_halves()
    integer, asynchronous :: indices(2), values(2)
    integer, allocatable, asynchronous :: own(:), sums(:)
    integer(MPI_COUNT_KIND), parameter :: one = 1, two = 2
    integer :: code
    type(MPIX_Sparse_result), asynchronous :: part, whole
    type(MPIX_Sparse_plan) :: scatter, gather
    type(MPI_Request) :: request
    indices = [99 + rank, 9]
    values = [5, 1]
    call MPIX_Sparse_reduce_scatter_coo(indices, values, two, MPI_INTEGER, count, one, MPI_INTEGER, MPI_SUM, &
        comm, part, code)
    call check_success(code, 'reduce_scatter')
    call check_part(part, one, own, sums, 'reduce_scatter')
    call MPIX_Sparse_allgather_coo(own, sums, size(own, kind=MPI_COUNT_KIND), MPI_INTEGER, count, &
        MPI_INTEGER, comm, whole, code)
    call check_success(code, 'allgather')
    call check_result(whole, 'allgather')

    call MPIX_Isparse_reduce_scatter_coo(indices, values, two, MPI_INTEGER, count, two, MPI_INTEGER, &
        MPI_SUM, comm, part, request, code)
    call check_success(code, 'starting a reduce_scatter')
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_part(part, two, own, sums, 'nonblocking reduce_scatter')
    call MPIX_Isparse_allgather_coo(own, sums, size(own, kind=MPI_COUNT_KIND), MPI_INTEGER, count, &
        MPI_INTEGER, comm, whole, request, code)
    call check_success(code, 'starting an allgather')
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_result(whole, 'nonblocking allgather')

    call MPIX_Sparse_reduce_scatter_coo_init(MPI_INTEGER, count, two, MPI_INTEGER, MPI_SUM, comm, &
        MPI_INFO_NULL, scatter, code)
    call check_success(code, 'a plan of reduce_scatter')
    call MPIX_Sparse_allgather_coo_init(MPI_INTEGER, count, MPI_INTEGER, comm, MPI_INFO_NULL, gather, code)
    call check_success(code, 'a plan of allgather')
    call MPIX_Sparse_plan_start_coo(scatter, indices, values, two, part, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_part(part, two, own, sums, 'plan of reduce_scatter')
    call MPIX_Sparse_plan_start_coo(gather, own, sums, size(own, kind=MPI_COUNT_KIND), whole, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_result(whole, 'plan of allgather')
    call MPIX_Sparse_plan_free(scatter)
    call MPIX_Sparse_plan_free(gather)
    call MPIX_Sparse_result_free(part)
    call MPIX_Sparse_result_free(whole)
    call try_refused_halves()
  end subroutine

  subroutine try_refused_halves()
    integer :: indices(4) = [0, 9, 1, 9], values(4) = 1, code
    integer(MPI_COUNT_KIND), parameter :: none = 0, one = 1, two = 2
    type(MPIX_Sparse_result) :: result
    call MPIX_Sparse_reduce_scatter_coo(indices(1::2), values, two, MPI_INTEGER, count, one, MPI_INTEGER, &
        MPI_SUM, comm, result, code)
    call check_error(code, 'argument indices is not contiguous', 'reduce_scatter of strided indices')
    call MPIX_Sparse_reduce_scatter_coo(indices, values, two, MPI_INTEGER, count, none, MPI_INTEGER, &
        MPI_SUM, comm, result, code)
    call check_error(code, 'argument block', 'blocks of no element')
    call MPIX_Sparse_allgather_coo(indices, values(4:1:-1), 4_MPI_COUNT_KIND, MPI_INTEGER, count, &
        MPI_INTEGER, comm, result, code)
    call check_error(code, 'argument values is not contiguous', 'allgather of values from the end')
    call check(.not. c_associated(result%handle), 'a result after a refused half')
  end subroutine

  ! 8-byte indices, and numbers of all lengths. Coordinates accept only types that the library knows.
  subroutine try_types()
    call try_type(MPI_REAL, 4)
    call try_type(MPI_REAL8, 8)
    call try_type(MPI_DOUBLE_PRECISION, 8)
    call try_type(MPI_INTEGER8, 8)
  end subroutine

  ! Zero bits are zero in all types.
  subroutine try_type(datatype, size)
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: size
    integer(selected_int_kind(18)) :: indices(2)
    integer :: values(4), code
    integer(MPI_COUNT_KIND) :: nnz
    type(MPIX_Sparse_result) :: result
    indices = [3, 1]
    values = 0
    call MPIX_Sparse_allreduce_coo(indices, values, int(size / 4, MPI_COUNT_KIND), MPI_INTEGER8, count, &
        datatype, MPI_SUM, comm, result, code)
    call check_success(code, 'one of the types')
    call MPIX_Sparse_result_get(result, nnz)
    call check(nnz == size / 4, 'elements of one of the types')
    call MPIX_Sparse_result_free(result)
  end subroutine

  subroutine try_nonblocking()
    integer, asynchronous :: buffer(count), strided(2 * count), indices(2), values(2)
    integer :: code
    type(MPIX_Sparse_result), asynchronous :: result
    type(MPI_Request) :: dense, coo, wrong
    call fill(buffer)
    indices = [99 + rank, 9]
    values = [5, 1]
    strided = 0
    call MPIX_Isparse_allreduce(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, dense, code)
    call check_success(code, 'starting a dense call')
    call MPIX_Isparse_allreduce_coo(indices, values, 2_MPI_COUNT_KIND, MPI_INTEGER, count, MPI_INTEGER, &
        MPI_SUM, comm, result, coo, code)
    call check_success(code, 'starting a call of coordinates')
    call MPIX_Isparse_allreduce(MPI_IN_PLACE, strided(::2), count, MPI_INTEGER, MPI_SUM, comm, wrong, code)
    call check_success(code, 'starting a wrong call')
    call MPI_Wait(coo, MPI_STATUS_IGNORE, code)
    call check_success(code, 'waiting for coordinates')
    call MPI_Wait(dense, MPI_STATUS_IGNORE, code)
    call check_success(code, 'waiting for dense')
    call MPI_Wait(wrong, MPI_STATUS_IGNORE, code)
    call check_error(code, 'argument recvbuf is not contiguous', 'waiting for a wrong call')
    call check(coo == MPI_REQUEST_NULL, 'a request that is done')
    call check_sum(buffer, 'nonblocking, dense')
    call check_result(result, 'nonblocking, coordinates')
    call MPIX_Sparse_result_free(result)
  end subroutine

  subroutine try_plans()
    integer, asynchronous :: buffers(count, 2), indices(2), values(2)
    integer :: call_number, i, code
    type(MPIX_Sparse_plan) :: plans(2), coo
    type(MPIX_Sparse_result), asynchronous :: result
    type(MPI_Request) :: requests(3)
    do i = 1, 2
      call MPIX_Sparse_allreduce_init(MPI_IN_PLACE, buffers(:, i), count, MPI_INTEGER, MPI_SUM, comm, &
          MPI_INFO_NULL, plans(i), code)
      call check_success(code, 'a plan')
    end do
    call MPIX_Sparse_allreduce_coo_init(MPI_INTEGER, count, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, coo)
    indices = [99 + rank, 9]
    values = [5, 1]
    do call_number = 1, 3
      call fill(buffers(:, 1))
      call fill(buffers(:, 2))
      call MPIX_Sparse_plan_start_all(2, plans, requests, code)
      call check_success(code, 'starting plans')
      call MPIX_Sparse_plan_start_coo(coo, indices, values, 2_MPI_COUNT_KIND, result, requests(3), code)
      call check_success(code, 'starting a plan of coordinates')
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, code)
      call check_success(code, 'waiting for plans')
      call check_sum(buffers(:, 1), 'first plan')
      call check_sum(buffers(:, 2), 'second plan')
      call check_result(result, 'plan of coordinates')
    end do
    call fill(buffers(:, 1))
    call MPIX_Sparse_plan_start(plans(1), requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call check_sum(buffers(:, 1), 'first plan again')
    call MPIX_Sparse_plan_start(MPIX_SPARSE_PLAN_NULL, requests(1), code)
    call check_error(code, 'argument plan is null', 'no plan')
    call MPIX_Sparse_plan_start(coo, requests(1), code)
    call check_error(code, 'argument plan is of the other kind', 'a plan of coordinates without any')
    call MPIX_Sparse_plan_start_all(-1, plans, requests, code)
    call check_error(code, 'n is -1', 'a negative number of plans')
    call MPIX_Sparse_allreduce_init(MPI_IN_PLACE, buffers(1, :), 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, &
        comm, MPI_INFO_NULL, plans(1), code)
    call check_error(code, 'argument recvbuf is not contiguous', 'a plan of a row')
    call MPIX_Sparse_plan_free(plans(1))
    call MPIX_Sparse_plan_free(plans(2))
    call MPIX_Sparse_plan_free(coo, code)
    call check_success(code, 'freeing a plan')
    call check(.not. c_associated(coo%handle), 'a freed plan')
    call MPIX_Sparse_result_free(result)
  end subroutine

  subroutine try_inquiry()
    integer :: buffer(count), version, code
    type(MPI_Comm) :: unused
    type(MPIX_Sparse_report_t) :: report
    type(MPIX_Sparse_profile_t) :: profile
    call MPIX_Sparse_get_version(version)
    call check(version == MPIX_SPARSE_VERSION, 'version')
    call fill(buffer)
    call MPIX_Sparse_profile(buffer, count, MPI_INTEGER, comm, profile, code)
    call check_success(code, 'profile')
    call check(profile%count == count .and. profile%sampled == count, 'first and last field of a profile')
    call check(profile%ranks == ranks .and. profile%gammas <= MPIX_SPARSE_GAMMA_MAX, 'profile')
    call check(abs(profile%density - 0.002d0) < 1d-9, 'density')
    call MPIX_Sparse_allreduce(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm)
    call MPIX_Sparse_get_report(comm, report, code)
    call check_success(code, 'report')
    call check(report%ranks == ranks .and. report%count == count .and. report%row == 1, 'report')
    call check(report%scheme(1) /= ' ' .and. report%scheme(MPIX_SPARSE_NAME_MAX) == ' ', 'texts in a report')
    call check(report%measured_seconds > 0 .and. report%measured_seconds < 300, 'last field of a report')
    call MPI_Comm_dup(comm, unused)
    call MPIX_Sparse_get_report(unused, report, code)
    call check_error(code, 'MPIX_Sparse_get_report', 'a report on nothing')
    call MPI_Comm_free(unused)
    call MPIX_Sparse_profile(buffer(::2), count / 2, MPI_INTEGER, comm, profile, code)
    call check_error(code, 'argument buf is not contiguous', 'a profile of a strided section')
  end subroutine

  subroutine try_topk()
    real :: gradient(count), velocity(count), residual(count), values(20)
    integer :: indices(20)
    integer(MPI_COUNT_KIND) :: nnz
    double precision :: threshold
    integer :: i, code
    type(MPIX_Sparse_dgc_t) :: how = MPIX_Sparse_dgc_t(10d0 / count, 1d0, 0.5d0, 2d0, 1, 1)
    gradient = [(real(i), i = 1, int(count))]
    velocity = 0
    residual = 0
    call MPIX_Sparse_topk_threshold(gradient, count, MPI_REAL, 10d0 / count, 1d0, 1, comm, threshold, code)
    call check_success(code, 'a threshold')
    call MPIX_Sparse_topk_select(gradient, count, MPI_REAL, dble(count) - 9.5d0, comm, MPI_INTEGER4, &
        20_MPI_COUNT_KIND, indices, values, nnz, code)
    call check_success(code, 'a selection')
    call check(nnz == 10 .and. indices(10) == count - 1 .and. nint(values(1)) == count - 9, 'selected')
    call MPIX_Sparse_dgc_step(gradient, velocity, residual, count, MPI_REAL, how, MPI_COMM_SELF, &
        MPI_INTEGER4, 20_MPI_COUNT_KIND, indices, values, nnz, code)
    call check_success(code, 'a step of DGC')
    call check(nnz == 10 .and. nint(values(10)) == 2 * count, 'what a step selects')
    call check(abs(residual(count)) < 1e-9, 'error feedback')
    call MPIX_Sparse_topk_threshold(gradient(::2), count / 2, MPI_REAL, 1d0, 1d0, 1, comm, threshold, code)
    call check_error(code, 'argument buf is not contiguous', 'a threshold of a strided section')
  end subroutine

  subroutine try_bcast()
    integer :: before(count), after(count), code, i
    integer :: indices(2) = [5, 3]
    integer(MPI_COUNT_KIND) :: nnz, two_elements = 2
    type(MPIX_Sparse_result) :: result
    type(c_ptr) :: at, values
    before = [(i, i = 1, int(count))]
    after = before
    if (rank == 0) then
      after(count) = -1
      call MPIX_Sparse_bcast_delta(before, after, count, MPI_INTEGER, 0, comm, code)
    else
      call MPIX_Sparse_bcast_delta(MPI_IN_PLACE, after, count, MPI_INTEGER, 0, comm, code)
    end if
    call check_success(code, 'a broadcast of changes')
    call check(after(count) == -1 .and. all(after(:count - 1) == before(:count - 1)), 'changes')
    call MPIX_Sparse_bcast_coo(indices, indices, two_elements, MPI_INTEGER4, count, MPI_INTEGER, 0, comm, &
        result, code)
    call check_success(code, 'a broadcast of coordinates')
    call MPIX_Sparse_result_get(result, nnz, at, values, code)
    call check(nnz == 2, 'elements of a broadcast')
    call MPIX_Sparse_result_free(result, code)
  end subroutine

  subroutine try_hints()
    type(MPI_Comm) :: hinted
    type(MPI_Info) :: info, used
    character(16) :: scheme
    logical :: found
    integer :: code
    call MPI_Comm_dup(comm, hinted)
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'mpix_sparse_scheme', 'ring')
    call MPIX_Sparse_comm_set_info(hinted, info, code)
    call check_success(code, 'hints')
    call MPIX_Sparse_comm_get_info(hinted, used, code)
    call check_success(code, 'hints read back')
    call MPI_Info_get(used, 'mpix_sparse_scheme', len(scheme), scheme, found)
    call check(found .and. scheme == 'ring', 'a hint read back')
    call MPIX_Sparse_comm_set_label(hinted, 7, code)
    call check_success(code, 'a label')
    call MPI_Info_free(used)
    call MPI_Info_free(info)
    call MPI_Comm_free(hinted)
  end subroutine

  ! fortran_tool intercepts calls of MPI names.
  subroutine try_profiling_names()
    integer :: buffer(count), seen_before, version, code
    seen_before = seen
    call fill(buffer)
    call PMPIX_Sparse_allreduce(MPI_IN_PLACE, buffer, count, MPI_INTEGER, MPI_SUM, comm, code)
    call check_success(code, 'under its PMPI name')
    call check_sum(buffer, 'under its PMPI name')
    call check(seen_before > 0 .and. seen == seen_before, 'calls that a tool sees')
    call PMPIX_Sparse_get_version(version)
    call check(version == MPIX_SPARSE_VERSION, 'version')
  end subroutine
end program
