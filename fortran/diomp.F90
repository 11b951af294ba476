! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The module `diomp`: DiOMP for Fortran (docs/fortran.md). Names and conventions are those of diomp.h, where every
! procedure is described: results are OMPX_SUCCESS or a negative code; an error ends the job unless DIOMP_ERRORS=return.
!
! Differences:
!  - Data is passed as an array, a section, an element or a scalar of any type. The compiler passes its address, size and
!    type, so the procedures take no count, type or size in bytes.
!  - Both sides of put and get may be sections of the same shape, with any strides, so a halo needs no buffer.
!  - The group is optional (default: the world); so is the source of a reduction (default: in place).
!  - Ranks, roots and members are numbered from 0, as everywhere in DiOMP.
module diomp
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer(c_int), parameter, public :: &
        OMPX_SUCCESS = 0, OMPX_ERR_ARG = -1, OMPX_ERR_RANK = -2, OMPX_ERR_ADDRESS = -3, OMPX_ERR_RANGE = -4, &
        OMPX_ERR_NOMEM = -5, OMPX_ERR_MISMATCH = -6, OMPX_ERR_LOCK = -7, OMPX_ERR_STATE = -8, OMPX_ERR_TIMEOUT = -9, &
        OMPX_ERR_PEER = -10, OMPX_ERR_SYSTEM = -11, OMPX_ERR_UNSUPPORTED = -12, OMPX_ERR_BUSY = -13
    integer(c_int), parameter, public :: &
        OMPX_MEM_SYMMETRIC = 1, OMPX_MEM_ASYMMETRIC = 2, OMPX_MEM_LOCAL = 3
    integer(c_int), parameter, public :: OMPX_SIGNAL_SET = 0, OMPX_SIGNAL_ADD = 1
    integer(c_int), parameter, public :: &
        OMPX_CHANNEL_SENDER = 0, OMPX_CHANNEL_RECEIVER = 1, OMPX_NO_RANK = -1, OMPX_CART_MAX_DIMS = 32
    integer(c_int), parameter, public :: &
        OMPX_CMP_EQ = 0, OMPX_CMP_NE = 1, OMPX_CMP_GT = 2, OMPX_CMP_GE = 3, OMPX_CMP_LT = 4, OMPX_CMP_LE = 5
    integer(c_int32_t), parameter, public :: &
        OMPX_SUM = 1, OMPX_PROD = 2, OMPX_MIN = 3, OMPX_MAX = 4, OMPX_BAND = 5, OMPX_BOR = 6, OMPX_BXOR = 7, &
        OMPX_LAND = 8, OMPX_LOR = 9, OMPX_REPLACE = 10, OMPX_NO_OP = 11, OMPX_AVG = 12, OMPX_MINLOC = 13, OMPX_MAXLOC = 14
    integer(c_int), parameter, public :: &
        OMPX_ERRORS_ABORT = 0, OMPX_ERRORS_RETURN = 1, OMPX_ERRORS_INHERIT = 2, &
        OMPX_SCOPE_THREAD = 0, OMPX_SCOPE_LIBRARY = 1
    integer(c_int), parameter, public :: &
        OMPX_RMA_PUT = 1, OMPX_RMA_GET = 2, OMPX_RMA_ATOMIC = 4, OMPX_RMA_ALL = 7

    !> A group of ranks; the world by default.
    type, bind(c), public :: ompx_group_t
        integer(c_intptr_t) :: handle = 0
    end type
    !> A transfer or collective in flight; complete by default.
    type, bind(c), public :: ompx_event_t
        integer(c_intptr_t) :: handle = 0
    end type
    !> A set of operations that are completed apart from all others; none by default.
    type, bind(c), public :: ompx_context_t
        integer(c_intptr_t) :: handle = 0
    end type
    !> An end of a channel, and a grid of ranks; none by default.
    type, bind(c), public :: ompx_channel_t
        integer(c_intptr_t) :: handle = 0
    end type
    type, bind(c), public :: ompx_cart_t
        integer(c_intptr_t) :: handle = 0
    end type
    !> Target regions and updates that are launched again; none by default.
    type, bind(c), public :: ompx_plan_t
        integer(c_intptr_t) :: handle = 0
    end type
    type(ompx_channel_t), parameter, public :: OMPX_CHANNEL_NONE = ompx_channel_t(0)
    type(ompx_cart_t), parameter, public :: OMPX_CART_NONE = ompx_cart_t(0)
    type(ompx_plan_t), parameter, public :: OMPX_PLAN_NONE = ompx_plan_t(0)
    type(ompx_group_t), parameter, public :: ompx_group_world = ompx_group_t(0)
    type(ompx_group_t), parameter, public :: OMPX_GROUP_NONE = ompx_group_t(-1)

    interface operator(==)
        module procedure same_group, same_channel, same_cart, same_plan
    end interface
    public :: operator(==)

    public :: ompx_status_string, ompx_last_error, ompx_last_error_status, ompx_set_errors, ompx_errors_mode
    public :: ompx_init, ompx_finalize, ompx_is_initialized, ompx_abort
    public :: ompx_rank_num, ompx_num_ranks, ompx_local_rank_num, ompx_num_local_ranks
    public :: ompx_get_rank_num, ompx_get_num_ranks, ompx_get_local_rank_num, ompx_get_num_local_ranks
    public :: ompx_alloc, ompx_realloc, ompx_free, ompx_allocate, ompx_deallocate
    public :: ompx_register, ompx_unregister, ompx_remote_ptr, ompx_register_symmetric, ompx_unregister_symmetric
    public :: ompx_context_create, ompx_context_free, ompx_context_put_nb, ompx_context_get_nb, ompx_context_fence
    public :: ompx_context_put_signal_nb, ompx_context_atomic_fetch_nb, ompx_context_atomic_compare_swap_nb
    public :: ompx_put, ompx_get, ompx_put_nb, ompx_get_nb, ompx_event_test, ompx_event_wait, ompx_event_detach
    public :: ompx_put_signal_nb
    public :: ompx_put_signal, ompx_signal_wait, ompx_atomic_fetch, ompx_atomic_compare_swap, ompx_wait_until
    public :: ompx_progress, ompx_signal_test, ompx_signal_wait_fetch, ompx_wait_until_fetch, ompx_test_until
    public :: ompx_wait_until_any, ompx_wait_until_some, ompx_wait_until_all
    public :: ompx_test_until_any, ompx_test_until_some, ompx_test_until_all
    public :: ompx_event_wait_all, ompx_event_wait_any, ompx_atomic_fetch_nb, ompx_atomic_compare_swap_nb
    public :: ompx_fence_rank, ompx_order, ompx_sync
    public :: ompx_fence, ompx_barrier, ompx_waitRMA, ompx_waitALLRMA
    public :: ompx_lock, ompx_unlock, ompx_try_lock, ompx_lockt, ompx_unlockt, ompx_try_lockt
    public :: ompx_lock_at_init, ompx_lock_at, ompx_unlock_at, ompx_try_lock_at
    public :: ompx_channel_create, ompx_channel_free, ompx_channel_send, ompx_channel_try_send, ompx_channel_acquire
    public :: ompx_channel_try_acquire, ompx_channel_commit, ompx_channel_receive, ompx_channel_try_receive
    public :: ompx_channel_release, ompx_channel_test, ompx_channel_wait_any, ompx_channel_test_any
    public :: ompx_dims_create, ompx_cart_create, ompx_cart_free, ompx_cart_num_dims, ompx_cart_size, ompx_cart_dims
    public :: ompx_cart_rank, ompx_cart_coords, ompx_cart_shift, ompx_cart_exchange, ompx_cart_exchangev, ompx_cart_exchange_dim
    public :: ompx_group_create, ompx_group_split, ompx_group_merge, ompx_group_dup, ompx_group_free
    public :: ompx_group_size, ompx_group_rank, ompx_group_world_rank, ompx_group_split_node, ompx_group_node_members
    public :: ompx_bcast, ompx_reduce, ompx_allreduce, ompx_gather, ompx_scatter, ompx_allgather
    public :: ompx_reduce_scatter, ompx_alltoall, ompx_scan, ompx_exscan
    public :: ompx_gatherv, ompx_scatterv, ompx_allgatherv, ompx_alltoallv
    public :: ompx_target_gatherv, ompx_target_scatterv, ompx_target_allgatherv, ompx_target_alltoallv
    public :: ompx_num_rank_devices, ompx_rank_device, ompx_target_alloc, ompx_target_free, ompx_target_put
    public :: ompx_target_get, ompx_target_put_nb, ompx_target_get_nb, ompx_barrier_nb, ompx_bcast_nb
    public :: ompx_target_bcast, ompx_target_bcast_nb, ompx_reduce_nb, ompx_target_reduce, ompx_target_reduce_nb
    public :: ompx_allreduce_nb, ompx_target_allreduce, ompx_target_allreduce_nb, ompx_scan_nb, ompx_target_scan
    public :: ompx_target_scan_nb, ompx_exscan_nb, ompx_target_exscan, ompx_target_exscan_nb
    public :: ompx_reduce_scatter_nb, ompx_target_reduce_scatter, ompx_target_reduce_scatter_nb, ompx_gather_nb
    public :: ompx_target_gather, ompx_target_gather_nb, ompx_scatter_nb, ompx_target_scatter
    public :: ompx_target_scatter_nb, ompx_allgather_nb, ompx_target_allgather, ompx_target_allgather_nb
    public :: ompx_alltoall_nb, ompx_target_alltoall, ompx_target_alltoall_nb
    public :: ompx_plan_begin, ompx_plan_end, ompx_plan_launch, ompx_plan_launch_nb, ompx_plan_free

