! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! What the tests of the Fortran module share.
module checks
    use diomp
    implicit none
contains
    !> Ends the job if `holds` is false.
    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) then
            print '(a,i0,2a)', "rank ", ompx_rank_num(), ": wrong: ", what
            call ompx_abort(1)
        end if
    end subroutine
    subroutine succeed(status, what)
        integer, intent(in) :: status
        character(*), intent(in) :: what
        call check(status == OMPX_SUCCESS, what//": "//ompx_status_string(status))
    end subroutine
end module checks
