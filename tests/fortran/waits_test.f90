! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Tests of words, waits for several words and events, and atomics that do not block.
program waits_test
    use checks
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: me, ranks, next, before
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call single_words()
    call several_words()
    call events()
    call atomics()
    call misuse()
    if (me == 0) print '(a)', "passed"

contains

    subroutine single_words()
        integer(c_int8_t), pointer :: bytes(:)
        integer(c_int8_t) :: found
        type(c_ptr) :: address
        address = ompx_alloc(64_c_size_t, 0_c_size_t, OMPX_MEM_SYMMETRIC)
        call c_f_pointer(address, bytes, [64])
        bytes = 0
        call succeed(ompx_barrier(), "barrier")
        call check(ompx_test_until(bytes(7), OMPX_CMP_EQ, 5_c_int8_t) == 0, "nothing has come")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put(next, bytes(7), 9_c_int8_t), "put")
        call succeed(ompx_wait_until_fetch(bytes(7), OMPX_CMP_GE, 5_c_int8_t, found), "wait_until_fetch")
        call check(found == 9, "the value that ended the wait")
        call check(ompx_test_until(bytes(7), OMPX_CMP_GE, 5_c_int8_t) == 1, "it holds")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_free(address), "free")
    end subroutine

    !> Each rank sends its number + 1 to all others, one of four words by one of four ranks.
    subroutine several_words()
        integer(c_int64_t), pointer :: words(:)
        integer(c_int64_t) :: wanted(ranks)
        logical :: skip(ranks)
        integer(c_int) :: indices(ranks), index, num_found, i, round
        call succeed(ompx_allocate(words, [ranks]), "allocate")
        words = 0
        call succeed(ompx_barrier(), "barrier")
        call check(ompx_test_until_any(words, OMPX_CMP_GT, 0_c_int64_t, index) == 0, "none")
        call check(index == 0, "no index")
        call check(ompx_test_until_some(words, OMPX_CMP_GT, 0_c_int64_t, indices, num_found) == 0, "none")
        call check(num_found == 0, "no indices")
        call check(ompx_test_until_all(words, OMPX_CMP_EQ, 0_c_int64_t) == 1, "all are 0")
        call succeed(ompx_barrier(), "barrier")
        do i = 0, ranks - 1
            call succeed(ompx_put(i, words(me + 1), int(me + 1, c_int64_t)), "put")
        end do
        skip = .false.
        do round = 1, ranks
            call succeed(ompx_wait_until_any(words, OMPX_CMP_GT, 0_c_int64_t, index, skip), "any")
            call check(index >= 1 .and. index <= ranks, "an index")
            call check(.not. skip(index) .and. words(index) == index, "a word that has come")
            skip(index) = .true.
        end do
        call succeed(ompx_wait_until_any(words, OMPX_CMP_GT, 0_c_int64_t, index, skip), "any of none")
        call check(index == 0, "all are left out")
        wanted = [(int(i, c_int64_t), i=1, ranks)]
        call succeed(ompx_wait_until_all(words, OMPX_CMP_EQ, wanted), "all, each with its value")
        call succeed(ompx_wait_until_some(words, OMPX_CMP_LE, 1_c_int64_t, indices, num_found), "some")
        call check(num_found == 1 .and. indices(1) == 1, "the first")
        call succeed(ompx_wait_until_some(words, OMPX_CMP_GE, 1_c_int64_t, indices, num_found), "some")
        call check(num_found == ranks, "all")
        call check(all(indices == [(i, i=1, ranks)]), "ascending from 1")
        call check(ompx_test_until_any(words, OMPX_CMP_EQ, int(ranks, c_int64_t), index) == 1, "the last")
        call check(index == ranks, "its index")
        skip = .true.
        call check(ompx_test_until_all(words, OMPX_CMP_EQ, 0_c_int64_t, skip) == 1, "all of none")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(words), "deallocate")
    end subroutine

    subroutine events()
        integer(c_int32_t), pointer :: a(:)
        integer(c_int32_t), target :: mine(1000), back(1000)
        type(ompx_event_t) :: both(2), none(0)
        integer(c_int) :: index, first
        integer :: i
        call succeed(ompx_allocate(a, [1000]), "allocate")
        a = -1
        mine = [(1000*me + i, i=1, 1000)]
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_put_nb(next, a(1:500), mine(1:500), both(1)), "put_nb")
        call succeed(ompx_put_nb(next, a(501:), mine(501:), both(2)), "put_nb")
        call succeed(ompx_event_wait_all(both), "event_wait_all")
        call succeed(ompx_event_wait_all(none), "of none")
        call succeed(ompx_barrier(), "barrier")
        call check(all(a == mine + 1000*(before - me)), "what came")
        call succeed(ompx_get_nb(back(1:500), next, a(1:500), both(1)), "get_nb")
        call succeed(ompx_get_nb(back(501:), next, a(501:), both(2)), "get_nb")
        call succeed(ompx_event_wait_any(both, first), "event_wait_any")
        call succeed(ompx_event_wait_any(both, index, [first == 1, first == 2]), "the other one")
        call check(first + index == 3, "both numbers")
        call check(all(back == mine), "what came back")
        call succeed(ompx_event_wait_any(both, index, [.true., .true.]), "nothing to wait for")
        call check(index == 0, "no index")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    subroutine atomics()
        integer(c_int64_t), pointer :: a(:)
        integer(c_int64_t), target :: old(3)
        type(ompx_event_t) :: events(2)
        call succeed(ompx_allocate(a, [2]), "allocate")
        a = 10
        old = -1
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_atomic_fetch_nb(next, a(1), 5_c_int64_t, old(1), OMPX_SUM, events(1)), "fetch_nb")
        call succeed(ompx_atomic_compare_swap_nb(next, a(2), 10_c_int64_t, 20_c_int64_t, old(2), events(2)), "swap_nb")
        call succeed(ompx_event_wait_all(events), "event_wait_all")
        call check(all(old(1:2) == 10), "the old values")
        call succeed(ompx_atomic_fetch_nb(next, a(1), 1_c_int64_t, old(3), OMPX_SUM), "without an event")
        call succeed(ompx_fence(), "fence")
        call check(old(3) == 15, "the old value")
        call succeed(ompx_barrier(), "barrier")
        call check(all(a == [16, 20]), "the new values")
        call succeed(ompx_barrier(), "barrier")
        call succeed(ompx_deallocate(a), "deallocate")
    end subroutine

    subroutine misuse()
        integer(c_int32_t), target :: words(4)
        integer(c_int) :: index, mode
        type(ompx_event_t) :: stale(1)
        mode = ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD)
        words = 0
        call expect_error(ompx_wait_until_any(words, OMPX_CMP_EQ, 0_c_int64_t, index), OMPX_ERR_ARG, "one kind")
        call expect_error(ompx_wait_until_any(words(1:4:2), OMPX_CMP_EQ, 0, index), OMPX_ERR_UNSUPPORTED, "gaps")
        call expect_error(ompx_wait_until_any(words, OMPX_CMP_EQ, 0, index, [.true.]), OMPX_ERR_MISMATCH, "skip")
        call expect_error(ompx_wait_until_all(words, OMPX_CMP_EQ, [0, 0]), OMPX_ERR_ARG, "2 values for 4 words")
        call expect_error(ompx_test_until(words(1), OMPX_CMP_EQ, 1.0), OMPX_ERR_ARG, "one type")
        call expect_error(ompx_atomic_fetch_nb(ranks, words(1), 1, words(2), OMPX_SUM), OMPX_ERR_RANK, "ompx_atomic")
        stale(1)%handle = 4660
        call expect_error(ompx_event_wait_all(stale), OMPX_ERR_ARG, "not an event")
        mode = ompx_set_errors(mode, OMPX_SCOPE_THREAD)
    end subroutine
end program waits_test
