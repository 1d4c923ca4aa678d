/* hyperslab: collective I/O of distributed N-dimensional arrays, from C and C++. docs/c.md has a first program.
 *
 * Every function returns a status: HYPERSLAB_OK, or the kind of failure, whose message hyperslab_error_message() copies.
 * "Collective": all ranks of the communicator make the call, in the same order, with arguments that agree; all get the same
 * status. An argument that is wrong on one rank is an error on all of them. "Local": any rank calls it by itself.
 *
 * Numbers of elements and of bytes are int64_t, dimensions are in the order of C (the last one is contiguous). Texts are UTF-8.
 * A struct of options begins with its own size, and what is zero in it is the default; a null pointer is all defaults:
 *
 *     hyperslab_open_options options = {.size = sizeof options, .format = "hdf5"};
 *
 * What a call gives (a handle) is freed by the function that says so. Where a call fails, it gives null.
 */
#ifndef HYPERSLAB_H
#define HYPERSLAB_H

#include <stddef.h>
#include <stdint.h>

#define HYPERSLAB_VERSION_MAJOR 0
#define HYPERSLAB_VERSION_MINOR 1
#define HYPERSLAB_VERSION_PATCH 0

/* Most dimensions of an array, where a struct has room for them. */
#define HYPERSLAB_NDIM_MAX 32

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what went wrong --------------------------------------------------------------------------------------------------- */

enum {
    HYPERSLAB_OK = 0,
    HYPERSLAB_INVALID = 1,      /* the caller asked for something impossible */
    HYPERSLAB_DISAGREEMENT = 2, /* ranks asked for different things */
    HYPERSLAB_TIMEOUT = 3,      /* a limit on waiting was reached */
    HYPERSLAB_NOT_FOUND = 4,    /* something named is not there */
    HYPERSLAB_EXISTS = 5,       /* something is there that must not be */
    HYPERSLAB_STORAGE = 6,      /* storage refused: no space, no permission, an I/O error */
    HYPERSLAB_CORRUPT = 7,      /* stored bytes are not what was written */
    HYPERSLAB_INTERRUPTED = 8,  /* a rank was interrupted */
    HYPERSLAB_UNSUPPORTED = 9,  /* this version, or the format, cannot do it */
    HYPERSLAB_PEER = 10,        /* another rank failed, or the link to it broke */
    HYPERSLAB_POISONED = 11,    /* an earlier failure made the communicator unusable */
    HYPERSLAB_BUSY = 12,        /* another owner changes the same thing */
    HYPERSLAB_UNSYNCED = 13,    /* all is done and visible, but perhaps not durable */
    HYPERSLAB_OUTDATED = 14,    /* what the call relied on has changed; the same call may succeed */
    HYPERSLAB_INTERNAL = 100    /* a fault of this library */
};

/* Details of a failure, for hyperslab_error_detail(). */
enum {
    HYPERSLAB_DETAIL_WHAT = 1,     /* what went wrong, without what was being done */
    HYPERSLAB_DETAIL_OBJECT = 2,   /* the stored object that it is about */
    HYPERSLAB_DETAIL_EXPECTED = 3, /* what was expected of it */
    HYPERSLAB_DETAIL_FOUND = 4     /* what was found instead */
};

/* Of the last call of this thread that failed; calls that succeed leave it. Each copies a text, at most size - 1 bytes of it
 * and a zero, and returns how long all of it is; buffer may be null where size is 0. Empty where there is nothing to say. */
size_t hyperslab_error_message(char *buffer, size_t size);
size_t hyperslab_error_hint(char *buffer, size_t size);
size_t hyperslab_error_detail(int which, char *buffer, size_t size);
/* Its status; HYPERSLAB_OK where no call of this thread has failed. */
int hyperslab_error_kind(void);

/* Version of the library that the program runs with: major * 1000000 + minor * 1000 + patch. */
int hyperslab_version(void);

/* ---- communicators ----------------------------------------------------------------------------------------------------- */

