! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! put, get, sections, signals, atomics, locks of the Fortran module.
program transfer_test
    use checks
    use, intrinsic :: iso_c_binding
    use omp_lib, only: omp_event_handle_kind
    implicit none
    integer :: me, ranks, next, before
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call check(ompx_is_initialized() == 1, "started")
    call whole_arrays()
    call sections()
    call strides()
    call every_type()
    call without_waiting()
    call signals()
    call atomics_and_locks()
    call registered()
    if (me == 0) print '(a)', "passed"

contains

    subroutine whole_arrays()
        real(c_double), pointer :: a(:)
        real(c_double) :: mine(100), back(100)
        integer :: i
        call succeed(ompx_allocate(a, [100]), "allocate")
        call check(size(a) == 100 .and. lbound(a, 1) == 1, "shape")
        a = -1
        mine = [(1000*me + i, i=1, 100)]
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, a, mine), "put")
        call succeed(ompx_barrier(), "barrier")
        call check(all(a == [(1000*before + i, i=1, 100)]), "what came")
        call succeed(ompx_get(back, next, a), "get")
        call check(all(back == mine), "what came back")
        call succeed(ompx_barrier(), "barrier") ! all have looked
        call succeed(ompx_put(next, a(7), 42.0d0), "an element")
        call succeed(ompx_put(next, a(1:0), mine(1:0)), "nothing")
        call succeed(ompx_fence(), "fence")
        call succeed(ompx_barrier(), "barrier")
        call check(a(7) == 42 .and. a(6) == 1000*before + 6 .and. a(8) == 1000*before + 8, "its neighbours")
        call succeed(ompx_deallocate(a), "deallocate")
        call check(.not. associated(a), "deallocated")
        call succeed(ompx_deallocate(a), "deallocate nothing")
    end subroutine

    !> Halos of a three-dimensional field in all directions, without a buffer.
    subroutine sections()
        integer, parameter :: n = 6, m = 5, k = 4
        integer(c_int32_t), pointer :: u(:, :, :)
        integer(c_int32_t) :: edge(2, m, k)
        integer :: x, y, z
        call succeed(ompx_allocate(u, [n, m, k], OMPX_MEM_SYMMETRIC), "allocate")
        do z = 1, k
            do y = 1, m
                do x = 1, n
                    u(x, y, z) = value_at(me, x, y, z)
                end do
            end do
        end do
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, u(1:2, :, :), u(n - 1:n, :, :)), "planes of x")
        call succeed(ompx_barrier(), "barrier")
        do z = 1, k
            do y = 1, m
                call check(u(1, y, z) == value_at(before, n - 1, y, z), "first plane")
                call check(u(2, y, z) == value_at(before, n, y, z), "second plane")
                call check(u(3, y, z) == value_at(me, 3, y, z), "inside")
            end do
        end do
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, u(3:n, 1, 2:3), u(3:n, m, 2:3)), "rows of y")
        call succeed(ompx_barrier(), "barrier")
        call check(u(4, 1, 3) == value_at(before, 4, m, 3), "a row")
        call check(u(4, 1, 1) == value_at(me, 4, 1, 1), "beside it")
        call check(u(4, 1, 4) == value_at(me, 4, 1, 4), "behind it")
        ! Into an array in one piece, and from one.
        call succeed(ompx_get(edge, next, u(5:6, :, :)), "get a section")
        call check(edge(1, 2, 3) == value_at(next, 5, 2, 3) .and. edge(2, m, k) == value_at(next, 6, m, k), "edge")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, u(5:6, :, :), -edge), "put an expression")
        call succeed(ompx_barrier(), "barrier")
        call check(u(5, 2, 3) == -value_at(me, 5, 2, 3) .and. u(6, m, k) == -value_at(me, 6, m, k), "negated")
        call succeed(ompx_deallocate(u), "deallocate")
    end subroutine

    pure integer(c_int32_t) function value_at(rank, x, y, z)
        integer, intent(in) :: rank, x, y, z
        value_at = 100000*(rank + 1) + 1000*x + 100*y + z
    end function

    subroutine strides()
        real(c_float), pointer :: a(:, :)
        real(c_float) :: odd(5, 3)
        integer :: i, j
        call succeed(ompx_allocate(a, [10, 6]), "allocate")
        do j = 1, 6
            a(:, j) = [(real(100*me + 10*j + i), i=1, 10)]
        end do
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_get(odd, next, a(1:10:2, 2:6:2)), "every second")
        do j = 1, 3
            do i = 1, 5
                call check(odd(i, j) == 100*next + 20*j + 2*i - 1, "every second one")
            end do
        end do
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, a(2:10:2, 1:6:2), odd), "into every second")
        call succeed(ompx_barrier(), "barrier")
        call check(a(4, 3) == 100*me + 20*2 + 2*2 - 1, "one of them")
        call check(a(3, 3) == 100*me + 33, "one between them")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    subroutine every_type()
        complex(c_double_complex), pointer :: z(:)
        integer(c_int64_t), pointer :: long(:, :)
        type :: particle
            real(c_double) :: position(3)
            integer :: kind
        end type
        type(particle), pointer :: p(:)
        type(c_ptr) :: memory
        integer(c_size_t) :: bytes
        call succeed(ompx_allocate(z, [3]), "complex")
        call succeed(ompx_allocate(long, [2, 2], OMPX_MEM_SYMMETRIC), "integers of 8 bytes")
        bytes = storage_size(p)/8*4
        memory = ompx_alloc(bytes, 0_c_size_t, OMPX_MEM_SYMMETRIC)
        call check(c_associated(memory), "bytes")
        call c_f_pointer(memory, p, [4])
        z = (0, 0)
        long = 0
        p%kind = 0
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, z(2), cmplx(me, -me, c_double)), "complex")
        call succeed(ompx_put(next, long(:, 2), [2_c_int64_t**40, -1_c_int64_t]), "long")
        call succeed(ompx_put(next, p(3), particle([1, 2, 3], me)), "a type of the program")
        call succeed(ompx_barrier(), "barrier")
        call check(z(2) == cmplx(before, -before, c_double) .and. z(1) == 0 .and. z(3) == 0, "complex numbers")
        call check(all(long(:, 2) == [2_c_int64_t**40, -1_c_int64_t]) .and. all(long(:, 1) == 0), "long integers")
        call check(p(3)%kind == before .and. p(3)%position(2) == 2 .and. p(4)%kind == 0, "particles")
        call succeed(ompx_free(memory), "free")
        call succeed(ompx_deallocate(z), "deallocate")
        call succeed(ompx_deallocate(long), "deallocate")
    end subroutine

    subroutine without_waiting()
        real(c_double), pointer :: a(:)
        real(c_double), target :: mine(5000), back(5000)
        type(ompx_event_t) :: event
        integer(c_int) :: done
        integer :: i
        call succeed(ompx_allocate(a, [5000]), "allocate")
        mine = [(me + i, i=1, 5000)]
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_nb(next, a, mine, event), "put_nb")
        call succeed(ompx_event_wait(event), "wait")
        call succeed(ompx_barrier(), "barrier")
        call check(all(a == [(before + i, i=1, 5000)]), "put_nb")
        call succeed(ompx_get_nb(back, next, a, event), "get_nb")
        done = 0
        do while (done == 0)
            call succeed(ompx_event_test(event, done), "test")
        end do
        call check(all(back == mine), "get_nb")
        back = 0
        call get_as_task(back, next, a)
        call check(all(back == mine), "get_nb as a task")
        back = 0
        call succeed(ompx_get_nb(back, next, a), "get_nb without an event")
        call succeed(ompx_fence(), "fence")
        call check(all(back == mine), "get_nb and fence")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    !> The task is over when the transfer is.
    subroutine get_as_task(dst, rank, src)
        real(c_double), target, intent(inout) :: dst(:)
        integer, intent(in) :: rank
        real(c_double), intent(in) :: src(:)
        integer(omp_event_handle_kind) :: handle
        type(ompx_event_t) :: event
        !$omp parallel num_threads(2)
        !$omp single
        !$omp task detach(handle) private(event)
        event = ompx_event_t()
        call succeed(ompx_get_nb(dst, rank, src, event), "get_nb")
        call succeed(ompx_event_detach(event, handle), "detach")
        !$omp end task
        !$omp taskwait
        !$omp end single
        !$omp end parallel
    end subroutine

    subroutine signals()
        real(c_double), pointer :: a(:)
        integer(c_int64_t), pointer :: signal(:)
        integer(c_int64_t) :: found
        call succeed(ompx_allocate(a, [64]), "allocate")
        call succeed(ompx_allocate(signal, [1]), "allocate")
        a = 0
        signal = 0
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_signal(next, a, spread(7.5d0 + me, 1, 64), signal(1), 1_c_int64_t, OMPX_SIGNAL_ADD), "signal")
        do while (ompx_signal_test(signal(1), OMPX_CMP_GE, 1_c_int64_t) == 0)
            call succeed(ompx_progress(), "progress")
        end do
        call succeed(ompx_signal_wait(signal(1), OMPX_CMP_GE, 1_c_int64_t), "signal_wait")
        call succeed(ompx_signal_wait_fetch(signal(1), OMPX_CMP_NE, 0_c_int64_t, found), "signal_wait_fetch")
        call check(found == 1, "the value that ended the wait")
        call check(all(a == 7.5d0 + before), "who sees the signal sees the data")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(signal), "deallocate")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    subroutine atomics_and_locks()
        integer(c_int64_t), pointer :: counter(:), there
        integer(c_int64_t) :: old
        integer :: i
        call succeed(ompx_allocate(counter, [2]), "allocate")
        counter = 0
        call succeed(ompx_barrier(), "barrier")
        do i = 1, 50
            call succeed(ompx_atomic_fetch(0, counter(1), 1_c_int64_t, old, OMPX_SUM), "atomic_fetch")
            call succeed(ompx_lock(0), "lock")
            call succeed(ompx_get(old, 0, counter(2)), "get")
            call succeed(ompx_put(0, counter(2), old + 1), "put")
            call succeed(ompx_unlock(0), "unlock")
            call succeed(ompx_lockt(0), "lockt")
            call succeed(ompx_unlockt(0), "unlockt")
        end do
        call succeed(ompx_barrier(), "barrier")
        if (me == 0) call check(all(counter == 50*ranks), "no update is lost")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_atomic_compare_swap(me, counter(1), counter(1), -5_c_int64_t, old), "compare_swap")
        call check(counter(1) == -5, "swapped")
        call c_f_pointer(ompx_remote_ptr(counter(1), me), there)
        call check(there == -5, "remote_ptr of the own memory")
        call succeed(ompx_wait_until(counter(1), OMPX_CMP_LT, 0_c_int64_t), "wait_until")
        call succeed(ompx_deallocate(counter), "deallocate")
    end subroutine

    !> Memory that the program has already; its address travels.
    subroutine registered()
        real(c_double), target :: own(10)
        integer(c_intptr_t), pointer :: address(:)
        integer(c_intptr_t) :: theirs
        real(c_double), pointer :: there(:)
        real(c_double) :: copy(10)
        own = me + 0.25d0
        call succeed(ompx_register(own), "register")
        call succeed(ompx_allocate(address, [1]), "allocate")
        address(1) = transfer(c_loc(own), address(1))
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_get(theirs, next, address(1)), "get the address")
        call c_f_pointer(transfer(theirs, c_null_ptr), there, [10])
        call succeed(ompx_get(copy, next, there), "get from registered memory")
        call check(all(copy == next + 0.25d0), "registered memory")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_unregister(own), "unregister")
        call succeed(ompx_deallocate(address), "deallocate")
    end subroutine
end program transfer_test
