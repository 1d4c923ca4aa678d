/* Usage: calls PROCESS [NUMBER SIGNAL]
 *
 * Attaches to a process, which has one thread as yet, says "attached" and then, line by line, which system calls it makes
 * that change or sync files: name and path. Before the call of that number (the first is 1; syncs do not count) it
 * sends the signal, so that SIGKILL leaves things as they were before it; a process that SIGSTOP reaches still makes it.
 * Ends with status 0 when it has sent the signal, and with 3 when the process ended before; without a number, with 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a call says which file it is about. */
enum about { DESCRIPTOR, PATH };
/* What it must be to count. */
enum when { ALWAYS, IF_FILE, IF_FLAGS, IF_HOW, NEVER };

struct call {
    uint64_t number;
    const char *name;
    enum about about;
    int argument;
    enum when when;
};

static const struct call CALLS[] = {
#ifdef SYS_open
    {SYS_open, "open", PATH, 0, IF_FLAGS},
    {SYS_creat, "creat", PATH, 0, ALWAYS},
    {SYS_mkdir, "mkdir", PATH, 0, ALWAYS},
    {SYS_rmdir, "rmdir", PATH, 0, ALWAYS},
    {SYS_unlink, "unlink", PATH, 0, ALWAYS},
    {SYS_rename, "rename", PATH, 1, ALWAYS},
    {SYS_link, "link", PATH, 1, ALWAYS},
    {SYS_symlink, "symlink", PATH, 1, ALWAYS},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "renameat", PATH, 3, ALWAYS},
#endif
#ifdef SYS_openat2
    {SYS_openat2, "openat2", PATH, 1, IF_HOW},
#endif
    {SYS_openat, "openat", PATH, 1, IF_FLAGS},
    {SYS_mkdirat, "mkdirat", PATH, 1, ALWAYS},
    {SYS_unlinkat, "unlinkat", PATH, 1, ALWAYS},
    {SYS_renameat2, "renameat2", PATH, 3, ALWAYS},
    {SYS_linkat, "linkat", PATH, 3, ALWAYS},
    {SYS_symlinkat, "symlinkat", PATH, 2, ALWAYS},
    {SYS_truncate, "truncate", PATH, 0, ALWAYS},
    {SYS_ftruncate, "ftruncate", DESCRIPTOR, 0, ALWAYS},
    {SYS_fallocate, "fallocate", DESCRIPTOR, 0, ALWAYS},
    {SYS_write, "write", DESCRIPTOR, 0, IF_FILE},
    {SYS_writev, "writev", DESCRIPTOR, 0, IF_FILE},
    {SYS_pwrite64, "pwrite64", DESCRIPTOR, 0, ALWAYS},
    {SYS_pwritev, "pwritev", DESCRIPTOR, 0, ALWAYS},
    {SYS_pwritev2, "pwritev2", DESCRIPTOR, 0, ALWAYS},
    {SYS_copy_file_range, "copy_file_range", DESCRIPTOR, 2, ALWAYS},
#ifdef SYS_io_uring_enter
    {SYS_io_uring_enter, "io_uring_enter", DESCRIPTOR, 0, ALWAYS},
#endif
    {SYS_fsync, "fsync", DESCRIPTOR, 0, NEVER},
    {SYS_fdatasync, "fdatasync", DESCRIPTOR, 0, NEVER},
    {SYS_syncfs, "syncfs", DESCRIPTOR, 0, NEVER},
};

static pid_t process;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

/* Copies from the memory of the process; how much there was. */
static size_t peek(uint64_t from, void *to, size_t length) {
    size_t copied = 0;
    /* Page by page, since what lies behind a short text may not be mapped. */
    while (copied < length) {
        size_t part = 4096 - (from + copied) % 4096;
        if (part > length - copied)
            part = length - copied;
        struct iovec here = {(char *)to + copied, part}, there = {(void *)(uintptr_t)(from + copied), part};
        if (process_vm_readv(process, &here, 1, &there, 1, 0) != (ssize_t)part)
            break;
        copied += part;
    }
    return copied;
}

static void name_of(const struct call *call, const uint64_t *arguments, char *name) {
    memset(name, 0, PATH_MAX);
    if (call->about == PATH) {
        peek(arguments[call->argument], name, PATH_MAX - 1);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", process, (int)arguments[call->argument]);
        if (readlink(link, name, PATH_MAX - 1) < 0)
            name[0] = 0;
    }
}

static int counts(const struct call *call, const uint64_t *arguments, const char *name) {
    struct stat status;
    uint64_t flags;
    switch (call->when) {
    case ALWAYS:
        return 1;
    case IF_FILE:
        return name[0] == '/' && stat(name, &status) == 0 && S_ISREG(status.st_mode);
    case IF_FLAGS:
        return (arguments[call->argument + 1] & (O_CREAT | O_TRUNC)) != 0;
    case IF_HOW:
        return peek(arguments[2], &flags, sizeof flags) == sizeof flags && (flags & (O_CREAT | O_TRUNC)) != 0;
    default:
        return 0;
    }
}

/* Which of the calls a thread is about to make, if any. */
static const struct call *entered(pid_t thread, struct __ptrace_syscall_info *info) {
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof *info, info) <= 0 || info->op != PTRACE_SYSCALL_INFO_ENTRY)
        return NULL;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (CALLS[i].number == info->entry.nr)
            return &CALLS[i];
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4)
        return 2;
    process = atoi(argv[1]);
    long number = argc == 4 ? atol(argv[2]) : 0, count = 0;
    int signal_number = argc == 4 ? atoi(argv[3]) : 0;
    if (ptrace(PTRACE_SEIZE, process, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) != 0)
        fail("attaching");
    if (ptrace(PTRACE_INTERRUPT, process, 0, 0) != 0)
        fail("interrupting");
    int attached = 0;
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0)
            return number == 0 ? 0 : 3;
        if (!WIFSTOPPED(status))
            continue;
        int passed_on = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info;
            static char name[PATH_MAX];
            const struct call *call = entered(thread, &info);
            if (call != NULL) {
                name_of(call, info.entry.args, name);
                int counted = counts(call, info.entry.args, name);
                if (counted || call->when == NEVER) {
                    printf("%s %s\n", call->name, name);
                    fflush(stdout);
                }
                if (counted && ++count == number) {
                    if (kill(process, signal_number) != 0)
                        fail("signalling");
                    return 0;
                }
            }
        } else if (status >> 16 == PTRACE_EVENT_STOP) {
            if (!attached && thread == process) {
                attached = 1;
                printf("attached\n");
                fflush(stdout);
            } else if (WSTOPSIG(status) != SIGTRAP) {
                /* The process was stopped by somebody else. */
                ptrace(PTRACE_LISTEN, thread, 0, 0);
                continue;
            }
        } else if (status >> 16 == 0) {
            passed_on = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, thread, 0, passed_on);
    }
}
