/* The instrumented threads as the cache model sees them: a ring each, into which copies of code record, and their
   caches. */

#define SCRATCH_SLOT 1 /* of the thread's slots, next to saved_rax */
#define HEAD_SLOT 2
#define FULL_BIT 16 /* a ring is full when this bit of the head, or one of the 7 above, is set */
#define RING_ALIGNMENT (1UL << 24)
#define RING_BYTES (2UL << FULL_BIT) /* the second half takes the records of the block that fills the first */

extern CacheModel cache_model;

static guint64 *scratch_slot(Context *context) { return context->counters - SLOTS + SCRATCH_SLOT; }
static guint64 **head_slot(Context *context) { return (guint64 **) (context->counters - SLOTS + HEAD_SLOT); }

static gboolean make_level(CacheLevel *level, int number) {
  level->sets = cache_model.sets[number];
  level->ways = cache_model.ways[number];
  level->mask = level->sets & (level->sets - 1) ? 0 : level->sets - 1;
  level->lines = map(level->sets * level->ways * sizeof(guint64));
  return level->lines != NULL;
}

/* The caches that nobody shares, and the last level: a new one, or the one of the threads before. */
static gboolean make_levels(guint64 number) {
  CacheThread *thread = &cache_model.threads[number];
  guint64 last = cache_model.levels - 1, first = number - number % cache_model.sharing, level;
  for (level = 0; level < last; level++)
    if (!make_level(&thread->levels[level], level)) return FALSE;
  if (cache_model.threads[first].levels[last].lines == NULL && !make_level(&cache_model.threads[first].levels[last], last))
    return FALSE;
  thread->levels[last] = cache_model.threads[first].levels[last];
  return TRUE;
}

static gboolean make_thread(Context *context, CacheThread *thread) {
  guint64 ring = (guint64) map(RING_ALIGNMENT + RING_BYTES);
  thread->operands = map(sizeof(CacheOperand) * CACHE_OPERANDS);
  thread->records = map(sizeof(CacheRecord) * CACHE_RECORDS);
  thread->blocks = map(sizeof(CacheBlock) * CACHE_BLOCKS);
  thread->touched = map(sizeof(guint32) * CACHE_BLOCKS);
  if (ring == 0 || !thread->operands || !thread->records || !thread->blocks || !thread->touched) return FALSE;
  gum_spinlock_acquire(control.lock);
  if (!make_levels(context - control.contexts)) ring = 0;
  gum_spinlock_release(control.lock);
  if (ring == 0) return FALSE;
  thread->head = head_slot(context);
  thread->tail = *thread->head = (guint64 *) ((ring + RING_ALIGNMENT - 1) & -RING_ALIGNMENT);
  cache_model.acquire = (gpointer) gum_spinlock_acquire;
  cache_model.release = (gpointer) gum_spinlock_release;
  thread->ring = thread->tail; /* last: an edge looks at no thread without */
  return TRUE;
}
