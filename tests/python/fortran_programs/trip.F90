! Usage: trip FOLDER INTEGER_OF_MPI_COMM_WORLD
!
! Writes sections of arrays with halo, strided and of all kinds of numbers, and reads them back on all ranks.
program trip
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use hyperslab
    implicit none

    interface
        integer(c_int) function mpi_init_of_c(argc, argv) bind(C, name='MPI_Init')
            import
            type(c_ptr), value :: argc, argv
        end function
        integer(c_int) function mpi_finalize_of_c() bind(C, name='MPI_Finalize')
            import
        end function
    end interface

    integer, parameter :: nx = 9, ny = 14, nz = 3
    character(1024) :: folder
    character(16) :: world
    type(hyperslab_comm) :: comm
    integer :: number

    call get_command_argument(1, folder)
    call get_command_argument(2, world)
    read (world, *) number
    if (mpi_init_of_c(c_null_ptr, c_null_ptr) /= 0) error stop 'MPI_Init'
    call comm%connect(number)
    call walk_through(trim(folder)//'/trip.h5')
    call walk_through(trim(folder)//'/trip.zarr')
    call fail(trim(folder))
    if (comm%rank() == 0) print '(a)', 'all is well'
    call comm%free()
    if (mpi_finalize_of_c() /= 0) error stop 'MPI_Finalize'

contains

    subroutine expect(that, what)
        logical, intent(in) :: that
        character(*), intent(in) :: what
        if (.not. that) error stop 'not as expected: '//what
    end subroutine

    !> The value of an element of the whole array, by its indices from 1 on.
    pure real(real64) function value_at(i, j, k)
        integer, intent(in) :: i, j, k
        value_at = i + 100*j + 10000*k
    end function

    subroutine walk_through(path)
        character(*), intent(in) :: path
        type(hyperslab_dist) :: rows, cells, four
        type(hyperslab_file) :: file, step, group
        real(real64), allocatable :: u(:, :, :), back(:, :, :)
        integer(int32), allocatable :: wide(:, :)
        complex(real32) :: c(4)
        real(real32), pointer :: line(:)
        integer :: part(3), flat(2), at(3), i, j, k, found(2)
        integer, allocatable :: shape(:)
        real(real64) :: corner(2, 2, 1), time(3)
        real(real64), target :: scalar

        call rows%hpf(comm, [nx, ny, nz], [comm%size()], [hyperslab_whole(), hyperslab_block(), hyperslab_whole()])
        call rows%local_shape(part)
        allocate (u(0:part(1) + 1, 0:part(2) + 1, part(3)), back(part(1) + 2, part(2) + 4, part(3)))
        u = -1
        do k = 1, part(3)
            do j = 1, part(2)
                do i = 1, part(1)
                    call rows%to_global([i, j, k], at)
                    u(i, j, k) = value_at(at(1), at(2), at(3))
                end do
            end do
        end do

        call file%open(comm, path, 'w', durable=.false.)
        ! Without a copy: the part of an array with a halo.
        call file%write('u', u(1:part(1), 1:part(2), :), rows)

        ! Every other row, from the last to the first.
        call cells%hpf(comm, [nx, ny], [comm%size()], [hyperslab_cyclic(2), hyperslab_whole()])
        call cells%local_shape(flat)
        allocate (wide(2*flat(1) + 1, flat(2)))
        wide = -7
        do j = 1, flat(2)
            do i = 1, flat(1)
                call cells%to_global([i, j], found)
                wide(2*(flat(1) - i + 1), j) = int(value_at(found(1), found(2), 0))
            end do
        end do
        call file%write('w', wide(2*flat(1):2:-2, :), cells)

        ! Other kinds, alike on all ranks, of one dimension and of none.
        call four%replicated(comm, [4])
        c = [(cmplx(i, -i, real32), i=1, 4)]
        allocate (line(8))
        line = [(real(i, real32), i=1, 8)]
        call file%write('c', c, four)
        call file%write('line', line(8:1:-2), four)
        call file%write('i1', int([1, 2, 3, 4], int8), four)
        call file%write('i2', int([1, 2, 3, 4], int16), four)
        call file%write('i8', int([1, 2, 3, 4], int64)*10000000000_int64, four)

        call file%set_attribute('time', [0.5_real64, 1.5_real64, -2.0_real64])
        call file%set_attribute('number', 42, array='u')
        call file%set_text('units', 'kg m-3', array='u')
        call file%step('s1', step)
        call step%write('line', line(1:4), four)
        call step%close()
        call file%close()

        call file%open(comm, path, 'r+', durable=.false.)
        call file%shape('u', shape)
        call expect(size(shape) == 3, 'number of dimensions')
        call expect(all(shape == [nx, ny, nz]), 'shape')
        back = -1
        call file%read('u', back(2:part(1) + 1, 3:part(2) + 2, :), rows)
        call expect(all_equal(back(2:part(1) + 1, 3:part(2) + 2, :), u(1:part(1), 1:part(2), :)), 'what is read')
        call expect(count(back /= -1) == part(1)*part(2)*part(3), 'the halo of what is read')
        ! Elements 2 and 6 along x, 3 and 4 along y, and the last along z.
        call file%read('u', corner, start=[2, 3, nz], count=[2, 2, 1], step=[4, 1, 1])
        do j = 1, 2
            do i = 1, 2
                call expect(corner(i, j, 1) == value_at(4*i - 2, j + 2, nz), 'a section')
            end do
        end do
        call file%get_attribute('time', time)
        call expect(time(1) == 0.5 .and. time(2) == 1.5 .and. time(3) == -2, 'an attribute')
        call file%get_attribute('number', scalar, array='u')
        call expect(scalar == 42, 'an attribute of an array')
        call file%group('s1', group)
        line = 0
        call group%read('line', line(1:7:2))
        call expect(line(7) == 4 .and. line(2) == 0, 'a step')
        call group%close()
        call file%delete('i1')
        call file%flush()
        call file%close()
        deallocate (line)
        call rows%free()
        call cells%free()
        call four%free()
    end subroutine

    logical function all_equal(a, b)
        real(real64), intent(in) :: a(:, :, :), b(:, :, :)
        all_equal = .not. any(a /= b)
    end function

    subroutine fail(folder)
        character(*), intent(in) :: folder
        type(hyperslab_file) :: file
        type(hyperslab_dist) :: dist
        character(200) :: errmsg
        character(3) :: words(2)
        logical :: truths(2)
        integer :: stat
        call file%open(comm, folder//'/missing.h5', 'r', stat=stat, errmsg=errmsg)
        call expect(stat == 4 .and. index(errmsg, 'missing.h5') > 0, 'an error')
        call file%open(comm, folder//'/failing.zarr', 'w', stat=stat)
        call expect(stat == 0, 'no error')
        call dist%replicated(comm, [2])
        words = 'abc'
        ! gfortran 12 takes the length of words for that of errmsg.
        call file%write('words', words, dist, stat=stat)
        call expect(stat == 9, 'characters are refused')
        truths = .true.
        call file%write('truths', truths, dist, stat=stat, errmsg=errmsg)
        call expect(stat == 9 .and. index(errmsg, 'logical arrays of Fortran cannot be moved') > 0, trim(errmsg))
        call file%close()
        call dist%free()
        call dist%blocks(comm, [-1], stat, errmsg)
        call expect(stat == 1 .and. index(errmsg, 'negative') > 0, trim(errmsg))
    end subroutine
end program
