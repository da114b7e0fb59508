/* The cache model's memory: what the recording copies of code (`cache_record.c`), the simulator (`cache.c`) and Python
   (`cache_memory.py`) share. Plain C: the simulator is compiled without frida's headers where there is a compiler. */

#include <stdint.h>

#define CACHE_LEVELS 3
#define CACHE_THREADS 1024
#define CACHE_BLOCKS 524288     /* as the engine has */
#define CACHE_RECORDS 1048576   /* of a thread; a block has none, one, or several */
#define CACHE_OPERANDS 4194304  /* of a thread's records together */
#define CACHE_LOG_ENTRIES 16777216
#define CACHE_LOCKS 64          /* for the last level's sets in turn */
#define CACHE_LOCK_WORDS 8      /* a line each, so that threads do not wait for each other's */

/* What is counted of a block; untraced are the operands whose addresses are not recorded. */
enum { CACHE_ACCESSES, CACHE_BYTES, CACHE_UNTRACED, CACHE_MISSES, CACHE_COUNTS = CACHE_MISSES + CACHE_LEVELS };

enum { CACHE_PLAIN, CACHE_REPEATED, CACHE_INDEXED };

/* A memory operand: where its address is in the words that an execution leaves behind. */
typedef struct {
  int64_t displacement; /* the whole address, where no register is part of it */
  uint32_t size;        /* bytes, of one round or element */
  uint16_t base, index; /* words that hold registers; a base of 0: none */
  uint8_t kind;
  uint8_t scale; /* of the index; 0: it counts for nothing */
  uint16_t how;  /* the word with the number of rounds, or with the mask of the elements */
  uint8_t elements, index_bytes;
  uint8_t mask_bytes; /* of an element of a mask that is a vector, whose signs count; 0: it is a bit for each */
} CacheOperand;

/* What an execution of a block, or of a part of it, leaves in its thread's ring: the record's number, then registers. */
typedef struct {
  uint32_t block;
  uint32_t words; /* the number's included */
  uint32_t first_operand, operands;
  uint32_t accesses, bytes; /* of the plain ones among them */
  uint32_t untraced;
} CacheRecord;

typedef struct {
  uint64_t touched; /* since the last edge */
  uint64_t counts[CACHE_COUNTS];
} CacheBlock;

/* A set-associative cache. A set's lines lie in order of use, the latest first; 0 is no line: nobody maps address 0. */
typedef struct {
  uint64_t sets, ways;
  uint64_t mask; /* sets - 1 where that is a power of two, else 0 */
  uint64_t *lines;
} CacheLevel;

/* An instrumented thread with the caches of the core that it has to itself, and the last level. */
typedef struct {
  uint64_t *ring;  /* empty where the thread has not recorded yet */
  uint64_t **head; /* where the next record goes: a slot that copies of code reach */
  uint64_t *tail;  /* what lies before it was simulated */
  CacheOperand *operands;
  CacheRecord *records;
  CacheBlock *blocks;
  uint32_t *touched;
  uint64_t operands_used, records_used, touched_used;
  uint64_t lock[CACHE_LOCK_WORDS];
  CacheLevel levels[CACHE_LEVELS];
} CacheThread;

typedef struct {
  uint32_t context, block;
  uint64_t counts[CACHE_COUNTS]; /* since the edge before */
} CacheLogEntry;

typedef struct CacheModel {
  uint64_t on;
  uint64_t levels, line_shift;
  uint64_t sets[CACHE_LEVELS], ways[CACHE_LEVELS];
  uint64_t sharing; /* how many threads have a last level in common, in order of their numbers */
  void (*consume)(struct CacheModel *, CacheThread *, const uint64_t *, const uint64_t *);
  void (*acquire)(void *lock);
  void (*release)(void *lock);
  CacheLogEntry *log;
  uint64_t *log_ends; /* by edge: how long the log was after it */
  uint64_t log_used, log_overflowed;
  uint64_t lost; /* operands and records that there was no room for */
  uint64_t lost_threads; /* blocks of threads that there was no memory for */
  uint64_t shared_locks[CACHE_LOCKS * CACHE_LOCK_WORDS];
  CacheThread threads[CACHE_THREADS];
} CacheModel;
