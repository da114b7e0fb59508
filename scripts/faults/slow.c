/* Between a process and its files: what writes, renames or settles a regular file waits first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

static void wait_a_little(void) {
    const char *text = getenv("HWPROF_FAULTS_DELAY_US");
    long micros = text ? atol(text) : 0;
    struct timespec pause = {micros / 1000000, micros % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static void wait_for(int file) {
    struct stat status;
    if (file > 2 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) wait_a_little();
}

#define REAL(type, name, ...)                                          \
    static type (*real)(__VA_ARGS__);                                  \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *bytes, size_t count) {
    REAL(ssize_t, write, int, const void *, size_t);
    wait_for(file);
    return real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    wait_for(file);
    return real(file, bytes, count, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    wait_for(file);
    return real(file, parts, count);
}

int fsync(int file) {
    REAL(int, fsync, int);
    wait_for(file);
    return real(file);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    wait_a_little();
    return real(from, to);
}
