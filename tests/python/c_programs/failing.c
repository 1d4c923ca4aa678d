/* Usage: failing FOLDER ("calls" | "abort-all" | "abort-own" | "early")
 *
 * Makes calls that fail, and prints of each, on each rank: rank|name of the case|status|message|hint.
 * With "abort", a failure ends all ranks. With "early", MPI is not initialised.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hyperslab.h>

static int32_t rank, size;

static void tell(const char *name, int status)
{
    char message[8192] = "", hint[4096] = "", line[16384];
    if (status != HYPERSLAB_OK) {
        hyperslab_error_message(message, sizeof message);
        hyperslab_error_hint(hint, sizeof hint);
    }
    for (char *end = strchr(message, '\n'); end != NULL; end = strchr(end, '\n'))
        *end = ' ';
    /* One write, so that lines of several ranks do not mix. */
    snprintf(line, sizeof line, "%d|%s|%d|%s|%s\n", (int)rank, name, status, message, hint);
    fputs(line, stdout);
    fflush(stdout);
}

static void calls(hyperslab_comm *comm, const char *folder)
{
    int64_t shape[2] = {6, 4}, other[2] = {6, 4 + rank}, wide[2] = {0, 3}, ones[2] = {1, 2}, negative[2] = {-1, 4};
    double data[64] = {0};
    char path[2048], text[8];
    hyperslab_dist *dist = NULL, *unlike = NULL, *none = NULL;
    hyperslab_group *group = NULL, *nothing = NULL;
    hyperslab_request *request = NULL;
    hyperslab_memory memory = hyperslab_dense(data, HYPERSLAB_FLOAT64);
    hyperslab_memory small = hyperslab_inside(data, HYPERSLAB_FLOAT64, 2, ones, NULL);
    hyperslab_memory null = hyperslab_dense(NULL, HYPERSLAB_FLOAT64), typeless = hyperslab_dense(data, 99);
    hyperslab_section beyond = hyperslab_section_of(2, wide, shape, NULL);
    hyperslab_open_options options = {.size = sizeof options, .format = "grib"};
    struct {
        hyperslab_open_options known;
        int64_t later;
    } later = {.known = {.size = sizeof later}, .later = 1};
    int last = rank == size - 1;

    snprintf(path, sizeof path, "%s/missing.zarr", folder);
    tell("not found", hyperslab_open(comm, path, "r", NULL, &nothing));
    tell("no mode", hyperslab_open(comm, path, "rw", NULL, &nothing));
    tell("no mode on one rank", hyperslab_open(comm, path, last ? "rw" : "w", NULL, &nothing));
    tell("null on one rank", hyperslab_open(comm, last ? NULL : path, "w", NULL, &nothing));
    tell("no format", hyperslab_open(comm, path, "w", &options, &nothing));
    options.format = NULL;
    options.progress_seconds = -1;
    tell("no limit", hyperslab_open(comm, path, "w", &options, &nothing));
    tell("later options", hyperslab_open(comm, path, "w", &later.known, &nothing));
    options.size = 3;
    tell("no size", hyperslab_open(comm, path, "w", &options, &nothing));
    tell("a URL", hyperslab_open(comm, "s3://bucket/run.zarr", "w", NULL, &nothing));
    tell("handles are null", nothing == NULL ? HYPERSLAB_OK : HYPERSLAB_INTERNAL);

    tell("a negative extent", hyperslab_dist_block(comm, 2, negative, &none));
    tell("block", hyperslab_dist_block(comm, 2, shape, &dist));
    tell("unlike block", hyperslab_dist_block(comm, 2, other, &unlike));
    snprintf(path, sizeof path, "%s/failing.zarr", folder);
    tell("open", hyperslab_open(comm, path, "w", NULL, &group));
    tell("shapes differ", hyperslab_write(group, "unlike", &memory, unlike, NULL, NULL));
    tell("no distribution", hyperslab_write(group, "rho", &memory, NULL, NULL, NULL));
    tell("no memory on one rank", hyperslab_write(group, "rho", last ? NULL : &memory, dist, NULL, NULL));
    tell("null memory", hyperslab_write(group, "rho", last ? &null : &memory, dist, NULL, NULL));
    tell("a small memory", hyperslab_write(group, "rho", last ? &small : &memory, dist, NULL, NULL));
    tell("no type", hyperslab_write(group, "rho", last ? &typeless : &memory, dist, NULL, NULL));
    tell("write", hyperslab_write(group, "rho", &memory, dist, NULL, NULL));
    tell("exists", hyperslab_write(group, "rho", &memory, dist, NULL, NULL));
    tell("beyond", hyperslab_write(group, "rho", &memory, dist, &beyond, NULL));
    tell("no array", hyperslab_read(group, "u", &memory, dist, NULL));
    tell("no shape to read into", hyperslab_read(group, "rho", &memory, NULL, NULL));
    tell("begun", hyperslab_iread(group, 1, &(hyperslab_item){.size = sizeof(hyperslab_item), .name = last ? NULL : "rho",
                                                              .memory = &memory, .dist = dist}, &request));
    tell("waited for", hyperslab_wait(request));
    tell("no steps", hyperslab_keep_steps(group, 0));
    tell("delete", hyperslab_delete(group, "u"));
    tell("close", hyperslab_close(group));
    tell("open to read", hyperslab_open(comm, path, "r", NULL, &group));
    tell("read only", hyperslab_write(group, "u", &memory, dist, NULL, NULL));
    tell("close again", hyperslab_close(group));
    tell("null group", hyperslab_close(NULL));

    /* A text is cut where there is no room, and its length is told. */
    size_t length = hyperslab_error_message(NULL, 0), told = hyperslab_error_message(text, sizeof text);
    tell("a short buffer", length == told && length > 7 && strlen(text) == 7 ? HYPERSLAB_OK : HYPERSLAB_INTERNAL);
    tell("kind", hyperslab_error_kind() == HYPERSLAB_INVALID ? HYPERSLAB_OK : HYPERSLAB_INTERNAL);

    snprintf(path, sizeof path, "%s/given_up.h5", folder);
    tell("open a file", hyperslab_open(comm, path, "w", NULL, &group));
    tell("write to it", hyperslab_write(group, "rho", &memory, dist, NULL, NULL));
    tell("given up", last ? hyperslab_give_up(group, "no time") : hyperslab_close(group));
    hyperslab_dist_free(dist);
    hyperslab_dist_free(unlike);
}