/* One rank's membership. Freed by hyperslab_comm_free(), before MPI_Finalize(). */
typedef struct hyperslab_comm hyperslab_comm;

/* What a call does that fails: */
enum {
    HYPERSLAB_RETURN = 0, /* it returns a status */
    HYPERSLAB_ABORT = 1   /* it prints the message and ends the programs of all ranks */
};

/* A duplicate of an MPI intracommunicator, by the integer that stands for it; see hyperslab_comm_mpi(). Collective. */
int hyperslab_comm_from_integer(int integer, hyperslab_comm **comm);
/* A communicator of this process alone, which needs no MPI. Local. */
int hyperslab_comm_alone(hyperslab_comm **comm);
/* Threads of this process as ranks: a membership for each, in comms[0] to comms[ranks - 1]. Each is for one thread. Local. */
int hyperslab_comm_threads(int32_t ranks, hyperslab_comm **comms);
/* Ends the membership on all ranks, once their requests are over. Collective. What was opened on it cannot be used any more. */
int hyperslab_comm_free(hyperslab_comm *comm);

int hyperslab_comm_rank(const hyperslab_comm *comm, int32_t *rank);
int hyperslab_comm_size(const hyperslab_comm *comm, int32_t *size);
/* What becomes of failures of calls on this communicator: HYPERSLAB_RETURN, which holds at first, or HYPERSLAB_ABORT. Local. */
int hyperslab_set_errors(hyperslab_comm *comm, int errors);

/* Where mpi.h was included before: the membership of an MPI communicator. Collective. No type of MPI crosses into the library,
 * so one library serves all MPIs: it finds the one that the program has initialised. */
#if defined(MPI_VERSION)
static inline int hyperslab_comm_mpi(MPI_Comm comm, hyperslab_comm **made)
{
#if MPI_VERSION >= 5
    return hyperslab_comm_from_integer((int)MPI_Comm_toint(comm), made);
#else
    return hyperslab_comm_from_integer((int)MPI_Comm_c2f(comm), made);
#endif
}
#endif

/* ---- types ------------------------------------------------------------------------------------------------------------- */

/* Types of elements. */
enum {
    HYPERSLAB_BOOL = 1, /* one byte, 0 or 1 */
    HYPERSLAB_INT8 = 2,
    HYPERSLAB_INT16 = 3,
    HYPERSLAB_INT32 = 4,
    HYPERSLAB_INT64 = 5,
    HYPERSLAB_UINT8 = 6,
    HYPERSLAB_UINT16 = 7,
    HYPERSLAB_UINT32 = 8,
    HYPERSLAB_UINT64 = 9,
    HYPERSLAB_FLOAT16 = 10,
    HYPERSLAB_BFLOAT16 = 11,
    HYPERSLAB_FLOAT32 = 12,
    HYPERSLAB_FLOAT64 = 13,
    HYPERSLAB_COMPLEX64 = 14,
    HYPERSLAB_COMPLEX128 = 15,
    HYPERSLAB_CODE = 16,  /* what NumPy calls by a code, such as ">f8", "M8[ns]" or "V12": numbers in another byte order, dates */
    HYPERSLAB_TEXT = 17,  /* of attributes only */
    HYPERSLAB_OTHER = 18  /* of attributes only: what has no type here; its text is JSON, or says what it is */
};

/* ---- distributions: which rank holds which elements -------------------------------------------------------------------- */

/* Freed by hyperslab_dist_free(), at any time: calls that use it keep what they need. */
typedef struct hyperslab_dist hyperslab_dist;

/* How one dimension is spread over the mesh of ranks, in the words of High Performance Fortran. */
enum {
    HYPERSLAB_BLOCK = 1,  /* blocks of `block`, or where that is 0, equal ones: ceil(extent / ranks) */
    HYPERSLAB_CYCLIC = 2, /* runs of `block`, or of 1, dealt round robin */
    HYPERSLAB_WHOLE = 3,  /* not distributed */
    HYPERSLAB_UNEVEN = 4  /* a block for each mesh coordinate, of the size that `sizes` says */
};

