/* Runs a command in a sandbox of its own (Landlock), out of which it may look into no other process, and nobody but its
 * descendants may look in from another one. Files are as usual.
 * sandboxed COMMAND ARGUMENTS... */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif

static int enter(void) {
    /* To rename and to link is forbidden in a sandbox unless it is allowed. */
    const struct landlock_ruleset_attr restricted = {.handled_access_fs = LANDLOCK_ACCESS_FS_REFER};
    struct landlock_path_beneath_attr everywhere = {.allowed_access = LANDLOCK_ACCESS_FS_REFER};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &restricted, sizeof restricted, 0);
    everywhere.parent_fd = open("/", O_PATH | O_CLOEXEC);
    return rules < 0 || everywhere.parent_fd < 0 ||
           syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0) != 0 ||
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, rules, 0) != 0 || close(rules) != 0;
}

int main(int argc, char** argv) {
    if (argc < 2 || enter() != 0) {
        fprintf(stderr, "sandboxed: %s\n", argc < 2 ? "which command?" : strerror(errno));
        return 125;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "sandboxed: %s: %s\n", argv[1], strerror(errno));
    return 126;
}
