/* Reads counter groups into one growing buffer. group_reads_library.py compiles and loads this file.

   An edge is one call of a built-in function without arguments: no Python object is made, and the interpreter's lock is
   kept, so an edge is never torn. Python.h is not needed: what is called of the interpreter belongs to its stable ABI.

   A thread that sleeps need not be read again. Its doorbell, a dummy event in a group of its own, has a page in user
   memory whose `lock` the kernel moves on whenever it puts the event on a processor (perf_swevent_add calls
   perf_event_update_userpage), which is whenever the thread is scheduled in. Two equal rows, between which no
   processor time was counted, show that the thread was off-CPU; from then on, for as long as its bell has not
   rung, a read could give nothing but that row again. */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct object PyObject;
struct method {
    const char *name;
    PyObject *(*function)(PyObject *, PyObject *);
    int flags;
    const char *doc;
};
extern PyObject *PyCFunction_NewEx(struct method *, PyObject *self, PyObject *module);
extern PyObject *PyCapsule_New(void *, const char *name, void (*destructor)(PyObject *));
extern void *PyCapsule_GetPointer(PyObject *, const char *name);
extern PyObject *PyErr_NoMemory(void);
extern void Py_IncRef(PyObject *);
extern void Py_DecRef(PyObject *);
extern char _Py_NoneStruct[];
enum { NO_ARGUMENTS = 4 }; /* METH_NOARGS */

enum { LOCK_WORD = 2 }; /* of struct perf_event_mmap_page: version, compat_version, lock */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

typedef const volatile uint32_t Page;

struct slot {
    int fd;
    int known;  /* whether `last` holds a row */
    int asleep; /* whether the thread slept when it was read last */
    uint32_t rung;
    size_t size;
    size_t last; /* its place in the `last` of its `group_reads` */
};

struct buffer {
    char *bytes;
    size_t used, room, touched;
};

struct group_reads {
    struct buffer rows, marks; /* marks: a byte for each edge */
    size_t slot_count;
    struct slot *slots;
    char *last;
    Page **bells; /* by slot; a forked child, which does not have the pages, finds zeros here */
    size_t bells_bytes;
    int bell_failed;
    struct reader *readers;
};

struct reader {
    struct group_reads *reads;
    struct reader *next;
    int mark;
    int certain; /* also reads threads that are known to sleep */
    size_t count, bytes;
    uint32_t *order;
};

static int make_room(struct buffer *buffer, size_t more) {
    if (buffer->room - buffer->used >= more)
        return 1;
    size_t room = 2 * buffer->room > buffer->used + more ? 2 * buffer->room : buffer->used + more;
    char *bytes = realloc(buffer->bytes, room);
    if (!bytes)
        return 0;
    buffer->bytes = bytes;
    buffer->room = room;
    return 1;
}

/* Touches what will be written, so that edges cause no page faults of their own. */
static int reserve(struct buffer *buffer, size_t more) {
    if (!make_room(buffer, more))
        return 0;
    size_t end = buffer->used + more;
    if (buffer->touched < buffer->used)
        buffer->touched = buffer->used;
    if (buffer->touched < end) {
        memset(buffer->bytes + buffer->touched, 0, end - buffer->touched);
        buffer->touched = end;
    }
    return 1;
}

/* A row that does not come whole (a group in error state) is all ones, as no group's header is. */
static void read_row(int fd, char *row, size_t size) {
    ssize_t got;
    do
        got = read(fd, row, size);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)size)
        memset(row, 0xff, size);
}

static void read_slot(struct group_reads *reads, size_t number, int certain, char *row) {
    struct slot *slot = &reads->slots[number];
    Page *bell = reads->bells ? reads->bells[number] : NULL;
    if (!bell) {
        read_row(slot->fd, row, slot->size);
        return;
    }
    char *last = reads->last + slot->last;
    uint32_t rung = __atomic_load_n(bell, __ATOMIC_ACQUIRE);
    int silent = slot->known && rung == slot->rung && !(rung & 1);
    if (silent && slot->asleep && !certain && !reads->bell_failed) {
        memcpy(row, last, slot->size);
        return;
    }
    read_row(slot->fd, row, slot->size);
    int same = slot->known && !memcmp(row, last, slot->size);
    if (silent && slot->asleep && !same && __atomic_load_n(bell, __ATOMIC_ACQUIRE) == rung)
        reads->bell_failed = 1; /* it ran and the bell did not ring: never trust one again */
    slot->asleep = silent && same;
    slot->rung = rung;
    slot->known = 1;
    memcpy(last, row, slot->size);
}

