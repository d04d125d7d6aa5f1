/* Runs programs of this directory one after the other in one job: as each was started by itself, but for MPI_Init and MPI_Finalize.
 * series single|multiple PROGRAM ARGUMENT... [-- PROGRAM ARGUMENT...]...
 *
 * A program is a shared object beside this one, opened anew for each turn, so that its variables are those of a process that has just
 * begun. What it calls to begin and to end with MPI it finds here first. Rank 0 says which one begins and which has ended, each
 * by its number. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "common.h"

static int level;

int MPI_Init(int* argc, char*** argv) {
    (void)argc, (void)argv;
    return MPI_SUCCESS;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    (void)argc, (void)argv, (void)required;
    *provided = level;
    return MPI_SUCCESS;
}

/* Nobody begins what is next before all have ended. */
int MPI_Finalize(void) {
    return PMPI_Barrier(MPI_COMM_WORLD);
}

static void run(const char* directory, int argc, char** argv) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.so", directory, argv[0]);
    void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(object != NULL, "%s", dlerror());
    int (*program)(int, char**);
    *(void**)&program = dlsym(object, "main");
    CHECK(program != NULL, "%s has no main", path);
    const int status = program(argc, argv);
    CHECK(status == 0, "%s has ended with %d", argv[0], status);
    dlclose(object);
}

int main(int argc, char** argv) {
    char* directory = dirname(strdup(argv[0]));
    const int wanted = argc > 1 && strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    PMPI_Init_thread(&argc, &argv, wanted, &level);
    settle();
    CHECK(wanted == MPI_THREAD_SINGLE || level == wanted, "no MPI_THREAD_MULTIPLE");
    for (int begin = 2, number = 0; begin < argc; ++number) {
        int end = begin;
        while (end < argc && strcmp(argv[end], "--") != 0) ++end;
        if (end < argc) argv[end] = NULL;
        if (my_rank == 0) printf("begins: %d\n", number), fflush(stdout);
        run(directory, end - begin, argv + begin);
        if (my_rank == 0) printf("has ended: %d\n", number), fflush(stdout);
        begin = end + 1;
    }
    free(directory);
    PMPI_Finalize();
    return 0;
}
