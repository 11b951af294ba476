! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Calls whose places call_sites.py looks for in the statistics: a comment "! CALLS function count" is on the
! line of each.
program call_sites
    use diomp
    implicit none
    real(8), pointer :: a(:), field(:, :)
    real(8) :: x
    integer :: status, i
    status = ompx_allocate(a, [100]) ! CALLS ompx_alloc 1
    status = ompx_allocate(field, [9, 7], OMPX_MEM_SYMMETRIC) ! CALLS ompx_alloc 1
    a = 0
    field = 0
    x = 1
    status = ompx_barrier() ! CALLS ompx_barrier 1
    do i = 1, 20
        status = ompx_allreduce(x, op=OMPX_MAX) ! CALLS ompx_allreduce 20
    end do
    call heavy()
    status = ompx_put(0, a(1:9:2), a(9:1:-2)) ! CALLS ompx_put 1
    status = ompx_lock(0) ! CALLS ompx_lock 1
    status = ompx_unlock(0) ! CALLS ompx_unlock 1
    status = ompx_barrier() ! CALLS ompx_barrier 1
    status = ompx_deallocate(field) ! CALLS ompx_free 1
    status = ompx_deallocate(a) ! CALLS ompx_free 1
contains
    subroutine heavy()
        real(8) :: y(1000)
        y = 1
        do i = 1, 3
            status = ompx_allreduce(y, op=OMPX_SUM) ! CALLS ompx_allreduce 3
            status = ompx_put(0, a(i), y(i)) ! CALLS ompx_put 3
            status = ompx_get(y(i), 0, a(i)) ! CALLS ompx_get 3
        end do
    end subroutine
end program call_sites
