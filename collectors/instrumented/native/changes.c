/* What changes code of which there are copies, and what is found out only afterwards. */

#define SIGSEGV 11
#define SEGV_ACCERR 2
#define REG_RIP 16
#define UC_REGISTERS 5 /* words of ucontext_t before its registers */

typedef void (*Handler)(int signal, gpointer info, gpointer context);
extern Handler signal(int number, Handler handler);
extern gssize pread(int file, gpointer to, gsize bytes, glong at);

/* --- writes into pages that are protected */

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

/* The lock is held. */
static void release_page(guint64 i) {
  unprotect_page(i);
  page_states[i] = PAGE_WRITTEN;
  if (page_faults[i] <= MOST_FAULTS) page_faults[i]++;
  suspect(code_pages[i], code_pages[i] + 1);
}

/* A page of ours that is written: TRUE. */
static gboolean release_written(guint64 address) {
  guint64 i = find_page(address >> PAGE_SHIFT);
  const Mapping *mapping;
  if (i == CODE_PAGES) return FALSE;
  if (page_states[i] == PAGE_PROTECTED) {
    release_page(i);
    return TRUE;
  }
  forget_mapping();
  mapping = mapping_of(address); /* another thread may have been faster */
  return mapping != NULL && mapping->writable;
}

/* The process's handler of SIGSEGV: `info` is a siginfo_t, `context` a ucontext_t. */
void on_fault(int number, gpointer info, gpointer context) {
  guint64 address = ((guint64 *) info)[2];
  Handler before = (Handler) control.fault_handler;
  if (((int *) info)[2] == SEGV_ACCERR) {
    gboolean ours;
    gum_spinlock_acquire(control.lock);
    ours = release_written(address);
    if (ours) look_for_self(address, ((guint64 *) context)[UC_REGISTERS + REG_RIP]);
    gum_spinlock_release(control.lock);
    if (ours) return;
  }
  if ((guint64) before > 1)
    before(number, info, context);
  else
    signal(number, before); /* what it does happens when the instruction is executed again */
}

/* --- system calls of instrumented threads */

#define SYS_MMAP 9
#define SYS_MPROTECT 10
#define SYS_MUNMAP 11
#define SYS_READV 19
#define SYS_MREMAP 25
#define SYS_MADVISE 28
#define SYS_RECVMSG 47
#define SYS_PREADV 295
#define SYS_RECVMMSG 299
#define SYS_PROCESS_VM_READV 310
#define SYS_PREADV2 327
#define SYS_PKEY_MPROTECT 329
#define MOST_PARTS 1024 /* UIO_MAXIOV */
#define MAP_FIXED 0x10
#define MREMAP_FIXED 2

typedef void (*PageFunction)(guint64 i);

