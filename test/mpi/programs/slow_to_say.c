/* Who comes first of a node waits before it says why the job cannot be, while the others end. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common.h"

/* In place of the C library's, for Velo's plugin. */
__attribute__((visibility("default"))) int mkdir(const char* path, mode_t mode) {
    const int status = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (status == 0 && strstr(path, "velo-claimed") != NULL) sleep_ms(300);
    return status;
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Finalize();
    return 0;
}
