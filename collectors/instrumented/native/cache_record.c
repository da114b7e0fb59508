/* What the cache model needs of a block: its copy leaves the registers that its memory operands' addresses are made of
   in the thread's ring. Where they lie in a record is known when the block is copied, so that an execution stores
   nothing but registers: none for an address that is fixed, one for all operands of a base that does not change. */

#define SCRATCH_SLOT 1 /* of the thread's slots, beside saved_rax */
#define HEAD_SLOT 2
#define FULL_BIT 16 /* a ring is full when this bit of the head, or one of the 7 above, is set */
#define RING_ALIGNMENT (1UL << 24)
#define RING_BYTES (2UL << FULL_BIT) /* the second half takes the records of the block that fills the first */
#define MOST_WORDS 2048    /* of a record */
#define MOST_CODE (1 << 22) /* of a block's copy */

extern CacheModel cache_model;
extern gpointer pthread_self(void); /* where fs begins, by the ABI of threads */

/* What is being recorded of the block that is being copied. */
typedef struct {
  Context *context;
  CacheThread *thread; /* NULL: nothing is recorded */
  guint32 block, words;
  guint64 first_operand, accesses, bytes;
  guint32 held_in[REGISTERS64]; /* the word that holds the register; 0: none */
  gint64 moved[REGISTERS64];    /* by how much it was changed since then */
} Recorder;

static guint64 *scratch_slot(Context *context) { return context->counters - SLOTS + SCRATCH_SLOT; }
static guint64 **head_slot(Context *context) { return (guint64 **) (context->counters - SLOTS + HEAD_SLOT); }

static void forget_registers(Recorder *recorder) { memset(recorder->held_in, 0, sizeof(recorder->held_in)); }

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

static void begin_record(Recorder *recorder) {
  recorder->words = 1;
  recorder->accesses = recorder->bytes = 0;
  recorder->first_operand = recorder->thread->operands_used;
  forget_registers(recorder);
}

/* Whether code from there on can name the slots relative to itself. */
static gboolean is_near(gconstpointer slot, guint64 pc) {
  gint64 distance = (gint64) slot - (gint64) pc;
  return fits32(distance - MOST_CODE) && fits32(distance + MOST_CODE);
}

static void begin_recording(Recorder *recorder, Context *context, guint64 block, guint64 pc) {
  CacheThread *thread = &cache_model.threads[context - control.contexts];
  recorder->thread = NULL;
  if (!cache_model.on) return;
  if (!is_near(scratch_slot(context), pc) || (thread->ring == NULL && !make_thread(context, thread))) {
    cache_model.lost++;
    return;
  }
  recorder->context = context;
  recorder->thread = thread;
  recorder->block = block;
  begin_record(recorder);
}

/* --- machine code. `scratch` is rcx, rdx or rsi. */

static void put_slot_move(GumX86Writer *to, guint8 opcode, int reg, gconstpointer slot) {
  guint8 code[3] = {0x48};
  code[1] = opcode;
  code[2] = 0x05 | reg << 3;
  put_relative(to, code, slot);
}

#define STORE 0x89
#define LOAD 0x8b

/* mov [scratch + 8 * word], reg */
static void put_word(GumX86Writer *to, int scratch, guint32 word, int reg) {
  guint8 code[7];
  code[0] = 0x48 | (reg >= 8 ? 4 : 0);
  code[1] = STORE;
  code[2] = 0x80 | (reg & 7) << 3 | scratch;
  put32(code + 3, 8 * word);
  gum_x86_writer_put_bytes(to, code, sizeof(code));
}

static int scratch_beside(const int *registers, int count) {
  static const int candidates[] = {1, 2, 6}; /* rcx, rdx, rsi */
  int i, k;
  for (i = 0;; i++) {
    for (k = 0; k < count && registers[k] != candidates[i]; k++);
    if (k == count || i == 2) return candidates[i];
  }
}

