/* Lets the n-th system call below a directory fail, wait, stop or kill: for LD_PRELOAD, steered through its functions.
 *
 * Counted are calls of libc, in classes, whose path or descriptor lies in the directory that `faults_watch` names.
 * Nothing else is changed, and nothing at all before `faults_watch`. Descriptors are looked up when they are used, so
 * that it does not matter how they came about. Calls that bypass libc are not seen; `test_faults` compares the counts
 * with those of strace. Written for glibc on Linux.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The same order as in `fault_library.py`. */
enum class {
    OPEN, READ, WRITE, SYNC, FLUSH, RENAME, EXCHANGE, MKDIR, UNLINK, TRUNCATE, LINK, MODE, STAT, LIST, LOCK, CLOSE, TARGET, CLASSES
};
enum kind { FAIL, SHORTEN, DELAY, STALL, STOP, KILL, LOSE };

/* What `suffer` says besides errors: half of the bytes are moved; or moved, and the rest is said to be. */
enum { SHORTER = -1, LOST = -2 };
/* Descriptors of which it is known whether they wrote. */
#define DESCRIPTORS 65536

#define EXPORT __attribute__((visibility("default")))
/* Longest path that is looked at. */
#define PATH_BYTES (2 * PATH_MAX)

static _Atomic(const char *) watched;
static atomic_long counts[CLASSES];
static atomic_int armed_class = -1;
static atomic_long armed_first, armed_times, armed_value;
static atomic_int armed_kind;
static atomic_long hits, stalled;
/* Who wrote what was lost, and what is told of it: an error number, once. */
static atomic_int lost_by = -1;
static atomic_long lost_value;
static struct statx lost_file;
static atomic_bool wrote[DESCRIPTORS];
static _Atomic(const char *) gate;
static _Atomic(const char *) target;
static char hit_text[PATH_BYTES + 64];

static void sleep_ms(long ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* ---- what the tests call --------------------------------------------------------------------------------------- */

/* Count from zero what happens in a directory (its real, absolute path); with "", nothing. Disarms, too. */
EXPORT void faults_watch(const char *directory) {
    atomic_store(&armed_class, -1);
    /* The last one is not freed: another thread may be comparing with it. */
    atomic_store(&watched, *directory ? strdup(directory) : NULL);
    for (int each = 0; each < CLASSES; each++) atomic_store(&counts[each], 0);
    atomic_store(&hits, 0);
    atomic_store(&lost_by, -1);
    hit_text[0] = 0;
}

/* Let calls number `first` to `first + times - 1` of a class suffer; `value` is an errno or milliseconds. */
EXPORT void faults_arm(int class, long first, long times, int kind, long value) {
    atomic_store(&armed_class, -1);
    atomic_store(&armed_first, first);
    atomic_store(&armed_times, times);
    atomic_store(&armed_kind, kind);
    atomic_store(&armed_value, value);
    atomic_store(&armed_class, class);
}

EXPORT void faults_disarm(void) { atomic_store(&armed_class, -1); }
EXPORT long faults_count(int class) { return atomic_load(&counts[class]); }
/* How many calls suffered since `faults_watch`, and the first of them: function and path. */
EXPORT long faults_hits(void) { return atomic_load(&hits); }
EXPORT const char *faults_text(void) { return hit_text; }
/* How many threads are in a stall; it ends when there is a file of the name that `faults_gate` gives. */
EXPORT long faults_stalled(void) { return atomic_load(&stalled); }
EXPORT void faults_gate(const char *path) { atomic_store(&gate, strdup(path)); }

/* Count what is renamed or linked to this path in a class of its own; with "", nothing. */
EXPORT void faults_target(const char *path) { atomic_store(&target, *path ? strdup(path) : NULL); }

/* ---- is it below? ---------------------------------------------------------------------------------------------- */

static bool begins_below(const char *path) {
    const char *directory = atomic_load(&watched);
    size_t length = directory ? strlen(directory) : 0;
    return directory && strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static void path_of_descriptor(int descriptor, char *into, size_t bytes) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, into, bytes - 1);
    into[length > 0 ? length : 0] = 0;
}

