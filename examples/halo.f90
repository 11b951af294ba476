! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Halo exchange in Fortran: heat flow in a plate whose rows are distributed over the ranks, so that a halo is a row,
! whose elements are not contiguous.
program halo
    use diomp
    use, intrinsic :: iso_c_binding, only: c_double
    implicit none
    integer, parameter :: rows = 100, columns = 200, steps = 100
    real(c_double), pointer :: now(:, :), next(:, :), swap(:, :)
    real(c_double) :: heat
    integer :: me, ranks, status, step, i, j

    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    status = ompx_allocate(now, [rows + 2, columns]) ! rows 1 and rows + 2 are halos
    status = ompx_allocate(next, [rows + 2, columns])
    now = 0
    next = 0
    if (me == 0) now(2, 1) = 1e6 ! one hot corner

    do step = 1, steps
        now(1, :) = now(2, :) ! nothing flows out of the plate
        now(rows + 2, :) = now(rows + 1, :)
        status = ompx_barrier()
        if (me > 0) status = ompx_put(me - 1, now(rows + 2, :), now(2, :))
        if (me < ranks - 1) status = ompx_put(me + 1, now(1, :), now(rows + 1, :))
        status = ompx_barrier()
        !$omp parallel do private(i)
        do j = 1, columns
            do i = 2, rows + 1
                next(i, j) = now(i, j) + 0.2d0*(now(i - 1, j) + now(i + 1, j) - 4*now(i, j) &
                                                + now(i, max(j - 1, 1)) + now(i, min(j + 1, columns)))
            end do
        end do
        swap => now
        now => next
        next => swap
    end do

    heat = sum(now(2:rows + 1, :))
    status = ompx_allreduce(heat, op=OMPX_SUM)
    if (me == 0) print '(a,i0,a,f0.3)', "heat after ", steps, " steps: ", heat
    if (abs(heat - 1e6) > 1e-3) error stop 1
end program halo
