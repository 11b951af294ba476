! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Device memory from Fortran: sections between devices and hosts of ranks, without waiting, as tasks, and collectives. The
! target regions are in a library of C. Arguments of descriptors to device memory name it; nothing here loads it.
program devices_test
    use checks
    use, intrinsic :: iso_c_binding
    use omp_lib, only: omp_event_handle_kind
    implicit none
    interface
        subroutine scale(array, count, factor, device) bind(c, name="scale")
            import :: c_ptr, c_int, c_int64_t, c_double
            type(c_ptr), value :: array
            integer(c_int64_t), value :: count
            real(c_double), value :: factor
            integer(c_int), value :: device
        end subroutine
    end interface
    integer, parameter :: n = 9, m = 7, k = 4, host = -1
    real(c_double), pointer :: u(:, :, :), v(:, :, :)
    real(c_double), target :: mine(n, m, k), theirs(n, m, k), model(n, m, k), back(n, m, k)
    type(c_ptr) :: address, second
    type(ompx_event_t) :: event
    integer :: me, ranks, next, before, device
    me = ompx_rank_num()
    ranks = ompx_num_ranks()
    next = mod(me + 1, ranks)
    before = mod(me + ranks - 1, ranks)
    call check(ompx_num_rank_devices() > 0, "there are devices")
    device = ompx_rank_device(0)
    address = ompx_target_alloc(int(8*n*m*k, c_size_t), device, OMPX_MEM_SYMMETRIC)
    second = ompx_target_alloc(int(8*n*m*k, c_size_t), device, OMPX_MEM_SYMMETRIC)
    call check(c_associated(address) .and. c_associated(second), "target_alloc")
    call c_f_pointer(address, u, [n, m, k])
    call c_f_pointer(second, v, [n, m, k])
    mine = values_of(me)
    theirs = values_of(before)

    call sections()
    call between_devices()
    call plans()
    call without_waiting()
    call collectives()
    call succeed(ompx_target_free(second, device), "target_free")
    call succeed(ompx_target_free(address, device), "target_free")
    if (me == 0) print '(a)', "passed"