#include "procedures.inc"
#include "waits.inc"
#include "channels.inc"
#include "devices.inc"
#include "block_collectives.inc"

    !> status = ompx_allocate(array, shape [, kind]). Allocates global memory. `array` is a pointer of rank 1 to 3 to
    !> real, complex or integer elements of 4 or 8 bytes (parts of complex); the elements are undefined, the lower bounds
    !> 1. `kind` defaults to OMPX_MEM_SYMMETRIC; collective for symmetric and asymmetric memory. On an error
    !> (OMPX_ERR_NOMEM; OMPX_ERR_ARG for a negative extent) `array` is not associated.
    interface ompx_allocate
#define FORM(NAME, FREE, TYPE, DIMENSIONS, RANK) module procedure :: NAME
#include "forms.inc"
#undef FORM
    end interface
    !> Frees an array of ompx_allocate(); collective if the allocation was. The pointer is not associated afterwards.
    interface ompx_deallocate
#define FORM(NAME, FREE, TYPE, DIMENSIONS, RANK) module procedure :: FREE
#include "forms.inc"
#undef FORM
    end interface

contains

    pure logical function same_group(a, b)
        type(ompx_group_t), intent(in) :: a, b
        same_group = a%handle == b%handle
    end function

    pure logical function same_channel(a, b)
        type(ompx_channel_t), intent(in) :: a, b
        same_channel = a%handle == b%handle
    end function

    pure logical function same_cart(a, b)
        type(ompx_cart_t), intent(in) :: a, b
        same_cart = a%handle == b%handle
    end function

    pure logical function same_plan(a, b)
        type(ompx_plan_t), intent(in) :: a, b
        same_plan = a%handle == b%handle
    end function

    !> Blocks until one of the ends can be used without blocking; its number in `channels`, from 1, in `index`; 0: all
    !> are OMPX_CHANNEL_NONE.
    function ompx_channel_wait_any(channels, index) result(status)
        type(ompx_channel_t), intent(in) :: channels(:)
        integer, intent(out) :: index
        integer(c_int) :: status
        integer(c_size_t) :: found
        found = -1
        status = c_channel_wait_any(channels, size(channels, kind=c_size_t), found)
        index = int(found) + 1 ! OMPX_NO_INDEX is -1
    end function

    !> Returns 1, or 0 with index 0, or a negative status. Does not block.
    function ompx_channel_test_any(channels, index) result(status)
        type(ompx_channel_t), intent(in) :: channels(:)
        integer, intent(out) :: index
        integer(c_int) :: status
        integer(c_size_t) :: found
        found = -1
        status = c_channel_test_any(channels, size(channels, kind=c_size_t), found)
        index = int(found) + 1
    end function

    !> Blocks until all events are complete.
    function ompx_event_wait_all(events) result(status)
        type(ompx_event_t), intent(inout) :: events(:)
        integer(c_int) :: status
        status = c_event_wait_all(events, size(events, kind=c_size_t))
    end function

    !> Blocks until one of the events is complete; its number, from 1, in `index`; 0: all are left out. Elements for
    !> which `skip` is true are left out.
    function ompx_event_wait_any(events, index, skip) result(status)
        type(ompx_event_t), intent(inout) :: events(:)
        integer(c_int), intent(out) :: index
        logical, intent(in), optional :: skip(:)
        integer(c_int) :: status
        integer(c_int) :: left_out(size(events))
        left_out = 0
        if (present(skip)) left_out = merge(1, 0, skip(:size(events)))
        status = c_event_wait_any(events, size(events, kind=c_size_t), left_out, index)
    end function

    !> Text of a status code.
    function ompx_status_string(status) result(text)
        integer(c_int), intent(in) :: status
        character(:), allocatable :: text
        interface
            function c_status_string(status) bind(c, name="ompx_status_string")
                import :: c_int, c_ptr
                integer(c_int), value :: status
                type(c_ptr) :: c_status_string
            end function
        end interface
        text = string_of(c_status_string(status))
    end function

    !> Text of the calling thread's last error; "" if there is none.
    function ompx_last_error() result(text)
        character(:), allocatable :: text
        interface
            function c_last_error() bind(c, name="ompx_last_error")
                import :: c_ptr
                type(c_ptr) :: c_last_error
            end function
        end interface
        text = string_of(c_last_error())
    end function

    function string_of(address) result(text)
        type(c_ptr), intent(in) :: address
        character(:), allocatable :: text
        character(c_char), pointer :: bytes(:)
        integer(c_size_t) :: length, i
        interface
            pure function c_strlen(text) bind(c, name="strlen")
                import :: c_size_t, c_ptr
                type(c_ptr), value, intent(in) :: text
                integer(c_size_t) :: c_strlen
            end function
        end interface
        length = c_strlen(address)
        call c_f_pointer(address, bytes, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = bytes(i)
        end do
    end function

#define FORM(NAME, FREE, TYPE, DIMENSIONS, RANK) \
    function NAME(array, shape, kind) result(status) ;\
        TYPE, pointer, intent(out) :: array DIMENSIONS ;\
        integer, intent(in) :: shape(RANK) ;\
        integer(c_int), intent(in), optional :: kind ;\
        integer(c_int) :: status ;\
        type(c_ptr) :: address ;\
        TYPE :: element ;\
        nullify (array) ;\
        status = c_allocate(shape, RANK, int(storage_size(element)/8, c_size_t), kind, address) ;\
        if (status == OMPX_SUCCESS) call c_f_pointer(address, array, shape) ;\
    end function ;\
    function FREE(array) result(status) ;\
        TYPE, pointer, intent(inout) :: array DIMENSIONS ;\
        integer(c_int) :: status ;\
        status = OMPX_SUCCESS ;\
        if (associated(array)) status = free_array(array) ;\
        nullify (array) ;\
    end function
#include "forms.inc"
#undef FORM

end module diomp
