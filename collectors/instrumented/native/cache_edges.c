/* Emptying rings, and what the caches have done between two edges. */

/* On entry the thread's lock is held. */
static void simulate(CacheThread *thread) {
  guint64 *head = *(guint64 *volatile *) thread->head;
  cache_model.consume(&cache_model, thread, thread->tail, head);
  thread->tail = head;
}

static void on_full(GumCpuContext *cpu, gpointer data) {
  CacheThread *thread = data;
  gum_spinlock_acquire((GumSpinlock *) thread->lock);
  simulate(thread);
  thread->tail = *thread->head = thread->ring;
  gum_spinlock_release((GumSpinlock *) thread->lock);
}

static void log_block(guint64 number, guint32 touched, CacheBlock *block) {
  CacheLogEntry *entry = &cache_model.log[cache_model.log_used];
  if (cache_model.log_used == CACHE_LOG_ENTRIES) {
    cache_model.log_overflowed = 1;
    return;
  }
  cache_model.log_used++;
  entry->context = number;
  entry->block = touched;
  memcpy(entry->counts, block->counts, sizeof(entry->counts));
  memset(block, 0, sizeof(*block));
}

static void log_thread(guint64 number, CacheThread *thread) {
  guint64 i;
  gum_spinlock_acquire((GumSpinlock *) thread->lock);
  simulate(thread);
  for (i = 0; i < thread->touched_used; i++)
    log_block(number, thread->touched[i], &thread->blocks[thread->touched[i]]);
  thread->touched_used = 0;
  gum_spinlock_release((GumSpinlock *) thread->lock);
}

/* What was recorded up to the edge; the other threads go on recording meanwhile. */
static void log_cache_edge(guint64 edge) {
  guint64 number, contexts = control.contexts_used;
  if (!cache_model.on) return;
  for (number = 0; number < contexts; number++)
    if (cache_model.threads[number].ring != NULL) log_thread(number, &cache_model.threads[number]);
  cache_model.log_ends[edge] = cache_model.log_used;
}

guint32 cache_model_bytes(void) { return sizeof(CacheModel); }