static PyObject *edge(PyObject *self, PyObject *nothing) {
    (void)nothing;
    struct reader *reader = PyCapsule_GetPointer(self, NULL);
    struct group_reads *reads = reader->reads;
    if (!make_room(&reads->rows, reader->bytes) || !make_room(&reads->marks, 1))
        return PyErr_NoMemory();
    reads->marks.bytes[reads->marks.used++] = (char)reader->mark;
    for (size_t i = 0; i < reader->count; i++) {
        uint32_t number = reader->order[i];
        read_slot(reads, number, reader->certain, reads->rows.bytes + reads->rows.used);
        reads->rows.used += reads->slots[number].size;
    }
    Py_IncRef((PyObject *)_Py_NoneStruct);
    return (PyObject *)_Py_NoneStruct;
}

static struct method edge_method = {"edge", edge, NO_ARGUMENTS, NULL};

struct group_reads *group_reads_new(void) {
    return calloc(1, sizeof(struct group_reads));
}

/* Readers are never freed: somebody may hold one longer than its `group_reads`, and then it reads nothing. */
struct reader *group_reads_reader(struct group_reads *reads, int mark, int certain) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader) {
        reader->reads = reads;
        reader->mark = mark;
        reader->certain = certain;
        reader->next = reads->readers;
        reads->readers = reader;
    }
    return reader;
}

/* The function that reads an edge, as a Python object. */
PyObject *group_reads_function(struct reader *reader) {
    PyObject *self = PyCapsule_New(reader, NULL, NULL);
    PyObject *function = self ? PyCFunction_NewEx(&edge_method, self, NULL) : NULL;
    if (self)
        Py_DecRef(self);
    return function;
}

/* The page of an event, or NULL. */
void *group_reads_map(int fd) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

void group_reads_unmap(void *page) {
    munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

uint32_t group_reads_rung(void *page) {
    return __atomic_load_n((Page *)page + LOCK_WORD, __ATOMIC_ACQUIRE);
}

static void forget_slots(struct group_reads *reads) {
    for (struct reader *reader = reads->readers; reader; reader = reader->next)
        reader->count = reader->bytes = 0;
    free(reads->slots);
    free(reads->last);
    if (reads->bells)
        munmap(reads->bells, reads->bells_bytes);
    reads->slots = NULL;
    reads->last = NULL;
    reads->bells = NULL;
    reads->slot_count = 0;
}

/* What there is to read from now on; readers read nothing until they are given an order again.
   `pages`: of the doorbells, NULL for none. */
int group_reads_begin(struct group_reads *reads, size_t count, const int *fds, const size_t *sizes,
                      void *const *pages) {
    forget_slots(reads);
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += sizes[i];
    reads->slots = calloc(count + 1, sizeof *reads->slots);
    reads->last = calloc(1, all + 1);
    if (!reads->slots || !reads->last)
        return 0;
    reads->slot_count = count;
    reads->bells_bytes = (count + 1) * sizeof *reads->bells;
    Page **bells = mmap(NULL, reads->bells_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bells != MAP_FAILED) {
        if (madvise(bells, reads->bells_bytes, MADV_WIPEONFORK) == 0)
            reads->bells = bells;
        else
            munmap(bells, reads->bells_bytes);
    }
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        reads->slots[i].fd = fds[i];
        reads->slots[i].size = sizes[i];
        reads->slots[i].last = last;
        last += sizes[i];
        if (reads->bells && pages[i])
            reads->bells[i] = (Page *)pages[i] + LOCK_WORD;
    }
    return 1;
}

/* Which slots a reader reads, in order. */
int group_reads_order(struct reader *reader, size_t count, const uint32_t *order) {
    free(reader->order);
    reader->count = reader->bytes = 0;
    reader->order = calloc(count + 1, sizeof *order);
    if (!reader->order)
        return 0;
    for (size_t i = 0; i < count; i++) {
        reader->order[i] = order[i];
        reader->bytes += reader->reads->slots[order[i]].size;
    }
    reader->count = count;
    return 1;
}

int group_reads_reserve(struct group_reads *reads, size_t bytes, size_t edges) {
    return reserve(&reads->rows, bytes) && reserve(&reads->marks, edges);
}

size_t group_reads_rows(struct group_reads *reads, char **bytes) {
    *bytes = reads->rows.bytes;
    return reads->rows.used;
}

size_t group_reads_marks(struct group_reads *reads, char **bytes) {
    *bytes = reads->marks.bytes;
    return reads->marks.used;
}

void group_reads_clear(struct group_reads *reads) {
    reads->rows.used = reads->marks.used = 0;
}

int group_reads_bell_failed(struct group_reads *reads) {
    return reads->bell_failed;
}

/* Gives the memory back; `reads` itself stays for readers that are still held somewhere. */
void group_reads_close(struct group_reads *reads) {
    forget_slots(reads);
    free(reads->rows.bytes);
    free(reads->marks.bytes);
    memset(&reads->rows, 0, sizeof reads->rows);
    memset(&reads->marks, 0, sizeof reads->marks);
}
