/* The simulator: takes what followed code has recorded through a thread's caches. Least recently used, write-allocate,
   no prefetching. It is compiled with the system's compiler, or by frida, which is several times slower to run. */

static uint64_t *set_of(const CacheLevel *level, uint64_t line) {
  return level->lines + level->ways * (level->mask ? line & level->mask : line % level->sets);
}

/* The line becomes the latest of its set, of which it is not so already. Whether it was not there. */
static int missed_behind(uint64_t *set, uint64_t ways, uint64_t line) {
  uint64_t moved = set[0], i;
  set[0] = line;
  for (i = 1; i < ways; i++) {
    uint64_t here = set[i];
    set[i] = moved;
    if (here == line) return 0;
    moved = here;
  }
  return 1;
}

static int missed(const CacheLevel *level, uint64_t line) {
  uint64_t *set = set_of(level, line);
  return set[0] != line && missed_behind(set, level->ways, line);
}

/* Other threads may look into the last level as well: a lock for its sets in turn. */
static int missed_in_last(CacheModel *model, const CacheLevel *level, uint64_t line) {
  void *lock = &model->shared_locks[line % level->sets % CACHE_LOCKS * CACHE_LOCK_WORDS];
  int result;
  if (model->sharing == 1) return missed(level, line);
  model->acquire(lock);
  result = missed(level, line);
  model->release(lock);
  return result;
}

/* What L1D did not have. */
static void take_from_next(CacheModel *model, CacheThread *thread, uint64_t line, uint64_t *counts) {
  uint64_t last = model->levels - 1, level;
  counts[CACHE_MISSES]++;
  for (level = 1; level < last; level++) {
    if (!missed(&thread->levels[level], line)) return;
    counts[CACHE_MISSES + level]++;
  }
  counts[CACHE_MISSES + last] += missed_in_last(model, &thread->levels[last], line);
}

static void take(CacheModel *model, CacheThread *thread, uint64_t line, uint64_t *counts) {
  if (missed(&thread->levels[0], line)) take_from_next(model, thread, line, counts);
}

/* What a rep prefix repeats: an access for each line, as processors do it. */
static void take_rounds(CacheModel *model, CacheThread *thread, uint64_t address, uint64_t bytes, uint64_t *counts) {
  uint64_t line = address >> model->line_shift, last = (address + bytes - 1) >> model->line_shift;
  if (bytes == 0) return;
  counts[CACHE_BYTES] += bytes;
  counts[CACHE_ACCESSES] += last - line + 1;
  for (; line <= last; line++) take(model, thread, line, counts);
}

static uint64_t *counts_of(CacheThread *thread, uint32_t number) {
  CacheBlock *block = &thread->blocks[number];
  if (!block->touched) {
    block->touched = 1;
    thread->touched[thread->touched_used++] = number;
  }
  return block->counts;
}

/* The records from `at` to `end`. */
void cache_consume(CacheModel *model, CacheThread *thread, const uint64_t *at, const uint64_t *end) {
  const uint64_t shift = model->line_shift;
  const CacheLevel first = thread->levels[0]; /* a copy: the compiler knows that nothing changes it */
  while (at < end) {
    const CacheRecord *record = &thread->records[*at];
    const CacheOperand *operand = &thread->operands[record->first_operand], *stop = operand + record->operands;
    uint64_t *counts = counts_of(thread, record->block);
    counts[CACHE_BYTES] += record->bytes;
    counts[CACHE_ACCESSES] += record->accesses;
    for (; operand < stop; operand++) {
      uint64_t address = operand->displacement + at[operand->index] * operand->scale, line, last, *set;
      if (operand->base) address += at[operand->base];
      if (operand->rounds) {
        take_rounds(model, thread, address, at[operand->rounds] * operand->size, counts);
        continue;
      }
      line = address >> shift;
      last = (address + operand->size - 1) >> shift;
      set = set_of(&first, line);
      if (set[0] != line && missed_behind(set, first.ways, line)) take_from_next(model, thread, line, counts);
      while (line != last) take(model, thread, ++line, counts);
    }
    at += record->words;
  }
}
