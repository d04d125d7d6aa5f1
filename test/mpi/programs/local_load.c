/* Opens the MPI library as an interpreter does, with its symbols for nobody else, and passes a message.
 * Open MPI's constants are addresses in the library, so they are looked up, too. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* library;

static void* find(const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return symbol;
}

int main(int argc, char** argv) {
    library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(int*, char***) = (int (*)(int*, char***))find("MPI_Init");
    int (*rank_of)(void*, int*) = (int (*)(void*, int*))find("MPI_Comm_rank");
    int (*broadcast)(void*, int, void*, int, void*) =
        (int (*)(void*, int, void*, int, void*))find("MPI_Bcast");
    int (*finalize)(void) = (int (*)(void))find("MPI_Finalize");
    void *world = find("ompi_mpi_comm_world"), *integer = find("ompi_mpi_int");
    int rank, value = 0;
    init(&argc, &argv);
    rank_of(world, &rank);
    if (rank == 0) value = 1234;
    broadcast(&value, 1, integer, 0, world);
    finalize();
    if (rank == 1 && value == 1234) printf("loaded=1\n");
    return value == 1234 ? 0 : 1;
}