int main(int argc, char **argv)
{
    const char *mode = argc == 3 ? argv[2] : "";
    hyperslab_comm *comm = NULL;
    hyperslab_group *group;
    if (strcmp(mode, "early") == 0) {
        tell("early", hyperslab_comm_mpi(MPI_COMM_WORLD, &comm));
        tell("null", comm == NULL ? HYPERSLAB_OK : HYPERSLAB_INTERNAL);
        return 0;
    }
    MPI_Init(&argc, &argv);
    int made = hyperslab_comm_mpi(MPI_COMM_WORLD, &comm);
    hyperslab_comm_rank(comm, &rank);
    hyperslab_comm_size(comm, &size);
    tell("comm", made);
    tell("no mode of errors", hyperslab_set_errors(comm, 7));
    if (strcmp(mode, "calls") == 0)
        calls(comm, argv[1]);
    else {
        char path[2048];
        hyperslab_names *names;
        snprintf(path, sizeof path, "%s/%s", argv[1], strcmp(mode, "abort-all") == 0 ? "missing.zarr" : "made.zarr");
        hyperslab_set_errors(comm, HYPERSLAB_ABORT);
        hyperslab_open(comm, path, strcmp(mode, "abort-all") == 0 ? "r" : "w", NULL, &group);
        if (rank == size - 1)
            hyperslab_leftovers(group, 9, &names); /* fails on this rank alone */
        hyperslab_flush(group);
        tell("still here", HYPERSLAB_OK);
    }
    tell("free", hyperslab_comm_free(comm));
    MPI_Finalize();
    return 0;
}
