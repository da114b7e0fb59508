/* A record: the memory operands of a block or of a part of it, and the words that their addresses are made of. Which
   register is in which word is known when the block is copied: a register is recorded once, and again only where it may
   have changed otherwise than by a constant. */

#define MOST_WORDS 2048 /* of a record */

extern gpointer pthread_self(void); /* where fs begins, by the ABI of threads */

/* What is being recorded of the block that is being copied. */
typedef struct {
  Context *context;
  CacheThread *thread; /* NULL: nothing is recorded */
  guint32 block, words;
  guint64 first_operand;
  guint32 accesses, bytes, untraced;
  guint32 held_in[REGISTERS64]; /* the word that holds the register; 0: none */
  gint64 moved[REGISTERS64];    /* by how much it was changed since then */
} Recorder;

static void forget_registers(Recorder *recorder) { memset(recorder->held_in, 0, sizeof(recorder->held_in)); }

/* What an instruction adds to a record: at most two registers, or three with a count; and with a vector of indices a
   mask. */
typedef struct {
  int registers[4];
  int count;
  VectorWords vectors;
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

static CacheOperand *add_address(Recorder *recorder, int base, int index, int scale, gint64 displacement, int size,
                                 NewWords *added) {
  CacheOperand *operand = add_operand(recorder, displacement, size);
  if (operand == NULL) return NULL;
  if (base != NO_REGISTER) {
    operand->base = word_of(recorder, base, added);
    operand->displacement += recorder->moved[base];
  }
  if (index != NO_REGISTER) {
    operand->index = word_of(recorder, index, added);
    operand->displacement += recorder->moved[index] * scale;
    operand->scale = scale;
  }
  recorder->accesses++;
  recorder->bytes += operand->size;
  return operand;
}

/* What it does is only known when it is executed. */
static void make_special(Recorder *recorder, CacheOperand *operand, int kind) {
  recorder->accesses--;
  recorder->bytes -= operand->size;
  operand->kind = kind;
}

static void add_memory(Recorder *recorder, const cs_insn *instruction, const cs_x86_op *operand, int size,
                       gboolean repeated, NewWords *added) {
  CacheOperand *made;
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
    recorder->untraced++;
    return;
  }
  made = add_address(recorder, base, index, operand->mem.scale, displacement, size, added);
  if (made == NULL || !repeated) return;
  make_special(recorder, made, CACHE_REPEATED);
  made->how = word_of(recorder, RCX, added);
}

static void add_memory_operands(Recorder *recorder, const cs_insn *instruction, int width, NewWords *added) {
  const cs_x86 *x86 = &instruction->detail->x86;
  gboolean repeated = is_repeated(instruction);
  int i;
  if (repeated && !does_all_rounds(instruction)) {
    recorder->untraced++;
    return;
  }
  for (i = 0; i < x86->op_count; i++)
    if (x86->operands[i].type == X86_OP_MEM)
      add_memory(recorder, instruction, &x86->operands[i], operand_bytes(instruction, i, width), repeated, added);
}

/* What calls, returns and the like do to the stack. */
static void add_stack(Recorder *recorder, const cs_insn *instruction, NewWords *added) {
  switch (instruction->id) {
    case X86_INS_PUSH: case X86_INS_PUSHFQ: case X86_INS_ENTER: case X86_INS_CALL:
      add_address(recorder, RSP, NO_REGISTER, 0, -8, 8, added);
      break;
    case X86_INS_POP: case X86_INS_POPFQ: case X86_INS_RET:
      add_address(recorder, RSP, NO_REGISTER, 0, 0, 8, added);
      break;
    case X86_INS_LEAVE:
      add_address(recorder, RBP, NO_REGISTER, 0, 0, 8, added);
      break;
  }
}
