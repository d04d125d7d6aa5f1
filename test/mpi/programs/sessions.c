/* Sessions (MPI 4), one after the other and two at once, without MPI_Init.
 * sessions ROUNDS PAUSE_MS: prints sessions=0 where MPI has none. Each round opens a session, talks over a communicator of it and a
 * copy of that, and closes it. From the second round on rank 0 has one communicator more, so that the same one need not have the
 * same place in all tables. Tells how many descriptors and mappings of files in /dev/shm there are more after the last round than after the
 * second. */
#include "common.h"

#ifdef MPI_SESSION_NULL /* Open MPI 5.0 has sessions, but calls itself MPI 3.1. */

static int entries_in(const char* path) {
    DIR* directory = opendir(path);
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL) ++count;
    if (directory != NULL) closedir(directory);
    return count;
}

/* Nameless files too: the kernel shows the directory where they were made. */
static int shared_mappings(void) {
    char line[600];
    int count = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) count += strstr(line, "/dev/shm/") != NULL;
    if (maps != NULL) fclose(maps);
    return count;
}

static MPI_Comm communicator_of(MPI_Session session, const char* processes, const char* name) {
    MPI_Group group;
    MPI_Comm communicator;
    CHECK(MPI_Group_from_session_pset(session, processes, &group) == MPI_SUCCESS, "no group");
    CHECK(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &communicator) == MPI_SUCCESS,
          "no communicator");
    MPI_Group_free(&group);
    return communicator;
}

static MPI_Comm world_of(MPI_Session session, const char* name) {
    MPI_Comm communicator = communicator_of(session, "mpi://WORLD", name);
    MPI_Comm_rank(communicator, &my_rank);
    MPI_Comm_size(communicator, &ranks);
    return communicator;
}

static void add_up(MPI_Comm communicator, int round) {
    int own = my_rank + round, sum;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, communicator);
    CHECK(sum == ranks * (ranks - 1) / 2 + ranks * round, "sum %d in round %d", sum, round);
}

static void talk(MPI_Comm communicator, int round) {
    static const int kBytes[] = {0, 8, 3000, 100000};
    static unsigned char out[100000], in[100000];
    int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    for (int k = 0; k < 4; ++k) {
        pattern_fill(out, (size_t)kBytes[k], seed_of(my_rank, (uint64_t)round, k));
        MPI_Sendrecv(out, kBytes[k], MPI_BYTE, to, k, in, kBytes[k], MPI_BYTE, from, k, communicator, MPI_STATUS_IGNORE);
        pattern_check(in, (size_t)kBytes[k], seed_of(from, (uint64_t)round, k), "sessions");
    }
    MPI_Comm copy;
    MPI_Comm_dup(communicator, &copy);
    add_up(communicator, round);
    add_up(copy, round);
    MPI_Comm_free(&copy);
}

static void round_(int round) {
    MPI_Session sessions[2];
    MPI_Comm communicators[2], own = MPI_COMM_NULL;
    int count = 1 + round % 2;
    for (int i = 0; i < count; ++i) {
        CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[i]) == MPI_SUCCESS, "no session in round %d", round);
        if (i == 0 && round > 0 && my_rank == 0) own = communicator_of(sessions[i], "mpi://SELF", "velo.own");
        communicators[i] = world_of(sessions[i], i == 0 ? "velo.one" : "velo.two");
        talk(communicators[i], round);
    }
    if (own != MPI_COMM_NULL) MPI_Comm_free(&own);
    for (int i = 0; i < count; ++i) {
        MPI_Comm_free(&communicators[i]);
        CHECK(MPI_Session_finalize(&sessions[i]) == MPI_SUCCESS, "no end of session %d in round %d", i, round);
    }
}

int main(int argc, char** argv) {
    int rounds = (int)argument(argc, argv, 1, 10), descriptors = 0, mappings = 0;
    for (int round = 0; round < rounds; ++round) {
        sleep_ms(argument(argc, argv, 2, 0));
        round_(round);
        if (round == 1) descriptors = entries_in("/proc/self/fd"), mappings = shared_mappings();
    }
    if (my_rank == 0) {
        printf("sessions=%d\ndescriptors=%d\nmappings=%d\n", rounds, entries_in("/proc/self/fd") - descriptors,
               shared_mappings() - mappings);
    }
    return 0;
}

#else

int main(void) {
    (void)fail, (void)settle;
    if (getenv("OMPI_COMM_WORLD_RANK") != NULL && atoi(getenv("OMPI_COMM_WORLD_RANK")) == 0) printf("sessions=0\n");
    return 0;
}

#endif
