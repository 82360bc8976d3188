! Fits y = x * w to four points. The program `fit` and the runtime are shared libraries.
program main
    use scalide
    implicit none

    interface
        type(c_ptr) function fit_program() bind(c)
            import
        end function
    end interface

    ! The program has x: f32[n, 2]. Its rows are the columns of this array.
    real(c_float), target :: x(2, 4) = reshape([0, 1, 1, 1, 1, -1, -1, 1], [2, 4])
    real(c_float), target :: y(4) = [1, 3, 1, -1], loss
    real(c_float), pointer :: w(:)
    type(scalide_array) :: arrays(4)
    type(c_ptr) :: context, binding, memory
    integer(c_int) :: status
    integer :: i

    status = scalide_context_create(c_null_ptr, context)
    if (status /= ok) then
        print '(a)', text_of(scalide_status_string(status))
        error stop 1
    end if
    ! An array that a run updates in place needs an alignment of 64 bytes.
    call check(scalide_allocate(context, c_sizeof(loss) * 2, memory))
    call c_f_pointer(memory, w, [2])
    w = 0

    arrays = [array_of(c_loc(x), [4, 2]), array_of(c_loc(y), [4]), array_of(memory, [2]), array_of(c_loc(loss), [integer ::])]
    call check(scalide_bind(context, fit_program(), arrays, size(arrays, kind=c_size_t), binding))
    do i = 1, 100
        call check(scalide_run(binding))
    end do
    call scalide_binding_destroy(binding)
    print '(a, f5.3, 1x, f5.3, a, f8.6)', 'w = ', w, ', loss ', loss
    if (any(abs(w - [2, 1]) > 1e-3)) error stop 'the fit is wrong'

    arrays(2) = array_of(c_loc(y), [3])
    if (scalide_bind(context, fit_program(), arrays, size(arrays, kind=c_size_t), binding) /= ok) then
        print '(2a)', 'a wrong shape: ', text_of(scalide_message(context))
    end if
    call scalide_release(context, memory)
    call scalide_context_destroy(context)

contains

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status == ok) return
        print '(a)', text_of(scalide_message(context))
        error stop 1
    end subroutine

end program