static void put_words(Recorder *recorder, GumX86Writer *to, const int *registers, int count) {
  int scratch = scratch_beside(registers, count), i;
  if (count == 0) return;
  put_slot_move(to, STORE, scratch, scratch_slot(recorder->context));
  put_slot_move(to, LOAD, scratch, head_slot(recorder->context));
  for (i = 0; i < count; i++) put_word(to, scratch, recorder->held_in[registers[i]], registers[i]);
  put_slot_move(to, LOAD, scratch, scratch_slot(recorder->context));
}

/* --- operands */

/* At most two registers of an instruction's operands, or three with a count, are new to a record. */
typedef struct {
  int registers[4];
  int count;
} NewWords;

static guint16 word_of(Recorder *recorder, int reg, NewWords *added) {
  if (recorder->held_in[reg] == 0) {
    recorder->held_in[reg] = recorder->words++;
    recorder->moved[reg] = 0;
    added->registers[added->count++] = reg;
  }
  return recorder->held_in[reg];
}

static CacheOperand *add_operand(Recorder *recorder, gint64 displacement, int size) {
  CacheThread *thread = recorder->thread;
  CacheOperand *operand = &thread->operands[thread->operands_used];
  if (thread->operands_used == CACHE_OPERANDS) {
    cache_model.lost++;
    return NULL;
  }
  thread->operands_used++;
  memset(operand, 0, sizeof(*operand));
  operand->displacement = displacement;
  operand->size = size > 0 ? size : 1;
  return operand;
}

static void add_address(Recorder *recorder, int base, int index, int scale, gint64 displacement, int size, int rounds,
                        NewWords *added) {
  CacheOperand *operand = add_operand(recorder, displacement, size);
  if (operand == NULL) return;
  if (base != NO_REGISTER) {
    operand->base = word_of(recorder, base, added);
    operand->displacement += recorder->moved[base];
  }
  if (index != NO_REGISTER) {
    operand->index = word_of(recorder, index, added);
    operand->displacement += recorder->moved[index] * scale;
    operand->scale = scale;
  }
  if (rounds != NO_REGISTER) {
    operand->rounds = word_of(recorder, rounds, added);
  } else {
    recorder->accesses++;
    recorder->bytes += operand->size;
  }
}

static gboolean is_repeated(const cs_insn *instruction) {
  return begins(instruction->mnemonic, "rep") && contains(instruction->mnemonic, " ");
}

/* What moves or fills memory does all its rounds; what compares or searches may end before. */
static gboolean does_all_rounds(const cs_insn *instruction) {
  const char *name = strchr(instruction->mnemonic, ' ') + 1;
  return begins(name, "movs") || begins(name, "stos") || begins(name, "lods");
}

static void add_memory(Recorder *recorder, const cs_insn *instruction, const cs_x86_op *operand, int size, int rounds,
                       NewWords *added) {
  int base = whole_register(operand->mem.base), index = whole_register(operand->mem.index);
  gint64 displacement = operand->mem.disp;
  gboolean known = (operand->mem.base == X86_REG_INVALID || base != NO_REGISTER) &&
                   (operand->mem.index == X86_REG_INVALID || index != NO_REGISTER);
  if (operand->mem.base == X86_REG_RIP && index == NO_REGISTER) {
    displacement += instruction->address + instruction->size;
    known = TRUE;
  }
  if (operand->mem.segment == X86_REG_FS) displacement += (gint64) pthread_self();
  if (!known || operand->mem.segment == X86_REG_GS) {
    cache_model.untraced++;
    return;
  }
  add_address(recorder, base, index, operand->mem.scale, displacement, size, rounds, added);
}

static void add_memory_operands(Recorder *recorder, const cs_insn *instruction, int width, NewWords *added) {
  const cs_x86 *x86 = &instruction->detail->x86;
  int rounds = NO_REGISTER, i;
  if (is_repeated(instruction) && instruction->id != X86_INS_RET) {
    if (!does_all_rounds(instruction)) {
      cache_model.untraced++;
      return;
    }
    rounds = RCX;
  }
  for (i = 0; i < x86->op_count; i++)
    if (x86->operands[i].type == X86_OP_MEM)
      add_memory(recorder, instruction, &x86->operands[i], operand_bytes(instruction, i, width), rounds, added);
}

