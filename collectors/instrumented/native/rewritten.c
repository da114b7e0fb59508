/* Blocks whose original may become other code. Each begins with a look at a word of its own; where it is set, the block
   is compared with what was copied. If it differs, the thread goes on in the code itself, which nobody counts then. */

#define RAX_SLOT 3 /* the cache model has those before it */

/* From here on no page is protected, and every watched block always compared: nobody may see what changes code any more.
   The lock is held. */
static void stop_guarding(void) {
  guint64 number, i;
  if (control.unguarding) return;
  control.unguarding = 1;
  for (i = 0; i < CODE_PAGES; i++) {
    if (page_states[i] == PAGE_PROTECTED) unprotect_page(i);
    if (page_states[i] != PAGE_OF_FILE) page_states[i] = PAGE_COMPARED;
  }
  for (number = 0; number < control.contexts_used; number++)
    for (i = 0; i < control.contexts[number].watches_used; i++) control.contexts[number].watches[i].suspected = 1;
}

/* A thread that goes on in the code itself is not instrumented any more: its system calls are not seen. The lock is
   held. */
static void note_rewritten(guint64 address) {
  control.rewritten++;
  control.rewritten_address = address;
  stop_guarding();
}

/* All blocks that reach into the pages are compared before they are executed next. The lock is held. */
static void suspect(guint64 first_page, guint64 end_page) {
  guint64 number, i, first = first_page << PAGE_SHIFT, end = end_page << PAGE_SHIFT;
  for (number = 0; number < control.contexts_used; number++) {
    Context *context = &control.contexts[number];
    for (i = 0; i < context->watches_used; i++) {
      Watch *watch = &context->watches[i];
      if (watch->start < end && watch->start + watch->size > first) watch->suspected = 1;
    }
  }
}

static gboolean is_unchanged(const Watch *watch) {
  const guint8 *code = (const guint8 *) watch->start;
  guint64 i;
  for (i = 0; i < watch->size; i++) /* not by memcmp: it may use vector registers that nobody saves here */
    if (code[i] != watch->bytes[i]) return FALSE;
  return TRUE;
}

/* Before a block that may have changed. */
static void on_suspect(GumCpuContext *cpu, gpointer data) {
  Watch *watch = data;
  gum_spinlock_acquire(control.lock);
  watch->suspected = guard_block(watch->start, watch->start + watch->size);
  if (!watch->changed && !is_unchanged(watch)) watch->changed = 1;
  if (watch->changed) {
    watch->suspected = 1;
    note_rewritten(watch->start);
  }
  gum_spinlock_release(control.lock);
}

/* --- machine code, with absolute addresses: copies may lie anywhere. No flag is changed */

static void put_exchange_rax_rcx(GumX86Writer *to) {
  static const guint8 exchange[] = {0x48, 0x91};
  gum_x86_writer_put_bytes(to, exchange, sizeof(exchange));
}

/* On at `label`, where rax and rcx are put right, if the word is 0. */
static void put_go_on_if_zero(Context *context, GumX86Writer *to, const guint64 *word, gconstpointer label) {
  static const guint8 over[] = {0xe3, 0x02,  /* jrcxz to the near jump */
                                0xeb, 0x05}; /* jmp over it */
  put_absolute(to, STORE_RAX, context->counters - SLOTS + RAX_SLOT);
  put_absolute(to, LOAD_RAX, word);
  put_exchange_rax_rcx(to);
  gum_x86_writer_put_bytes(to, over, sizeof(over));
  gum_x86_writer_put_jmp_near_label(to, label);
}

static void put_registers_right(Context *context, GumX86Writer *to) {
  put_exchange_rax_rcx(to);
  put_absolute(to, LOAD_RAX, context->counters - SLOTS + RAX_SLOT);
}

/* The block's beginning. `instruction` of the generator is not known there, which callouts ask for. */
static void put_watch(Context *context, Watch *watch, GumStalkerIterator *iterator, Generator *generator,
                      GumX86Writer *to) {
  guint64 nothing[4] = {0, 0, 0, 0};
  gpointer instruction = generator->instruction;
  put_go_on_if_zero(context, to, &watch->suspected, watch);
  put_registers_right(context, to);
  if (instruction == NULL) generator->instruction = nothing;
  gum_stalker_iterator_put_callout(iterator, on_suspect, watch, NULL);
  generator->instruction = instruction;
  put_go_on_if_zero(context, to, &watch->changed, watch);
  put_registers_right(context, to);
  put_jump_to((const guint8 *) watch->start, to);
  gum_x86_writer_put_label(to, watch);
  put_registers_right(context, to);
}

/* --- what was copied */

#define NO_BYTES_HASH 0xcbf29ce484222325UL

/* FNV-1a, of what it was of before and so many bytes more. */
static guint64 hash_bytes(guint64 hash, const guint8 *bytes, guint64 count) {
  guint64 i;
  for (i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3UL;
  return hash;
}

/* NULL: the block needs no watch, or there is no room. */
static Watch *begin_watch(Context *context, guint64 start, GumStalkerIterator *iterator, Generator *generator,
                          GumX86Writer *to) {
  Watch *watch;
  int state;
  if (is_stub(start)) return NULL;
  gum_spinlock_acquire(control.lock);
  state = guard_page(start >> PAGE_SHIFT);
  gum_spinlock_release(control.lock);
  if (state == PAGE_OF_FILE) return NULL;
  if (context->watches_used == MAX_WATCHES) {
    control.unguarded++;
    return NULL;
  }
  watch = &context->watches[context->watches_used];
  watch->start = start;
  watch->size = watch->suspected = watch->changed = 0;
  watch->copy = to->pc;
  put_watch(context, watch, iterator, generator, to);
  return watch;
}

/* The bytes are kept, and from here on cannot change unseen. The lock is held: a write waits in its fault. `hash`: of
   what was copied, which may have been written meanwhile. */
static void keep_bytes(Context *context, Watch *watch, guint64 size, guint64 hash) {
  guint64 i;
  watch->suspected = guard_block(watch->start, watch->start + size);
  watch->bytes = context->copied_bytes + context->copied_bytes_used;
  for (i = 0; i < size; i++) watch->bytes[i] = ((const guint8 *) watch->start)[i];
  watch->changed = hash_bytes(NO_BYTES_HASH, watch->bytes, size) != hash;
  if (watch->changed) watch->suspected = 1;
  context->copied_bytes_used += size;
  watch->size = size;
  context->watches_used++; /* last: readers look at none beyond */
}

static void end_watch(Context *context, Watch *watch, guint64 size, guint64 hash, guint64 copy_end) {
  watch->copy_end = copy_end;
  gum_spinlock_acquire(control.lock);
  if (size == 0 || context->copied_bytes_used + size <= COPIED_BYTES)
    keep_bytes(context, watch, size, hash);
  else
    control.unguarded++;
  gum_spinlock_release(control.lock);
}

/* A block of a library: whether it changed is found out afterwards. */
static void end_unwatched(Block *block, guint64 hash) {
  if (block->size == 0 || is_stub(block->start)) return;
  block->hash = hash;
  gum_spinlock_acquire(control.lock);
  guard_page((block->start + block->size - 1) >> PAGE_SHIFT);
  gum_spinlock_release(control.lock);
}
