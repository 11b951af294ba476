! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Wrong use of the Fortran module, with DIOMP_ERRORS=return: the code, and a text that names function and remedy.
program misuse_test
    use checks
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: compiler_version
    implicit none
    real(c_double), pointer :: a(:), none(:), m(:, :)
    real(c_double) :: mine(100)
    real(c_float) :: single(50)
    integer(c_int64_t), pointer :: words(:)
    integer(c_int) :: found(12) = -1, num_found
    integer :: me, ranks
    type(ompx_event_t) :: event
    type(c_ptr) :: address
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    nullify (none)
    mine = 0
    single = 0
    call succeed(ompx_allocate(a, [100]), "allocate")
    call succeed(ompx_allocate(m, [10, 10]), "allocate")
    call expect_error(ompx_put(ranks, a, mine), OMPX_ERR_RANK, "ompx_put")
    call expect_error(ompx_put(0, mine, mine), OMPX_ERR_ADDRESS, "ompx_put")
    call expect_error(ompx_put(0, a(1:10), mine), OMPX_ERR_MISMATCH, "different sizes")
    call expect_error(ompx_put(0, single, 1), OMPX_ERR_ARG, "one type")
    call expect_error(ompx_put(0, a(1:5), single), OMPX_ERR_ARG, "one type")
    call expect_error(ompx_get_nb(single, 0, int(single), event), OMPX_ERR_ARG, "one type")
    call expect_error(ompx_put(0, m(1:5, 1:2), m(1:2, 1:5)), OMPX_ERR_MISMATCH, "different shapes")
    call expect_error(ompx_put_nb(0, m(1:5, 1:2), m(2:1:-1, 1:5)), OMPX_ERR_MISMATCH, "different shapes")
    call expect_error(ompx_put(ranks, a(1:9:2), mine(9:1:-2)), OMPX_ERR_RANK, "ompx_put")
    call expect_error(ompx_get(mine(9:1:-2), 0, mine(1:9:2)), OMPX_ERR_ADDRESS, "ompx_get")
    call succeed(ompx_allocate(words, [6]), "allocate")
    words = 1
    call expect_error(ompx_wait_until_some(words, OMPX_CMP_EQ, 1_c_int64_t, found(1:2), num_found), OMPX_ERR_MISMATCH, &
        "indices has no element for each variable")
    call check(num_found == 0 .and. all(found == -1), "no index was stored")
    call check(ompx_test_until_some(words, OMPX_CMP_EQ, 1_c_int64_t, found(12:1:-2), num_found) == 1, "a section")
    call check(num_found == 6 .and. all(found(12:2:-2) == [1, 2, 3, 4, 5, 6]), "the indices in a section")
    call expect_error(ompx_allocate(words, [6], kind=17), OMPX_ERR_ARG, "17 is not a kind")
    call check(ompx_last_error_status() == OMPX_ERR_ARG, "the status of the last error")
    address = c_loc(a)
    call expect_error(ompx_put(0, none, mine), OMPX_ERR_ARG, "dst is a pointer without a target")
    call expect_error(ompx_get(mine(1:9:2), 0, none), OMPX_ERR_ARG, "src is a pointer without a target")
    call expect_error(ompx_allreduce(none, op=OMPX_SUM), OMPX_ERR_ARG, "without a target")
    if (index(compiler_version(), "flang") > 0) then ! its descriptors do not tell addresses from other derived types
        call expect_error(ompx_put(0, address, mine), OMPX_ERR_MISMATCH, "different sizes")
    else
        call expect_error(ompx_put(0, address, mine), OMPX_ERR_ARG, "c_f_pointer(address, array, shape)")
    end if
    call expect_error(ompx_target_put(0, none, -1, mine, -1), OMPX_ERR_ARG, "without a target")
    call expect_error(ompx_target_put(0, a, 1000, mine, -1), OMPX_ERR_ARG, "dst_device is 1000")
    call expect_error(ompx_target_put(0, m(1:5, 1:2), -1, m(1:2, 1:5), -1), OMPX_ERR_MISMATCH, "different shapes")
    call expect_error(ompx_allreduce_nb(mine(1:10:2), op=OMPX_SUM, event=event), OMPX_ERR_UNSUPPORTED, "section with gaps")
    call expect_error(ompx_target_allreduce(mine, single, -1, OMPX_SUM), OMPX_ERR_ARG, "one type")
    call expect_error(ompx_register(mine(1:10:2)), OMPX_ERR_UNSUPPORTED, "section with gaps")
    call unknown_end(a)
    call expect_error(ompx_allocate(none, [-1]), OMPX_ERR_ARG, "extent 1 of 1: -1")
    call check(.not. associated(none), "nothing allocated")
    call expect_error(ompx_allreduce(mine(1:50), single, OMPX_SUM), OMPX_ERR_ARG, "one type")
    call expect_error(ompx_allreduce(mine, mine(1:50), OMPX_SUM), OMPX_ERR_MISMATCH, "sizes of dst and src")
    call expect_error(ompx_allreduce(mine(1:10:3), mine(1:10:2), OMPX_SUM), OMPX_ERR_MISMATCH, "sizes of dst and src")
    call expect_error(ompx_atomic_fetch(0, a(1), 1.0, mine(1), OMPX_SUM), OMPX_ERR_ARG, "scalars of one type")
    call expect_error(ompx_unlock(0), OMPX_ERR_LOCK, "ompx_unlock")
    ! What only the root uses may have any type elsewhere.
    if (me == 0) then
        call succeed(ompx_gather(a(1:2*ranks), mine(1:2), 0), "gather")
    else
        call succeed(ompx_gather(single, mine(1:2), 0), "gather with another type at the root only")
    end if
    if (ranks > 1) call expect_error(ompx_alltoall(mine(1:5), a(1:5)), OMPX_ERR_MISMATCH, "block per member")
    call succeed(ompx_deallocate(m), "deallocate")
    call succeed(ompx_deallocate(a), "deallocate")
    if (me == 0) print '(a)', "passed"

contains

    subroutine unknown_end(b)
        real(c_double), intent(inout) :: b(*)
        call expect_error(ompx_put(0, b(1:10), mine(1:20)), OMPX_ERR_MISMATCH, "different sizes")
        call expect_error(ompx_put(0, b, mine), OMPX_ERR_ARG, "assumed-size")
    end subroutine
end program misuse_test
