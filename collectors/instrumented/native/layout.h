/* What the C module and Python share: memory that Python owns or reads. `memory.py` describes the same structures and
   compares their sizes when the module is loaded. The facts' numbers (enum Fact, FACTS) are written by `source.py`. */

#include <gum/gumspinlock.h>
#include <gum/gumstalker.h>
#include <string.h>

#define MAX_BLOCKS 524288
#define MAX_CONTEXTS 1024
#define LOG_ENTRIES 67108864 /* 1 GiB of address space, of which only what is written becomes memory */
#define MAX_EDGES 4194304
#define MAX_WATCHES 65536
#define COPIED_BYTES 67108864 /* of a thread: the code of its watched blocks */
#define MOST_FAULTS 16
#define STUB_REGIONS 64
#define STUBS_BYTES 65536 /* of a region */
#define MAX_OWN_THREADS 64
#define SHOWN_BYTES 16 /* of code, on either side of what nobody could decode */
#define SIGNALS 65 /* one more than the last one's number */
#define SLOTS 8 /* words below a thread's counters, where its copies of code save registers */

/* A basic block as it was copied: what one execution of it does. */
typedef struct {
  guint64 start; /* address of the original code */
  guint32 size;  /* bytes of it */
  guint32 partly_decoded;
  guint64 hash; /* of these bytes, as they were copied; 0: the block is watched */
  guint32 facts[FACTS];
} Block;

/* A block whose original may change, see rewritten.c. */
typedef struct {
  guint64 start, size;
  guint8 *bytes;          /* as they were copied */
  guint64 suspected;      /* whether it is to be compared: its copy reads that */
  guint64 changed;        /* whether it differed; it stays so */
  guint64 copy, copy_end; /* addresses */
} Watch;

/* A line of /proc/self/maps. */
typedef struct {
  guint64 start, end;
  guint64 writable, shared, is_file; /* shared: it may be written through another mapping */
} Mapping;

/* An instrumented thread, or rather frida's execution context of it: instrumented anew, a thread may get another
   one. */
typedef struct {
  gpointer key; /* the GumExecCtx */
  guint64 tid;
  guint64 blocks_used;
  guint64 *counters;  /* how often each block was executed; SLOTS words lie below it */
  guint64 *seen;      /* the counters at the last edge */
  Block *blocks;
  guint64 epoch;          /* of the last time that it was checked for the epilog's fault */
  guint64 mended;         /* helpers that had the fault */
  guint64 slow_increments; /* blocks whose increment must keep the flags */
  guint64 lost_blocks;     /* blocks beyond MAX_BLOCKS: they share one counter */
  guint64 first_block;     /* that was copied since then; of those before, no copy is executed any more */
  Watch *watches;
  guint64 watches_used;
  guint8 *copied_bytes;
  guint64 copied_bytes_used;
  gint64 cpu_ns; /* at the last edge */
  gint64 handlers_ns; /* that part of it that handlers of signals took, which are not counted */
  guint64 in_handler;
} Context;

typedef struct {
  guint32 context;
  guint32 block;
  guint64 executions; /* since the edge before */
} LogEntry;

typedef struct {
  guint64 contexts_used;
  guint64 epoch;             /* grows with every begin of instrumentation */
  guint64 mend_epilog;       /* whether the machine has AVX-512 */
  guint64 refused_contexts;  /* blocks of threads beyond MAX_CONTEXTS, which are not counted */
  guint64 undecoded;         /* blocks that end before an instruction that nobody could decode */
  guint64 undecoded_address; /* of the last one */
  guint64 undecoded_before;  /* how many of the bytes are those before it */
  guint64 undecoded_shown;   /* and how many there are */
  guint8 undecoded_bytes[2 * SHOWN_BYTES];
  guint64 kept_mappings;     /* unmappings of code that were not carried out */
  guint64 edges;
  guint64 log_given;   /* entries that were taken out of it before those that are in it */
  guint64 log_used;
  guint64 log_overflowed;
  guint64 *log_ends;   /* by edge: how long the log was after it */
  gint64 *edge_times;  /* and when that was: CLOCK_MONOTONIC in nanoseconds */
  gint64 *edge_cpu_times;       /* what the process had taken then, in nanoseconds; -1: not known */
  gint64 *edge_uncounted_times; /* and that part of it whose code is not counted */
  guint64 task_folder;          /* descriptor of /proc/self/task */
  guint64 own_threads_used;     /* the engine's threads, which are nobody's */
  guint64 own_threads[MAX_OWN_THREADS];
  gint64 own_cpu_ns[MAX_OWN_THREADS];
  LogEntry *log;
  GumSpinlock *lock;
  guint64 *counters;         /* memory for the counters of `counters_room` contexts, in reach of the copied code */
  guint64 counters_room;
  guint64 rewritten;         /* how often code was found changed of which there was a copy */
  guint64 rewritten_address; /* of the last such block */
  guint64 unguarded;         /* blocks that could change unseen: there was no room */
  guint64 unguarding;        /* whether every block that is watched is always compared */
  guint64 read_only_pages;   /* of code that no file has */
  guint64 protecting;        /* whether pages have been protected: the kernel may not write there either */
  guint64 memory_file;       /* descriptor of /proc/self/mem */
  guint64 fault_handler;     /* of SIGSEGV, as it was before */
  guint64 handlers[SIGNALS]; /* by signal, see signals.c */
  guint8 handlers_watched[SIGNALS];
  Mapping mapping;           /* that was looked up last */
  guint64 stub_regions;      /* how many there are, see rcx_branches.c */
  guint8 *stubs[STUB_REGIONS];
  guint64 stubs_used[STUB_REGIONS]; /* bytes */
  Context contexts[MAX_CONTEXTS];
} Control;

extern Control control;
extern int memcmp(gconstpointer one, gconstpointer other, gsize bytes); /* the C library's */

void own_code_begins(void) {} /* the compiler keeps the order of functions: transform.c has the last */
