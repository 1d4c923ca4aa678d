! hyperslab: collective I/O of distributed arrays, from Fortran 2018.
!
! This file is compiled with your program by your compiler, and linked with libhyperslab: no module file is shipped, since those
! of two compilers, or two versions of one, do not fit each other. docs/fortran.md has a first program.
!
! Dimensions are in the order of Fortran: u(nx, ny) is an array of shape (ny, nx) in the file, as HDF5 and NetCDF have it. Indices
! begin at 1. A section of an array, such as u(2:nx-1, 2:ny-1), is written and read where it lies, without a copy.
!
! A failure prints its message and ends the programs of all ranks, unless stat= is given: that is 0 or the kind of failure, and
! errmsg= says what went wrong. With HYPERSLAB_MPI_F08 defined, communicators may also be of type(MPI_Comm).
module hyperslab
    use, intrinsic :: iso_c_binding
#ifdef HYPERSLAB_MPI_F08
    use mpi_f08, only: MPI_Comm
#endif
    implicit none
    private

#if defined(__GFORTRAN__)
    integer(c_int), parameter :: compiler = 1
#else
#error "hyperslab.F90 is known to work with gfortran only: how your compiler describes arrays is not known to the library"
#endif

    public :: hyperslab_comm, hyperslab_dist, hyperslab_dim, hyperslab_file
    public :: hyperslab_block, hyperslab_cyclic, hyperslab_whole

    !> Most dimensions of an array in Fortran, and of one that the library describes.
    integer, parameter :: most = 15, most_of_c = 32

    !> One rank's membership in a communicator.
    type :: hyperslab_comm
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, private :: connect_integer
#ifdef HYPERSLAB_MPI_F08
        procedure, private :: connect_f08
        generic :: connect => connect_integer, connect_f08
#else
        !> A duplicate of an MPI communicator. Collective.
        generic :: connect => connect_integer