typedef struct hyperslab_dim {
    int32_t kind;
    int32_t mesh_dim; /* over which dimension of the mesh, counted from 1; 0 where all take the next one in turn */
    int64_t block;
    const int64_t *sizes;
} hyperslab_dim;

/* `shape` has ndim extents, `mesh` mesh_ndim numbers of ranks, `dims` ndim entries. Local, as all that makes distributions. */
int hyperslab_dist_hpf(const hyperslab_comm *comm, int32_t ndim, const int64_t *shape, int32_t mesh_ndim,
                       const int64_t *mesh, const hyperslab_dim *dims, hyperslab_dist **dist);
/* Equal blocks of all dimensions, over a mesh of all ranks that is as even as can be. */
int hyperslab_dist_block(const hyperslab_comm *comm, int32_t ndim, const int64_t *shape, hyperslab_dist **dist);
/* All of the array on each rank. */
int hyperslab_dist_replicated(const hyperslab_comm *comm, int32_t ndim, const int64_t *shape, hyperslab_dist **dist);
/* Boxes of this rank's own, as blocks of an adaptive mesh: the lowest index of each and its extents, ndim numbers for each of
 * `count` boxes. This rank's memory of an array is then one hyperslab_memory for each box. */
int hyperslab_dist_boxes(const hyperslab_comm *comm, int32_t ndim, const int64_t *shape, int64_t count,
                         const int64_t *start, const int64_t *extent, hyperslab_dist **dist);
/* Runs of elements of this rank's own, numbered in the order of C: the first element and the length of each of `count` runs.
 * They lie one after another in a memory of one dimension. */
int hyperslab_dist_map(const hyperslab_comm *comm, int32_t ndim, const int64_t *shape, int64_t count,
                       const int64_t *start, const int64_t *length, hyperslab_dist **dist);
void hyperslab_dist_free(hyperslab_dist *dist);

/* How many memories this rank has of such an array: its number of boxes, otherwise 1. */
int hyperslab_dist_parts(const hyperslab_dist *dist, int64_t *parts);
/* Dimensions and extents of one of them; `shape` has room for HYPERSLAB_NDIM_MAX. */
int hyperslab_dist_local_shape(const hyperslab_dist *dist, int64_t part, int32_t *ndim, int64_t *shape);
/* Where an element of one of them is in the whole array; of `local` and `global` there are as many as dimensions. */
int hyperslab_dist_to_global(const hyperslab_dist *dist, int64_t part, const int64_t *local, int64_t *global);

static inline hyperslab_dim hyperslab_dim_of(int32_t kind, int64_t block, const int64_t *sizes)
{
    hyperslab_dim dim;
    dim.kind = kind;
    dim.mesh_dim = 0;
    dim.block = block;
    dim.sizes = sizes;
    return dim;
}

static inline hyperslab_dim hyperslab_block(void)
{
    return hyperslab_dim_of(HYPERSLAB_BLOCK, 0, NULL);
}

static inline hyperslab_dim hyperslab_cyclic(int64_t block)
{
    return hyperslab_dim_of(HYPERSLAB_CYCLIC, block, NULL);
}

static inline hyperslab_dim hyperslab_whole(void)
{
    return hyperslab_dim_of(HYPERSLAB_WHOLE, 0, NULL);
}

