! The C interface of Scalide's runtime: the part of scalide.h that this example needs.
module scalide
    use iso_c_binding
    implicit none

    integer, parameter :: max_rank = 8
    integer(c_int32_t), parameter :: f32 = 0  ! SCALIDE_F32 of dtypes.h
    integer(c_int), parameter :: ok = 0       ! SCALIDE_OK

    type, bind(c) :: scalide_array
        type(c_ptr) :: data = c_null_ptr, scale = c_null_ptr
        integer(c_int32_t) :: dtype = f32, rank = 0
        integer(c_int64_t) :: extent(max_rank) = 0, stride(max_rank) = 0
    end type

    interface
        integer(c_int) function scalide_context_create(options, context) bind(c)
            import
            type(c_ptr), value :: options
            type(c_ptr), intent(out) :: context
        end function
        subroutine scalide_context_destroy(context) bind(c)
            import
            type(c_ptr), value :: context
        end subroutine
        type(c_ptr) function scalide_message(context) bind(c)
            import
            type(c_ptr), value :: context
        end function
        type(c_ptr) function scalide_status_string(status) bind(c)
            import
            integer(c_int), value :: status
        end function
        integer(c_int) function scalide_allocate(context, bytes, memory) bind(c)
            import
            type(c_ptr), value :: context
            integer(c_size_t), value :: bytes
            type(c_ptr), intent(out) :: memory
        end function
        subroutine scalide_release(context, memory) bind(c)
            import
            type(c_ptr), value :: context, memory
        end subroutine
        integer(c_int) function scalide_bind(context, program, arrays, count, binding) bind(c)
            import
            type(c_ptr), value :: context, program
            type(scalide_array), intent(in) :: arrays(*)
            integer(c_size_t), value :: count
            type(c_ptr), intent(out) :: binding
        end function
        integer(c_int) function scalide_run(binding) bind(c)
            import
            type(c_ptr), value :: binding
        end function
        subroutine scalide_binding_destroy(binding) bind(c)
            import
            type(c_ptr), value :: binding
        end subroutine
        integer(c_size_t) function strlen(text) bind(c)
            import
            type(c_ptr), value :: text
        end function
    end interface

contains

    ! Describes memory as an array of the program. Scalide's arrays are row-major, so `shape` is the reverse of the Fortran shape.
    type(scalide_array) function array_of(data, shape) result(array)
        type(c_ptr), intent(in) :: data
        integer, intent(in) :: shape(:)
        integer :: axis
        array%data = data
        array%rank = size(shape)
        do axis = 1, size(shape)
            array%extent(axis) = shape(axis)
            array%stride(axis) = product(int(shape(axis + 1:), c_int64_t))
        end do
    end function

    function text_of(address) result(text)
        type(c_ptr), intent(in) :: address
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        call c_f_pointer(address, letters, [strlen(address)])
        allocate (character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

end module
