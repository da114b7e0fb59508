/* The simulator: takes what instrumented code has recorded through a thread's caches. Least recently used,
   write-allocate, no prefetching. It is compiled with the C compiler, or by frida, which is several times slower. */

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

/* So many bytes, and an access for each line of them: what a rep prefix repeats is done line by line. */
static void take_rounds(CacheModel *model, CacheThread *thread, uint64_t address, uint64_t bytes, uint64_t *counts) {
  uint64_t line = address >> model->line_shift, last = (address + bytes - 1) >> model->line_shift;
  if (bytes == 0) return;
  counts[CACHE_BYTES] += bytes;
  counts[CACHE_ACCESSES] += last - line + 1;
  for (; line <= last; line++) take(model, thread, line, counts);
}

static int is_chosen(const CacheOperand *operand, const uint64_t *words, int element) {
  const uint8_t *mask = (const uint8_t *) &words[operand->how];
  if (operand->mask_bytes == 0) return words[operand->how] >> element & 1;
  return mask[(element + 1) * operand->mask_bytes - 1] >> 7;
}

/* What gathers or scatters: an access for each element that is not masked. */
static void take_elements(CacheModel *model, CacheThread *thread, const CacheOperand *operand, const uint64_t *words,
                          uint64_t *counts) {
  const int32_t *indices32 = (const int32_t *) &words[operand->index];
  const int64_t *indices64 = (const int64_t *) &words[operand->index];
  uint64_t base = operand->displacement + (operand->base ? words[operand->base] : 0);
  int i;
  for (i = 0; i < operand->elements; i++) {
    int64_t index = operand->index_bytes == 8 ? indices64[i] : indices32[i];
    if (is_chosen(operand, words, i)) take_rounds(model, thread, base + index * operand->scale, operand->size, counts);
  }
}

static void take_special(CacheModel *model, CacheThread *thread, const CacheOperand *operand, const uint64_t *words,
                         uint64_t *counts) {
  uint64_t address = operand->displacement + words[operand->base]; /* a string instruction has a base */
  if (operand->kind == CACHE_REPEATED)
    take_rounds(model, thread, address, words[operand->how] * operand->size, counts);
  else
    take_elements(model, thread, operand, words, counts);
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
    counts[CACHE_UNTRACED] += record->untraced;
    for (; operand < stop; operand++) {
      uint64_t address = operand->displacement + at[operand->index] * operand->scale, line, last, *set;
      if (operand->kind != CACHE_PLAIN) {
        take_special(model, thread, operand, at, counts);
        continue;
      }
      if (operand->base) address += at[operand->base];
      line = address >> shift;
      last = (address + operand->size - 1) >> shift;
      set = set_of(&first, line);
      if (set[0] != line && missed_behind(set, first.ways, line)) take_from_next(model, thread, line, counts);
      while (line != last) take(model, thread, ++line, counts);
    }
    at += record->words;
  }
}
