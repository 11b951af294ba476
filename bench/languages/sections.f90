! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Seconds per put of a section from Fortran, with the shapes and lines of transfers.c.
program sections
    use diomp
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: rounds = 15, order = 1024, width = 256, edge = 64
    integer, parameter :: widths(2) = [width, 1]
    real(c_double), pointer :: field(:, :)
    real(c_double), allocatable :: block(:, :)
    real(c_double) :: seconds(rounds), kept
    integer(c_int64_t) :: begin, end, rate
    integer :: k, r, i, j, w, status, peer
    status = ompx_allocate(field, [order, order])
    allocate (block(order, order))
    field = 0
    block = 0
    status = ompx_barrier()
    peer = ompx_num_ranks() - 1
    if (ompx_rank_num() == 0) then
        do k = 1, 2
            w = widths(k)
            do r = 1, rounds
                call system_clock(begin, rate)
                do i = 1, 50
                    status = ompx_put(peer, field(edge + 1:edge + w, :), block(edge + 1:edge + w, :))
                end do
                status = ompx_fence()
                call system_clock(end)
                seconds(r) = real(end - begin, c_double)/real(rate, c_double)/50
            end do
            do r = 2, rounds
                do j = r, 2, -1
                    if (seconds(j - 1) <= seconds(j)) exit
                    kept = seconds(j)
                    seconds(j) = seconds(j - 1)
                    seconds(j - 1) = kept
                end do
            end do
            print '(a,i0,a,es11.4)', "section ", 8*w*order, " ", seconds((rounds + 1)/2)
        end do
    end if
    status = ompx_barrier()
end program sections
