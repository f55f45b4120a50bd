/* Faults of the file system on demand: loaded with LD_PRELOAD, steered by a mapped file that all processes share.
 *
 * Calls that change files below the given folders are counted, across processes; at the wanted one the process is
 * killed, before the call or after it, or the call fails, once or from then on, or a write takes half of what it got.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, REMOVE = 16, MAKE = 32, CUT = 64 };
enum { COUNT, KILL_BEFORE, KILL_AFTER, FAIL_ONCE, FAIL_ON, SHORT };

/* faults.py knows this layout. */
struct control {
    _Atomic int64_t armed, mask, at, action, error, count;
    char places[4][1024];
    char hit[1024];
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PEGFAN_FAULTS");
    if (!path) return;
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED) control = mapped;
}

static int below(const char *path) {
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(control->places[i]);
        if (n && !strncmp(path, control->places[i], n) && (!path[n] || path[n] == '/')) return 1;
    }
    return 0;
}

static int link_of(int descriptor, char *path, size_t room) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(name, path, room - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return 1;
}

/* What to do with a call: COUNT lets it pass. */
static int decide(int kind, const char *path) {
    int saved = errno;
    int64_t number, at = control->at;
    if (!(control->mask & kind) || !below(path)) return COUNT;
    number = atomic_fetch_add(&control->count, 1);
    int action = control->action;
    if (action == COUNT || number < at || (number > at && action != FAIL_ON)) return COUNT;
    if (number == at) snprintf(control->hit, sizeof control->hit, "%d %s", kind, path);
    if (action == KILL_BEFORE) kill(getpid(), SIGKILL);
    errno = saved;
    return action;
}

static int decide_path(int kind, int folder, const char *path) {
    char whole[2 * PATH_MAX];
    if (!control || !control->armed || !path) return COUNT;
    if (path[0] == '/') return decide(kind, path);
    if (folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, whole, PATH_MAX) < 0) return COUNT;
    } else if (!link_of(folder, whole, PATH_MAX)) {
        return COUNT;
    }
    size_t n = strlen(whole);
    snprintf(whole + n, sizeof whole - n, "/%s", path);
    return decide(kind, whole);
}

static int decide_file(int kind, int descriptor) {
    char whole[PATH_MAX];
    if (!control || !control->armed || !link_of(descriptor, whole, sizeof whole)) return COUNT;
    return decide(kind, whole);
}

#define FAILS(action) ((action) == FAIL_ONCE || (action) == FAIL_ON)
#define FINISH(type, action, call)                                                                                     \
    do {                                                                                                               \
        if (FAILS(action)) {                                                                                           \
            errno = control->error;                                                                                    \
            return -1;                                                                                                 \
        }                                                                                                              \
        type result = (call);                                                                                          \
        if ((action) == KILL_AFTER) kill(getpid(), SIGKILL);                                                           \
        return result;                                                                                                 \
    } while (0)

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    int action = flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) ? decide_path(OPEN, folder, path) : COUNT;
    FINISH(int, action, syscall(SYS_openat, folder, path, flags, mode));
}

#define MODE()                                                                                                         \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                            \
    va_end(more)

int open(const char *path, int flags, ...) { MODE(); return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(); return open_at(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(); return open_at(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(); return open_at(folder, path, flags, mode); }

ssize_t write(int file, const void *data, size_t size) {
    int action = decide_file(WRITE, file);
    if (action == SHORT && size > 1) size /= 2;
    FINISH(ssize_t, action, syscall(SYS_write, file, data, size));
}

static ssize_t write_at(int file, const void *data, size_t size, off_t place) {
    int action = decide_file(WRITE, file);
    if (action == SHORT && size > 1) size /= 2;
    FINISH(ssize_t, action, syscall(SYS_pwrite64, file, data, size, place));
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) { return write_at(file, data, size, place); }
ssize_t pwrite64(int file, const void *data, size_t size, off_t place) { return write_at(file, data, size, place); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    int action = decide_file(WRITE, file);
    if (action == SHORT && count > 1) count /= 2;
    FINISH(ssize_t, action, syscall(SYS_writev, file, parts, count));
}

int fsync(int file) { int action = decide_file(SYNC, file); FINISH(int, action, syscall(SYS_fsync, file)); }
int fdatasync(int file) { int action = decide_file(SYNC, file); FINISH(int, action, syscall(SYS_fdatasync, file)); }

static int rename_at(int one, const char *from, int other, const char *to, unsigned flags) {
    int action = decide_path(RENAME, other, to);
    FINISH(int, action, syscall(SYS_renameat2, one, from, other, to, flags));
}

int rename(const char *from, const char *to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int one, const char *from, int other, const char *to) { return rename_at(one, from, other, to, 0); }
int renameat2(int one, const char *from, int other, const char *to, unsigned flags) {
    return rename_at(one, from, other, to, flags);
}

static int remove_at(int folder, const char *path, int flags) {
    int action = decide_path(REMOVE, folder, path);
    FINISH(int, action, syscall(SYS_unlinkat, folder, path, flags));
}

int unlink(const char *path) { return remove_at(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return remove_at(folder, path, flags); }
int rmdir(const char *path) { return remove_at(AT_FDCWD, path, AT_REMOVEDIR); }

static int make_at(int folder, const char *path, mode_t mode) {
    int action = decide_path(MAKE, folder, path);
    FINISH(int, action, syscall(SYS_mkdirat, folder, path, mode));
}

int mkdir(const char *path, mode_t mode) { return make_at(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return make_at(folder, path, mode); }

int linkat(int one, const char *from, int other, const char *to, int flags) {
    int action = decide_path(MAKE, other, to);
    FINISH(int, action, syscall(SYS_linkat, one, from, other, to, flags));
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *text, int folder, const char *path) {
    int action = decide_path(MAKE, folder, path);
    FINISH(int, action, syscall(SYS_symlinkat, text, folder, path));
}
int symlink(const char *text, const char *path) { return symlinkat(text, AT_FDCWD, path); }

static int cut(int file, off_t size) {
    int action = decide_file(CUT, file);
    FINISH(int, action, syscall(SYS_ftruncate, file, size));
}
int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off_t size) { return cut(file, size); }
