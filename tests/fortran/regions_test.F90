! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Target regions of flang: what it compiles for processors, on a rank's device, whose memory other ranks read then.
program regions_test
    use checks
    use omp_lib
    implicit none
    integer, parameter :: n = 1000
    integer :: me, ranks, next, device
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    call check(ompx_num_rank_devices() > 0, "there are devices")
    device = ompx_rank_device(0)
    call check(device == omp_get_default_device(), "the default device is the rank's")

    call maps()
    call threads()
    call loops()
    call reductions()
#if __flang_major__ >= 22
    call teams()
#endif
    call neighbours()
    if (me == 0) print '(a)', "passed"

contains

    subroutine maps()
        integer :: i, x(n)
        real(8), allocatable :: y(:)
        logical :: on_host
        allocate (y(n))
        y = 2
        x = 1
        on_host = .true.
        !$omp target data map(tofrom: x) map(to: y)
        !$omp target map(from: on_host)
        on_host = omp_is_initial_device()
        do i = 1, n
            x(i) = x(i) + int(y(i))*i
        end do
        !$omp end target
        call check(x(n) == 1, "a mapped array does not change on the host")
        x = 5
        !$omp target update to(x)
        !$omp target
        x(1) = x(n) + 1
        !$omp end target
        !$omp end target data
        call check(.not. on_host, "the region is on a device")
        call check(x(1) == 6 .and. x(n) == 5, "an update and a region")
    end subroutine

    subroutine threads()
        integer :: entered, singles, most, serial
        entered = 0
        singles = 0
        most = 0
        serial = 0
        !$omp target map(tofrom: entered, singles, most, serial)
        !$omp parallel num_threads(3)
        !$omp atomic
        entered = entered + 1
        !$omp barrier
        !$omp critical
        most = max(most, omp_get_thread_num() + 1)
        !$omp end critical
        !$omp single
        singles = singles + entered
        !$omp end single
        !$omp end parallel
        !$omp parallel if(entered < 0)
        !$omp atomic
        serial = serial + omp_get_num_threads()
        !$omp end parallel
        !$omp end target
        call check(entered >= 1 .and. entered <= 3 .and. most == entered, "threads of a parallel region")
        call check(singles == entered, "a barrier and a single region")
        call check(serial == 1, "a parallel region whose condition does not hold")
    end subroutine

    subroutine loops()
        integer :: i, none
        integer(8) :: k
        integer :: x(n), last
        real(8) :: y(n)
        x = 0
        y = 0
        none = 0
        last = 0
        !$omp target parallel do map(tofrom: x)
        do i = 1, n
            x(i) = x(i) + i
        end do
        call check(all(x == [(i, i=1, n)]), "a loop")
        !$omp target parallel do map(tofrom: y) schedule(static, 3) num_threads(3)
        do k = n, 1, -2
            y(k) = y(k) + real(k, 8)
        end do
        call check(all(y(2::2) == [(i, i=2, n, 2)]) .and. all(y(1::2) == 0), "a loop in chunks, with a stride")
        !$omp target parallel do map(tofrom: x) schedule(dynamic, 7)
        do i = 1, n
            x(i) = x(i) + 1
        end do
        call check(all(x == [(i + 1, i=1, n)]), "a loop with a dynamic schedule")
        !$omp target parallel do map(tofrom: last)
        do i = 1, none
            last = i
        end do
        call check(last == 0, "a loop without iterations")
    end subroutine

    subroutine reductions()
        integer :: i
        real(8) :: total
        total = 1
        !$omp target parallel do reduction(+: total) map(tofrom: total)
        do i = 1, n
            total = total + i
        end do
        call check(total == 1 + n*(n + 1)/2, "a reduction")
    end subroutine

#if __flang_major__ >= 22
    subroutine teams()
        integer :: i, j
        real(8) :: x(100, 100), total
        x = 1
        total = 0
        !$omp target teams distribute map(tofrom: x)
        do i = 1, 100
            !$omp parallel do simd
            do j = 1, 100
                x(j, i) = x(j, i) + 100*i + j
            end do
        end do
        !$omp target teams distribute parallel do simd collapse(2) map(tofrom: x)
        do i = 1, 100
            do j = 1, 100
                x(j, i) = 2*x(j, i)
            end do
        end do
        call check(all(x == reshape([((2d0*(1 + 100*i + j), j=1, 100), i=1, 100)], [100, 100])), "nested loops")
        !$omp target teams distribute parallel do reduction(+: total) map(to: x) map(tofrom: total)
        do i = 1, 100
            total = total + x(i, 1)
        end do
        call check(total == sum(x(:, 1)), "a reduction over teams")
    end subroutine
#endif

    !> Arrays that are mapped, between devices of ranks.
    subroutine neighbours()
        real(8), target :: mine(n), theirs(n)
        integer :: i
        mine = me
        theirs = -1
        !$omp target enter data map(to: mine, theirs)
        !$omp target parallel do
        do i = 1, n
            mine(i) = mine(i)*10 + i
        end do
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_target_get(theirs, device, next, mine, ompx_rank_device(0)), "get from the neighbour's device")
        call succeed(ompx_barrier(), "barrier")
        !$omp target parallel do
        do i = 1, n
            theirs(i) = theirs(i) + 1
        end do
        !$omp target exit data map(from: mine, theirs)
        call check(all(mine == [(10d0*me + i, i=1, n)]), "the own array")
        call check(all(theirs == [(10d0*next + i + 1, i=1, n)]), "the neighbour's array")
    end subroutine
end program regions_test
