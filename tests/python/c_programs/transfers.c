/* Usage: transfers SCRIPT ("mpi" | "alone")
 *
 * Carries out the transfers that a script lists, on all ranks, and compares what is read with the values that the script names.
 * Prints on rank 0 how many were carried out; ends with an error at the first that is wrong.
 *
 *     OPERATION path mode format name type layout halo ndim extents... section distribution values
 *
 * OPERATION is write, read, append or npy; section is 0, or 1 and start, count and step of each dimension; a distribution is
 *     hpf mesh_ndim mesh... and for each dimension: kind mesh_dim block number sizes...
 *     block | whole
 *     boxes and for each rank: number, and for each box its start and extent
 *     map and for each rank: number, and for each run its start and length
 * `values` is a file with one int64_t for each element of the whole array, as it is, or shall be.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hyperslab.h>

#define NDIM 8
#define BOXES 64

/* Lengths of structs that cross the border, where pointers have 64 bits; a test of the library asserts the same. */
typedef char check_memory[sizeof(hyperslab_memory) == 56 ? 1 : -1];
typedef char check_section[sizeof(hyperslab_section) == 48 ? 1 : -1];
typedef char check_item[sizeof(hyperslab_item) == 48 ? 1 : -1];
typedef char check_write[sizeof(hyperslab_write_options) == 96 ? 1 : -1];
typedef char check_open[sizeof(hyperslab_open_options) == 152 ? 1 : -1];
typedef char check_array[sizeof(hyperslab_raw_array) == 32 ? 1 : -1];
typedef char check_info[sizeof(hyperslab_array_info) == 536 ? 1 : -1];

static int32_t rank, size;
static int line_number;

static void check(int status, const char *what)
{
    char message[4096], hint[1024];
    if (status == HYPERSLAB_OK)
        return;
    hyperslab_error_message(message, sizeof message);
    hyperslab_error_hint(hint, sizeof hint);
    fprintf(stderr, "line %d, rank %d, %s: status %d: %s; %s\n", line_number, (int)rank, what, status, message, hint);
    exit(1);
}

static void wrong(const char *what)
{
    fprintf(stderr, "line %d, rank %d: %s\n", line_number, (int)rank, what);
    exit(1);
}

static int64_t number(FILE *script)
{
    long long read;
    if (fscanf(script, "%lld", &read) != 1)
        wrong("the script has no number here");
    return (int64_t)read;
}

static void numbers(FILE *script, int count, int64_t *into)
{
    for (int i = 0; i < count; i++)
        into[i] = number(script);
}

static size_t item_bytes(int type)
{
    static const size_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    return bytes[type];
}

#define AS(kind, type) \
    case kind: \
        if (store) \
            *(type *)at = (type)*value; \
        else \
            *value = (int64_t) * (type *)at; \
        break

/* Stores a number as an element, or gives the number that an element is. */
static void element(int type, void *at, int64_t *value, int store)
{
    switch (type) {
        AS(HYPERSLAB_BOOL, uint8_t);
        AS(HYPERSLAB_INT8, int8_t);
        AS(HYPERSLAB_INT16, int16_t);
        AS(HYPERSLAB_INT32, int32_t);
        AS(HYPERSLAB_INT64, int64_t);
        AS(HYPERSLAB_UINT8, uint8_t);
        AS(HYPERSLAB_UINT16, uint16_t);
        AS(HYPERSLAB_UINT32, uint32_t);
        AS(HYPERSLAB_UINT64, uint64_t);
        AS(HYPERSLAB_FLOAT32, float);
        AS(HYPERSLAB_FLOAT64, double);
    case HYPERSLAB_COMPLEX64:
        if (store) {
            ((float *)at)[0] = (float)*value;
            ((float *)at)[1] = (float)-*value;
        } else if (((float *)at)[0] != -((float *)at)[1])
            wrong("a complex number is another one");
        else
            *value = (int64_t)((float *)at)[0];
        break;
    case HYPERSLAB_COMPLEX128:
        if (store) {
            ((double *)at)[0] = (double)*value;
            ((double *)at)[1] = (double)-*value;
        } else
            *value = (int64_t)((double *)at)[0];
        break;
    default:
        wrong("this program knows no such type");
    }
}

/* One local memory: allocated with a halo around the part, in the order of C or Fortran, or with the first dimension reversed. */
struct local {
    hyperslab_memory memory;
    void *allocated;
    int64_t part[NDIM], shape[NDIM], strides[NDIM], offsets[NDIM];
};

