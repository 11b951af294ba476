! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! What the tests of the Fortran module share.
module checks
    use, intrinsic :: iso_fortran_env, only: output_unit
    use diomp
    implicit none
    private :: output_unit
contains
    !> Ends the job if `holds` is false.
    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) then
            print '(a,i0,2a)', "rank ", ompx_rank_num(), ": wrong: ", what
            flush (output_unit)
            call ompx_abort(1)
        end if
    end subroutine
    subroutine succeed(status, what)
        integer, intent(in) :: status
        character(*), intent(in) :: what
        call check(status == OMPX_SUCCESS, what//": "//ompx_status_string(status))
    end subroutine
    !> For programs with DIOMP_ERRORS=return: `words` are in the text of the error that gave `status`.
    subroutine expect_error(status, wanted, words)
        integer, intent(in) :: status, wanted
        character(*), intent(in) :: words
        call check(status == wanted, words//" gives "//ompx_status_string(status))
        call check(index(ompx_last_error(), words) > 0, "'"//words//"' is not in '"//ompx_last_error()//"'")
    end subroutine
end module checks
