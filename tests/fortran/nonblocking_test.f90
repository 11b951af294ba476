! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Collectives that do not wait: each has the result of the one that waits.
program nonblocking_test
    use checks
    use, intrinsic :: iso_c_binding
    implicit none
    real(c_double), target :: mine(6), got(6), total(6)
    real(c_double), target, allocatable :: whole(:, :), other(:, :)
    integer(c_int32_t), target :: numbers(4)
    type(ompx_event_t) :: event, second
    type(ompx_group_t) :: all
    integer :: me, ranks, i
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    allocate (whole(6, 0:ranks - 1), other(6, 0:ranks - 1))
    mine = [(real(i + 10*me, c_double), i=1, 6)]

    total = 0
    call succeed(ompx_allreduce(total, mine, OMPX_SUM), "allreduce")
    got = 0
    call succeed(ompx_allreduce_nb(got, mine, OMPX_SUM, event), "allreduce_nb")
    call finish()
    call check(all_equal(got, total), "allreduce_nb")
    got = mine
    call succeed(ompx_allreduce_nb(got, op=OMPX_SUM, event=event), "allreduce_nb in place")
    call finish()
    call check(all_equal(got, total), "allreduce_nb in place")
    got = -1
    call succeed(ompx_reduce_nb(got, mine, OMPX_SUM, 0, event), "reduce_nb")
    call finish()
    if (me == 0) call check(all_equal(got, total), "reduce_nb")
    call succeed(ompx_scan_nb(got, mine, OMPX_MAX, event), "scan_nb")
    call finish()
    call check(all_equal(got, mine), "scan_nb")
    got = -7
    call succeed(ompx_exscan_nb(got, mine, OMPX_MAX, event), "exscan_nb")
    call finish()
    if (me > 0) call check(all_equal(got, mine - 10), "exscan_nb")

    call succeed(ompx_allgather_nb(whole, mine, event), "allgather_nb")
    call finish()
    do i = 0, ranks - 1
        call check(all_equal(whole(:, i), mine + 10*(i - me)), "allgather_nb")
    end do
    call succeed(ompx_alltoall_nb(other, whole, event), "alltoall_nb")
    call finish()
    do i = 0, ranks - 1
        call check(all_equal(other(:, i), mine), "alltoall_nb")
    end do
    call succeed(ompx_reduce_scatter_nb(got, whole, OMPX_SUM, event), "reduce_scatter_nb")
    call finish()
    call check(all_equal(got, ranks*mine), "reduce_scatter_nb")
    other = 0
    call succeed(ompx_gather_nb(other, mine, ranks - 1, event), "gather_nb")
    call finish()
    if (me == ranks - 1) call check(.not. any(other /= whole), "gather_nb")
    got = 0
    call succeed(ompx_scatter_nb(got, other, ranks - 1, event), "scatter_nb")
    call finish()
    call check(all_equal(got, mine), "scatter_nb")
    numbers = me
    call succeed(ompx_group_dup(ompx_group_world, all), "group_dup")
    call succeed(ompx_bcast_nb(numbers, ranks - 1, event, all), "bcast_nb")
    ! Two at once.
    call succeed(ompx_barrier_nb(second, all), "barrier_nb")
    call succeed(ompx_event_wait(second), "event_wait")
    call finish()
    call check(all_ones(numbers == ranks - 1), "bcast_nb")
    call succeed(ompx_group_free(all), "group_free")
    if (me == 0) print '(a)', "passed"

contains

    !> By tests, then a wait, which does nothing more.
    subroutine finish()
        integer(c_int) :: done
        done = 0
        do while (done == 0)
            call succeed(ompx_event_test(event, done), "event_test")
        end do
        call succeed(ompx_event_wait(event), "event_wait")
    end subroutine

    pure logical function all_equal(a, b)
        real(c_double), intent(in) :: a(:), b(:)
        all_equal = .not. any(a /= b)
    end function

    pure logical function all_ones(a)
        logical, intent(in) :: a(:)
        all_ones = .not. any(.not. a)
    end function
end program nonblocking_test
