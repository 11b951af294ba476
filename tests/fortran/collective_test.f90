! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Groups and collectives of the Fortran module.
program collective_test
    use checks
    use, intrinsic :: ieee_arithmetic
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: me, ranks
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    call reductions()
    call moves()
    call members_that_do_not_write()
    call groups()
    if (me == 0) print '(a)', "passed"

contains

    subroutine reductions()
        real(c_double) :: a(10), total(10)
        integer :: i, n
        integer(c_int32_t) :: whole(3)
        logical(c_bool) :: all_true
        logical :: one
        complex(c_float_complex) :: z
        integer(c_int64_t) :: blocks(2*ranks), block(2)
        a = [(me + i, i=1, 10)]
        call succeed(ompx_allreduce(total, a, OMPX_SUM), "allreduce")
        call check(all(total == [(ranks*i + ranks*(ranks - 1)/2, i=1, 10)]), "sum")
        call succeed(ompx_allreduce(a, op=OMPX_MAX), "allreduce in place")
        call check(all(a == [(ranks - 1 + i, i=1, 10)]), "max")
        total = merge(ieee_value(total, ieee_quiet_nan), real([(me + i, i=1, 10)], c_double), me == ranks - 1)
        call succeed(ompx_allreduce(total, op=OMPX_MAX), "allreduce of NaNs")
        call check(all(ieee_is_nan(total)), "a NaN of one rank is the maximum")
        total = sign(0.0_c_double, real(me, c_double) - 0.5)
        call succeed(ompx_allreduce(total, op=OMPX_MIN), "allreduce of zeros")
        call check(all(sign(1.0_c_double, total) < 0), "-0 is the minimum")
        whole = [me, -me, 7]
        call succeed(ompx_reduce(whole, op=OMPX_MIN, root=ranks - 1), "reduce in place")
        if (me == ranks - 1) call check(all(whole == [0, 1 - ranks, 7]), "min")
        n = me + 1
        call succeed(ompx_scan(n, op=OMPX_SUM), "scan of a scalar")
        call check(n == (me + 1)*(me + 2)/2, "scan")
        n = me + 1
        call succeed(ompx_exscan(n, op=OMPX_SUM), "exscan")
        call check(n == merge(1, me*(me + 1)/2, me == 0), "exscan")
        z = cmplx(1, me, c_float)
        call succeed(ompx_allreduce(z, op=OMPX_SUM), "complex")
        call check(z == cmplx(ranks, ranks*(ranks - 1)/2, c_float), "complex sum")
        all_true = me /= 0
        call succeed(ompx_allreduce(all_true, op=OMPX_LAND), "logical of one byte")
        call check(.not. logical(all_true), "and")
        one = me == 0
        call succeed(ompx_allreduce(one, op=OMPX_LOR), "default logical")
        call check(one, "or")
        blocks = [(int(i, c_int64_t), i=1, 2*ranks)]
        call succeed(ompx_reduce_scatter(block, blocks, OMPX_SUM), "reduce_scatter")
        call check(all(block == ranks*[2*me + 1, 2*me + 2]), "blocks of the sum")
    end subroutine

    subroutine moves()
        real(c_float) :: field(4, 5)
        integer :: all(2, 0:ranks - 1), back(2, 0:ranks - 1), i
        character(12) :: text
        field = merge(3.5, 0.0, me == 0)
        call succeed(ompx_bcast(field), "bcast")
        call check(field(4, 5) == 3.5 .and. field(1, 1) == 3.5, "from the first")
        text = "unknown"
        if (me == ranks - 1) text = "a long word"
        call succeed(ompx_bcast(text, root=ranks - 1), "bcast of text")
        call check(text == "a long word", "from the last")
        call succeed(ompx_allgather(all, [me, -me]), "allgather")
        call check(product_of([(sum(all(:, i)) == 0 .and. all(1, i) == i, i=0, ranks - 1)]), "all")
        all = 0
        call succeed(ompx_gather(all, [me, 10*me], 0), "gather")
        if (me == 0) call check(product_of([(all(2, i) == 10*i, i=0, ranks - 1)]), "gathered")
        all(1, :) = [(100*me + i, i=0, ranks - 1)]
        all(2, :) = me
        call succeed(ompx_alltoall(back, all), "alltoall")
        call check(product_of([(back(1, i) == 100*i + me .and. back(2, i) == i, i=0, ranks - 1)]), "from all")
        call succeed(ompx_scatter(back(:, 0), all, 0), "scatter")
        call check(all_are(back(:, 0), [me, 0]), "scattered")
    end subroutine

    ! Members that get no result have dst of any size, and their sections are not written.
    subroutine members_that_do_not_write()
        integer, parameter :: n = 400000 ! too much to be buffered: members wait for the root
        real(c_double), pointer :: symmetric(:)
        real(c_double), allocatable :: source(:), result(:)
        real(c_long_double) :: long(3)
        allocate(source(n), result(merge(n, 0, me == 0)))
        source = me
        call succeed(ompx_reduce(result, source, OMPX_SUM, 0), "reduce with dst at the root only")
        if (me == 0) call check(all(result == ranks*(ranks - 1)/2d0), "reduced")
        long = me
        call succeed(ompx_allreduce(long, op=OMPX_MAX), "reals of C's long double")
        call check(all(long == ranks - 1), "their maximum")
        result = -1
        deallocate(result)
        allocate(result(2*n))
        result = -1
        call succeed(ompx_exscan(result(1:2*n:2), source, OMPX_SUM), "exscan to a section")
        call check(result(1) == merge(-1d0, me*(me - 1)/2d0, me == 0), "scanned")
        call succeed(ompx_exscan(result(1:n), source, OMPX_SUM), "exscan")
        call check(result(n) == merge(-1d0, me*(me - 1)/2d0, me == 0), "scanned")
        call succeed(ompx_scatter(source(:2), result(1:merge(4*ranks, 0, me == 0):2), 0), "scatter of a section")
        call succeed(ompx_allocate(symmetric, [2*n]), "allocate")
        symmetric = -1
        call succeed(ompx_barrier(), "barrier")
        ! The others are in the call, or come later, when the root puts into their dst.
        if (me == 0) then
            call wait_a_little()
            call put_to_others(symmetric)
        end if
        call succeed(ompx_reduce(symmetric(1::2), source, OMPX_SUM, 0), "reduce to a section")
        call succeed(ompx_barrier(), "barrier")
        if (me > 0) call check(symmetric(1) == 42, "dst of another member is not written by reduce")
        symmetric = -1
        call succeed(ompx_barrier(), "barrier")
        if (me == 0) then
            call wait_a_little()
            call put_to_others(symmetric)
        end if
        call succeed(ompx_gather(symmetric(1:2*ranks*(n/ranks):2), source(:n/ranks), 0), "gather to a section")
        call succeed(ompx_barrier(), "barrier")
        if (me > 0) call check(symmetric(1) == 42, "dst of another member is not written by gather")
        call succeed(ompx_deallocate(symmetric), "deallocate")
    end subroutine

    subroutine put_to_others(where)
        real(c_double), intent(inout) :: where(:)
        integer :: rank
        do rank = 1, ranks - 1
            call succeed(ompx_put(rank, where(1), [42d0]), "put")
        end do
        call succeed(ompx_fence(), "fence")
    end subroutine

    subroutine wait_a_little()
        integer(c_int64_t) :: now, end, rate
        call system_clock(now, rate)
        end = now + rate/10
        do while (now < end)
            call system_clock(now)
        end do
    end subroutine

    pure logical function product_of(list)
        logical, intent(in) :: list(:)
        product_of = all(list)
    end function

    pure logical function all_are(a, b)
        integer, intent(in) :: a(:), b(:)
        all_are = all(a == b)
    end function

    subroutine groups()
        type(ompx_group_t) :: half, pair, other
        integer :: n, members(1)
        call check(ompx_group_size(ompx_group_world) == ranks, "size of the world")
        call succeed(ompx_group_split(ompx_group_world, mod(me, 2), -me, half), "split")
        n = 1
        call succeed(ompx_allreduce(n, op=OMPX_SUM, group=half), "sum of a group")
        call check(n == ompx_group_size(half), "its members")
        call check(ompx_group_world_rank(half, ompx_group_rank(half)) == me, "own place")
        call succeed(ompx_barrier(half), "barrier of a group")
        call succeed(ompx_fence(half), "fence of a group")
        call succeed(ompx_group_dup(half, other), "dup")
        call check(ompx_group_rank(other) == ompx_group_rank(half), "the same members")
        call succeed(ompx_group_merge(half, other, pair), "merge")
        call check(ompx_group_size(pair) == ompx_group_size(half), "merged")
        call succeed(ompx_group_free(pair), "free")
        call succeed(ompx_group_free(other), "free")
        call succeed(ompx_group_free(half), "free")
        call check(half == OMPX_GROUP_NONE, "freed")
        members = [me]
        call succeed(ompx_group_create(pair, members, 1), "create")
        call check(ompx_group_size(pair) == 1, "alone")
        call succeed(ompx_group_free(pair), "free")
    end subroutine
end program collective_test
