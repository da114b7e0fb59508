/* What nobody saw when it happened: code that other threads' system calls changed, or that was changed in its file. It is
   read as a file, because it may be gone. */

/* Of what stands there now; 0: nothing. */
static guint64 hash_now(guint64 start, guint64 bytes) {
  guint8 read_here[512];
  guint64 hash = NO_BYTES_HASH;
  while (bytes > 0) {
    gssize got = pread(control.memory_file, read_here, bytes < sizeof(read_here) ? bytes : sizeof(read_here), start);
    if (got <= 0) return 0;
    hash = hash_bytes(hash, read_here, got);
    start += got;
    bytes -= got;
  }
  return hash;
}

/* A block that would not be compared before it is executed next. The lock is held. */
static void look_at_watch(Watch *watch) {
  guint64 hash;
  if (watch->suspected || watch->size == 0) return;
  hash = hash_now(watch->start, watch->size);
  if (hash == 0 || hash == hash_bytes(NO_BYTES_HASH, watch->bytes, watch->size)) return;
  watch->suspected = 1;
  note_rewritten(watch->start);
}

static gboolean is_read_only(guint64 address) {
  guint64 i = find_page(address >> PAGE_SHIFT);
  return i != CODE_PAGES && page_states[i] == PAGE_READ_ONLY;
}

/* Pages of which no fault tells: at every edge, since they may be changed back. */
static void look_at_read_only_pages(void) {
  guint64 number, i;
  if (control.read_only_pages == 0) return;
  gum_spinlock_acquire(control.lock);
  for (number = 0; number < control.contexts_used; number++) {
    Context *context = &control.contexts[number];
    for (i = 0; i < context->watches_used; i++)
      if (is_read_only(context->watches[i].start)) look_at_watch(&context->watches[i]);
  }
  gum_spinlock_release(control.lock);
}

/* All code of which there are copies, at the end. */
void look_for_changes(void) {
  guint64 number, i;
  gum_spinlock_acquire(control.lock);
  for (number = 0; number < control.contexts_used; number++) {
    Context *context = &control.contexts[number];
    for (i = 0; i < context->watches_used; i++) look_at_watch(&context->watches[i]);
    for (i = context->first_block; i < context->blocks_used; i++) {
      const Block *block = &context->blocks[i];
      guint64 hash = block->hash != 0 ? hash_now(block->start, block->size) : 0;
      if (hash != 0 && hash != block->hash) note_rewritten(block->start);
    }
  }
  gum_spinlock_release(control.lock);
}
