/* The followed threads: each has memory of its own, made when its first block is copied, so no counter is shared. */

#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22
#define MAP_NORESERVE 0x4000
#define MAP_FIXED_NOREPLACE 0x100000
#define SYS_GETTID 186

extern gpointer mmap(gpointer address, gsize length, int protection, int flags, int fd, glong offset);
extern glong syscall(glong number);

static gpointer map(gpointer address, gsize bytes, int flags) {
  gpointer made = mmap(address, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return made == (gpointer) -1 ? NULL : made;
}

/* Within 2 GB of the code if there is room, above or below, nearest first; else anywhere. */
static gpointer map_near(guint64 code, gsize bytes) {
  guint64 step = 0x400000, distance;
  for (distance = step; distance < 450 * step; distance += step) {
    int side;
    for (side = 0; side < 2; side++) {
      gpointer wanted = (gpointer) ((code & ~0xffffUL) + (side ? distance : -distance));
      gpointer made = map(wanted, bytes, MAP_FIXED_NOREPLACE);
      if (made == wanted) return made;
      /* a kernel that does not know the flag takes the address for a hint; what it gave stays unused */
    }
  }
  return map(NULL, bytes, 0);
}

static Context *find_context(gpointer key) {
  guint64 i;
  for (i = 0; i < control.contexts_used; i++)
    if (control.contexts[i].key == key) return &control.contexts[i];
  return NULL;
}

static Context *make_context(gpointer key, guint64 code) {
  Context *context = &control.contexts[control.contexts_used];
  guint64 *memory;
  if (control.contexts_used == MAX_CONTEXTS) return NULL;
  memory = map_near(code, sizeof(guint64) * (SLOTS + MAX_BLOCKS));
  context->seen = map(NULL, sizeof(guint64) * MAX_BLOCKS, 0);
  context->blocks = map(NULL, sizeof(Block) * MAX_BLOCKS, 0);
  if (memory == NULL || context->seen == NULL || context->blocks == NULL) return NULL;
  context->counters = memory + SLOTS;
  context->key = key;
  context->tid = syscall(SYS_GETTID);
  control.contexts_used++; /* last: readers look at no context beyond */
  return context;
}

/* The context of the calling thread; NULL: there is no room for it. Followed anew, a thread may find its execution
   context at the same address with fresh helpers, so they are looked at once an epoch. */
static Context *context_of(gpointer key, guint64 code) {
  Context *context;
  gum_spinlock_acquire(control.lock);
  context = find_context(key);
  if (context == NULL) context = make_context(key, code);
  if (context != NULL && context->epoch != control.epoch) {
    context->epoch = control.epoch;
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

void begin_epoch(void) { control.epoch++; }
