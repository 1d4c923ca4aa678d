/* Writes an array that is spread over all ranks to an HDF5 file, and reads a part of it.
 *
 *     cargo build --release -p hyperslab-c && ln -sf libhyperslab.so target/release/libhyperslab.so.0
 *     mpicc -std=c99 -I bindings/c/include examples/c/first.c -L target/release -lhyperslab -o first
 *     LD_LIBRARY_PATH=target/release mpiexec -n 4 ./first run.h5
 *
 * Prints on rank 0: the sum of the first row is 2016
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <hyperslab.h>

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "run.h5";
    int64_t shape[2] = {48, 64}, mine[HYPERSLAB_NDIM_MAX], start[2] = {0, 0}, count[2] = {1, 64};
    int32_t ndim, rank;
    double row[64], sum = 0;
    hyperslab_comm *comm;
    hyperslab_dist *blocks;
    hyperslab_group *file;

    MPI_Init(&argc, &argv);
    hyperslab_comm_mpi(MPI_COMM_WORLD, &comm);
    hyperslab_set_errors(comm, HYPERSLAB_ABORT); /* whatever fails, ends all ranks with its message */
    hyperslab_comm_rank(comm, &rank);

    /* Which part is this rank's, and its values: each is the number of its element. */
    hyperslab_dist_block(comm, 2, shape, &blocks);
    hyperslab_dist_local_shape(blocks, 0, &ndim, mine);
    double *rho = malloc((size_t)(mine[0] * mine[1] + 1) * sizeof *rho);
    for (int64_t i = 0; i < mine[0] * mine[1]; i++) {
        int64_t local[2] = {i / mine[1], i % mine[1]}, global[2];
        hyperslab_dist_to_global(blocks, 0, local, global);
        rho[i] = (double)(global[0] * shape[1] + global[1]);
    }

    hyperslab_memory part = hyperslab_dense(rho, HYPERSLAB_FLOAT64);
    hyperslab_open(comm, path, "w", NULL, &file); /* HDF5, by its name */
    hyperslab_write(file, "rho", &part, blocks, NULL, NULL);
    hyperslab_close(file); /* now it is there, whole */

    hyperslab_memory all = hyperslab_inside(row, HYPERSLAB_FLOAT64, 2, count, NULL);
    /* Each rank reads the first row, into memory of its shape. */
    hyperslab_section first = hyperslab_section_of(2, start, count, NULL);
    hyperslab_open(comm, path, "r", NULL, &file);
    hyperslab_read(file, "rho", &all, NULL, &first);
    hyperslab_close(file);
    for (int i = 0; i < 64; i++)
        sum += row[i];
    if (rank == 0)
        printf("the sum of the first row is %g\n", sum);

    free(rho);
    hyperslab_dist_free(blocks);
    hyperslab_comm_free(comm);
    MPI_Finalize();
    return 0;
}