static void allocate(struct local *local, int type, char layout, int64_t halo, int ndim)
{
    int64_t stride = (int64_t)item_bytes(type), all = 1;
    for (int d = 0; d < ndim; d++) {
        local->shape[d] = local->part[d] + 2 * halo;
        local->offsets[d] = halo;
        all *= local->shape[d];
    }
    for (int i = 0; i < ndim; i++) {
        int d = layout == 'F' ? i : ndim - 1 - i;
        local->strides[d] = stride;
        stride *= local->shape[d];
    }
    local->allocated = calloc((size_t)all + 1, item_bytes(type));
    memset(local->allocated, 0x55, ((size_t)all + 1) * item_bytes(type));
    char *first = local->allocated;
    if (layout == 'R' && ndim > 0 && all > 0) {
        first += (local->shape[0] - 1) * local->strides[0];
        local->strides[0] = -local->strides[0];
    }
    local->memory = hyperslab_inside(first, type, ndim, local->shape, local->offsets);
    /* Without halo in the order of C, the shape is the part's, and strides are those of a dense memory. */
    if (layout != 'C')
        local->memory.strides = local->strides;
    else if (halo == 0)
        local->memory = hyperslab_dense(first, type);
}

/* Walks over a part, with the value of each element: to store it, or to compare it. */
static void walk(struct local *local, const hyperslab_dist *dist, int64_t part, int local_ndim, int ndim,
                 const int64_t *extents, const hyperslab_section *section, const int64_t *values, int store)
{
    int64_t at[NDIM] = {0}, global[NDIM], value;
    for (int d = 0; d < local_ndim; d++)
        if (local->part[d] == 0)
            return;
    for (;;) {
        int64_t place = 0;
        char *address = local->memory.data;
        check(hyperslab_dist_to_global(dist, part, at, global), "to_global");
        for (int d = 0; d < ndim; d++) {
            int64_t index = section == NULL ? global[d] : section->start[d] + global[d] * section->step[d];
            place = place * extents[d] + index;
        }
        for (int d = 0; d < local_ndim; d++)
            address += (at[d] + local->offsets[d]) * local->strides[d];
        value = values[place];
        element(local->memory.type, address, &value, store);
        if (value != values[place]) {
            fprintf(stderr, "element %lld is %lld, not %lld\n", (long long)place, (long long)value,
                    (long long)values[place]);
            wrong("a value is another one");
        }
        int d = local_ndim - 1;
        while (d >= 0 && ++at[d] == local->part[d])
            at[d--] = 0;
        if (d < 0)
            return;
    }
}

static hyperslab_dist *distribution(FILE *script, const hyperslab_comm *comm, int ndim, const int64_t *shape)
{
    char kind[16];
    hyperslab_dist *dist = NULL;
    int64_t mesh[NDIM], sizes[NDIM][BOXES], start[BOXES * NDIM], extent[BOXES * NDIM], own = 0;
    hyperslab_dim dims[NDIM];
    if (fscanf(script, "%15s", kind) != 1)
        wrong("the script has no distribution");
    if (strcmp(kind, "block") == 0)
        check(hyperslab_dist_block(comm, ndim, shape, &dist), "block");
    else if (strcmp(kind, "whole") == 0)
        check(hyperslab_dist_replicated(comm, ndim, shape, &dist), "replicated");
    else if (strcmp(kind, "hpf") == 0) {
        int32_t mesh_ndim = (int32_t)number(script);
        numbers(script, mesh_ndim, mesh);
        for (int d = 0; d < ndim; d++) {
            dims[d].kind = (int32_t)number(script);
            dims[d].mesh_dim = (int32_t)number(script);
            dims[d].block = number(script);
            numbers(script, (int)number(script), sizes[d]);
            dims[d].sizes = sizes[d];
        }
        check(hyperslab_dist_hpf(comm, ndim, shape, mesh_ndim, mesh, dims, &dist), "hpf");
    } else {
        int width = strcmp(kind, "map") == 0 ? 1 : ndim;
        for (int r = 0; r < size; r++) {
            int64_t count = number(script), pair[NDIM];
            own = r == rank ? count : own;
            for (int64_t i = 0; i < count; i++) {
                numbers(script, width, r == rank ? start + i * width : pair);
                numbers(script, width, r == rank ? extent + i * width : pair);
            }
        }
        if (width == ndim && strcmp(kind, "boxes") == 0)
            check(hyperslab_dist_boxes(comm, ndim, shape, own, start, extent, &dist), "boxes");
        else
            check(hyperslab_dist_map(comm, ndim, shape, own, start, extent, &dist), "map");
    }
    return dist;
}