#endif
        !> This process alone, which needs no MPI.
        procedure :: alone => comm_alone
        procedure :: rank => comm_rank
        procedure :: size => comm_size
        !> Ends the membership, before MPI_Finalize. Collective.
        procedure :: free => comm_free
    end type

    !> How one dimension is spread over the mesh of ranks.
    type :: hyperslab_dim
        private
        integer(c_int32_t) :: kind = 3
        integer(c_int64_t) :: block = 0
    end type

    !> Which rank holds which elements.
    type :: hyperslab_dist
        private
        type(c_ptr) :: handle = c_null_ptr, comm = c_null_ptr
    contains
        !> Equal blocks of all dimensions.
        procedure :: blocks => dist_blocks
        !> As HPF says, over a mesh of ranks: dimensions that are distributed take those of the mesh in turn.
        procedure :: hpf => dist_hpf
        !> All of it on each rank.
        procedure :: replicated => dist_replicated
        !> Extents of this rank's part.
        procedure :: local_shape => dist_local_shape
        !> Where an element of this rank's part is in the whole array.
        procedure :: to_global => dist_to_global
        procedure :: free => dist_free
    end type

    !> What is open and holds arrays: a file of one format, a Zarr group, a group of either, or a step.
    type :: hyperslab_file
        private
        type(c_ptr) :: handle = c_null_ptr, comm = c_null_ptr
    contains
        !> Opens a path in mode "r", "r+", "a", "w" or "x". Collective.
        procedure :: open => file_open
        !> Ends its use; publishes a step or a new file. Collective.
        procedure :: close => file_close
        !> Ends it, and gives a step or a new file up. Collective.
        procedure :: give_up => file_give_up
        procedure :: flush => file_flush
        !> Opens a group in it. Collective.
        procedure :: group => file_group
        !> Begins a step in it, which is visible when it is closed. Collective.
        procedure :: step => file_step
        !> Writes a new array, or a section of one that is there: count elements from start on, step apart. Collective.
        procedure :: write => file_write
        !> Reads an array, or a section of it. Collective.
        procedure :: read => file_read
        !> Makes an array longer along a dimension, the last one if none is said. Collective.
        procedure :: append => file_append
        !> Extents of an array. Collective.
        procedure :: shape => file_shape
        procedure :: delete => file_delete
        !> Sets an attribute, of an array if one is named, to numbers or to a text; gets numbers. Collective.
        procedure :: set_attribute => file_set_attribute
        procedure :: set_text => file_set_text
        procedure :: get_attribute => file_get_attribute
    end type

    !> Structs of the header. Those of options begin with their size, and may end early.
    type, bind(C) :: memory_of_c
        integer(c_size_t) :: size
        type(c_ptr) :: data
        integer(c_int32_t) :: type, ndim
        type(c_ptr) :: shape, strides, offsets, code
    end type

    type, bind(C) :: section_of_c
        integer(c_size_t) :: size
        integer(c_int32_t) :: ndim, reserved
        type(c_ptr) :: start, count, step, block
    end type

    type, bind(C) :: dim_of_c
        integer(c_int32_t) :: kind, mesh_dim
        integer(c_int64_t) :: block
        type(c_ptr) :: sizes
    end type

    type, bind(C) :: open_options_of_c
        integer(c_size_t) :: size
        type(c_ptr) :: format
        integer(c_int32_t) :: durable, servers
    end type

    type, bind(C) :: info_of_c
        integer(c_size_t) :: size
        integer(c_int32_t) :: type, ndim
        integer(c_int64_t) :: item_bytes, shape(most_of_c), chunks(most_of_c)
    end type

    interface
        integer(c_size_t) function hyperslab_error_message(buffer, size) bind(C)
            import
            character(kind=c_char), intent(out) :: buffer(*)
            integer(c_size_t), value :: size
        end function

        integer(c_int) function hyperslab_comm_from_integer(integer_of, comm) bind(C)
            import
            integer(c_int), value :: integer_of
            type(c_ptr), intent(out) :: comm
        end function

        integer(c_int) function hyperslab_comm_alone(comm) bind(C)
            import
            type(c_ptr), intent(out) :: comm
        end function

        integer(c_int) function hyperslab_comm_free(comm) bind(C)
            import
            type(c_ptr), value :: comm
        end function

        integer(c_int) function hyperslab_comm_rank(comm, rank) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t), intent(out) :: rank
        end function

        integer(c_int) function hyperslab_comm_size(comm, size) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t), intent(out) :: size
        end function

        integer(c_int) function hyperslab_set_errors(comm, errors) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int), value :: errors
        end function

        integer(c_int) function hyperslab_dist_block(comm, ndim, shape, dist) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t), value :: ndim
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), intent(out) :: dist
        end function

        integer(c_int) function hyperslab_dist_replicated(comm, ndim, shape, dist) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t), value :: ndim
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), intent(out) :: dist
        end function

        integer(c_int) function hyperslab_dist_hpf(comm, ndim, shape, mesh_ndim, mesh, dims, dist) bind(C)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t), value :: ndim, mesh_ndim
            integer(c_int64_t), intent(in) :: shape(*), mesh(*)
            type(dim_of_c), intent(in) :: dims(*)
            type(c_ptr), intent(out) :: dist
        end function

        integer(c_int) function hyperslab_dist_local_shape(dist, part, ndim, shape) bind(C)
            import
            type(c_ptr), value :: dist
            integer(c_int64_t), value :: part
            integer(c_int32_t), intent(out) :: ndim
            integer(c_int64_t), intent(out) :: shape(*)
        end function

        integer(c_int) function hyperslab_dist_to_global(dist, part, local, global) bind(C)
            import
            type(c_ptr), value :: dist
            integer(c_int64_t), value :: part
            integer(c_int64_t), intent(in) :: local(*)
            integer(c_int64_t), intent(out) :: global(*)
        end function

        subroutine hyperslab_dist_free(dist) bind(C)
            import
            type(c_ptr), value :: dist
        end subroutine

        integer(c_int) function hyperslab_memory_of_fortran(values, compiler, memory, shape, strides) bind(C)
            import
            type(*), dimension(..), intent(in) :: values
            integer(c_int), value :: compiler
            type(memory_of_c), intent(out) :: memory
            integer(c_int64_t), intent(out) :: shape(*), strides(*)
        end function

        integer(c_int) function hyperslab_open(comm, path, mode, options, file) bind(C)
            import
            type(c_ptr), value :: comm
            character(kind=c_char), intent(in) :: path(*), mode(*)
            type(open_options_of_c), intent(in) :: options
            type(c_ptr), intent(out) :: file
        end function

        integer(c_int) function hyperslab_close(file) bind(C)
            import
            type(c_ptr), value :: file
        end function

        integer(c_int) function hyperslab_give_up(file, why) bind(C)
            import
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: why(*)
        end function

        integer(c_int) function hyperslab_flush(file) bind(C)
            import
            type(c_ptr), value :: file
        end function

        integer(c_int) function hyperslab_open_group(file, name, inner) bind(C)
            import
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: inner
        end function

        integer(c_int) function hyperslab_begin_step(file, name, attributes, step) bind(C)
            import
            type(c_ptr), value :: file, attributes
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: step
        end function

        integer(c_int) function hyperslab_write(file, name, memory, dist, section, options) bind(C)
            import
            type(c_ptr), value :: file, dist, section, options
            character(kind=c_char), intent(in) :: name(*)
            type(memory_of_c), intent(in) :: memory
        end function

        integer(c_int) function hyperslab_read(file, name, memory, dist, section) bind(C)
            import
            type(c_ptr), value :: file, dist, section
            character(kind=c_char), intent(in) :: name(*)
            type(memory_of_c), intent(in) :: memory
        end function

        integer(c_int) function hyperslab_append(file, name, axis, memory, dist) bind(C)
            import
            type(c_ptr), value :: file, dist
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: axis
            type(memory_of_c), intent(in) :: memory
        end function

        integer(c_int) function hyperslab_info(file, name, info) bind(C)
            import
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
            type(info_of_c), intent(inout) :: info
        end function

        integer(c_int) function hyperslab_delete(file, name) bind(C)
            import
            type(c_ptr), value :: file
            character(kind=c_char), intent(in) :: name(*)
        end function

        integer(c_int) function hyperslab_attributes_create(attributes) bind(C)
            import
            type(c_ptr), intent(out) :: attributes
        end function

        subroutine hyperslab_attributes_free(attributes) bind(C)
            import
            type(c_ptr), value :: attributes
        end subroutine

        integer(c_int) function hyperslab_attributes_set(attributes, name, kind, ndim, shape, data) bind(C)
            import
            type(c_ptr), value :: attributes, data
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind, ndim
            integer(c_int64_t), intent(in) :: shape(*)
        end function

        integer(c_int) function hyperslab_attributes_set_text(attributes, name, text) bind(C)
            import
            type(c_ptr), value :: attributes
            character(kind=c_char), intent(in) :: name(*), text(*)
        end function

        integer(c_int) function hyperslab_attributes_get(attributes, name, kind, count, data) bind(C)
            import
            type(c_ptr), value :: attributes, data
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: kind
            integer(c_int64_t), value :: count
        end function

        integer(c_int) function hyperslab_attributes_of(file, name, attributes) bind(C)
            import
            type(c_ptr), value :: file, name
            type(c_ptr), intent(out) :: attributes
        end function

        integer(c_int) function hyperslab_edit_attributes(file, name, attributes, count, removed) bind(C)
            import
            type(c_ptr), value :: file, name, attributes, removed
            integer(c_int64_t), value :: count
        end function
    end interface