/* The absolute path of what a call with a descriptor and a path means, links apart. */
static void full_path(int at, const char *path, char *into) {
    static const char *const own[] = {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"};
    char base[PATH_BYTES];
    base[0] = 0;
    for (size_t each = 0; path && each < sizeof own / sizeof *own; each++) {
        size_t length = strlen(own[each]);
        if (strncmp(path, own[each], length) == 0) {
            char *rest;
            path_of_descriptor((int)strtol(path + length, &rest, 10), base, sizeof base);
            snprintf(into, PATH_BYTES, "%s%s", base, rest);
            return;
        }
    }
    if (path && *path == '/') {
        snprintf(into, PATH_BYTES, "%s", path);
        return;
    }
    if (at != AT_FDCWD) {
        path_of_descriptor(at, base, sizeof base);
    } else if (syscall(SYS_getcwd, base, sizeof base) < 0) {
        base[0] = 0;
    }
    snprintf(into, PATH_BYTES, path && *path ? "%s/%s" : "%s%s", base, path ? path : "");
}

/* ---- what shall happen to a call --------------------------------------------------------------------------------- */

static bool is_open_gate(void) {
    const char *path = atomic_load(&gate);
    return path && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

/* The number of an error, 0 to carry on, or `SHORTER` or `LOST`. */
static int suffer(int class, const char *function, const char *path) {
    long number = atomic_fetch_add(&counts[class], 1) + 1;
    long first = atomic_load(&armed_first);
    if (class != atomic_load(&armed_class) || number < first || number - first >= atomic_load(&armed_times)) return 0;
    if (atomic_fetch_add(&hits, 1) == 0) snprintf(hit_text, sizeof hit_text, "%s %s", function, path);
    long value = atomic_load(&armed_value);
    switch (atomic_load(&armed_kind)) {
    case FAIL:
        return (int)value;
    case SHORTEN:
        return SHORTER;
    case LOSE:
        atomic_store(&lost_value, value);
        return LOST;
    case DELAY:
        sleep_ms(value);
        return 0;
    case STALL:
        atomic_fetch_add(&stalled, 1);
        for (long waited = 0; waited < value && !is_open_gate(); waited += 5) sleep_ms(5);
        atomic_fetch_sub(&stalled, 1);
        return 0;
    case STOP:
        syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP);
        return 0;
    case KILL:
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    }
    return 0;
}

static int verdict_at(int class, const char *function, int at, const char *path) {
    char found[PATH_BYTES];
    if (!atomic_load(&watched)) return 0;
    full_path(at, path, found);
    return begins_below(found) ? suffer(class, function, found) : 0;
}

static int verdict_pair(int class, const char *function, int at1, const char *path1, int at2, const char *path2) {
    char first[PATH_BYTES], second[PATH_BYTES];
    if (!atomic_load(&watched)) return 0;
    full_path(at1, path1, first);
    full_path(at2, path2, second);
    const char *aim = atomic_load(&target);
    if (aim && strcmp(second, aim) == 0) class = TARGET;
    return begins_below(first) || begins_below(second) ? suffer(class, function, second) : 0;
}

static int verdict_fd(int class, const char *function, int descriptor) {
    return verdict_at(class, function, descriptor, NULL);
}

#define NEXT(result, name, ...)                                                                                        \
    static result (*next)(__VA_ARGS__);                                                                                \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name)
/* Fail with this value, or carry on. */
#define REFUSE(verdict, failure)                                                                                       \
    int refused = (verdict);                                                                                           \
    if (refused > 0) {                                                                                                 \
        errno = refused;                                                                                               \
        return failure;                                                                                                \
    }