/* The memory operand of a VEX or EVEX instruction, from its ModRM, SIB and prefix. */
static void add_encoded(Recorder *recorder, const guint8 *code, const Encoding *e, NewWords *added) {
  gboolean long_prefix = code[0] != 0xc5, broadcast = e->evex && (code[3] & 16) != 0;
  int high_base = long_prefix && !(code[1] & 0x20) ? 8 : 0, high_index = long_prefix && !(code[1] & 0x40) ? 8 : 0;
  gboolean half = (e->map == 5 && e->prefix & 2) || (e->map == 6 && e->opcode & 1); /* one element of 16 bits */
  int size = half ? 2 : broadcast ? (code[2] & 0x80 ? 8 : 4) : e->width;
  const guint8 *at = code + e->modrm;
  int mod = *at >> 6, base = *at & 7, index = NO_REGISTER, scale = 1;
  gint64 displacement = 0;
  if (e->displacement) {
    add_address(recorder, NO_REGISTER, NO_REGISTER, 1, (gint64) code + e->length + get32(code + e->displacement), size,
                NO_REGISTER, added);
    return;
  }
  at++;
  if (base == RSP) { /* there is a SIB byte */
    base = *at & 7;
    index = (*at >> 3 & 7) | high_index;
    scale = 1 << (*at++ >> 6);
    if (index == RSP) index = NO_REGISTER;
  }
  base = mod == 0 && base == RBP ? NO_REGISTER : base | high_base;
  if (mod == 1) displacement = (gint64) (gint8) *at * (e->evex ? size : 1);
  if (mod == 2 || base == NO_REGISTER) displacement = get32(at);
  add_address(recorder, base, index, scale, displacement, size, NO_REGISTER, added);
}

/* What calls, returns and the like do to the stack. */
static void add_stack(Recorder *recorder, const cs_insn *instruction, NewWords *added) {
  switch (instruction->id) {
    case X86_INS_PUSH: case X86_INS_CALL:
      add_address(recorder, RSP, NO_REGISTER, 0, -8, 8, NO_REGISTER, added);
      break;
    case X86_INS_POP: case X86_INS_RET:
      add_address(recorder, RSP, NO_REGISTER, 0, 0, 8, NO_REGISTER, added);
      break;
    case X86_INS_LEAVE:
      add_address(recorder, RBP, NO_REGISTER, 0, 0, 8, NO_REGISTER, added);
      break;
  }
}

/* --- registers that change */

static void note_changes(Recorder *recorder, const cs_insn *instruction, int width) {
  const cs_x86 *x86 = &instruction->detail->x86;
  const cs_x86_op *first = &x86->operands[0];
  int result = x86->op_count > 0 && first->type == X86_OP_REG ? any_register(first->reg) : NO_REGISTER;
  gboolean whole = result != NO_REGISTER && whole_register(first->reg) == result;
  switch (instruction->id) {
    case X86_INS_CMP: case X86_INS_TEST:
      return;
    case X86_INS_PUSH:
      recorder->moved[RSP] -= 8;
      if (first->size != 8) recorder->held_in[RSP] = 0;
      return;
    case X86_INS_POP:
      recorder->moved[RSP] += 8;
      if (first->size != 8) recorder->held_in[RSP] = 0;
      if (result != NO_REGISTER) recorder->held_in[result] = 0;
      return;
    case X86_INS_ADD: case X86_INS_SUB:
      if (!whole || x86->operands[1].type != X86_OP_IMM) break;
      recorder->moved[result] += instruction->id == X86_INS_ADD ? x86->operands[1].imm : -x86->operands[1].imm;
      return;
  }
  if (!changes_only_its_result(instruction, width))
    forget_registers(recorder);
  else if (result != NO_REGISTER)
    recorder->held_in[result] = 0;
}

