/* Usage: verbs FOLDER ("mpi" | "threads")
 *
 * Calls everything but plain transfers, on all ranks, in a Zarr store and an HDF5 file; ends with an error where something is
 * not as it must be.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hyperslab.h>

#define THREADS 3

static void check(int status, const char *what, int line)
{
    char message[4096], hint[1024];
    if (status == HYPERSLAB_OK)
        return;
    hyperslab_error_message(message, sizeof message);
    hyperslab_error_hint(hint, sizeof hint);
    fprintf(stderr, "line %d, %s: status %d: %s; %s\n", line, what, status, message, hint);
    exit(1);
}

#define DO(call) check(call, #call, __LINE__)
#define EXPECT(that) check((that) ? HYPERSLAB_OK : HYPERSLAB_INTERNAL, #that " is not so, after", __LINE__)

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether a list has these names, each ended by a slash; in the order of texts, where `sorts`. */
static int lists(hyperslab_names *names, int sorts, const char *expected)
{
    const char *each[64];
    char found[4096] = "";
    size_t count = (size_t)hyperslab_names_count(names);
    for (size_t i = 0; i < count && i < 64; i++)
        each[i] = hyperslab_names_get(names, (int64_t)i);
    if (sorts)
        qsort(each, count, sizeof *each, by_text);
    for (size_t i = 0; i < count && i < 64; i++) {
        strcat(found, each[i]);
        strcat(found, "/");
    }
    if (strcmp(found, expected) != 0)
        fprintf(stderr, "names are %s, not %s\n", found, expected);
    EXPECT(hyperslab_names_get(names, (int64_t)count) == NULL);
    hyperslab_names_free(names);
    return strcmp(found, expected) == 0;
}

static hyperslab_attributes *some_attributes(void)
{
    hyperslab_attributes *made;
    int32_t count = 3;
    double pair[2] = {0.5, -1.5};
    int64_t two[1] = {2};
    const char *names[2] = {"x", "y\xc3\xa4"};
    DO(hyperslab_attributes_create(&made));
    DO(hyperslab_attributes_set(made, "count", HYPERSLAB_INT32, 0, NULL, &count));
    DO(hyperslab_attributes_set(made, "pair", HYPERSLAB_FLOAT64, 1, two, pair));
    DO(hyperslab_attributes_set_text(made, "units", "kg m-3"));
    DO(hyperslab_attributes_set_texts(made, "axes", 2, names));
    return made;
}

static void check_attributes(hyperslab_attributes *found)
{
    int32_t type, ndim;
    int64_t shape[HYPERSLAB_NDIM_MAX], count = 0;
    float pair[2];
    char text[16];
    size_t length;
    DO(hyperslab_attributes_get(found, "count", HYPERSLAB_INT64, 1, &count));
    EXPECT(count == 3);
    DO(hyperslab_attributes_type(found, "pair", &type, &ndim, shape));
    EXPECT(type == HYPERSLAB_FLOAT64 && ndim == 1 && shape[0] == 2);
    DO(hyperslab_attributes_get(found, "pair", HYPERSLAB_FLOAT32, 2, pair));
    EXPECT(pair[0] == 0.5f && pair[1] == -1.5f);
    EXPECT(hyperslab_attributes_get(found, "pair", HYPERSLAB_INT32, 2, pair) == HYPERSLAB_INVALID);
    EXPECT(hyperslab_attributes_get(found, "pair", HYPERSLAB_FLOAT32, 1, pair) == HYPERSLAB_INVALID);
    EXPECT(hyperslab_attributes_get(found, "none", HYPERSLAB_FLOAT32, 1, pair) == HYPERSLAB_NOT_FOUND);
    DO(hyperslab_attributes_type(found, "units", &type, &ndim, shape));
    EXPECT(type == HYPERSLAB_TEXT && ndim == 0);
    DO(hyperslab_attributes_get_text(found, "units", 0, text, sizeof text, NULL));
    EXPECT(strcmp(text, "kg m-3") == 0);
    DO(hyperslab_attributes_get_text(found, "axes", 1, text, sizeof text, &length));
    EXPECT(strcmp(text, "y\xc3\xa4") == 0 && length == 3);
    /* No character is cut into pieces. */
    DO(hyperslab_attributes_get_text(found, "axes", 1, text, 3, &length));
    EXPECT(strcmp(text, "y") == 0 && length == 3);
}