contains

    !> Says what becomes of failures of the next call: they are returned where the caller asks for them.
    subroutine begin(comm, stat)
        type(c_ptr), intent(in) :: comm
        integer, intent(in), optional :: stat
        integer(c_int) :: ignored
        if (c_associated(comm)) ignored = hyperslab_set_errors(comm, merge(0_c_int, 1_c_int, present(stat)))
    end subroutine

    !> Gives the caller the status of a call, or ends the program where it is not taken.
    subroutine finish(status, stat, errmsg)
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char) :: buffer(4096)
        character(len=size(buffer)) :: text
        integer(c_size_t) :: length
        integer :: i
        if (present(stat)) stat = int(status)
        if (status == 0) return
        length = hyperslab_error_message(buffer, size(buffer, kind=c_size_t))
        text = ''
        do i = 1, int(min(length, size(buffer, kind=c_size_t) - 1))
            text(i:i) = buffer(i)
        end do
        if (present(errmsg)) errmsg = text
        if (.not. present(stat)) error stop 'hyperslab: '//trim(text)
    end subroutine

    !> The same numbers in the order of C.
    pure function reversed(numbers) result(order_of_c)
        integer(c_int64_t), intent(in) :: numbers(:)
        integer(c_int64_t) :: order_of_c(size(numbers))
        order_of_c = numbers(size(numbers):1:-1)
    end function

    pure function text_of_c(text) result(ended)
        character(*), intent(in) :: text
        character(len_trim(text) + 1) :: ended
        ended = trim(text)//c_null_char
    end function

    ! ---- communicators ----------------------------------------------------------------------------------------------------

    subroutine connect_integer(this, comm, stat, errmsg)
        class(hyperslab_comm), intent(inout) :: this
        integer, intent(in) :: comm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call finish(hyperslab_comm_from_integer(int(comm, c_int), this%handle), stat, errmsg)
    end subroutine