/* For every page of code there: its place in the table. */
static void for_pages(guint64 address, guint64 bytes, PageFunction function) {
  guint64 i, first = address >> PAGE_SHIFT, end = (address + bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
  if (!holds_code(first, end)) return;
  gum_spinlock_acquire(control.lock);
  for (i = 0; i < CODE_PAGES; i++)
    if (code_pages[i] != 0 && code_pages[i] >= first && code_pages[i] < end) function(i);
  gum_spinlock_release(control.lock);
}

/* It may be another page from here on. */
static void replace_page(guint64 i) {
  if (page_states[i] == PAGE_OF_FILE) note_rewritten(code_pages[i] << PAGE_SHIFT); /* its blocks are not compared */
  if (page_states[i] == PAGE_PROTECTED) unprotect_page(i); /* moved, it would still be */
  page_states[i] = PAGE_UNKNOWN;
  forget_mapping();
  suspect(code_pages[i], code_pages[i] + 1);
}

/* A library's page stays what it is, unless it can be written. */
static void change_page(guint64 i) {
  if (page_states[i] != PAGE_OF_FILE) replace_page(i);
}

/* The kernel may write from there on: how much, only the system call knows. */
static void release_from(guint64 address) {
  guint64 page, i;
  for (page = address >> PAGE_SHIFT; (i = find_page(page)) != CODE_PAGES; page++) {
    gum_spinlock_acquire(control.lock);
    if (page_states[i] == PAGE_PROTECTED) release_page(i);
    gum_spinlock_release(control.lock);
  }
}

typedef struct {
  guint64 address, bytes;
} Part; /* iovec */

typedef struct {
  guint64 name, name_bytes;
  const Part *parts;
  guint64 count, control, control_bytes, flags;
} Letter; /* msghdr */

static void release_part(guint64 address, guint64 bytes) {
  guint64 page;
  for (page = address >> PAGE_SHIFT; bytes != 0 && page <= (address + bytes - 1) >> PAGE_SHIFT; page++)
    release_from(page << PAGE_SHIFT);
}

static void release_parts(const Part *parts, guint64 count) {
  guint64 i;
  if (parts == NULL || count > MOST_PARTS) return; /* the kernel refuses it */
  for (i = 0; i < count; i++) release_part(parts[i].address, parts[i].bytes);
}

static void release_letters(guint64 letters, guint64 count, guint64 stride) {
  guint64 i;
  if (letters == 0 || count > MOST_PARTS) return;
  for (i = 0; i < count; i++) {
    const Letter *letter = (const Letter *) (letters + i * stride);
    release_from(letter->name);
    release_from(letter->control);
    release_parts(letter->parts, letter->count);
  }
}

/* Where the kernel writes no fault tells it. An address that is handed over may be anything's: each of them is. */
static void release_arguments(const GumCpuContext *cpu) {
  release_from(cpu->rdi);
  release_from(cpu->rsi);
  release_from(cpu->rdx);
  release_from(cpu->r10);
  release_from(cpu->r8);
  release_from(cpu->r9);
  switch ((int) cpu->rax) {
    case SYS_READV: case SYS_PREADV: case SYS_PREADV2: case SYS_PROCESS_VM_READV:
      release_parts((const Part *) cpu->rsi, cpu->rdx);
      break;
    case SYS_RECVMSG: release_letters(cpu->rsi, 1, 0); break;
    case SYS_RECVMMSG: release_letters(cpu->rsi, cpu->rdx, sizeof(Letter) + 8); break;
  }
}

static void keep_mapping(GumCpuContext *cpu) {
  if (!holds_code(cpu->rdi >> PAGE_SHIFT, (cpu->rdi + cpu->rsi + PAGE_BYTES - 1) >> PAGE_SHIFT)) return;
  cpu->rdi = (guint64) mmap(NULL, cpu->rsi, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0);
  control.kept_mappings++;
}

/* Somebody else handles faults. */
static void give_faults_away(void) {
  gum_spinlock_acquire(control.lock);
  stop_guarding();
  gum_spinlock_release(control.lock);
}

static void on_syscall(GumCpuContext *cpu, gpointer unused) {
  if (control.protecting) release_arguments(cpu);
  switch ((int) cpu->rax) {
    case SYS_MMAP:
      if (cpu->r10 & MAP_FIXED) for_pages(cpu->rdi, cpu->rsi, replace_page);
      forget_mapping();
      break;
    case SYS_MPROTECT: case SYS_PKEY_MPROTECT:
      for_pages(cpu->rdi, cpu->rsi, cpu->rdx & PROT_WRITE ? replace_page : change_page);
      break;
    case SYS_MADVISE: for_pages(cpu->rdi, cpu->rsi, change_page); break; /* it may be emptied */
    case SYS_MUNMAP:
      keep_mapping(cpu);
      forget_mapping();
      break;
    case SYS_MREMAP:
      for_pages(cpu->rdi, cpu->rsi, replace_page);
      if (cpu->r10 & MREMAP_FIXED) for_pages(cpu->r8, cpu->rdx, replace_page);
      forget_mapping();
      break;
    case SYS_RT_SIGACTION:
      if (cpu->rdi == SIGSEGV && cpu->rsi != 0) give_faults_away();
      set_handler(cpu);
      break;
  }
}

/* Before a syscall, which overwrites rcx, so that it is free; no flag is changed. */
static void put_syscall_watch(GumStalkerIterator *iterator, const cs_insn *instruction, GumX86Writer *to) {
  static const int watched[] = {SYS_MMAP,   SYS_MPROTECT, SYS_MUNMAP,      SYS_RT_SIGACTION,
                                SYS_MREMAP, SYS_MADVISE,  SYS_PKEY_MPROTECT};
  enum { COUNT = sizeof(watched) / sizeof(watched[0]), STEP = 8, SHORT_JUMP = 2, JUMP = 5 };
  guint8 code[STEP];
  int i;
  gum_x86_writer_put_mov_reg_address(to, GUM_X86_RCX, (guint64) (gsize) &control.protecting);
  gum_x86_writer_put_mov_reg_reg_ptr(to, GUM_X86_RCX, GUM_X86_RCX);
  code[0] = 0xe3; /* jrcxz over the next one: nothing is protected */
  code[1] = SHORT_JUMP;
  code[2] = 0xeb; /* jmp to the callout */
  code[3] = STEP * COUNT + JUMP;
  gum_x86_writer_put_bytes(to, code, 4);
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