static void walk_through(const hyperslab_comm *comm, const char *path, int is_zarr)
{
    int64_t shape[2] = {6, 4}, row[2] = {1, 4}, six[1] = {6}, longer[2] = {8, 4}, chunks[2] = {2, 4}, grows[2] = {-1, 4};
    const char *dimension_names[2] = {"time", "x"}, *removed[1] = {"pair"};
    double fill = -1;
    float data[64], back[64], more[64];
    int32_t ids[8], done = 0;
    hyperslab_dist *dist, *line, *rows;
    hyperslab_group *group, *inner, *step;
    hyperslab_names *names;
    hyperslab_attributes *given = some_attributes(), *found;
    hyperslab_request *request;
    hyperslab_array_info info = {.size = sizeof info};
    hyperslab_memory rho = hyperslab_dense(data, HYPERSLAB_FLOAT32), id = hyperslab_dense(ids, HYPERSLAB_INT32);
    hyperslab_memory again = hyperslab_dense(back, HYPERSLAB_FLOAT32), new_rows = hyperslab_dense(more, HYPERSLAB_FLOAT32);
    hyperslab_write_options options = {.size = sizeof options, .attributes = given, .dimension_names = dimension_names,
                                       .chunks = chunks, .fill_value = &fill, .type = HYPERSLAB_FLOAT64};
    hyperslab_item both[2];
    int32_t rank, mesh_size;
    int64_t mesh[1];
    hyperslab_dim dims[2] = {hyperslab_cyclic(1), hyperslab_whole()};
    DO(hyperslab_comm_rank(comm, &rank));
    DO(hyperslab_comm_size(comm, &mesh_size));
    mesh[0] = mesh_size;
    for (int i = 0; i < 64; i++) {
        data[i] = (float)(100 * rank + i);
        more[i] = 0.25f;
    }
    for (int i = 0; i < 8; i++)
        ids[i] = rank;
    DO(hyperslab_dist_hpf(comm, 2, shape, 1, mesh, dims, &dist));
    DO(hyperslab_dist_block(comm, 1, six, &line));
    DO(hyperslab_dist_replicated(comm, 2, row, &rows));

    DO(hyperslab_open(comm, path, "w", NULL, &group));
    if (!is_zarr)
        options.maxshape = grows;
    both[0] = hyperslab_item_of("rho", &rho, dist);
    both[0].options = &options;
    both[1] = hyperslab_item_of("id", &id, line);
    DO(hyperslab_write_many(group, 2, both));
    /* Nothing of it is written but one row. */
    int64_t second[2] = {1, 0}, whole_row[2] = {1, 4};
    hyperslab_section one_row = hyperslab_section_of(2, second, whole_row, NULL);
    hyperslab_write_options blank = {.size = sizeof blank, .fill_value = &fill};
    DO(hyperslab_create_array(group, "blank", HYPERSLAB_FLOAT64, 2, shape, &blank));
    EXPECT(hyperslab_create_array(group, "blank", HYPERSLAB_FLOAT64, 2, shape, &blank) ==
           (is_zarr ? HYPERSLAB_EXISTS : HYPERSLAB_INVALID));
    DO(hyperslab_write(group, "blank", &new_rows, rows, &one_row, NULL));
    DO(hyperslab_edit_attributes(group, NULL, given, 0, NULL));
    DO(hyperslab_edit_attributes(group, "rho", NULL, 1, removed));
    DO(hyperslab_edit_attributes(group, "rho", given, 0, NULL));
    DO(hyperslab_make_group(group, "inner", given, HYPERSLAB_DEFAULT, &inner));
    DO(hyperslab_write(inner, "u", &rho, dist, NULL, NULL));
    DO(hyperslab_close(inner));
    for (int i = 8; i <= 11; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        DO(hyperslab_begin_step(group, name, given, &step));
        DO(hyperslab_write(step, "rho", &rho, dist, NULL, NULL));
        DO(i < 11 ? hyperslab_close(step) : HYPERSLAB_OK);
    }
    /* The last one is given up, by the last rank. */
    EXPECT((rank == mesh_size - 1 ? hyperslab_give_up(step, "no") : hyperslab_close(step)) == HYPERSLAB_PEER);
    DO(hyperslab_keep_steps(group, 2));
    DO(hyperslab_steps(group, &names));
    EXPECT(lists(names, 0, "s9/s10/"));
    DO(hyperslab_close(group));

    DO(hyperslab_open(comm, path, "r+", NULL, &group));
    DO(hyperslab_append(group, "rho", 0, &new_rows, rows));
    DO(hyperslab_info(group, "rho", &info));
    EXPECT(info.type == HYPERSLAB_FLOAT64 && info.ndim == 2 && info.shape[0] == 7 && info.shape[1] == 4);
    EXPECT(info.item_bytes == 8 && info.chunks[0] == 2 && info.chunks[1] == 4);
    DO(hyperslab_resize(group, "rho", 2, longer));
    DO(hyperslab_refresh(group));
    DO(hyperslab_iwrite(group, 1, &(hyperslab_item){.size = sizeof(hyperslab_item), .name = "later", .memory = &rho,
                                                    .dist = dist}, HYPERSLAB_YES, &request));
    DO(hyperslab_test(request, &done));
    DO(hyperslab_wait(request));
    DO(hyperslab_iread(group, 1, &(hyperslab_item){.size = sizeof(hyperslab_item), .name = "later", .memory = &again,
                                                   .dist = dist}, &request));
    DO(hyperslab_wait(request));
    int64_t part[HYPERSLAB_NDIM_MAX];
    int32_t ndim;
    DO(hyperslab_dist_local_shape(dist, 0, &ndim, part));
    EXPECT(ndim == 2 && memcmp(data, back, (size_t)(part[0] * part[1]) * sizeof(float)) == 0);
    DO(hyperslab_rename(group, "later", "sooner"));
    DO(hyperslab_delete(group, "id"));
    DO(hyperslab_flush(group));
    DO(hyperslab_arrays(group, &names));
    EXPECT(lists(names, 1, is_zarr ? "blank/rho/sooner/" : "blank/inner/u/rho/s10/rho/s9/rho/sooner/"));
    DO(hyperslab_groups(group, &names));
    EXPECT(lists(names, 1, "inner/s10/s9/"));
    for (int which = HYPERSLAB_REMOVED; which <= HYPERSLAB_PASSED_OVER; which++) {
        DO(hyperslab_leftovers(group, which, &names));
        EXPECT(lists(names, 0, ""));
    }
    DO(hyperslab_attributes_of(group, NULL, &found));
    check_attributes(found);
    hyperslab_attributes_free(found);
    DO(hyperslab_attributes_of(group, "rho", &found));
    check_attributes(found);
    hyperslab_attributes_free(found);
    DO(hyperslab_open_group(group, "s10", &inner));
    DO(hyperslab_attributes_of(inner, NULL, &found));
    check_attributes(found);
    hyperslab_attributes_free(found);
    DO(hyperslab_read(inner, "rho", &again, dist, NULL));
    DO(hyperslab_close(inner));
    DO(hyperslab_close(group));
    hyperslab_attributes_free(given);
    hyperslab_dist_free(dist);
    hyperslab_dist_free(line);
    hyperslab_dist_free(rows);
}

static const char *folder;

static void *on_rank(void *given)
{
    hyperslab_comm *comm = given;
    char path[2048];
    snprintf(path, sizeof path, "%s/verbs.zarr", folder);
    walk_through(comm, path, 1);
    snprintf(path, sizeof path, "%s/verbs.h5", folder);
    walk_through(comm, path, 0);
    DO(hyperslab_comm_free(comm));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    folder = argv[1];
    EXPECT(hyperslab_version() == HYPERSLAB_VERSION_MAJOR * 1000000 + HYPERSLAB_VERSION_MINOR * 1000 + HYPERSLAB_VERSION_PATCH);
    if (strcmp(argv[2], "mpi") == 0) {
        hyperslab_comm *comm;
        MPI_Init(&argc, &argv);
        DO(hyperslab_comm_mpi(MPI_COMM_WORLD, &comm));
        on_rank(comm);
        MPI_Finalize();
    } else {
        hyperslab_comm *comms[THREADS];
        pthread_t threads[THREADS];
        DO(hyperslab_comm_threads(THREADS, comms));
        for (int i = 0; i < THREADS; i++)
            EXPECT(pthread_create(&threads[i], NULL, on_rank, comms[i]) == 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    printf("all is well\n");
    return 0;
}