/* --- records */

static void on_full(GumCpuContext *cpu, gpointer thread);

/* The record's number goes before its words, and the head behind them; then, unless there is no room for the code, the
   ring is emptied if it is full. No flag is changed. */
static void put_record(Recorder *recorder, guint32 number, GumStalkerIterator *iterator, GumX86Writer *to) {
  static const guint8 is_full[] = {0x0f, 0xc9,        /* bswap ecx */
                                   0x0f, 0xb6, 0xcd,  /* movzx ecx, ch: bits 16 to 23 of what it was */
                                   0xe3, 0x02,        /* jrcxz to the second jump */
                                   0xeb, 0x05};       /* jmp over it */
  guint8 code[14] = {0x48, 0xc7, 0x01, 0, 0, 0, 0, 0x48, 0x8d, 0x89};
  gpointer go_on = &recorder->thread->records[number];
  put32(code + 3, number);             /* mov qword [rcx], number */
  put32(code + 10, 8 * recorder->words); /* lea rcx, [rcx + 8 * words] */
  put_slot_move(to, STORE, RCX, scratch_slot(recorder->context));
  put_slot_move(to, LOAD, RCX, head_slot(recorder->context));
  gum_x86_writer_put_bytes(to, code, sizeof(code));
  put_slot_move(to, STORE, RCX, head_slot(recorder->context));
  if (iterator != NULL) {
    gum_x86_writer_put_bytes(to, is_full, sizeof(is_full));
    gum_x86_writer_put_jmp_near_label(to, go_on);
    gum_stalker_iterator_put_callout(iterator, on_full, recorder->thread, NULL);
    gum_x86_writer_put_label(to, go_on);
  }
  put_slot_move(to, LOAD, RCX, scratch_slot(recorder->context));
}

/* Ends the record here, if there is anything in it, and begins another. `iterator` is NULL where the ring is not to be
   looked at. */
static void end_record(Recorder *recorder, GumStalkerIterator *iterator, GumX86Writer *to) {
  CacheThread *thread = recorder->thread;
  CacheRecord *record;
  if (thread == NULL || thread->operands_used == recorder->first_operand) return;
  if (thread->records_used == CACHE_RECORDS) {
    cache_model.lost++;
    return;
  }
  record = &thread->records[thread->records_used];
  record->block = recorder->block;
  record->words = recorder->words;
  record->first_operand = recorder->first_operand;
  record->operands = thread->operands_used - recorder->first_operand;
  record->accesses = recorder->accesses;
  record->bytes = recorder->bytes;
  put_record(recorder, thread->records_used++, iterator, to);
  begin_record(recorder);
}

/* Before the instruction is copied. */
static void record_instruction(Recorder *recorder, const cs_insn *instruction, GumX86Writer *to) {
  int width = vector_bytes(&instruction->detail->x86);
  NewWords added = {{0}, 0};
  if (recorder->thread == NULL) return;
  if (!only_names_memory(instruction)) {
    add_memory_operands(recorder, instruction, width, &added);
    add_stack(recorder, instruction, &added);
  }
  put_words(recorder, to, added.registers, added.count);
  note_changes(recorder, instruction, width);
  if (recorder->words > MOST_WORDS) end_record(recorder, NULL, to);
}

/* The same for an instruction that the disassembler does not know. */
static void record_undecoded(Recorder *recorder, const guint8 *code, GumX86Writer *to) {
  NewWords added = {{0}, 0};
  Encoding e;
  if (recorder->thread == NULL) return;
  if (!read_encoding(code, &e))
    forget_registers(recorder);
  else if (is_tile_instruction(&e))
    cache_model.untraced++;
  else if (e.memory)
    add_encoded(recorder, code, &e, &added);
  put_words(recorder, to, added.registers, added.count);
}