#ifdef HYPERSLAB_MPI_F08
    subroutine connect_f08(this, comm, stat, errmsg)
        class(hyperslab_comm), intent(inout) :: this
        type(MPI_Comm), intent(in) :: comm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call connect_integer(this, comm%mpi_val, stat, errmsg)
    end subroutine
#endif

    subroutine comm_alone(this, stat, errmsg)
        class(hyperslab_comm), intent(inout) :: this
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call finish(hyperslab_comm_alone(this%handle), stat, errmsg)
    end subroutine

    integer function comm_rank(this)
        class(hyperslab_comm), intent(in) :: this
        integer(c_int32_t) :: rank
        call finish(hyperslab_comm_rank(this%handle, rank))
        comm_rank = int(rank)
    end function

    integer function comm_size(this)
        class(hyperslab_comm), intent(in) :: this
        integer(c_int32_t) :: ranks
        call finish(hyperslab_comm_size(this%handle, ranks))
        comm_size = int(ranks)
    end function

    subroutine comm_free(this, stat, errmsg)
        class(hyperslab_comm), intent(inout) :: this
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call begin(this%handle, stat)
        call finish(hyperslab_comm_free(this%handle), stat, errmsg)
        this%handle = c_null_ptr
    end subroutine

    ! ---- distributions ----------------------------------------------------------------------------------------------------

    pure type(hyperslab_dim) function hyperslab_block(n)
        integer, intent(in), optional :: n
        hyperslab_block%kind = 1
        if (present(n)) hyperslab_block%block = n
    end function

    pure type(hyperslab_dim) function hyperslab_cyclic(k)
        integer, intent(in), optional :: k
        hyperslab_cyclic%kind = 2
        if (present(k)) hyperslab_cyclic%block = k
    end function

    pure type(hyperslab_dim) function hyperslab_whole()
        hyperslab_whole%kind = 3
    end function

    subroutine dist_blocks(this, comm, shape, stat, errmsg)
        class(hyperslab_dist), intent(inout) :: this
        type(hyperslab_comm), intent(in) :: comm
        integer, intent(in) :: shape(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call begin(comm%handle, stat)
        this%comm = comm%handle
        call finish(hyperslab_dist_block(comm%handle, size(shape, kind=c_int32_t), &
            reversed(int(shape, c_int64_t)), this%handle), stat, errmsg)
    end subroutine

    subroutine dist_replicated(this, comm, shape, stat, errmsg)
        class(hyperslab_dist), intent(inout) :: this
        type(hyperslab_comm), intent(in) :: comm
        integer, intent(in) :: shape(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call begin(comm%handle, stat)
        this%comm = comm%handle
        call finish(hyperslab_dist_replicated(comm%handle, size(shape, kind=c_int32_t), &
            reversed(int(shape, c_int64_t)), this%handle), stat, errmsg)
    end subroutine

    subroutine dist_hpf(this, comm, shape, mesh, dims, stat, errmsg)
        class(hyperslab_dist), intent(inout) :: this
        type(hyperslab_comm), intent(in) :: comm
        integer, intent(in) :: shape(:), mesh(:)
        type(hyperslab_dim), intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(dim_of_c) :: given(size(shape))
        integer(c_int32_t) :: next
        integer :: i, place
        if (size(dims) /= size(shape)) then
            if (.not. present(stat)) error stop 'hyperslab: hpf needs as many dims as the shape has extents'
            stat = 1
            if (present(errmsg)) errmsg = 'hpf needs as many dims as the shape has extents'
            return
        end if
        next = 1
        do i = 1, size(dims)
            place = size(dims) + 1 - i
            given(place) = dim_of_c(dims(i)%kind, 0, dims(i)%block, c_null_ptr)
            if (dims(i)%kind /= 3) then
                given(place)%mesh_dim = next
                next = next + 1
            end if
        end do
        call begin(comm%handle, stat)
        this%comm = comm%handle
        call finish(hyperslab_dist_hpf(comm%handle, size(shape, kind=c_int32_t), reversed(int(shape, c_int64_t)), &
            size(mesh, kind=c_int32_t), int(mesh, c_int64_t), given, this%handle), stat, errmsg)
    end subroutine

    subroutine dist_local_shape(this, shape)
        class(hyperslab_dist), intent(in) :: this
        integer, intent(out) :: shape(:)
        integer(c_int64_t) :: found(most_of_c)
        integer(c_int32_t) :: ndim
        call finish(hyperslab_dist_local_shape(this%handle, 0_c_int64_t, ndim, found))
        if (ndim /= size(shape)) error stop 'hyperslab: local_shape has another number of dimensions'
        shape = int(reversed(found(:ndim)))
    end subroutine

    subroutine dist_to_global(this, local, global)
        class(hyperslab_dist), intent(in) :: this
        integer, intent(in) :: local(:)
        integer, intent(out) :: global(:)
        integer(c_int64_t) :: found(most_of_c)
        call finish(hyperslab_dist_to_global(this%handle, 0_c_int64_t, reversed(int(local - 1, c_int64_t)), found))
        global = int(reversed(found(:size(local)))) + 1
    end subroutine

    subroutine dist_free(this)
        class(hyperslab_dist), intent(inout) :: this
        call hyperslab_dist_free(this%handle)
        this%handle = c_null_ptr
    end subroutine

    ! ---- files ------------------------------------------------------------------------------------------------------------

    subroutine file_open(this, comm, path, mode, format, durable, stat, errmsg)
        class(hyperslab_file), intent(inout) :: this
        type(hyperslab_comm), intent(in) :: comm
        character(*), intent(in) :: path, mode
        character(*), intent(in), optional :: format
        logical, intent(in), optional :: durable
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), target :: named(64)
        type(open_options_of_c) :: options
        options = open_options_of_c(c_sizeof(options), c_null_ptr, 0, 0)
        if (present(format)) then
            named = transfer(text_of_c(format), named, size(named))
            named(min(len_trim(format) + 1, size(named))) = c_null_char
            options%format = c_loc(named)
        end if
        if (present(durable)) options%durable = merge(1, 2, durable)
        call begin(comm%handle, stat)
        this%comm = comm%handle
        call finish(hyperslab_open(comm%handle, text_of_c(path), text_of_c(mode), options, this%handle), stat, errmsg)
    end subroutine

    subroutine file_close(this, stat, errmsg)
        class(hyperslab_file), intent(inout) :: this
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: handle
        handle = this%handle
        this%handle = c_null_ptr
        call begin(this%comm, stat)
        call finish(hyperslab_close(handle), stat, errmsg)
    end subroutine

    subroutine file_give_up(this, why, stat, errmsg)
        class(hyperslab_file), intent(inout) :: this
        character(*), intent(in) :: why
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: handle
        handle = this%handle
        this%handle = c_null_ptr
        call begin(this%comm, stat)
        call finish(hyperslab_give_up(handle, text_of_c(why)), stat, errmsg)
    end subroutine

    subroutine file_flush(this, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call begin(this%comm, stat)
        call finish(hyperslab_flush(this%handle), stat, errmsg)
    end subroutine

    subroutine file_group(this, name, inner, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(hyperslab_file), intent(inout) :: inner
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        inner%comm = this%comm
        call begin(this%comm, stat)
        call finish(hyperslab_open_group(this%handle, text_of_c(name), inner%handle), stat, errmsg)
    end subroutine

    subroutine file_step(this, name, step, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(hyperslab_file), intent(inout) :: step
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        step%comm = this%comm
        call begin(this%comm, stat)
        call finish(hyperslab_begin_step(this%handle, text_of_c(name), c_null_ptr, step%handle), stat, errmsg)
    end subroutine

    !> A section in the order of C, or none; indices begin at 0 there.
    subroutine section_of(section, numbers, start, count, step)
        type(section_of_c), intent(inout) :: section
        integer(c_int64_t), target, intent(inout) :: numbers(most, 3)
        integer, intent(in), optional :: start(:), count(:), step(:)
        integer :: ndim
        section%size = 0
        if (.not. present(start)) return
        if (.not. present(count)) error stop 'hyperslab: a section needs count, too'
        ndim = size(start)
        numbers(:ndim, 1) = reversed(int(start - 1, c_int64_t))
        numbers(:ndim, 2) = reversed(int(count, c_int64_t))
        numbers(:ndim, 3) = 1
        if (present(step)) numbers(:ndim, 3) = reversed(int(step, c_int64_t))
        section = section_of_c(c_sizeof(section), ndim, 0, c_loc(numbers(1, 1)), c_loc(numbers(1, 2)), &
            c_loc(numbers(1, 3)), c_null_ptr)
    end subroutine

    !> A handle, or null where it is left out.
    type(c_ptr) function handle_of(dist)
        type(hyperslab_dist), intent(in), optional :: dist
        handle_of = c_null_ptr
        if (present(dist)) handle_of = dist%handle
    end function

    subroutine file_write(this, name, values, dist, start, count, step, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in) :: values
        type(hyperslab_dist), intent(in), optional :: dist
        integer, intent(in), optional :: start(:), count(:), step(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(memory_of_c) :: memory
        type(section_of_c), target :: section
        integer(c_int64_t), target :: shape(most), strides(most), numbers(most, 3)
        call begin(this%comm, stat)
        call finish(hyperslab_memory_of_fortran(values, compiler, memory, shape, strides))
        call section_of(section, numbers, start, count, step)
        call finish(hyperslab_write(this%handle, text_of_c(name), memory, handle_of(dist), &
            merge(c_loc(section), c_null_ptr, section%size > 0), c_null_ptr), stat, errmsg)
    end subroutine

    subroutine file_read(this, name, values, dist, start, count, step, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(*), dimension(..), intent(inout) :: values
        type(hyperslab_dist), intent(in), optional :: dist
        integer, intent(in), optional :: start(:), count(:), step(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(memory_of_c) :: memory
        type(section_of_c), target :: section
        integer(c_int64_t), target :: shape(most), strides(most), numbers(most, 3)
        call begin(this%comm, stat)
        call finish(hyperslab_memory_of_fortran(values, compiler, memory, shape, strides))
        call section_of(section, numbers, start, count, step)
        call finish(hyperslab_read(this%handle, text_of_c(name), memory, handle_of(dist), &
            merge(c_loc(section), c_null_ptr, section%size > 0)), stat, errmsg)
    end subroutine

    subroutine file_append(this, name, values, dist, dim, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in) :: values
        type(hyperslab_dist), intent(in), optional :: dist
        integer, intent(in), optional :: dim
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(memory_of_c) :: memory
        integer(c_int64_t), target :: shape(most), strides(most)
        integer(c_int32_t) :: axis
        call begin(this%comm, stat)
        call finish(hyperslab_memory_of_fortran(values, compiler, memory, shape, strides))
        axis = 0
        if (present(dim)) axis = memory%ndim - int(dim, c_int32_t)
        call finish(hyperslab_append(this%handle, text_of_c(name), axis, memory, handle_of(dist)), stat, errmsg)
    end subroutine

    subroutine file_shape(this, name, shape, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        integer, allocatable, intent(out) :: shape(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(info_of_c) :: info
        info%size = c_sizeof(info)
        info%ndim = 0
        call begin(this%comm, stat)
        call finish(hyperslab_info(this%handle, text_of_c(name), info), stat, errmsg)
        shape = int(reversed(info%shape(:info%ndim)))
    end subroutine

    subroutine file_delete(this, name, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call begin(this%comm, stat)
        call finish(hyperslab_delete(this%handle, text_of_c(name)), stat, errmsg)
    end subroutine

    ! ---- attributes -------------------------------------------------------------------------------------------------------

    !> Changes attributes of an array, or of what is open.
    integer(c_int) function edited(this, attributes, array)
        class(hyperslab_file), intent(in) :: this
        type(c_ptr), intent(in) :: attributes
        character(*), intent(in), optional :: array
        character(kind=c_char), allocatable, target :: of(:)
        type(c_ptr) :: name
        call named(array, of, name)
        edited = hyperslab_edit_attributes(this%handle, name, attributes, 0_c_int64_t, c_null_ptr)
        call hyperslab_attributes_free(attributes)
    end function

    subroutine named(array, of, name)
        character(*), intent(in), optional :: array
        character(kind=c_char), allocatable, target, intent(inout) :: of(:)
        type(c_ptr), intent(out) :: name
        name = c_null_ptr
        if (.not. present(array)) return
        allocate (of(len_trim(array) + 1))
        of = transfer(text_of_c(array), of)
        name = c_loc(of)
    end subroutine

    subroutine file_set_attribute(this, name, values, array, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in), contiguous :: values
        character(*), intent(in), optional :: array
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(memory_of_c) :: memory
        type(c_ptr) :: attributes
        integer(c_int64_t), target :: shape(most), strides(most)
        integer(c_int) :: status
        call begin(this%comm, stat)
        call finish(hyperslab_memory_of_fortran(values, compiler, memory, shape, strides))
        status = hyperslab_attributes_create(attributes)
        status = hyperslab_attributes_set(attributes, text_of_c(name), memory%type, memory%ndim, shape, memory%data)
        ! Types are part of the program, and so the same on all ranks.
        if (status == 0) then
            status = edited(this, attributes, array)
        else
            call hyperslab_attributes_free(attributes)
        end if
        call finish(status, stat, errmsg)
    end subroutine

    subroutine file_set_text(this, name, text, array, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name, text
        character(*), intent(in), optional :: array
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: attributes
        integer(c_int) :: ignored
        call begin(this%comm, stat)
        ignored = hyperslab_attributes_create(attributes)
        ignored = hyperslab_attributes_set_text(attributes, text_of_c(name), text_of_c(text))
        call finish(edited(this, attributes, array), stat, errmsg)
    end subroutine

    subroutine file_get_attribute(this, name, values, array, stat, errmsg)
        class(hyperslab_file), intent(in) :: this
        character(*), intent(in) :: name
        type(*), dimension(..), intent(inout), contiguous :: values
        character(*), intent(in), optional :: array
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable, target :: of(:)
        type(memory_of_c) :: memory
        type(c_ptr) :: attributes, name_of
        integer(c_int64_t), target :: shape(most), strides(most)
        integer(c_int) :: status
        call begin(this%comm, stat)
        call finish(hyperslab_memory_of_fortran(values, compiler, memory, shape, strides))
        call named(array, of, name_of)
        status = hyperslab_attributes_of(this%handle, name_of, attributes)
        if (status == 0) then
            status = hyperslab_attributes_get(attributes, text_of_c(name), memory%type, &
                product(shape(:memory%ndim)), memory%data)
            call hyperslab_attributes_free(attributes)
        end if
        call finish(status, stat, errmsg)
    end subroutine

end module