contains

    function values_of(rank) result(values)
        integer, intent(in) :: rank
        real(c_double) :: values(n, m, k)
        integer :: i
        values = reshape([(10000d0*(rank + 1) + i, i=1, n*m*k)], [n, m, k])
    end function

    subroutine clear(value)
        real(c_double), intent(in) :: value
        call succeed(ompx_barrier(), "barrier")
        model = value
        call succeed(ompx_target_put(me, u, device, model, host), "put to the own device")
        call succeed(ompx_fence(), "fence")
        call succeed(ompx_barrier(), "barrier")
    end subroutine

    subroutine compare(words)
        character(*), intent(in) :: words
        call succeed(ompx_barrier(), "barrier")
        back = 0
        call succeed(ompx_target_get(back, host, me, u, device), "get from the own device")
        call check(.not. any(back /= model), words)
    end subroutine

    !> Any strides at both sides: host to device, and back.
    subroutine sections()
        call clear(-1d0)
        call succeed(ompx_target_put(next, u(1:8:2, 1:2, :), device, mine(8:1:-2, 3:4, :), host), "put")
        model(1:8:2, 1:2, :) = theirs(8:1:-2, 3:4, :)
        call compare("from backwards")
        call clear(-2d0)
        call succeed(ompx_target_put(next, u(9:1:-4, 7:1:-3, 4:1:-1), device, mine(9:3:-3, 6:2:-2, 4:1:-1), host), "put")
        model(9:1:-4, 7:1:-3, 4:1:-1) = theirs(9:3:-3, 6:2:-2, 4:1:-1)
        call compare("both backwards")
        call clear(-3d0)
        call succeed(ompx_target_put(next, u(3, :, 2), device, mine(4, :, 1), host), "put")
        model(3, :, 2) = theirs(4, :, 1)
        call compare("a row")
        call clear(-4d0)
        call succeed(ompx_target_put(next, u(n:1:-1, :, :), device, mine, host), "put")
        model(n:1:-1, :, :) = theirs
        call compare("mirrored")
        call succeed(ompx_barrier(), "barrier")
        back = 0
        call succeed(ompx_target_get(back(1:7:3, m:1:-2, 2:4), host, next, u(9:1:-4, 1:4, 1:3), device), "get")
        model = values_of(me) ! what this rank has put to the next one
        theirs = 0
        theirs(1:7:3, m:1:-2, 2:4) = model(1:9:4, 1:4, 1:3)
        call check(.not. any(back /= theirs), "get into a section")
        theirs = values_of(before)
        call succeed(ompx_barrier(), "barrier")
    end subroutine

    subroutine plans()
        type(ompx_plan_t) :: plan
        call clear(1d0)
        call succeed(ompx_plan_begin(device), "plan_begin")
        call scale(address, int(n*m*k, c_int64_t), 3d0, device)
        call succeed(ompx_plan_end(plan), "plan_end")
        call succeed(ompx_plan_launch(plan), "plan_launch")
        call succeed(ompx_plan_launch(plan), "plan_launch")
        call succeed(ompx_plan_launch_nb(plan, event), "plan_launch_nb")
        call succeed(ompx_event_wait(event), "event_wait")
        call succeed(ompx_plan_free(plan), "plan_free")
        call check(plan == OMPX_PLAN_NONE, "a freed plan is none")
        model = 81
        call compare("a plan")
    end subroutine

    subroutine between_devices()
        call clear(0d0)
        call succeed(ompx_target_put(me, v, device, mine, host), "put")
        call succeed(ompx_fence(), "fence")
        call scale(second, int(n*m*k, c_int64_t), 2d0, device)
        call succeed(ompx_target_put(next, u(2:9:3, :, 1), device, v(7:1:-3, :, 4), device), "device to device")
        model(2:9:3, :, 1) = 2*theirs(7:1:-3, :, 4)
        call compare("device to device")
    end subroutine

    subroutine without_waiting()
        integer(omp_event_handle_kind) :: handle
        type(ompx_event_t) :: task_event
        call clear(0d0)
        call succeed(ompx_target_put_nb(next, u(:, :, 2), device, mine(:, :, 2), host, event), "put_nb")
        call succeed(ompx_event_wait(event), "event_wait")
        call succeed(ompx_target_put_nb(next, u(:, 3, :), device, mine(:, 3, :), host, event), "put_nb, a section")
        call succeed(ompx_event_wait(event), "event_wait")
        call succeed(ompx_target_put_nb(next, u(1, 1, 1), device, mine(1, 1, 1), host), "put_nb without an event")
        call succeed(ompx_fence(), "fence")
        model(:, :, 2) = theirs(:, :, 2)
        model(:, 3, :) = theirs(:, 3, :)
        model(1, 1, 1) = theirs(1, 1, 1)
        call compare("put_nb")
        back = 0
        !$omp parallel num_threads(2)
        !$omp single
        !$omp task detach(handle) private(task_event)
        task_event = ompx_event_t()
        call succeed(ompx_target_get_nb(back, host, next, u, device, task_event), "get_nb")
        call succeed(ompx_event_detach(task_event, handle), "detach")
        !$omp end task
        !$omp taskwait
        !$omp end single
        !$omp end parallel
        call check(back(1, 1, 1) == mine(1, 1, 1) .and. .not. any(back(:, :, 2) /= mine(:, :, 2)), "get_nb as a task")
        call succeed(ompx_barrier(), "barrier")
    end subroutine

    subroutine collectives()
        model = me
        call succeed(ompx_target_put(me, u, device, model, host), "put")
        call succeed(ompx_fence(), "fence")
        call succeed(ompx_target_allreduce(v, u, device, OMPX_SUM), "target_allreduce")
        call expect(ranks*(ranks - 1)/2d0, "target_allreduce")
        call succeed(ompx_target_allreduce_nb(v, u, device, OMPX_MAX, event), "target_allreduce_nb")
        call succeed(ompx_event_wait(event), "event_wait")
        call expect(ranks - 1d0, "target_allreduce_nb")
        call succeed(ompx_target_bcast(u, device, ranks - 1), "target_bcast")
        call succeed(ompx_target_scan(v, u, device, OMPX_SUM), "target_scan")
        call expect((me + 1)*(ranks - 1d0), "target_bcast and target_scan")
        call succeed(ompx_target_allgather(v(:, 1:ranks, 1), u(:, 1, 1), device), "target_allgather")
        call succeed(ompx_target_alltoall_nb(v(:, 1:ranks, 2), v(:, 1:ranks, 1), device, event), "target_alltoall_nb")
        call succeed(ompx_event_wait(event), "event_wait")
        call succeed(ompx_target_get(back, host, me, v, device), "get")
        call check(.not. any(back(:, 1:ranks, 1:2) /= ranks - 1), "target_allgather and target_alltoall_nb")
        call blocks()
    end subroutine

    !> Of different sizes: members have one or two columns of u in turn.
    subroutine blocks()
        integer :: i, own, counts(ranks), one(ranks)
        counts = size(u, 1)*[(columns_of(i), i=0, ranks - 1)]
        own = columns_of(me)
        one = size(u, 1)
        model = me
        call succeed(ompx_target_put(me, u, device, model, host), "put")
        call succeed(ompx_fence(), "fence")
        call succeed(ompx_target_allgatherv(v, u(:, 1:own, 1), counts, device), "target_allgatherv")
        call succeed(ompx_target_get(back, host, me, v, device), "get")
        call check(are_blocks(), "target_allgatherv")
        call succeed(ompx_target_gatherv(v, u(:, 1:own, 1), counts, device, ranks - 1), "target_gatherv")
        call succeed(ompx_target_scatterv(u(:, 1:own, 1), v, counts, device, ranks - 1), "target_scatterv")
        call succeed(ompx_target_alltoallv(v(:, 1:ranks, 1), one, u(:, 1:ranks, 2), one, device), "target_alltoallv")
        call succeed(ompx_target_get(back, host, me, u, device), "get")
        call check(.not. any(back(:, 1:own, 1) /= me), "target_gatherv and target_scatterv")
        call succeed(ompx_target_get(back, host, me, v, device), "get")
        call check(.not. any([(any(back(:, i + 1, 1) /= i), i=0, ranks - 1)]), "target_alltoallv")
    end subroutine

    pure integer function columns_of(member)
        integer, intent(in) :: member
        columns_of = mod(member, 2) + 1
    end function

    logical function are_blocks()
        integer :: i, column
        are_blocks = .true.
        column = 0
        do i = 0, ranks - 1
            are_blocks = are_blocks .and. .not. any(back(:, column + 1:column + columns_of(i), 1) /= i)
            column = column + columns_of(i)
        end do
    end function

    subroutine expect(value, words)
        real(c_double), intent(in) :: value
        character(*), intent(in) :: words
        call succeed(ompx_target_get(back, host, me, v, device), "get")
        call check(.not. any(back /= value), words)
    end subroutine
end program devices_test
