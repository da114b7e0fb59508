/* CPU time at an edge: of the process, and that part of it whose code is not counted (other threads, handlers of
   signals), so that layers in which there is much of it can be told. Every thread's clock is read before the process's,
   which otherwise lags by up to a tick. */

#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define SYS_LSEEK 8
#define SYS_GETDENTS64 217

typedef struct {
  gint64 seconds, nanoseconds;
} Time;

typedef struct {
  guint64 inode, next;
  guint16 bytes;
  guint8 type;
  char name[];
} Entry;

extern int clock_gettime(int clock, Time *time);

/* FALSE: there is no such thread any more. */
static gboolean read_clock(int clock, gint64 *time_ns) {
  Time time;
  if (clock_gettime(clock, &time) != 0) return FALSE;
  *time_ns = time.seconds * 1000000000L + time.nanoseconds;
  return TRUE;
}

static int clock_of(guint64 tid) { return ~(int) tid << 3 | 6; }

/* NULL: its code is not counted. */
static Context *counted_thread(guint64 tid) {
  guint64 i;
  for (i = 0; i < control.contexts_used; i++)
    if (control.contexts[i].tid == tid) return &control.contexts[i];
  return NULL;
}

/* Where a thread's time is kept that is counted, or our own; NULL: it is another's. */
static gint64 *known_time(guint64 tid) {
  Context *counted = counted_thread(tid);
  guint64 i;
  if (counted != NULL) return &counted->cpu_ns;
  for (i = 0; i < control.own_threads_used; i++)
    if (control.own_threads[i] == tid) return &control.own_cpu_ns[i];
  return NULL;
}

static void read_thread(const char *name) {
  guint64 tid = 0;
  gint64 ignored, *time_ns;
  for (; *name >= '0' && *name <= '9'; name++) tid = tid * 10 + (*name - '0');
  if (tid == 0) return; /* the folder itself */
  time_ns = known_time(tid);
  read_clock(clock_of(tid), time_ns != NULL ? time_ns : &ignored);
}

static gboolean read_threads(void) {
  char buffer[4096];
  glong filled;
  if (syscall(SYS_LSEEK, control.task_folder, 0, 0) != 0) return FALSE;
  while ((filled = syscall(SYS_GETDENTS64, control.task_folder, buffer, sizeof(buffer))) > 0) {
    glong at;
    for (at = 0; at < filled; at += ((Entry *) (buffer + at))->bytes) read_thread(((Entry *) (buffer + at))->name);
  }
  return filled == 0;
}

/* The calling thread goes on working meanwhile, so its clock is read last. A thread that has ended keeps what it had. */
static void log_cpu_times(guint64 edge) {
  gint64 process_ns, known_ns = 0, *calling_ns = known_time(syscall(SYS_GETTID));
  guint64 i;
  control.edge_uncounted_times[edge] = control.edge_cpu_times[edge] = -1;
  if (!read_threads() || !read_clock(CLOCK_PROCESS_CPUTIME_ID, &process_ns)) return;
  if (calling_ns != NULL) read_clock(CLOCK_THREAD_CPUTIME_ID, calling_ns);
  for (i = 0; i < control.contexts_used; i++) known_ns += control.contexts[i].cpu_ns - control.contexts[i].handlers_ns;
  for (i = 0; i < control.own_threads_used; i++) known_ns += control.own_cpu_ns[i];
  control.edge_cpu_times[edge] = process_ns;
  control.edge_uncounted_times[edge] = process_ns - known_ns;
}
