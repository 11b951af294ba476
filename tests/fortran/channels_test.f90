! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Channels, Cartesian grids and locks at an address in the Fortran module, with DIOMP_ERRORS=return.
program channels_test
    use checks
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: me, ranks, next, before
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call halos()
    call buffers()
    call any_of_several()
    call grids()
    call locks()
    if (me == 0) print '(a)', "passed"

contains

    !> A row, which is a section with gaps, to the next rank.
    subroutine halos()
        integer, parameter :: n = 6, m = 5
        real(c_double) :: u(n, m)
        real(c_double), pointer :: arrived(:)
        type(ompx_channel_t) :: to, from
        type(c_ptr) :: data
        integer :: step, i
        call check(to == OMPX_CHANNEL_NONE, "none by default")
        call succeed(ompx_channel_create(next, 1, OMPX_CHANNEL_SENDER, u(n, :), 2, to), "create")
        call succeed(ompx_channel_create(before, 1, OMPX_CHANNEL_RECEIVER, u(1, :), 2, from), "create")
        do step = 1, 20
            u(n, :) = [(1000*me + 10*step + i, i=1, m)]
            call succeed(ompx_channel_send(to, u(n, :)), "send")
            u(n, :) = -1
            data = ompx_channel_receive(from)
            call check(c_associated(data), "receive")
            call c_f_pointer(data, arrived, [m])
            call check(all(arrived == [(1000*before + 10*step + i, i=1, m)]), "what came")
            call succeed(ompx_channel_release(from), "release")
        end do
        call check(ompx_channel_release(from) == OMPX_ERR_STATE, "released already")
        call check(ompx_channel_send(to, u(n, 2:)) == OMPX_ERR_MISMATCH, "another size")
        call check(index(ompx_last_error(), "as large as a message") > 0, ompx_last_error())
        call check(ompx_channel_create(ranks, 1, OMPX_CHANNEL_SENDER, u, 2, to) == OMPX_ERR_RANK, "rank")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_channel_free(to), "free")
        call succeed(ompx_channel_free(from), "free")
        call check(from == OMPX_CHANNEL_NONE, "freed")
    end subroutine

    !> Messages written where they go, and calls that do not wait.
    subroutine buffers()
        integer(c_int32_t), pointer :: message(:)
        integer(c_int32_t) :: shape_of(100)
        type(ompx_channel_t) :: to, from
        type(c_ptr) :: buffer
        integer :: i
        call succeed(ompx_channel_create(next, 2, OMPX_CHANNEL_SENDER, shape_of, 1, to), "create")
        call succeed(ompx_channel_create(before, 2, OMPX_CHANNEL_RECEIVER, shape_of, 1, from), "create")
        buffer = ompx_channel_acquire(to)
        call check(c_associated(buffer), "acquire")
        call c_f_pointer(buffer, message, [100])
        message = [(me + i, i=1, 100)]
        call succeed(ompx_channel_commit(to), "commit")
        call check(ompx_channel_try_acquire(to, buffer) == OMPX_ERR_BUSY, "one buffer")
        shape_of = 7
        call check(ompx_channel_try_send(to, shape_of) == OMPX_ERR_BUSY, "one buffer")
        do while (ompx_channel_test(from) == 0)
        end do
        call succeed(ompx_channel_try_receive(from, buffer), "try_receive")
        call c_f_pointer(buffer, message, [100])
        call check(all(message == [(before + i, i=1, 100)]), "what came")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_channel_release(from), "release")
        call succeed(ompx_channel_send(to, shape_of), "send")
        buffer = ompx_channel_receive(from)
        call c_f_pointer(buffer, message, [100])
        call check(all(message == 7), "what was sent")
        call succeed(ompx_channel_free(to), "free")
        call succeed(ompx_channel_free(from), "free")
    end subroutine

    subroutine any_of_several()
        type(ompx_channel_t) :: to(2), from(3)
        integer(c_int) :: value
        integer :: i, found, num_found(3)
        type(c_ptr) :: data
        do i = 1, 2
            call succeed(ompx_channel_create(next, 10 + i, OMPX_CHANNEL_SENDER, value, 4, to(i)), "create")
            call succeed(ompx_channel_create(before, 10 + i, OMPX_CHANNEL_RECEIVER, value, 4, from(i)), "create")
        end do
        from(3) = OMPX_CHANNEL_NONE
        call check(ompx_channel_test_any(from, found) == 0 .and. found == 0, "nothing was sent")
        call succeed(ompx_barrier(), "barrier")
        do i = 1, 4
            call succeed(ompx_channel_send(to(1), i), "send")
            call succeed(ompx_channel_send(to(2), i), "send")
        end do
        num_found = 0
        do i = 1, 8
            call succeed(ompx_channel_wait_any(from, found), "wait_any")
            call check(found == 1 .or. found == 2, "an index from 1")
            num_found(found) = num_found(found) + 1
            data = ompx_channel_receive(from(found))
            call succeed(ompx_channel_release(from(found)), "release")
        end do
        call check(num_found(1) == 4 .and. num_found(2) == 4, "all messages")
        call succeed(ompx_barrier(), "barrier")
        do i = 1, 2
            call succeed(ompx_channel_free(to(i)), "free")
            call succeed(ompx_channel_free(from(i)), "free")
        end do
        call succeed(ompx_channel_wait_any(from, found), "wait_any")
        call check(found == 0, "none is left")
    end subroutine

    subroutine grids()
        type(ompx_cart_t) :: cart
        integer(c_int) :: dims(2), coords(2), neighbours(4), rank, extents(2), periodic(2)
        integer(c_int) :: send(3, 4), receive(3, 4), wide(6, 4)
        integer :: side
        type(c_ptr) :: sources(4), targets(4)
        integer(c_size_t) :: nbytes(4)
        integer(c_int), target :: from_all(4), to_all
        dims = 0
        call succeed(ompx_dims_create(ranks, 2, dims), "dims_create")
        call check(product(dims) == ranks .and. dims(1) >= dims(2), "extents")
        call succeed(ompx_cart_create(ompx_group_world, 2, dims, [1, 0], 0, cart), "create")
        call check(ompx_cart_num_dims(cart) == 2 .and. ompx_cart_size(cart) == ranks, "size")
        call succeed(ompx_cart_dims(cart, extents, periodic), "dims")
        call check(all(extents == dims) .and. all(periodic == [1, 0]), "periods")
        call succeed(ompx_cart_coords(cart, me, coords), "coords")
        call check(coords(1)*dims(2) + coords(2) == me, "the last one varies fastest")
        call succeed(ompx_cart_rank(cart, coords, rank), "rank")
        call check(rank == me, "my own rank")
        call succeed(ompx_cart_shift(cart, 0, 1, neighbours(1), neighbours(2)), "shift")
        call succeed(ompx_cart_shift(cart, 1, 1, neighbours(3), neighbours(4)), "shift")
        call check(neighbours(3) == merge(me - 1, OMPX_NO_RANK, coords(2) > 0), "at the edge")
        do side = 1, 4
            send(:, side) = 100*me + side
        end do
        receive = -1
        call succeed(ompx_cart_exchange(cart, send, receive), "exchange")
        do side = 1, 4
            call check(all(receive(:, side) == merge(-1, 100*neighbours(side) + opposite(side), &
                                                     neighbours(side) == OMPX_NO_RANK)), "what came")
        end do
        wide = -2
        call succeed(ompx_cart_exchange(cart, send, wide(1:6:2, :)), "exchange of a section")
        call check(all(wide(2:6:2, :) == -2), "between the rows")
        call check(all(wide(1, 1:2) == receive(1, 1:2)), "the rows")
        call check(ompx_cart_exchange(cart, send, wide) == OMPX_ERR_MISMATCH, "sizes")
        to_all = me
        from_all = -1
        do side = 1, 4
            sources(side) = c_loc(to_all)
            targets(side) = c_loc(from_all(side))
        end do
        nbytes = 4
        call succeed(ompx_cart_exchangev(cart, sources, nbytes, targets, nbytes), "exchangev")
        call check(all(from_all == neighbours), "my neighbours' ranks")
        from_all = -1
        call succeed(ompx_cart_exchange_dim(cart, 1, sources(3:4), nbytes(3:4), targets(3:4), nbytes(3:4)), "exchange_dim")
        call check(all(from_all(1:2) == -1) .and. all(from_all(3:4) == neighbours(3:4)), "neighbours in one dimension")
        call succeed(ompx_cart_free(cart), "free")
        call check(cart == OMPX_CART_NONE, "freed")
    end subroutine

    integer function opposite(side)
        integer, intent(in) :: side
        opposite = merge(side + 1, side - 1, mod(side, 2) == 1)
    end function

    subroutine locks()
        integer(c_int64_t), pointer :: lock(:), counter(:)
        integer(c_int64_t) :: value
        integer :: i
        call succeed(ompx_allocate(lock, [3]), "allocate")
        call succeed(ompx_allocate(counter, [1]), "allocate")
        counter = 0
        call succeed(ompx_lock_at_init(lock, 3_c_size_t), "init")
        do i = 1, 50
            call succeed(ompx_lock_at(lock(2)), "lock")
            call succeed(ompx_get(value, 0, counter(1)), "get")
            value = value + 1
            call succeed(ompx_put(0, counter(1), value), "put")
            call succeed(ompx_unlock_at(lock(2)), "unlock")
        end do
        call succeed(ompx_barrier(), "barrier")
        if (me == 0) call check(counter(1) == 50*ranks, "one at a time")
        call check(ompx_unlock_at(lock(2)) == OMPX_ERR_LOCK, "not held")
        if (me == 0) call succeed(ompx_try_lock_at(lock(3)), "try")
        call succeed(ompx_barrier(), "barrier")
        if (me > 0) call check(ompx_try_lock_at(lock(3)) == OMPX_ERR_BUSY, "busy")
        call succeed(ompx_barrier(), "barrier")
        if (me == 0) call succeed(ompx_unlock_at(lock(3)), "unlock")
        call succeed(ompx_deallocate(counter), "deallocate")
        call succeed(ompx_deallocate(lock), "deallocate")
    end subroutine
end program channels_test
