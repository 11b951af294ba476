! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Sections of every form on both sides of put, get, their forms without waiting and with a signal, and in collectives.
! What is expected is Fortran's own assignment between the same sections of copies.
program sections_test
    use checks
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: n = 9, m = 7, k = 4
    ! Symmetric, and what it should hold; this rank's values, and those of the rank that puts here or is asked.
    integer(c_int32_t), pointer :: u(:, :, :)
    integer(c_int32_t) :: model(n, m, k), mine(n, m, k)
    integer(c_int32_t) :: theirs(n, m, k)
    integer(c_int64_t), pointer :: arrived(:)
    integer :: me, ranks, next, before, form
    integer(c_int64_t) :: signals = 0
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call succeed(ompx_allocate(u, [n, m, k]), "allocate")
    call succeed(ompx_allocate(arrived, [1]), "allocate")
    arrived = 0
    call succeed(ompx_barrier(), "barrier")
    mine = values_of(me)
    do form = 1, 5
        call all_pairs()
    end do
    call components()
    call expressions()
    call many_dimensions()
    call collectives()
    call succeed(ompx_deallocate(arrived), "deallocate")
    call succeed(ompx_deallocate(u), "deallocate")
    if (me == 0) print '(a)', "passed"

contains

    function values_of(rank) result(values)
        integer, intent(in) :: rank
        integer(c_int32_t) :: values(n, m, k)
        integer :: i
        values = reshape([(10000*(rank + 1) + i, i=1, n*m*k)], [n, m, k])
    end function

    !> Every form of section against every other one of its shape.
    subroutine all_pairs()
        call pair(u(1:8:2, 1:2, :), mine(1:8:2, 1:2, :), model(1:8:2, 1:2, :), theirs(1:8:2, 1:2, :), "strides that do not divide")
        call pair(u(1:8:2, 1:2, :), mine(8:1:-2, 3:4, :), model(1:8:2, 1:2, :), theirs(8:1:-2, 3:4, :), "from backwards")
        call pair(u(8:1:-2, 2:1:-1, :), mine(2:5, 3:7:4, :), model(8:1:-2, 2:1:-1, :), theirs(2:5, 3:7:4, :), "to backwards")
        call pair(u(9:1:-4, 7:1:-3, 4:1:-1), mine(9:3:-3, 6:2:-2, 4:1:-1), model(9:1:-4, 7:1:-3, 4:1:-1), &
                  theirs(9:3:-3, 6:2:-2, 4:1:-1), "both backwards")
        call pair(u(:, 7:1:-2, 1:4:3), mine(:, 1:4, 3:2:-1), model(:, 7:1:-2, 1:4:3), theirs(:, 1:4, 3:2:-1), "whole columns")
        call pair(u(3:3, 1:7:2, :), mine(3:3, 1:7:2, :), model(3:3, 1:7:2, :), theirs(3:3, 1:7:2, :), "rows")
        call pair(u(n:1:-1, :, :), mine, model(n:1:-1, :, :), theirs, "the whole, mirrored")
        call pair(u, mine(:, m:1:-1, :), model, theirs(:, m:1:-1, :), "from the whole, mirrored")
        call pair(u(2:2, 3:3, 4:1:-2), mine(5:5, 5:5, 1:3:2), model(2:2, 3:3, 4:1:-2), theirs(5:5, 5:5, 1:3:2), "two elements")
        call pair(u(4:3, :, :), mine(4:3, :, :), model(4:3, :, :), theirs(4:3, :, :), "nothing")
        call pair(u(1:4, 1:3, 2:2), mine(1:4, 1:3, 1:1), model(1:4, 1:3, 2:2), theirs(1:4, 1:3, 1:1), "a box")
    end subroutine

    subroutine pair(there, here, model_there, theirs_here, words)
        integer(c_int32_t), intent(inout) :: there(:, :, :)
        integer(c_int32_t), intent(inout), target :: here(:, :, :)
        integer(c_int32_t), intent(inout) :: model_there(:, :, :)
        integer(c_int32_t), intent(in) :: theirs_here(:, :, :)
        character(*), intent(in) :: words
        call succeed(ompx_barrier(), "barrier")
        u = -1
        model = -1
        theirs = values_of(before)
        call succeed(ompx_barrier(), "barrier")
        select case (form)
        case (1)
            call succeed(ompx_put(next, there, here), "put, "//words)
        case (2)
            call put_without_waiting(there, here, words)
        case (3)
            call succeed(ompx_put_nb(next, there, here), "put_nb without an event, "//words)
        case (4)
            signals = signals + 1
            call succeed(ompx_put_signal(next, there, here, arrived(1), signals, OMPX_SIGNAL_SET), "put_signal, "//words)
            call succeed(ompx_signal_wait(arrived(1), OMPX_CMP_GE, signals), "signal_wait")
            model_there = theirs_here
            call check(all(u == model), "the signal comes after the data, "//words)
        case (5)
            call get_back(there, here, words)
            return
        end select
        call succeed(ompx_barrier(), "barrier")
        model_there = theirs_here
        call check(all(u == model), "after put, "//words)
        call check(all(mine == values_of(me)), "a put changes its source, "//words)
    end subroutine

    subroutine put_without_waiting(there, here, words)
        integer(c_int32_t), intent(inout) :: there(:, :, :)
        integer(c_int32_t), intent(in), target :: here(:, :, :)
        character(*), intent(in) :: words
        type(ompx_event_t) :: event
        call succeed(ompx_put_nb(next, there, here, event), "put_nb, "//words)
        call succeed(ompx_event_wait(event), "event_wait")
    end subroutine

    !> The other way: from the next rank's section into this rank's one, by each form of get in turn.
    subroutine get_back(there, here, words)
        integer(c_int32_t), intent(inout) :: there(:, :, :)
        integer(c_int32_t), intent(inout), target :: here(:, :, :)
        character(*), intent(in) :: words
        integer(c_int32_t) :: theirs_there(size(there, 1), size(there, 2), size(there, 3))
        type(ompx_event_t) :: event
        integer :: way
        u = values_of(me)
        theirs_there = there - 10000*me + 10000*next
        call succeed(ompx_barrier(), "barrier")
        do way = 1, 3
            mine = -1
            select case (way)
            case (1)
                call succeed(ompx_get(here, next, there), "get, "//words)
            case (2)
                call succeed(ompx_get_nb(here, next, there, event), "get_nb, "//words)
                call succeed(ompx_event_wait(event), "event_wait")
            case (3)
                call succeed(ompx_get_nb(here, next, there), "get_nb without an event, "//words)
                call succeed(ompx_fence(), "fence")
            end select
            call check(all(here == theirs_there), "after get, "//words)
            call check(count(mine /= -1) == size(here), "only the section, "//words)
        end do
        mine = values_of(me)
    end subroutine

    !> Components: strides that are no multiple of the element, too.
    subroutine components()
        type :: particle
            real(c_float) :: weight
            integer(c_int8_t) :: kind
            real(c_double) :: position(3)
        end type
        type :: packed
            sequence
            integer(c_int32_t) :: first
            integer(c_int32_t) :: pair(2)
        end type
        type(particle) :: p(20)
        type(packed) :: q(6)
        real(c_double), pointer :: v(:)
        integer(c_int32_t), pointer :: w(:)
        integer :: i
        call succeed(ompx_allocate(v, [20]), "allocate")
        call succeed(ompx_allocate(w, [6]), "allocate")
        v = -1
        w = -1
        p%weight = me
        p%kind = 1_c_int8_t
        do i = 1, 20
            p(i)%position = [100*me + i, -i, 0]
        end do
        q%first = me
        q%pair(2) = me + 50
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, v, p%position(1)), "put a component")
        call succeed(ompx_put(next, w(6:1:-1), q%pair(2)), "put of a sequence type")
        call succeed(ompx_barrier(), "barrier")
        call check(all(v == [(100*before + i, i=1, 20)]), "components")
        call check(all(w == before + 50), "components of a sequence type")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_get(p(20:2:-2)%position(2), next, v(1:20:2)), "get into a component")
        call check(all(p(2:20:2)%position(2) == [(100*me + 21 - i, i=2, 20, 2)]), "components that were got")
        call check(all(p(1:19:2)%position(2) == [(-i, i=1, 19, 2)]) .and. all(p%weight == me) .and. all(p%kind == 1), "the others")
        call succeed(ompx_deallocate(w), "deallocate")
        call succeed(ompx_deallocate(v), "deallocate")
    end subroutine

    subroutine expressions()
        integer :: order(3) = [3, 1, 7]
        call succeed(ompx_barrier(), "barrier")
        u = -1
        model = -1
        theirs = values_of(before)
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, u(8:2:-3, 1, 1), 2*mine(1:5:2, 2, 2) + 1), "put an expression")
        call succeed(ompx_put(next, u(1:9:4, 7, 3), (mine(order, 1, 1))), "put by a list of indices")
        call succeed(ompx_put(next, u(9:1:-8, 5, 2), [7, 8]), "put a constructor")
        call succeed(ompx_barrier(), "barrier")
        model(8:2:-3, 1, 1) = 2*theirs(1:5:2, 2, 2) + 1
        model(1:9:4, 7, 3) = theirs(order, 1, 1)
        model(9:1:-8, 5, 2) = [7, 8]
        call check(all(u == model), "expressions")
    end subroutine

    subroutine many_dimensions()
        integer(c_int32_t), pointer :: wide(:, :, :, :, :, :, :)
        type(c_ptr) :: memory
        integer(c_int32_t), pointer :: all_15(:, :, :, :, :, :, :, :, :, :, :, :, :, :, :)
        integer(c_int32_t) :: local(2, 3, 2, 3, 2, 3, 2), expected(2, 3, 2, 3, 2, 3, 2)
        integer(c_int32_t), allocatable :: here(:, :, :, :, :, :, :, :, :, :, :, :, :, :, :)
        integer :: i
        memory = ompx_alloc(4_c_size_t*2**15, 0_c_size_t, OMPX_MEM_SYMMETRIC)
        call c_f_pointer(memory, wide, shape(local))
        local = reshape([(1000*me + i, i=1, size(local))], shape(local))
        expected = -1
        wide = -1
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, wide(2:1:-1, ::2, :, 3:1:-1, 1, :, :), local(:, ::2, :, :, 2, 3:1:-1, :)), "7 dimensions")
        call succeed(ompx_barrier(), "barrier")
        local = local + 1000*(before - me)
        expected(2:1:-1, ::2, :, 3:1:-1, 1, :, :) = local(:, ::2, :, :, 2, 3:1:-1, :)
        call check(all(wide == expected), "7 dimensions")
        call succeed(ompx_barrier(), "barrier")
        call c_f_pointer(memory, all_15, [(2, i=1, 15)])
        allocate (here(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2))
        here = me
        all_15 = -1
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, all_15(:, 2:1:-1, :, 1:1, :, :, :, :, :, :, :, :, :, :, 2:1:-1), &
                              here(:, :, :, 2:2, :, :, 2:1:-1, :, :, :, :, :, :, :, :)), "15 dimensions")
        call succeed(ompx_barrier(), "barrier")
        call check(all(all_15(:, :, :, 1, :, :, :, :, :, :, :, :, :, :, :) == before) .and. &
                   all(all_15(:, :, :, 2, :, :, :, :, :, :, :, :, :, :, :) == -1), "15 dimensions")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_free(memory), "free")
    end subroutine

    subroutine collectives()
        integer(c_int32_t) :: a(10), b(10), many(4*ranks), all_of(20*ranks)
        integer :: i
        a = me
        if (me == ranks - 1) a(10:1:-3) = [1, 2, 3, 4]
        call succeed(ompx_bcast(a(10:1:-3), ranks - 1), "bcast")
        call check(all(a(10:1:-3) == [1, 2, 3, 4]) .and. all(a([2, 3, 5, 6, 8, 9]) == me), "bcast of a section")
        a = [(me + i, i=1, 10)]
        call succeed(ompx_allreduce(a(1:9:4), op=OMPX_SUM), "allreduce in place")
        call check(all(a(1:9:4) == [(ranks*i + ranks*(ranks - 1)/2, i=1, 9, 4)]) .and. a(2) == me + 2, "allreduce in place")
        b = -1
        a = [(me + i, i=1, 10)]
        call succeed(ompx_allreduce(b(9:1:-2), a(2:10:2), OMPX_MAX), "allreduce")
        call check(all(b(9:1:-2) == [(ranks - 1 + i, i=2, 10, 2)]) .and. all(b(2:10:2) == -1), "allreduce of sections")
        all_of = -1
        call succeed(ompx_allgather(all_of(1:20*ranks:5), a(7:1:-2)), "allgather")
        do i = 0, ranks - 1
            many(4*i + 1:4*i + 4) = i + [7, 5, 3, 1]
        end do
        call check(all(all_of(1:20*ranks:5) == many) .and. all(all_of(2:20*ranks:5) == -1), "allgather of sections")
        all_of = -1
        call succeed(ompx_gather(all_of(1:20*ranks:5), a(7:1:-2), 0), "gather")
        call check(all(all_of(1:20*ranks:5) == many) .eqv. me == 0, "gather of sections")
        b = -1
        call succeed(ompx_scatter(b(8:2:-2), all_of(1:20*ranks:5), 0), "scatter")
        call check(all(b(8:2:-2) == me + [7, 5, 3, 1]) .and. all(b(1:9:2) == -1), "scatter of sections")
        b = -1
        call succeed(ompx_scan(b(10:1:-9), a(3:4), OMPX_SUM), "scan")
        call check(all(b(10:1:-9) == [((me + 1)*i + me*(me + 1)/2, i=3, 4)]), "scan of sections")
    end subroutine
end program sections_test
