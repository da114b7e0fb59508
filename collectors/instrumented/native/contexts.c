/* The instrumented threads: each has memory of its own, made when its first block is copied, so no counter is
   shared. */

#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22
#define MAP_NORESERVE 0x4000
#define SYS_GETTID 186

extern gpointer mmap(gpointer address, gsize length, int protection, int flags, int fd, glong offset);
extern glong syscall(glong number, ...);

static gpointer map(gsize bytes) {
  gpointer made = mmap(NULL, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == (gpointer) -1 ? NULL : made;
}

static Context *find_context(gpointer key) {
  guint64 i;
  for (i = 0; i < control.contexts_used; i++)
    if (control.contexts[i].key == key) return &control.contexts[i];
  return NULL;
}

/* Instrumented anew, a thread goes on with its old counters: its old copies of code are not executed any more. */
static Context *take_over(gpointer key, guint64 tid) {
  guint64 i;
  for (i = 0; i < control.contexts_used; i++) {
    Context *context = &control.contexts[i];
    if (context->tid != tid || context->epoch == control.epoch) continue;
    context->key = key;
    return context;
  }
  return NULL;
}

static Context *make_context(gpointer key, guint64 tid) {
  guint64 number = control.contexts_used;
  Context *context = &control.contexts[number];
  if (number == MAX_CONTEXTS || number == control.counters_room) return NULL;
  context->seen = map(sizeof(guint64) * MAX_BLOCKS);
  context->blocks = map(sizeof(Block) * MAX_BLOCKS);
  context->watches = map(sizeof(Watch) * MAX_WATCHES);
  context->copied_bytes = map(COPIED_BYTES);
  if (context->seen == NULL || context->blocks == NULL || context->watches == NULL || context->copied_bytes == NULL)
    return NULL;
  context->counters = control.counters + number * (SLOTS + MAX_BLOCKS) + SLOTS;
  context->key = key;
  context->tid = tid;
  control.contexts_used++; /* last: readers look at no context beyond */
  return context;
}

/* The context of the calling thread; NULL: there is no room for it. Instrumented anew, a thread may find its execution
   context at the same address with fresh helpers, so they are looked at once an epoch. */
static Context *context_of(gpointer key) {
  Context *context;
  gum_spinlock_acquire(control.lock);
  context = find_context(key);
  if (context == NULL) {
    guint64 tid = syscall(SYS_GETTID);
    context = take_over(key, tid);
    if (context == NULL) context = make_context(key, tid);
  }
  if (context != NULL && context->epoch != control.epoch) {
    context->epoch = control.epoch;
    context->first_block = context->blocks_used;
    context->watches_used = context->copied_bytes_used = 0;
    if (control.mend_epilog) context->mended += mend_epilogs(key);
  }
  gum_spinlock_release(control.lock);
  return context;
}

static guint64 next_block(Context *context) {
  if (context->blocks_used < MAX_BLOCKS) return context->blocks_used++;
  context->lost_blocks++;
  return MAX_BLOCKS - 1;
}
