! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Collectives with a block size for each member: member i has i columns, the first one none.
program blocks_test
    use checks
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: me, ranks, i, status
    integer, allocatable :: counts(:), displs(:), sizes(:)
    integer(c_int64_t), allocatable :: reversed(:)
    real(c_double), allocatable :: whole(:, :), mine(:, :), wanted(:, :), turned(:, :)
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    counts = [(3*i, i=0, ranks - 1)]
    displs = [(3*(i*(i - 1)/2), i=0, ranks - 1)]
    reversed = [(sum(counts(i + 2:ranks)), i=0, ranks - 1)] ! the blocks in the opposite order
    allocate (mine(3, me), whole(3, sum(counts)/3), turned(3, sum(counts)/3), source=0.0_c_double)
    mine = me
    wanted = reshape([((real(i, c_double), status=1, counts(i + 1)), i=0, ranks - 1)], shape(whole))

    call succeed(ompx_allgatherv(whole, mine, counts), "allgatherv")
    call check(same(whole, wanted), "blocks without displacements")
    whole = 0
    call succeed(ompx_allgatherv(whole, mine, counts, displs), "allgatherv with displacements")
    call check(same(whole, wanted), "blocks at their places")
    call succeed(ompx_allgatherv(turned, mine, counts, reversed), "allgatherv with integers of 8 bytes")
    call check(same(turned(:, size(turned, 2):1:-1), wanted), "blocks in the opposite order")
    call succeed(ompx_allgatherv(turned(:, size(turned, 2):1:-1), mine, counts), "allgatherv to a section")
    call check(same(turned(:, size(turned, 2):1:-1), wanted), "a section")

    whole = -1
    call succeed(ompx_gatherv(whole, mine, counts, ranks - 1, displs), "gatherv")
    call check(same(whole, merge(wanted, 0*wanted - 1, me == ranks - 1)), "only the root gets them")
    if (me == ranks - 1) then
        whole = 2*wanted
        mine = 0
        call succeed(ompx_scatterv(mine, whole, counts, ranks - 1), "scatterv")
    else
        ! Members other than the root need no array with all blocks.
        call succeed(ompx_scatterv(mine, mine, counts, ranks - 1), "scatterv without all blocks")
    end if
    call check(all(mine == 2*me), "each member its block")

    call exchange()
    call misuse()
    if (me == 0) print '(a)', "passed"

contains

    pure logical function same(a, b)
        real(c_double), intent(in) :: a(:, :), b(:, :)
        same = all(shape(a) == shape(b)) .and. all(a == b)
    end function

    !> Member i sends i + j elements to member j.
    subroutine exchange()
        integer, allocatable :: sent(:), received(:)
        integer :: j
        sizes = [(me + j, j=0, ranks - 1)]
        sent = [(100*me + j, j=0, ranks - 1)]
        sent = [((sent(j + 1), i=1, sizes(j + 1)), j=0, ranks - 1)]
        allocate (received(size(sent)), source=-1)
        call succeed(ompx_alltoallv(received, sizes, sent, sizes), "alltoallv")
        call check(all_equal(received, [((100*j + me, i=1, sizes(j + 1)), j=0, ranks - 1)]), "from all members")
        received = -1
        call succeed(ompx_alltoallv(received, sizes, sent, sizes, [(sum(sizes(j + 2:)), j=0, ranks - 1)]), &
                     "alltoallv with displacements at dst")
        call check(all_equal(received, [((100*j + me, i=1, sizes(j + 1)), j=ranks - 1, 0, -1)]), "in the opposite order")
    end subroutine

    pure logical function all_equal(a, b)
        integer, intent(in) :: a(:), b(:)
        all_equal = size(a) == size(b)
        if (all_equal) all_equal = all(a == b)
    end function

    !> Each is found before a message is sent.
    subroutine misuse()
        real(c_double), pointer :: none(:)
        integer, pointer :: no_counts(:)
        real(c_float) :: single(3*me)
        nullify (none, no_counts)
        call expect_error(ompx_allgatherv(whole, mine, counts(1:ranks - 1)), OMPX_ERR_ARG, "counts is not a vector")
        call expect_error(ompx_allgatherv(whole, mine, real(counts)), OMPX_ERR_ARG, "counts is not a vector")
        call expect_error(ompx_allgatherv(whole, mine, no_counts), OMPX_ERR_ARG, "counts is not a vector")
        call expect_error(ompx_allgatherv(whole, mine, counts, [displs, 0]), OMPX_ERR_ARG, "displs is not a vector")
        call expect_error(ompx_allgatherv(whole, mine, counts, displs - 1), OMPX_ERR_ARG, "negative")
        call expect_error(ompx_allgatherv(whole, mine, counts + 1), OMPX_ERR_MISMATCH, "does not match counts")
        call expect_error(ompx_allgatherv(whole, mine, counts, displs + 1), OMPX_ERR_RANGE, "too small")
        call expect_error(ompx_allgatherv(none, mine, counts), OMPX_ERR_ARG, "without a target")
        if (me == 0) return
        call expect_error(ompx_allgatherv(whole, single, counts), OMPX_ERR_ARG, "one type")
        call expect_error(ompx_gatherv(mine, mine, counts*2, 0), OMPX_ERR_MISMATCH, "does not match counts")
        call expect_error(ompx_alltoallv(mine, counts + 9, mine, counts), OMPX_ERR_RANGE, "dst is too small")
    end subroutine
end program blocks_test
