/* Blocks whose original may become other code. Each begins with a look at a word of its own; where it is set, the block
   is compared with what was copied. If it differs, the thread goes on in the code itself, which nobody counts then. */

#define WATCH_SLOT 1
#define RESULT_SLOT 2
#define SIGSEGV 11
#define SEGV_ACCERR 2

static guint64 *watch_slot(Context *context) { return context->counters - SLOTS + WATCH_SLOT; }
static guint64 *result_slot(Context *context) { return context->counters - SLOTS + RESULT_SLOT; }

static void note_rewritten(guint64 address) {
  control.rewritten++;
  control.rewritten_address = address;
}

/* All blocks that reach into the pages are compared before they are executed next. */
static void suspect(guint64 first_page, guint64 end_page) {
  guint64 number, i, first = first_page << PAGE_SHIFT, end = end_page << PAGE_SHIFT;
  for (number = 0; number < control.contexts_used; number++) {
    Context *context = &control.contexts[number];
    for (i = 0; i < context->watches_used; i++) {
      Watch *watch = &context->watches[i];
      if (watch->start < end && watch->start + watch->size > first) *watch->word = 1;
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

static gboolean guard_block(guint64 start, guint64 end) {
  gboolean compared = FALSE;
  guint64 page;
  for (page = start >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++)
    if (guard_page(page) == PAGE_COMPARED) compared = TRUE;
  return compared;
}

/* Before a block that may have changed. */
static void on_suspect(GumCpuContext *cpu, gpointer data) {
  Watch *watch = data;
  gum_spinlock_acquire(control.lock);
  *watch->word = guard_block(watch->start, watch->start + watch->size);
  *watch->result = !is_unchanged(watch);
  if (*watch->result) {
    *watch->word = 1;
    note_rewritten(watch->start);
  }
  gum_spinlock_release(control.lock);
}

/* mov rcx, [word]; then on at `label` if it is 0. */
static void put_go_on_if_zero(GumX86Writer *to, const guint64 *word, gconstpointer label) {
  static const guint8 over[] = {0xe3, 0x02,  /* jrcxz to the near jump */
                                0xeb, 0x05}; /* jmp over it */
  put_slot_move(to, LOAD, RCX, word);
  gum_x86_writer_put_bytes(to, over, sizeof(over));
  gum_x86_writer_put_jmp_near_label(to, label);
}

/* The block's beginning. `instruction` of the generator is not known there, which callouts ask for. */
static void put_watch(Context *context, Watch *watch, GumStalkerIterator *iterator, Generator *generator,
                      GumX86Writer *to) {
  guint64 nothing[4] = {0, 0, 0, 0};
  gpointer instruction = generator->instruction;
  put_slot_move(to, STORE, RCX, watch_slot(context));
  put_go_on_if_zero(to, watch->word, watch);
  put_slot_move(to, LOAD, RCX, watch_slot(context));
  if (instruction == NULL) generator->instruction = nothing;
  gum_stalker_iterator_put_callout(iterator, on_suspect, watch, NULL);
  generator->instruction = instruction;
  put_slot_move(to, STORE, RCX, watch_slot(context));
  put_go_on_if_zero(to, watch->result, watch);
  put_slot_move(to, LOAD, RCX, watch_slot(context));
  put_jump_to((const guint8 *) watch->start, to);
  gum_x86_writer_put_label(to, watch);
  put_slot_move(to, LOAD, RCX, watch_slot(context));
}

/* NULL: the block needs none, or there is no room. */
static Watch *begin_watch(Context *context, guint64 start, GumStalkerIterator *iterator, Generator *generator,
                          GumX86Writer *to) {
  Watch *watch;
  int state;
  if (is_stub(start)) return NULL;
  gum_spinlock_acquire(control.lock);
  state = guard_page(start >> PAGE_SHIFT);
  gum_spinlock_release(control.lock);
  if (state == PAGE_OF_FILE) return NULL;
  if (context->watches_used == MAX_WATCHES || !is_near(watch_slot(context), to->pc)) {
    control.unguarded++;
    return NULL;
  }
  watch = &context->watches[context->watches_used];
  watch->start = start;
  watch->size = 0;
  watch->word = &context->counters[MAX_BLOCKS + context->watches_used];
  watch->result = result_slot(context);
  watch->copy = to->pc;
  put_watch(context, watch, iterator, generator, to);
  return watch;
}

/* What was copied is kept, after it cannot change unseen any more. */
static void end_watch(Context *context, Watch *watch, guint64 end, guint64 copy_end) {
  guint64 size = end - watch->start, i;
  gum_spinlock_acquire(control.lock);
  *watch->word = guard_block(watch->start, end);
  gum_spinlock_release(control.lock);
  if (context->copied_bytes_used + size > COPIED_BYTES) {
    control.unguarded++;
    return;
  }
  watch->bytes = context->copied_bytes + context->copied_bytes_used;
  for (i = 0; i < size; i++) watch->bytes[i] = ((const guint8 *) watch->start)[i];
  context->copied_bytes_used += size;
  watch->copy_end = copy_end;
  watch->size = size;
  context->watches_used++; /* last: readers look at none beyond */
}

/* --- what changes code */

/* A block that writes into itself goes on in its copy, which is too late to be mended. */
static void look_for_self(guint64 address, guint64 instruction) {
  guint64 number, i;
  for (number = 0; number < control.contexts_used; number++) {
    Context *context = &control.contexts[number];
    for (i = 0; i < context->watches_used; i++) {
      Watch *watch = &context->watches[i];
      if (instruction < watch->copy || instruction >= watch->copy_end) continue;
      if (address + 64 <= watch->start || address >= watch->start + watch->size) continue;
      note_rewritten(watch->start);
    }
  }
}

/* A page of ours that is written: TRUE. */
static gboolean release_page(guint64 address) {
  guint64 page = address >> PAGE_SHIFT, i = find_page(page);
  const Mapping *mapping;
  if (i == CODE_PAGES) return FALSE;
  if (page_states[i] == PAGE_PROTECTED) {
    mprotect((gpointer) (page << PAGE_SHIFT), PAGE_BYTES, PROT_READ_EXEC | PROT_WRITE);
    page_states[i] = PAGE_WRITTEN;
    if (page_faults[i] <= MOST_FAULTS) page_faults[i]++;
    control.mapping.start = control.mapping.end = 0;
    suspect(page, page + 1);
    return TRUE;
  }
  control.mapping.start = control.mapping.end = 0;
  mapping = mapping_of(address); /* another thread may have been faster */
  return mapping != NULL && mapping->writable;
}

#define REG_RIP 16
#define UC_REGISTERS 5 /* words of ucontext_t before its registers */

typedef void (*Handler)(int signal, gpointer info, gpointer context);
extern Handler signal(int number, Handler handler);

/* The process's handler of SIGSEGV: `info` is a siginfo_t, `context` a ucontext_t. */
void on_fault(int number, gpointer info, gpointer context) {
  guint64 address = ((guint64 *) info)[2];
  Handler before = (Handler) control.fault_handler;
  if (((int *) info)[2] == SEGV_ACCERR) {
    gboolean ours;
    gum_spinlock_acquire(control.lock);
    ours = release_page(address);
    if (ours) look_for_self(address, ((guint64 *) context)[UC_REGISTERS + REG_RIP]);
    gum_spinlock_release(control.lock);
    if (ours) return;
  }
  if ((guint64) before > 1)
    before(number, info, context);
  else
    signal(number, before); /* what it does happens when the instruction is executed again */
}

static void forget_pages(guint64 first, guint64 end) {
  guint64 i;
  for (i = 0; i < CODE_PAGES; i++) {
    if (code_pages[i] < first || code_pages[i] >= end || code_pages[i] == 0) continue;
    if (page_states[i] == PAGE_OF_FILE) note_rewritten(code_pages[i] << PAGE_SHIFT); /* its blocks are not compared */
    page_states[i] = PAGE_UNKNOWN;
  }
}

static void change_range(guint64 address, guint64 bytes) {
  guint64 first = address >> PAGE_SHIFT, end = (address + bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
  control.mapping.start = control.mapping.end = 0;
  if (!holds_code(first, end)) return;
  gum_spinlock_acquire(control.lock);
  forget_pages(first, end);
  suspect(first, end);
  gum_spinlock_release(control.lock);
}

#define SYS_MMAP 9
#define SYS_MPROTECT 10
#define SYS_MUNMAP 11
#define SYS_RT_SIGACTION 13
#define SYS_MREMAP 25
#define SYS_PKEY_MPROTECT 329
#define MAP_FIXED 0x10
#define MREMAP_FIXED 2

static void keep_mapping(GumCpuContext *cpu) {
  if (!holds_code(cpu->rdi >> PAGE_SHIFT, (cpu->rdi + cpu->rsi + PAGE_BYTES - 1) >> PAGE_SHIFT)) return;
  cpu->rdi = (guint64) mmap(NULL, cpu->rsi, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0);
  control.kept_mappings++;
}

/* Somebody else handles faults: pages are writable again, and their blocks always compared. */
static void stop_protecting(void) {
  guint64 i;
  gum_spinlock_acquire(control.lock);
  control.unprotecting = 1;
  for (i = 0; i < CODE_PAGES; i++)
    if (page_states[i] == PAGE_PROTECTED) release_page(code_pages[i] << PAGE_SHIFT);
  gum_spinlock_release(control.lock);
}

static void on_syscall(GumCpuContext *cpu, gpointer unused) {
  switch ((int) cpu->rax) {
    case SYS_MMAP:
      if (cpu->r10 & MAP_FIXED) change_range(cpu->rdi, cpu->rsi);
      control.mapping.start = control.mapping.end = 0;
      break;
    case SYS_MPROTECT: case SYS_PKEY_MPROTECT: change_range(cpu->rdi, cpu->rsi); break;
    case SYS_MUNMAP:
      keep_mapping(cpu);
      control.mapping.start = control.mapping.end = 0;
      break;
    case SYS_MREMAP:
      change_range(cpu->rdi, cpu->rsi);
      if (cpu->r10 & MREMAP_FIXED) change_range(cpu->r8, cpu->rdx);
      break;
    case SYS_RT_SIGACTION:
      if (cpu->rdi == SIGSEGV && cpu->rsi != 0) stop_protecting();
      break;
  }
}

/* Before a syscall, which overwrites rcx, so that it is free; no flag is changed. */
static void put_syscall_watch(GumStalkerIterator *iterator, const cs_insn *instruction, GumX86Writer *to) {
  static const int watched[] = {SYS_MMAP, SYS_MPROTECT, SYS_MUNMAP, SYS_RT_SIGACTION, SYS_MREMAP, SYS_PKEY_MPROTECT};
  enum { COUNT = 6, STEP = 8, JUMP = 5 };
  guint8 code[STEP];
  int i;
  for (i = 0; i < COUNT; i++) {
    code[0] = 0x8d; /* lea ecx, [rax - number] */
    code[1] = 0x88;
    put32(code + 2, -watched[i]);
    code[6] = 0xe3; /* jrcxz to the callout */
    code[7] = STEP * (COUNT - 1 - i) + JUMP;
    gum_x86_writer_put_bytes(to, code, sizeof(code));
  }
  gum_x86_writer_put_jmp_near_label(to, instruction->bytes);
  gum_stalker_iterator_put_callout(iterator, on_syscall, NULL, NULL);
  gum_x86_writer_put_label(to, instruction->bytes);
}