static int64_t *values_of(const char *path, int64_t count)
{
    FILE *file = fopen(path, "rb");
    int64_t *values = malloc(((size_t)count + 1) * sizeof *values);
    if (file == NULL || fread(values, sizeof *values, (size_t)count, file) != (size_t)count)
        wrong("the file of values cannot be read");
    fclose(file);
    return values;
}

static void move(const hyperslab_comm *comm, const char *operation, FILE *script)
{
    char path[1024], mode[8], format[16], name[64], layout[4], file[1024];
    int64_t extents[NDIM], start[NDIM], count[NDIM], step[NDIM], parts, all = 1;
    static struct local locals[BOXES];
    static hyperslab_memory memories[BOXES];
    if (fscanf(script, "%1023s %7s %15s %63s", path, mode, format, name) != 4)
        wrong("the script is cut off");
    int type = (int)number(script);
    /* Of a rank without boxes. */
    memories[0] = hyperslab_dense(NULL, type);
    if (fscanf(script, "%3s", layout) != 1)
        wrong("the script is cut off");
    int64_t halo = number(script);
    int ndim = (int)number(script), has_section;
    numbers(script, ndim, extents);
    has_section = (int)number(script);
    if (has_section) {
        numbers(script, ndim, start);
        numbers(script, ndim, count);
        numbers(script, ndim, step);
    }
    hyperslab_section part = hyperslab_section_of(ndim, start, count, step), *section = has_section ? &part : NULL;
    hyperslab_dist *dist = distribution(script, comm, ndim, has_section ? count : extents);
    if (fscanf(script, "%1023s", file) != 1)
        wrong("the script is cut off");
    for (int d = 0; d < ndim; d++)
        all *= extents[d];
    int64_t *values = values_of(file, all);

    int is_read = strcmp(operation, "read") == 0;
    check(hyperslab_dist_parts(dist, &parts), "parts");
    for (int64_t i = 0; i < parts; i++) {
        int32_t local_ndim;
        check(hyperslab_dist_local_shape(dist, i, &local_ndim, locals[i].part), "local_shape");
        allocate(&locals[i], type, layout[0], halo, local_ndim);
        if (!is_read)
            walk(&locals[i], dist, i, local_ndim, ndim, extents, section, values, 1);
        memories[i] = locals[i].memory;
    }

    hyperslab_raw_array array = {.name = name, .type = type, .ndim = ndim, .shape = extents};
    hyperslab_open_options options = {.size = sizeof options, .durable = HYPERSLAB_NO};
    options.format = strcmp(format, "-") == 0 ? NULL : format;
    if (strcmp(format, "raw") == 0 && strcmp(mode, "w") != 0) {
        options.array_count = 1;
        options.arrays = &array;
    }
    hyperslab_group *group = NULL;
    if (strcmp(operation, "npy") == 0)
        check(hyperslab_save_npy(comm, path, memories, dist), "save_npy");
    else {
        check(hyperslab_open(comm, path, mode, &options, &group), "open");
        if (is_read) {
            check(hyperslab_read(group, name, memories, dist, section), "read");
            for (int64_t i = 0; i < parts; i++) {
                int32_t local_ndim;
                check(hyperslab_dist_local_shape(dist, i, &local_ndim, locals[i].part), "local_shape");
                walk(&locals[i], dist, i, local_ndim, ndim, extents, section, values, 0);
            }
        } else
            check(hyperslab_write(group, name, memories, dist, section, NULL), "write");
        check(hyperslab_close(group), "close");
    }
    for (int64_t i = 0; i < parts; i++)
        free(locals[i].allocated);
    free(values);
    hyperslab_dist_free(dist);
}

int main(int argc, char **argv)
{
    char operation[16];
    hyperslab_comm *comm = NULL;
    int done = 0, with_mpi = argc == 3 && strcmp(argv[2], "mpi") == 0;
    FILE *script = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (script == NULL)
        return 2;
    if (with_mpi) {
        MPI_Init(&argc, &argv);
        check(hyperslab_comm_mpi(MPI_COMM_WORLD, &comm), "comm_mpi");
    } else
        check(hyperslab_comm_alone(&comm), "comm_alone");
    check(hyperslab_comm_rank(comm, &rank), "rank");
    check(hyperslab_comm_size(comm, &size), "size");
    while (fscanf(script, "%15s", operation) == 1) {
        line_number++;
        move(comm, operation, script);
        done++;
    }
    fclose(script);
    check(hyperslab_comm_free(comm), "comm_free");
    if (rank == 0)
        printf("%d transfers\n", done);
    if (with_mpi)
        MPI_Finalize();
    return 0;
}
