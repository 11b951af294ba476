! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Halos of five fields, as in CloverLeaf: a grid of ranks in two dimensions, fields of cells, nodes and edges of different
! extents, halos of two layers, also at the corners. Each step puts 20 sections, without buffers of the program's own.
program five_fields
    use diomp
    use, intrinsic :: iso_c_binding, only: c_double, c_int
    implicit none
    integer, parameter :: nx = 60, ny = 40, depth = 2, num_fields = 5, steps = 20
    ! Additional points of a field in each direction: density, energy and pressure on cells, velocities on nodes.
    integer, parameter :: more_x(num_fields) = [0, 0, 0, 1, 1], more_y(num_fields) = [0, 0, 0, 1, 1]
    type field_t
        real(c_double), pointer :: at(:, :) ! interior 1 + depth to extent + depth
    end type
    type(field_t) :: fields(num_fields)
    integer(c_int) :: dims(2), coords(2)
    integer :: me, ranks, status, step, f, wrong, left, right, lower, upper
    real(c_double) :: total

    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    dims = [1, ranks]
    if (mod(ranks, 2) == 0) dims = [2, ranks/2]
    coords = [mod(me, dims(1)), me/dims(1)]
    left = neighbour(-1, 0)
    right = neighbour(1, 0)
    lower = neighbour(0, -1)
    upper = neighbour(0, 1)
    do f = 1, num_fields
        status = ompx_allocate(fields(f)%at, [nx + more_x(f) + 2*depth, ny + more_y(f) + 2*depth])
        fields(f)%at = -1
    end do

    wrong = 0
    do step = 1, steps
        do f = 1, num_fields
            call fill(fields(f)%at, nx + more_x(f), ny + more_y(f))
        end do
        status = ompx_barrier() ! all ranks have written their interiors, and read their halos
        do f = 1, num_fields
            call exchange_x(fields(f)%at, nx + more_x(f))
        end do
        status = ompx_barrier() ! the corners come with the second direction
        do f = 1, num_fields
            call exchange_y(fields(f)%at, ny + more_y(f))
        end do
        status = ompx_barrier()
        do f = 1, num_fields
            wrong = wrong + errors_in(fields(f)%at, nx + more_x(f), ny + more_y(f))
        end do
    end do

    total = wrong
    status = ompx_allreduce(total, op=OMPX_SUM)
    do f = 1, num_fields
        status = ompx_deallocate(fields(f)%at)
    end do
    if (me == 0) print '(a,i0,a,i0,a,i0,a)', "halos of ", num_fields, " fields on ", dims(1), " x ", dims(2), " ranks"
    if (total /= 0) error stop "wrong values in halos"

contains

    !> The rank at a distance on the grid, which is periodic.
    integer function neighbour(dx, dy)
        integer, intent(in) :: dx, dy
        neighbour = modulo(coords(1) + dx, dims(1)) + dims(1)*modulo(coords(2) + dy, dims(2))
    end function

    pure real(c_double) function value_of(rank, x, y)
        integer, intent(in) :: rank, x, y
        value_of = 1d6*step + 1d4*rank + 100*x + y
    end function

    subroutine fill(u, mx, my)
        real(c_double), intent(inout) :: u(:, :)
        integer, intent(in) :: mx, my
        integer :: x, y
        do y = 1, my
            do x = 1, mx
                u(x + depth, y + depth) = value_of(me, x, y)
            end do
        end do
    end subroutine

    !> Columns of the interior: pieces of depth elements, one for each row.
    subroutine exchange_x(u, mx)
        real(c_double), pointer, intent(in) :: u(:, :)
        integer, intent(in) :: mx
        status = ompx_put(right, u(1:depth, :), u(mx + 1:mx + depth, :))
        status = ompx_put(left, u(mx + depth + 1:, :), u(depth + 1:2*depth, :))
    end subroutine

    !> Whole rows with the halos of the first direction.
    subroutine exchange_y(u, my)
        real(c_double), pointer, intent(in) :: u(:, :)
        integer, intent(in) :: my
        status = ompx_put(upper, u(:, 1:depth), u(:, my + 1:my + depth))
        status = ompx_put(lower, u(:, my + depth + 1:), u(:, depth + 1:2*depth))
    end subroutine

    integer function errors_in(u, mx, my)
        real(c_double), intent(in) :: u(:, :)
        integer, intent(in) :: mx, my
        integer :: x, y, dx, dy
        errors_in = 0
        do y = 1 - depth, my + depth
            dy = merge(-1, merge(1, 0, y > my), y < 1)
            do x = 1 - depth, mx + depth
                dx = merge(-1, merge(1, 0, x > mx), x < 1)
                if (u(x + depth, y + depth) /= value_of(neighbour(dx, dy), x - dx*mx, y - dy*my)) errors_in = errors_in + 1
            end do
        end do
    end function
end program five_fields