/* ---- calls with paths -------------------------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list more) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPENS(name)                                                                                                    \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = mode_of(flags, more);                                                                            \
        va_end(more);                                                                                                  \
        NEXT(int, name, const char *, int, ...);                                                                       \
        REFUSE(verdict_at(OPEN, #name, AT_FDCWD, path), -1);                                                           \
        return next(path, flags, mode);                                                                                \
    }
#define OPENS_AT(name)                                                                                                 \
    EXPORT int name(int at, const char *path, int flags, ...) {                                                        \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = mode_of(flags, more);                                                                            \
        va_end(more);                                                                                                  \
        NEXT(int, name, int, const char *, int, ...);                                                                  \
        REFUSE(verdict_at(OPEN, #name, at, path), -1);                                                                 \
        return next(at, path, flags, mode);                                                                            \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

/* A function of one path, or of a directory and a path, and what else it takes. */
#define NAMED(class, name, rest, given)                                                                                \
    EXPORT int name(const char *path rest) {                                                                           \
        NEXT(int, name, const char *rest);                                                                             \
        REFUSE(verdict_at(class, #name, AT_FDCWD, path), -1);                                                          \
        return next(path given);                                                                                       \
    }
#define NAMED_AT(class, name, rest, given)                                                                             \
    EXPORT int name(int at, const char *path rest) {                                                                   \
        NEXT(int, name, int, const char *rest);                                                                        \
        REFUSE(verdict_at(class, #name, at, path), -1);                                                                \
        return next(at, path given);                                                                                   \
    }
#define AND ,
NAMED(OPEN, creat, AND mode_t mode, AND mode)
NAMED(OPEN, creat64, AND mode_t mode, AND mode)
NAMED(MKDIR, mkdir, AND mode_t mode, AND mode)
NAMED_AT(MKDIR, mkdirat, AND mode_t mode, AND mode)
NAMED(UNLINK, unlink, , )
NAMED(UNLINK, rmdir, , )
NAMED(UNLINK, remove, , )
NAMED_AT(UNLINK, unlinkat, AND int flags, AND flags)
NAMED(TRUNCATE, truncate, AND off_t length, AND length)
NAMED(TRUNCATE, truncate64, AND off64_t length, AND length)
NAMED(MODE, chmod, AND mode_t mode, AND mode)
NAMED_AT(MODE, fchmodat, AND mode_t mode AND int flags, AND mode AND flags)
NAMED(STAT, stat, AND void *into, AND into)
NAMED(STAT, stat64, AND void *into, AND into)
NAMED(STAT, lstat, AND void *into, AND into)
NAMED(STAT, lstat64, AND void *into, AND into)
NAMED_AT(STAT, fstatat, AND void *into AND int flags, AND into AND flags)
NAMED_AT(STAT, fstatat64, AND void *into AND int flags, AND into AND flags)
NAMED_AT(STAT, statx, AND int flags AND unsigned mask AND void *into, AND flags AND mask AND into)
NAMED(STAT, access, AND int mode, AND mode)
NAMED_AT(STAT, faccessat, AND int mode AND int flags, AND mode AND flags)

EXPORT int rename(const char *from, const char *to) {
    NEXT(int, rename, const char *, const char *);
    REFUSE(verdict_pair(RENAME, "rename", AT_FDCWD, from, AT_FDCWD, to), -1);
    return next(from, to);
}

EXPORT int renameat(int at1, const char *from, int at2, const char *to) {
    NEXT(int, renameat, int, const char *, int, const char *);
    REFUSE(verdict_pair(RENAME, "renameat", at1, from, at2, to), -1);
    return next(at1, from, at2, to);
}

EXPORT int renameat2(int at1, const char *from, int at2, const char *to, unsigned flags) {
    NEXT(int, renameat2, int, const char *, int, const char *, unsigned);
    REFUSE(verdict_pair(flags ? EXCHANGE : RENAME, "renameat2", at1, from, at2, to), -1);
    return next(at1, from, at2, to, flags);
}

EXPORT int link(const char *from, const char *to) {
    NEXT(int, link, const char *, const char *);
    REFUSE(verdict_pair(LINK, "link", AT_FDCWD, from, AT_FDCWD, to), -1);
    return next(from, to);
}

EXPORT int linkat(int at1, const char *from, int at2, const char *to, int flags) {
    NEXT(int, linkat, int, const char *, int, const char *, int);
    REFUSE(verdict_pair(LINK, "linkat", at1, from, at2, to), -1);
    return next(at1, from, at2, to, flags);
}

EXPORT int symlink(const char *target, const char *path) {
    NEXT(int, symlink, const char *, const char *);
    REFUSE(verdict_at(LINK, "symlink", AT_FDCWD, path), -1);
    return next(target, path);
}

EXPORT int symlinkat(const char *target, int at, const char *path) {
    NEXT(int, symlinkat, const char *, int, const char *);
    REFUSE(verdict_at(LINK, "symlinkat", at, path), -1);
    return next(target, at, path);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

EXPORT DIR *opendir(const char *path) {
    NEXT(DIR *, opendir, const char *);
    REFUSE(verdict_at(OPEN, "opendir", AT_FDCWD, path), NULL);
    return next(path);
}

#define READS_DIRECTORY(name, entry)                                                                                   \
    EXPORT entry *name(DIR *directory) {                                                                               \
        NEXT(entry *, name, DIR *);                                                                                    \
        REFUSE(verdict_fd(LIST, #name, dirfd(directory)), NULL);                                                       \
        return next(directory);                                                                                        \
    }
READS_DIRECTORY(readdir, struct dirent)
READS_DIRECTORY(readdir64, struct dirent64)

/* ---- calls with descriptors -------------------------------------------------------------------------------------- */

#define HELD(class, name, rest, given)                                                                                 \
    EXPORT int name(int descriptor rest) {                                                                             \
        NEXT(int, name, int rest);                                                                                     \
        REFUSE(verdict_fd(class, #name, descriptor), -1);                                                              \
        return next(descriptor given);                                                                                 \
    }

/* ---- what is told late ------------------------------------------------------------------------------------------- */

static bool look_at(int descriptor, struct statx *into) {
    return syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_INO, into) == 0;
}

static bool is_lost_file(int descriptor) {
    struct statx found;
    return look_at(descriptor, &found) && found.stx_ino == lost_file.stx_ino &&
           found.stx_dev_major == lost_file.stx_dev_major && found.stx_dev_minor == lost_file.stx_dev_minor;
}

/* A server has accepted bytes that it cannot keep. It says so once, to whoever asks first: to the sync of any descriptor of the
 * file while the one that wrote is open, else to its close; a descriptor that is opened later hears nothing (GlusterFS). */
static void lose(int descriptor) {
    if (look_at(descriptor, &lost_file)) atomic_store(&lost_by, descriptor);
}

static bool tells_sync(int descriptor) {
    int by = atomic_load(&lost_by);
    return by >= 0 && is_lost_file(descriptor) && atomic_compare_exchange_strong(&lost_by, &by, -1);
}

static bool tells_close(int descriptor) {
    int by = descriptor;
    return descriptor >= 0 && atomic_compare_exchange_strong(&lost_by, &by, -1);
}

static void note_written(int descriptor) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS && atomic_load(&watched)) atomic_store(&wrote[descriptor], true);
}

/* Only of descriptors that wrote: nobody looks at others. */
EXPORT int close(int descriptor) {
    NEXT(int, close, int);
    int refused = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS && atomic_exchange(&wrote[descriptor], false)) {
        refused = verdict_fd(CLOSE, "close", descriptor);
        if (tells_close(descriptor)) refused = (int)atomic_load(&lost_value);
    }
    int result = next(descriptor);
    if (refused <= 0) return result;
    errno = refused;
    return -1;
}

#define SYNCS(name)                                                                                                    \
    EXPORT int name(int descriptor) {                                                                                  \
        NEXT(int, name, int);                                                                                          \
        REFUSE(verdict_fd(SYNC, #name, descriptor), -1);                                                               \
        int result = next(descriptor);                                                                                 \
        if (!tells_sync(descriptor)) return result;                                                                    \
        errno = (int)atomic_load(&lost_value);                                                                         \
        return -1;                                                                                                     \
    }
SYNCS(fsync)
SYNCS(fdatasync)
HELD(SYNC, syncfs, , )
HELD(FLUSH, sync_file_range, AND off64_t start AND off64_t bytes AND unsigned flags, AND start AND bytes AND flags)
HELD(TRUNCATE, ftruncate, AND off_t length, AND length)
HELD(TRUNCATE, ftruncate64, AND off64_t length, AND length)
HELD(TRUNCATE, fallocate, AND int mode AND off_t start AND off_t bytes, AND mode AND start AND bytes)
HELD(TRUNCATE, fallocate64, AND int mode AND off64_t start AND off64_t bytes, AND mode AND start AND bytes)
HELD(MODE, fchmod, AND mode_t mode, AND mode)
HELD(MODE, fchown, AND uid_t owner AND gid_t group, AND owner AND group)
HELD(MODE, fremovexattr, AND const char *which, AND which)
HELD(MODE, fsetxattr, AND const char *which AND const void *value AND size_t bytes AND int flags, AND which AND value AND bytes AND flags)
HELD(STAT, fstat, AND void *into, AND into)
HELD(STAT, fstat64, AND void *into, AND into)
HELD(LOCK, flock, AND int operation, AND operation)

/* These return the number of the error. */
#define PREALLOCATES(name, offset)                                                                                     \
    EXPORT int name(int descriptor, offset start, offset bytes) {                                                      \
        NEXT(int, name, int, offset, offset);                                                                          \
        int refused = verdict_fd(TRUNCATE, #name, descriptor);                                                         \
        return refused > 0 ? refused : next(descriptor, start, bytes);                                                 \
    }
PREALLOCATES(posix_fallocate, off_t)
PREALLOCATES(posix_fallocate64, off64_t)

static bool locks(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW ||
           command == F_SETLEASE;
}

#define CONTROLS(name)                                                                                                 \
    EXPORT int name(int descriptor, int command, ...) {                                                                \
        va_list more;                                                                                                  \
        va_start(more, command);                                                                                       \
        void *given = va_arg(more, void *);                                                                            \
        va_end(more);                                                                                                  \
        NEXT(int, name, int, int, ...);                                                                                \
        REFUSE(locks(command) ? verdict_fd(LOCK, #name, descriptor) : 0, -1);                                          \
        return next(descriptor, command, given);                                                                       \
    }
CONTROLS(fcntl)
CONTROLS(fcntl64)

/* Half of what is asked for, where that is anything. */
static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

#define MOVES(class, name, buffer, rest, given)                                                                        \
    EXPORT ssize_t name(int descriptor, buffer bytes, size_t count rest) {                                             \
        NEXT(ssize_t, name, int, buffer, size_t rest);                                                                 \
        REFUSE(verdict_fd(class, #name, descriptor), -1);                                                              \
        if (class == WRITE) note_written(descriptor);                                                                   \
        ssize_t moved = next(descriptor, bytes, refused < 0 ? half(count) : count given);                              \
        if (refused == LOST && moved >= 0) {                                                                           \
            lose(descriptor);                                                                                          \
            return (ssize_t)count;                                                                                     \
        }                                                                                                              \
        return moved;                                                                                                  \
    }
MOVES(READ, read, void *, , )
MOVES(READ, pread, void *, AND off_t at, AND at)
MOVES(READ, pread64, void *, AND off64_t at, AND at)
MOVES(WRITE, write, const void *, , )
MOVES(WRITE, pwrite, const void *, AND off_t at, AND at)
MOVES(WRITE, pwrite64, const void *, AND off64_t at, AND at)

/* Half of the bytes of a list of buffers, as a list. */
static int halve(const struct iovec *parts, int count, struct iovec *into) {
    size_t left = 0;
    int used = 0;
    for (int each = 0; each < count; each++) left += parts[each].iov_len;
    for (left = half(left); used < count && left > 0; used++) {
        into[used] = parts[used];
        if (into[used].iov_len > left) into[used].iov_len = left;
        left -= into[used].iov_len;
    }
    return used;
}

#define SCATTERS(class, name, rest, given)                                                                             \
    EXPORT ssize_t name(int descriptor, const struct iovec *parts, int count rest) {                                   \
        NEXT(ssize_t, name, int, const struct iovec *, int rest);                                                      \
        REFUSE(verdict_fd(class, #name, descriptor), -1);                                                              \
        if (class == WRITE) note_written(descriptor);                                                                   \
        size_t all = 0;                                                                                                \
        for (int each = 0; each < count; each++) all += parts[each].iov_len;                                           \
        struct iovec some[IOV_MAX];                                                                                    \
        if (refused < 0 && count > 0 && count <= IOV_MAX) {                                                            \
            count = halve(parts, count, some);                                                                         \
            parts = some;                                                                                              \
        }                                                                                                              \
        ssize_t moved = next(descriptor, parts, count given);                                                          \
        if (refused == LOST && moved >= 0) {                                                                           \
            lose(descriptor);                                                                                          \
            return (ssize_t)all;                                                                                       \
        }                                                                                                              \
        return moved;                                                                                                  \
    }
SCATTERS(READ, readv, , )
SCATTERS(READ, preadv, AND off_t at, AND at)
SCATTERS(READ, preadv64, AND off64_t at, AND at)
SCATTERS(READ, preadv2, AND off_t at AND int flags, AND at AND flags)
SCATTERS(READ, preadv64v2, AND off64_t at AND int flags, AND at AND flags)
SCATTERS(WRITE, writev, , )
SCATTERS(WRITE, pwritev, AND off_t at, AND at)
SCATTERS(WRITE, pwritev64, AND off64_t at, AND at)
SCATTERS(WRITE, pwritev2, AND off_t at AND int flags, AND at AND flags)
SCATTERS(WRITE, pwritev64v2, AND off64_t at AND int flags, AND at AND flags)

EXPORT ssize_t copy_file_range(int from, off64_t *at1, int to, off64_t *at2, size_t bytes, unsigned flags) {
    NEXT(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned);
    REFUSE(verdict_fd(WRITE, "copy_file_range", to), -1);
    return next(from, at1, to, at2, refused < 0 ? half(bytes) : bytes, flags);
}

#define SENDS(name, offset)                                                                                            \
    EXPORT ssize_t name(int to, int from, offset *at, size_t bytes) {                                                  \
        NEXT(ssize_t, name, int, int, offset *, size_t);                                                               \
        REFUSE(verdict_fd(WRITE, #name, to), -1);                                                                      \
        return next(to, from, at, refused < 0 ? half(bytes) : bytes);                                                  \
    }
SENDS(sendfile, off_t)
SENDS(sendfile64, off64_t)

/* ---- calls by number --------------------------------------------------------------------------------------------- */

static int verdict_by_number(long number, const long *given) {
    const char *first = (const char *)given[0], *second = (const char *)given[1];
    switch (number) {
    case SYS_openat:
    case SYS_openat2:
        return verdict_at(OPEN, "syscall open", (int)given[0], second);
    case SYS_mkdirat:
        return verdict_at(MKDIR, "syscall mkdir", (int)given[0], second);
    case SYS_unlinkat:
        return verdict_at(UNLINK, "syscall unlink", (int)given[0], second);
    case SYS_statx:
        return verdict_at(STAT, "syscall statx", (int)given[0], second);
    case SYS_faccessat2:
        return verdict_at(STAT, "syscall faccessat2", (int)given[0], second);
    case SYS_renameat2:
        return verdict_pair(given[4] ? EXCHANGE : RENAME, "syscall rename", (int)given[0], second, (int)given[2],
                            (const char *)given[3]);
    case SYS_linkat:
        return verdict_pair(LINK, "syscall link", (int)given[0], second, (int)given[2], (const char *)given[3]);
    case SYS_symlinkat:
        return verdict_at(LINK, "syscall symlink", (int)given[1], (const char *)given[2]);
    case SYS_truncate:
        return verdict_at(TRUNCATE, "syscall truncate", AT_FDCWD, first);
    case SYS_ftruncate:
    case SYS_fallocate:
        return verdict_fd(TRUNCATE, "syscall truncate", (int)given[0]);
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fsetxattr:
    case SYS_fremovexattr:
        return verdict_fd(MODE, "syscall mode", (int)given[0]);
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
        return verdict_fd(SYNC, "syscall sync", (int)given[0]);
    case SYS_sync_file_range:
        return verdict_fd(FLUSH, "syscall sync_file_range", (int)given[0]);
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
        return verdict_fd(READ, "syscall read", (int)given[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
        return verdict_fd(WRITE, "syscall write", (int)given[0]);
    case SYS_getdents64:
        return verdict_fd(LIST, "syscall getdents", (int)given[0]);
    case SYS_flock:
        return verdict_fd(LOCK, "syscall flock", (int)given[0]);
    }
    return 0;
}

EXPORT long syscall(long number, ...) {
    long given[6];
    va_list more;
    va_start(more, number);
    for (int each = 0; each < 6; each++) given[each] = va_arg(more, long);
    va_end(more);
    NEXT(long, syscall, long, ...);
    if (number != SYS_futex && atomic_load(&watched)) {
        REFUSE(verdict_by_number(number, given), -1);
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
