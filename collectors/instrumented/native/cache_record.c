/* What the cache model needs of a block: its copy leaves registers in the thread's ring, and at its end the record's
   number. An execution stores nothing for an address that is fixed, and one word for all operands of a base that does
   not change. */

static void begin_record(Recorder *recorder) {
  recorder->words = 1;
  recorder->accesses = recorder->bytes = recorder->untraced = 0;
  recorder->first_operand = recorder->thread->operands_used;
  forget_registers(recorder);
}

static void begin_recording(Recorder *recorder, Context *context, guint64 block) {
  CacheThread *thread = &cache_model.threads[context - control.contexts];
  recorder->thread = NULL;
  if (!cache_model.on) return;
  if (thread->ring == NULL && !make_thread(context, thread)) {
    cache_model.lost_threads++;
    return;
  }
  recorder->context = context;
  recorder->thread = thread;
  recorder->block = block;
  begin_record(recorder);
}

/* --- machine code. `scratch` is rcx, rdx or rsi. */

#define STORE 0x89
#define LOAD 0x8b

/* A slot that this code cannot name relative to itself goes by way of rax, which is as it was afterwards. */
static void put_slot_move(GumX86Writer *to, guint8 opcode, int reg, gconstpointer slot) {
  guint8 code[3] = {0x48}, exchange[2] = {0x48};
  code[1] = opcode;
  code[2] = 0x05 | reg << 3;
  exchange[1] = 0x90 | reg; /* xchg rax, reg */
  if (is_near(slot, to->pc, NEAR_BYTES)) {
    put_relative(to, code, slot);
    return;
  }
  gum_x86_writer_put_bytes(to, exchange, sizeof(exchange));
  put_absolute(to, opcode == STORE ? STORE_RAX : LOAD_RAX, slot);
  gum_x86_writer_put_bytes(to, exchange, sizeof(exchange));
}

/* mov [scratch + 8 * word], reg */
static void put_word(GumX86Writer *to, int scratch, guint32 word, int reg) {
  guint8 code[7];
  code[0] = 0x48 | (reg >= 8 ? 4 : 0);
  code[1] = STORE;
  code[2] = 0x80 | (reg & 7) << 3 | scratch;
  put32(code + 3, 8 * word);
  gum_x86_writer_put_bytes(to, code, sizeof(code));
}

static int free_scratch(const int *registers, int count) {
  static const int candidates[] = {1, 2, 6}; /* rcx, rdx, rsi */
  int i, k;
  for (i = 0;; i++) {
    for (k = 0; k < count && registers[k] != candidates[i]; k++);
    if (k == count || i == 2) return candidates[i];
  }
}

static void put_words(Recorder *recorder, GumX86Writer *to, const NewWords *added) {
  int scratch = free_scratch(added->registers, added->count), i;
  if (added->count == 0 && added->vectors.index_bytes == 0) return;
  put_slot_move(to, STORE, scratch, scratch_slot(recorder->context));
  put_slot_move(to, LOAD, scratch, head_slot(recorder->context));
  for (i = 0; i < added->count; i++)
    put_word(to, scratch, recorder->held_in[added->registers[i]], added->registers[i]);
  if (added->vectors.index_bytes != 0) put_vectors(to, scratch, &added->vectors);
  put_slot_move(to, LOAD, scratch, scratch_slot(recorder->context));
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
  if (thread == NULL || (thread->operands_used == recorder->first_operand && recorder->untraced == 0)) return;
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
  record->untraced = recorder->untraced;
  put_record(recorder, thread->records_used++, iterator, to);
  begin_record(recorder);
}

/* Before the instruction is copied. */
static void record_instruction(Recorder *recorder, const cs_insn *instruction, GumX86Writer *to) {
  int width = vector_bytes(&instruction->detail->x86);
  NewWords added;
  if (recorder->thread == NULL) return;
  memset(&added, 0, sizeof(added));
  if (is_indexed_by_vector(instruction)) {
    add_encoded_or_untraced(recorder, instruction->bytes, &added);
  } else if (!only_names_memory(instruction)) {
    add_memory_operands(recorder, instruction, width, &added);
    add_stack(recorder, instruction, &added);
  }
  put_words(recorder, to, &added);
  note_changes(recorder, instruction, width);
  if (recorder->words > MOST_WORDS) end_record(recorder, NULL, to);
}

/* The same for an instruction that the disassembler does not know. */
static void record_undecoded(Recorder *recorder, const guint8 *code, GumX86Writer *to) {
  NewWords added;
  if (recorder->thread == NULL) return;
  memset(&added, 0, sizeof(added));
  if (code[0] == 0x0f)
    forget_registers(recorder); /* serialize, rdpru, ... */
  else
    add_encoded_or_untraced(recorder, code, &added);
  put_words(recorder, to, &added);
}
