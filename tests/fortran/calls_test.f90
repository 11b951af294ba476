! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Errors by call, puts with signal that do not block, order and completion, reallocation, nodes, MINLOC and MAXLOC.
program calls_test
    use checks
    use, intrinsic :: ieee_arithmetic
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: me, ranks, next, before
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call errors()
    call signals()
    call order()
    call reallocation()
    call nodes()
    call locations()
    call contexts()
    if (me == 0) print '(a)', "passed"

contains

    subroutine errors()
        integer :: mine, mode
        mine = 0
        mode = ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD)
        call check(mode == OMPX_ERRORS_INHERIT, "no mode before")
        call check(ompx_errors_mode() == OMPX_ERRORS_RETURN, "mode")
        call check(ompx_put(ranks, mine, mine) == OMPX_ERR_RANK, "an error is returned")
        call check(.not. c_associated(ompx_alloc(2_c_size_t**46, 0_c_size_t, OMPX_MEM_LOCAL)), "no memory")
        call check(ompx_set_errors(OMPX_ERRORS_INHERIT, OMPX_SCOPE_LIBRARY) == OMPX_ERR_ARG, "not for the library")
        call check(ompx_set_errors(mode, OMPX_SCOPE_THREAD) == OMPX_ERRORS_RETURN, "the mode before")
        call check(ompx_errors_mode() == OMPX_ERRORS_ABORT, "the library's mode")
    end subroutine

    !> Rows, columns and everything of a plate, each with a signal.
    subroutine signals()
        integer, parameter :: n = 60, m = 50
        real(c_double), pointer :: u(:, :)
        real(c_double), target :: v(n, m)
        integer(c_int64_t), pointer :: signal(:)
        type(ompx_event_t) :: event
        integer :: i
        call succeed(ompx_allocate(u, [n, m]), "allocate")
        call succeed(ompx_allocate(signal, [1]), "allocate")
        v = reshape([(1000*me + i, i=1, n*m)], [n, m])
        u = -1
        signal = 0
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_signal_nb(next, u(:, 2), v(:, 3), signal(1), 1_c_int64_t, OMPX_SIGNAL_ADD, event), "column")
        call arrive(signal(1), 1_c_int64_t)
        call check(all(u(:, 2) == v(:, 3) + 1000*(before - me)), "the column is there")
        call succeed(ompx_event_wait(event), "wait")
        call succeed(ompx_barrier(), "barrier") ! all have looked
        call succeed(ompx_put_signal_nb(next, u(n, 5:), v(1, 5:), signal(1), 1_c_int64_t, OMPX_SIGNAL_ADD, event), "row")
        call arrive(signal(1), 2_c_int64_t)
        call check(all(u(n, 5:) == v(1, 5:) + 1000*(before - me)), "the row is there")
        call check(all(u(:n - 1, 5:) == -1), "and nothing else")
        call succeed(ompx_event_wait(event), "wait")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_signal_nb(next, u(n:1:-1, :), v, signal(1), 1_c_int64_t, OMPX_SIGNAL_ADD), "backwards")
        call arrive(signal(1), 3_c_int64_t)
        call check(all(u(n:1:-1, :) == v + 1000*(before - me)), "the reversed plate is there")
        call succeed(ompx_fence(), "fence")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_signal(next, u(3, ::2), v(9, ::2), signal(1), 1_c_int64_t, OMPX_SIGNAL_ADD), "row, blocking")
        v(9, :) = 0
        call arrive(signal(1), 4_c_int64_t)
        call check(all(u(3, ::2) == [(1000*before + 9 + (i - 1)*n, i=1, m, 2)]), "the row is there")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(signal), "deallocate")
        call succeed(ompx_deallocate(u), "deallocate")
    end subroutine

    subroutine arrive(signal, number)
        integer(c_int64_t), intent(inout) :: signal
        integer(c_int64_t), intent(in) :: number
        call succeed(ompx_signal_wait(signal, OMPX_CMP_GE, number), "signal_wait")
    end subroutine

    subroutine order()
        integer(c_int64_t), pointer :: a(:)
        integer(c_int64_t) :: last, i
        call succeed(ompx_allocate(a, [1001]), "allocate")
        a = 0
        call succeed(ompx_barrier(), "barrier")
        do i = 1, 50
            call succeed(ompx_put(next, a(1:1000), spread(i, 1, 1000)), "put")
            call succeed(ompx_order(), "order")
            call succeed(ompx_put(next, a(1001), i), "flag")
            call succeed(ompx_wait_until(a(1001), OMPX_CMP_GE, i), "wait")
            call check(all(a(1:1000) == i), "the data is there before the flag")
            call succeed(ompx_fence_rank(next), "fence_rank")
            call succeed(ompx_get(last, next, a(1000)), "get")
            call check(last == i, "complete")
            call succeed(ompx_sync(), "sync")
        end do
        call succeed(ompx_sync(ompx_group_world), "sync of a group")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    subroutine reallocation()
        integer(c_int32_t), pointer :: a(:)
        type(c_ptr) :: address
        integer :: i
        address = ompx_realloc(c_null_ptr, 400_c_size_t)
        call check(c_associated(address), "allocated")
        call c_f_pointer(address, a, [100])
        a = [(me + i, i=1, 100)]
        address = ompx_realloc(address, 400000_c_size_t)
        call c_f_pointer(address, a, [100000])
        call check(all(a(:100) == [(me + i, i=1, 100)]), "kept")
        call succeed(ompx_put(next, a(100000), me), "a put may follow")
        call succeed(ompx_barrier(), "barrier")
        call check(a(100000) == before, "it has arrived")
        call check(.not. c_associated(ompx_realloc(address, 0_c_size_t)), "freed")
    end subroutine

    subroutine nodes()
        type(ompx_group_t) :: node
        integer(c_int) :: members(ranks), number, i
        members = -1
        number = ompx_group_node_members(ompx_group_world, members, ranks)
        call check(any(members(:number) == me), "this rank is on its node")
        call succeed(ompx_group_split_node(ompx_group_world, node), "split_node")
        call check(ompx_group_size(node) == number, "size")
        do i = 1, number
            call check(ompx_group_world_rank(node, i - 1) == members(i), "member")
        end do
        call succeed(ompx_group_free(node), "free")
    end subroutine

    subroutine locations()
        real(c_double) :: pair(2), pairs(2, 3), result(2, 3)
        integer(c_int32_t) :: whole(2), blocks(2, ranks), block(2)
        real(c_float) :: single(2)
        integer :: mode, i
        pair = [real((me - ranks + 1)**2, c_double), real(me, c_double)]
        call succeed(ompx_allreduce(pair, op=OMPX_MINLOC), "minloc")
        call check(all(pair == [0, ranks - 1]), "the least is the last rank's")
        pairs = reshape([7, me, -me, me, me, 3*me], [2, 3])
        pairs(1, 3) = merge(ieee_value(pair(1), ieee_quiet_nan), pairs(1, 3), me == ranks - 1)
        call succeed(ompx_allreduce(result, pairs, OMPX_MAXLOC), "maxloc")
        call check(all(result(:, 1) == [7, 0]), "the lowest index of equal values")
        call check(all(result(:, 2) == [0, 0]), "maximum")
        call check(ieee_is_nan(result(1, 3)) .and. result(2, 3) == 3*(ranks - 1), "a NaN is the maximum")
        whole = [10 - me, me]
        call succeed(ompx_scan(whole, op=OMPX_MINLOC), "scan")
        call check(all(whole == [10 - me, me]), "each rank's is the least so far")
        blocks = reshape([(i, me, i=1, ranks)], [2, ranks])
        call succeed(ompx_reduce_scatter(block, blocks, OMPX_MAXLOC), "reduce_scatter")
        call check(all(block == [me + 1, 0]), "own block")
        single = [-1.0, real(ranks - me)]
        call succeed(ompx_reduce(single, op=OMPX_MINLOC, root=0), "reduce")
        if (me == 0) call check(all(single == [-1, 1]), "lowest index")
        mode = ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD)
        call check(ompx_allreduce(pairs(1, :), op=OMPX_MINLOC) == OMPX_ERR_ARG, "not pairs")
        call check(index(ompx_last_error(), "values and indices") > 0, ompx_last_error())
        call check(ompx_allreduce(pair(1), op=OMPX_MINLOC) == OMPX_ERR_ARG, "a scalar")
        mode = ompx_set_errors(mode, OMPX_SCOPE_THREAD)
    end subroutine
    !> Static arrays that all ranks register, and transfers of a context.
    subroutine contexts()
        integer(c_int32_t), save, target :: field(4000)
        integer(c_int32_t), target :: mine(1000), back(1000), old
        integer(c_int64_t), save, target :: signal = 0
        type(ompx_context_t) :: context
        integer :: i, mode
        field = -1
        call succeed(ompx_register_symmetric(field), "register_symmetric")
        call succeed(ompx_context_create(context), "create")
        mine = [(1000*me + i, i=1, 1000)]
        call succeed(ompx_context_put_nb(context, next, field(1001:2000), mine), "put")
        call succeed(ompx_context_fence(context), "fence")
        call succeed(ompx_context_get_nb(context, back, next, field(1001:2000)), "get")
        call succeed(ompx_context_fence(context), "fence")
        call check(all(back == mine), "what came back")
        mode = ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD)
        call check(ompx_context_put_nb(context, next, field(1:10:2), mine(1:5)) == OMPX_ERR_UNSUPPORTED, "section")
        call check(ompx_unregister(field) == OMPX_ERR_ADDRESS, "not alone")
        mode = ompx_set_errors(mode, OMPX_SCOPE_THREAD)
        call succeed(ompx_register_symmetric(signal), "register_symmetric")
        call succeed(ompx_context_put_signal_nb(context, next, field(2001:3000), mine, signal, 5_c_int64_t, &
                                                OMPX_SIGNAL_SET), "put_signal")
        call succeed(ompx_context_atomic_fetch_nb(context, next, field(3001), 11_c_int32_t, old, OMPX_SUM), "fetch")
        call succeed(ompx_context_fence(context), "fence")
        call check(old == -1, "the old value")
        call succeed(ompx_context_atomic_compare_swap_nb(context, next, field(3001), 10_c_int32_t, 12_c_int32_t, old), &
                     "compare_swap")
        call succeed(ompx_context_fence(context), "fence")
        call check(old == 10, "the sum")
        call succeed(ompx_signal_wait(signal, OMPX_CMP_EQ, 5_c_int64_t), "wait")
        call check(all(field(2001:3000) == mine + 1000*(before - me)), "what the signal told")
        call succeed(ompx_context_free(context), "free")
        call succeed(ompx_barrier(), "barrier")
        call check(field(3001) == 12, "what was exchanged")
        call succeed(ompx_unregister_symmetric(signal), "unregister_symmetric")
        call check(all(field(1001:2000) == mine + 1000*(before - me)), "what came")
        call check(all(field(:1000) == -1) .and. all(field(3002:) == -1), "and nothing else")
        call succeed(ompx_unregister_symmetric(field), "unregister_symmetric")
    end subroutine
end program calls_test