static inline hyperslab_dim hyperslab_uneven(const int64_t *sizes)
{
    return hyperslab_dim_of(HYPERSLAB_UNEVEN, 0, sizes);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

/* Where this rank's part of an array lies. The memory may be larger than the part, as with a halo, and have any strides. It is
 * used where it is, without a copy. */
typedef struct hyperslab_memory {
    size_t size;          /* sizeof(hyperslab_memory) */
    void *data;           /* element [0, 0, ...] of the memory; a write only reads it */
    int32_t type;         /* of its elements */
    int32_t ndim;         /* of the memory; -1 where it has the shape of the part */
    const int64_t *shape; /* extents of the memory, halo included */
    const int64_t *strides; /* distance of neighbours along each dimension, perhaps negative [B]; null where it is dense */
    const int64_t *offsets; /* where in the memory the part begins; null for [0, 0, ...] */
    const char *code;     /* of type HYPERSLAB_CODE */
} hyperslab_memory;

/* A dense memory of the shape of the part. */
static inline hyperslab_memory hyperslab_dense(const void *data, int32_t type)
{
    hyperslab_memory memory;
    memory.size = sizeof memory;
    memory.data = (void *)(uintptr_t)data;
    memory.type = type;
    memory.ndim = -1;
    memory.shape = NULL;
    memory.strides = NULL;
    memory.offsets = NULL;
    memory.code = NULL;
    return memory;
}

/* A dense memory of this shape, of which the part begins at these offsets, or is all. */
static inline hyperslab_memory hyperslab_inside(const void *data, int32_t type, int32_t ndim, const int64_t *shape,
                                                const int64_t *offsets)
{
    hyperslab_memory memory = hyperslab_dense(data, type);
    memory.ndim = ndim;
    memory.shape = shape;
    memory.offsets = offsets;
    return memory;
}

/* For hyperslab.F90: the memory that a descriptor of Fortran says, with its dimensions in the order of C. `compiler` says how
 * descriptors look; `shape` and `strides` have room for 15 numbers, to which `memory` points then. Local. */
enum { HYPERSLAB_GFORTRAN = 1 };
int hyperslab_memory_of_fortran(const void *descriptor, int compiler, hyperslab_memory *memory, int64_t *shape,
                                int64_t *strides);

/* ---- attributes -------------------------------------------------------------------------------------------------------- */

/* Names and typed values, in this rank's memory. Freed by hyperslab_attributes_free(). */
typedef struct hyperslab_attributes hyperslab_attributes;
/* A list of names. Freed by hyperslab_names_free(). */
typedef struct hyperslab_names hyperslab_names;

int64_t hyperslab_names_count(const hyperslab_names *names);
/* One of them, which lives as long as the list; null where there are not so many. */
const char *hyperslab_names_get(const hyperslab_names *names, int64_t number);
void hyperslab_names_free(hyperslab_names *names);

int hyperslab_attributes_create(hyperslab_attributes **attributes);
void hyperslab_attributes_free(hyperslab_attributes *attributes);
/* Sets one to dense elements of a type: one where ndim is 0, otherwise an array. All of this is local. */
int hyperslab_attributes_set(hyperslab_attributes *attributes, const char *name, int32_t type, int32_t ndim,
                             const int64_t *shape, const void *data);
int hyperslab_attributes_set_text(hyperslab_attributes *attributes, const char *name, const char *text);
/* An array of texts, of one dimension. */
int hyperslab_attributes_set_texts(hyperslab_attributes *attributes, const char *name, int64_t count,
                                   const char *const *texts);
int hyperslab_attributes_names(const hyperslab_attributes *attributes, hyperslab_names **names);
/* The type of one, and its shape; `shape` has room for HYPERSLAB_NDIM_MAX. */
int hyperslab_attributes_type(const hyperslab_attributes *attributes, const char *name, int32_t *type, int32_t *ndim,
                              int64_t *shape);
/* Its numbers, as this type, into room for `count` elements; an error where one of them has no such value, or it has another
 * number of them. */
int hyperslab_attributes_get(const hyperslab_attributes *attributes, const char *name, int32_t type, int64_t count,
                             void *data);
/* One of its texts, the first of which is 0; `length`, which may be null, gets the length of all of it. */
int hyperslab_attributes_get_text(const hyperslab_attributes *attributes, const char *name, int64_t number, char *buffer,
                                  size_t size, size_t *length);

/* ---- opening ----------------------------------------------------------------------------------------------------------- */

/* What is open and holds arrays: a Zarr group, a file of one format or a group in it, or a step of either. */
typedef struct hyperslab_group hyperslab_group;

enum { HYPERSLAB_DEFAULT = 0, HYPERSLAB_YES = 1, HYPERSLAB_NO = 2 };

/* An array of a raw file that exists. */
typedef struct hyperslab_raw_array {
    const char *name;
    const char *code; /* of type HYPERSLAB_CODE */
    int32_t type;
    int32_t ndim;
    const int64_t *shape;
} hyperslab_raw_array;

typedef struct hyperslab_open_options {
    size_t size;            /* sizeof(hyperslab_open_options) */
    const char *format;     /* "zarr", "hdf5", "netcdf4", "netcdf4_classic", "netcdf3", "npy", "raw"; by the name or the first bytes if null */
    int32_t durable;        /* HYPERSLAB_NO: what is published survives a crash of the program, not a loss of power */
    int32_t servers;        /* how many ranks handle storage; chosen if 0 */
    double arrival_seconds; /* how long a call waits for other ranks; 1800 if 0 */
    double progress_seconds; /* how long a call waits while nothing moves; 60 if 0 */
    double storage_seconds; /* how long a call waits for storage that does not answer; 600 if 0 */
    int64_t buffer_bytes;   /* most bytes of buffers on a rank; a share of the node's memory if 0 */
    int64_t subchunk_bytes; /* most bytes that a server moves in one round; chosen if 0 */
    const char *strategy;   /* how arrays move; chosen if null */
    const char *exchange;   /* of the strategy "two-phase": "all" or "sharers" */
    const char *locking;    /* of HDF5's lock: "always", "best-effort" or "never" */
    const hyperslab_attributes *attributes; /* of a new NetCDF or HDF5 file */
    int64_t unlimited_count; /* of a new NetCDF or HDF5 file: how many dimensions may grow, and their names */
    const char *const *unlimited;
    int32_t column_major; /* of a raw file: HYPERSLAB_YES where its arrays are in the order of Fortran */
    int32_t reserved;
    const void *header; /* of a new raw file: what it begins with */
    int64_t header_bytes; /* the length of that; of one that exists, how many bytes come before its arrays */
    int64_t array_count; /* of a raw file that exists: its arrays */
    const hyperslab_raw_array *arrays;
} hyperslab_open_options;

/* Opens a path, or file:///path, in mode "r" (read), "r+" (change), "a" (change, or make), "w" (replace) or "x" (make).
 * Collective. A new file becomes visible with its first step or hyperslab_flush(), or when it is closed. */
int hyperslab_open(const hyperslab_comm *comm, const char *path, const char *mode,
                   const hyperslab_open_options *options, hyperslab_group **group);
/* Ends its use, and frees it whatever comes of that: publishes a step or a new file. Collective. */
int hyperslab_close(hyperslab_group *group);
/* The same on all ranks where this one gives up a step or a new file; others call this or hyperslab_close(), and all get an
 * error that says why. What was written to a Zarr group stays. */
int hyperslab_give_up(hyperslab_group *group, const char *why);
/* Waits for requests, and makes visible what is whole of a new file. Collective. */
int hyperslab_flush(hyperslab_group *group);
/* Takes note of what other programs have made or removed. Collective. */
int hyperslab_refresh(hyperslab_group *group);

/* A group in it, by its path; a new one, which with HYPERSLAB_YES may exist. Collective. */
int hyperslab_open_group(hyperslab_group *group, const char *name, hyperslab_group **inner);
int hyperslab_make_group(hyperslab_group *group, const char *name, const hyperslab_attributes *attributes,
                         int32_t may_exist, hyperslab_group **inner);

/* A step, which becomes visible whole, by hyperslab_close(), or not at all. Collective. */
int hyperslab_begin_step(hyperslab_group *group, const char *name, const hyperslab_attributes *attributes,
                         hyperslab_group **step);
/* Names of the published steps; numbers in them are in the order of their values. Local. */
int hyperslab_steps(const hyperslab_group *group, hyperslab_names **names);
/* Deletes all but the last `count` steps, the oldest first. Collective. */
int hyperslab_keep_steps(hyperslab_group *group, int64_t count);

/* ---- looking ----------------------------------------------------------------------------------------------------------- */

/* Names of its arrays, and of its groups. Local. */
int hyperslab_arrays(const hyperslab_group *group, hyperslab_names **names);
int hyperslab_groups(const hyperslab_group *group, hyperslab_names **names);

typedef struct hyperslab_array_info {
    size_t size; /* sizeof(hyperslab_array_info); set it before the call */
    int32_t type; /* HYPERSLAB_CODE where it is no number of these */
    int32_t ndim;
    int64_t item_bytes;
    int64_t shape[HYPERSLAB_NDIM_MAX];
    int64_t chunks[HYPERSLAB_NDIM_MAX]; /* its shape where it is not in chunks */
} hyperslab_array_info;

/* What an array is, on all ranks alike. Collective. */
int hyperslab_info(hyperslab_group *group, const char *name, hyperslab_array_info *info);
/* Attributes of an array, on all ranks alike; where `name` is null, of the group itself. Collective. */
int hyperslab_attributes_of(hyperslab_group *group, const char *name, hyperslab_attributes **attributes);
/* Sets these, and removes those of `removed_count` names. Of a step, they are written when it is closed. Collective. */
int hyperslab_edit_attributes(hyperslab_group *group, const char *name, const hyperslab_attributes *attributes,
                              int64_t removed_count, const char *const *removed);

/* What earlier programs left: */
enum {
    HYPERSLAB_REMOVED = 1,    /* names that a dead owner had not published, and opening removed */
    HYPERSLAB_UNFINISHED = 2, /* names of what an update began to change in place and did not end */
    HYPERSLAB_PASSED_OVER = 3 /* records that are not believed, with the reason */
};
int hyperslab_leftovers(const hyperslab_group *group, int which, hyperslab_names **names);

/* ---- moving arrays ------------------------------------------------------------------------------------------------------ */

/* A part of a stored array: in each dimension `count` blocks, the first of which begins at `start`, and each `step` behind the
 * one before. */
typedef struct hyperslab_section {
    size_t size; /* sizeof(hyperslab_section) */
    int32_t ndim;
    int32_t reserved;
    const int64_t *start;
    const int64_t *count;
    const int64_t *step;  /* null where blocks follow one another */
    const int64_t *block; /* indices of a block; null for 1 */
} hyperslab_section;

static inline hyperslab_section hyperslab_section_of(int32_t ndim, const int64_t *start, const int64_t *count,
                                                     const int64_t *step)
{
    hyperslab_section section;
    section.size = sizeof section;
    section.ndim = ndim;
    section.reserved = 0;
    section.start = start;
    section.count = count;
    section.step = step;
    section.block = NULL;
    return section;
}

typedef struct hyperslab_write_options {
    size_t size;           /* sizeof(hyperslab_write_options) */
    const int64_t *chunks; /* of new arrays: extents of a chunk; chosen if null */
    const int64_t *shards; /* extents of a shard; chosen if null */
    int32_t sharded;       /* HYPERSLAB_NO: each chunk is an object of its own */
    int32_t type;          /* of the stored elements; that of the memory if 0 */
    const char *code;      /* of type HYPERSLAB_CODE */
    const char *codecs;    /* JSON, as Zarr's metadata list them; uncompressed with a checksum if null */
    const int64_t *maxshape; /* how far each dimension may grow in HDF5, -1 without limit; not at all if null */
    const void *fill_value; /* one element of the type of the stored elements; 0 if null */
    const char *const *dimension_names; /* one for each dimension; null entries have none */
    const hyperslab_attributes *attributes;
    int32_t overwrite;     /* HYPERSLAB_YES: an array of that name may be replaced */
    int32_t any_casting;   /* HYPERSLAB_YES: also changes of type that NumPy's "same_kind" forbids */
    const char *strategy;  /* how arrays move; chosen if null */
} hyperslab_write_options;

/* Writes a new array, or with a section, that part of one that is there. Collective. `memory` is this rank's part: one, or one
 * for each of its boxes. A rank without boxes gives one for its type, or null where the type of what is stored is given on all
 * ranks. `dist` says how ranks hold the array, or the section; it may be null where there is one rank. */
int hyperslab_write(hyperslab_group *group, const char *name, const hyperslab_memory *memory,
                    const hyperslab_dist *dist, const hyperslab_section *section,
                    const hyperslab_write_options *options);
/* Makes an array that has the fill value everywhere, to be written in sections. `type` is that of what is stored; options may say
 * it by a code. Collective. */
int hyperslab_create_array(hyperslab_group *group, const char *name, int32_t type, int32_t ndim, const int64_t *shape,
                           const hyperslab_write_options *options);
/* Reads an array, or a section of it, into memory. Collective. Without `dist`, each rank reads all of it, and says the shape of
 * its memory. */
int hyperslab_read(hyperslab_group *group, const char *name, const hyperslab_memory *memory,
                   const hyperslab_dist *dist, const hyperslab_section *section);
/* Makes an array longer along a dimension, by what `dist` has of that. Collective. */
int hyperslab_append(hyperslab_group *group, const char *name, int32_t axis, const hyperslab_memory *memory,
                     const hyperslab_dist *dist);

/* One array of a call that moves several. */
typedef struct hyperslab_item {
    size_t size; /* sizeof(hyperslab_item) */
    const char *name;
    const hyperslab_memory *memory;
    const hyperslab_dist *dist;
    const hyperslab_section *section;
    const hyperslab_write_options *options; /* of writes */
} hyperslab_item;

static inline hyperslab_item hyperslab_item_of(const char *name, const hyperslab_memory *memory,
                                               const hyperslab_dist *dist)
{
    hyperslab_item item;
    item.size = sizeof item;
    item.name = name;
    item.memory = memory;
    item.dist = dist;
    item.section = NULL;
    item.options = NULL;
    return item;
}

/* The same for several arrays in one call: all of them, or none. Collective. */
int hyperslab_write_many(hyperslab_group *group, int64_t count, const hyperslab_item *items);
int hyperslab_read_many(hyperslab_group *group, int64_t count, const hyperslab_item *items);
int hyperslab_append_many(hyperslab_group *group, int32_t axis, int64_t count, const hyperslab_item *items);
/* Saves one array as an .npy file. Collective. */
int hyperslab_save_npy(const hyperslab_comm *comm, const char *path, const hyperslab_memory *memory,
                       const hyperslab_dist *dist);

/* A call under way. Freed by hyperslab_wait(). */
typedef struct hyperslab_request hyperslab_request;

/* The same, but they return at once. Collective. Memory must stay as it is until hyperslab_wait(); with `staged`, a write copies
 * it, and it may be changed. Failures, also those of arguments, are those of hyperslab_wait(). */
int hyperslab_iwrite(hyperslab_group *group, int64_t count, const hyperslab_item *items, int32_t staged,
                     hyperslab_request **request);
int hyperslab_iread(hyperslab_group *group, int64_t count, const hyperslab_item *items, hyperslab_request **request);
/* Waits for the end, and frees the request. */
int hyperslab_wait(hyperslab_request *request);
/* Whether it is over, well or not. Local. */
int hyperslab_test(const hyperslab_request *request, int *done);

/* Deletes an array or a group; gives it another name; gives an array another shape, of ndim extents. Collective. */
int hyperslab_delete(hyperslab_group *group, const char *name);
int hyperslab_rename(hyperslab_group *group, const char *old_name, const char *new_name);
int hyperslab_resize(hyperslab_group *group, const char *name, int32_t ndim, const int64_t *shape);

#ifdef __cplusplus
}
#endif

#endif
