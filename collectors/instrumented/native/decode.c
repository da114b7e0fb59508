/* Decodes what one instruction does, from the disassembler's view of it.

   Conventions: floating-point operations follow Intel's FP_ARITH_INST_RETIRED (a multiply-add is 2 an element; minimum,
   maximum, reciprocal and square root are 1; comparing, converting and shuffling are 0); a masked vector instruction
   counts its whole width; an instruction with a rep prefix counts once. */

static gboolean begins(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }
static gboolean contains(const char *text, const char *part) { return strstr(text, part) != NULL; }

static gboolean begins_with_any(const char *text, const char *const *prefixes) {
  for (; *prefixes != NULL; prefixes++)
    if (begins(text, *prefixes)) return TRUE;
  return FALSE;
}

static int register_bytes(x86_reg reg) {
  if (reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31) return 64;
  if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31) return 32;
  if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31) return 16;
  return 0;
}

/* What the end of the mnemonic encodes of the elements; integer instructions begin with p and may end alike
   (pdpbusd). */
typedef enum { NO_FLOAT, FLOAT64, FLOAT32, FLOAT16 } Element;
typedef struct {
  Element element;
  gboolean scalar;
} Suffix;

static Suffix suffix_of(const char *name) {
  Suffix suffix = {NO_FLOAT, FALSE};
  gsize length = strlen(name);
  char kind, type;
  if (length < 3 || name[0] == 'p') return suffix;
  kind = name[length - 2];
  type = name[length - 1];
  if (kind != 'p' && kind != 's') return suffix;
  if (type == 'd') suffix.element = FLOAT64;
  if (type == 's') suffix.element = FLOAT32;
  if (type == 'h') suffix.element = FLOAT16;
  suffix.scalar = suffix.element != NO_FLOAT && kind == 's';
  return suffix;
}

/* Bytes of the widest vector register among the operands; 0: it is no vector instruction. */
static int vector_bytes(const cs_x86 *x86) {
  int widest = 0, i;
  for (i = 0; i < x86->op_count; i++)
    if (x86->operands[i].type == X86_OP_REG && register_bytes(x86->operands[i].reg) > widest)
      widest = register_bytes(x86->operands[i].reg);
  return widest;
}

/* What the EVEX prefix encodes, which the disassembler's operands do not always repeat. */
static gboolean is_evex(const cs_insn *instruction) { return instruction->bytes[0] == 0x62; }
static gboolean is_masked(const cs_insn *instruction) { return is_evex(instruction) && (instruction->bytes[3] & 7) != 0; }
static gboolean broadcasts(const cs_insn *instruction) { return is_evex(instruction) && (instruction->bytes[3] & 16) != 0; }
static int broadcast_bytes(const cs_insn *instruction) { return instruction->bytes[2] & 0x80 ? 8 : 4; }

/* Whether memory operands are only named: nothing is loaded or stored. */
static gboolean only_names_memory(const cs_insn *instruction) {
  const char *mnemonic = instruction->mnemonic;
  return instruction->id == X86_INS_LEA || instruction->id == X86_INS_NOP || begins(mnemonic, "nop") ||
         begins(mnemonic, "endbr") || begins(mnemonic, "prefetch") || begins(mnemonic, "clflush") ||
         begins(mnemonic, "clwb") || begins(mnemonic, "cldemote");
}

/* Instructions without vectors whose memory is their result. */
static gboolean stores_its_operand(const char *mnemonic) {
  static const char *const prefixes[] = {"fst", "fist", "fbstp", "fnst", "fnsave", "fxsave", "xsave", "stmxcsr", "vstmxcsr", "set",
                                         NULL};
  return begins_with_any(mnemonic, prefixes);
}

/* Instructions that write their first operand after they read it, whatever the disassembler says. */
static gboolean changes_its_operand(const char *mnemonic) {
  static const char *const prefixes[] = {"cmpxchg", "xchg", "xadd", "rcl", "rcr", NULL};
  const char *after_lock = begins(mnemonic, "lock ") ? mnemonic + 5 : mnemonic;
  return begins_with_any(after_lock, prefixes);
}

/* Only the first operand can be written memory. The disassembler's own word on it is wrong for many vector
   instructions, whose first operand, if it is memory, is always their result. */
static int access_of(const cs_insn *instruction, int operand, int width) {
  const char *mnemonic = instruction->mnemonic;
  int access = instruction->detail->x86.operands[operand].access;
  if (changes_its_operand(mnemonic)) return CS_AC_READ | CS_AC_WRITE;
  if (operand > 0) return CS_AC_READ;
  if (stores_its_operand(mnemonic)) return CS_AC_WRITE;
  if (instruction->detail->x86.op_count > 1 && (width > 0 || mnemonic[0] == 'k')) return CS_AC_WRITE;
  if (access != 0) return access;
  return contains(mnemonic, "mov") ? CS_AC_WRITE : CS_AC_READ;
}

static void load(guint32 *facts, int bytes) {
  facts[LOADS]++;
  facts[LOAD_BYTES] += bytes;
}

static void store(guint32 *facts, int bytes) {
  facts[STORES]++;
  facts[STORE_BYTES] += bytes;
}

static gboolean is_indexed_by_vector(const cs_insn *instruction) {
  return contains(instruction->mnemonic, "gather") || contains(instruction->mnemonic, "scatter");
}

/* `width`: of the instruction's vectors. */
static int operand_bytes(const cs_insn *instruction, int operand, int width) {
  if (is_indexed_by_vector(instruction)) return width;
  if (contains(instruction->mnemonic, "comisd")) return 8; /* the disassembler says 16 */
  return broadcasts(instruction) ? broadcast_bytes(instruction) : instruction->detail->x86.operands[operand].size;
}

static void decode_memory(const cs_insn *instruction, int width, guint32 *facts) {
  const char *mnemonic = instruction->mnemonic;
  const cs_x86 *x86 = &instruction->detail->x86;
  int i;
  if (is_indexed_by_vector(instruction)) facts[GATHERS]++;
  if (begins(mnemonic, "prefetch")) facts[PREFETCHES]++;
  if (only_names_memory(instruction)) return;
  for (i = 0; i < x86->op_count; i++) {
    int bytes = operand_bytes(instruction, i, width), access;
    if (x86->operands[i].type != X86_OP_MEM) continue;
    if (broadcasts(instruction) || begins(mnemonic, "vbroadcast") || begins(mnemonic, "vpbroadcast"))
      facts[BROADCASTS]++; /* with registers alone, EVEX's bit sets the rounding */
    access = access_of(instruction, i, width);
    if (access & CS_AC_READ) load(facts, bytes);
    if (access & CS_AC_WRITE) store(facts, bytes);
  }
}

static void decode_control(const cs_insn *instruction, guint32 *facts) {
  switch (instruction->id) {
    case X86_INS_PUSH: case X86_INS_PUSHFQ: case X86_INS_ENTER: store(facts, 8); break;
    case X86_INS_POP: case X86_INS_POPFQ: case X86_INS_LEAVE: load(facts, 8); break;
    case X86_INS_CALL: facts[CALLS]++; store(facts, 8); break;
    case X86_INS_RET: facts[RETURNS]++; load(facts, 8); break;
    case X86_INS_JMP: facts[JUMPS]++; break;
    case X86_INS_SYSCALL: facts[SYSCALLS]++; break;
    default:
      if (instruction->mnemonic[0] == 'j' || begins(instruction->mnemonic, "loop")) facts[CONDITIONAL_BRANCHES]++;
  }
}

/* Operations on one element: 2, 1, or 0 where it is no arithmetic. `name` is without the v of AVX. */
static int operations(const char *name) {
  static const char *const two[] = {"fmadd", "fmsub", "fnmadd", "fnmsub", "dpp", NULL};
  static const char *const one[] = {"add", "sub", "mul", "div", "min", "max", "sqrt", "rsqrt", "rcp", "hadd", "hsub",
                                    NULL};
  if (begins_with_any(name, two)) return 2;
  return begins_with_any(name, one) ? 1 : 0;
}

static int width_step(int width) { return width == 64 ? 2 : width == 32 ? 1 : 0; }

static gboolean only_moves(const char *name) {
  static const char *const parts[] = {"mov", "broadcast", "perm", "shuf", "unpck", "insert", "extract", "blend", NULL};
  const char *const *part = parts;
  for (; *part != NULL; part++)
    if (contains(name, *part)) return TRUE;
  return FALSE;
}

static void decode_float(const char *name, Suffix suffix, int width, guint32 *facts) {
  int each = operations(name), elements;
  if (each == 0) {
    if (only_moves(name)) facts[VECTOR_MOVES]++;
    return;
  }
  facts[FLOAT_INSTRUCTIONS]++;
  if (each == 2) facts[MULTIPLY_ADDS]++;
  elements = suffix.scalar ? 1 : width / (suffix.element == FLOAT64 ? 8 : suffix.element == FLOAT32 ? 4 : 2);
  if (suffix.element == FLOAT16)
    facts[FLOPS_FP16] += each * elements;
  else if (suffix.element == FLOAT32)
    facts[suffix.scalar ? FLOPS_FP32_SCALAR : FLOPS_FP32_128 + width_step(width)] += each * elements;
  else
    facts[suffix.scalar ? FLOPS_FP64_SCALAR : FLOPS_FP64_128 + width_step(width)] += each * elements;
}

/* Dot products of integers: a 32-bit lane takes 4 products and 4 additions of bytes, or 2 and 2 of words. */
static void count_dot_product(guint32 *facts, int width, gboolean bytes) {
  facts[DOT_PRODUCTS]++;
  if (bytes)
    facts[OPERATIONS_INT8] += 8 * (width / 4);
  else
    facts[OPERATIONS_INT16] += 4 * (width / 4);
}

static void decode_integer(const char *name, int width, guint32 *facts) {
  if (begins(name, "pdpb"))
    count_dot_product(facts, width, TRUE);
  else if (begins(name, "pdpw"))
    count_dot_product(facts, width, FALSE);
  else if (only_moves(name))
    facts[VECTOR_MOVES]++;
  else
    facts[VECTOR_INTEGER]++;
}

static void decode(const cs_insn *instruction, guint32 *facts) {
  const char *mnemonic = instruction->mnemonic, *name = mnemonic[0] == 'v' ? mnemonic + 1 : mnemonic;
  int width = vector_bytes(&instruction->detail->x86);
  Suffix suffix = suffix_of(name);
  if (begins(name, "broadcast")) suffix.scalar = FALSE; /* vbroadcastss has one element as its source only */
  facts[INSTRUCTIONS]++;
  if (begins(mnemonic, "rep")) facts[REPEATED]++;
  decode_memory(instruction, width, facts);
  decode_control(instruction, facts);
  if (width == 0) return;
  if (is_masked(instruction)) facts[MASKED]++;
  facts[suffix.scalar ? VECTOR_SCALAR : VECTOR_128 + width_step(width)]++;
  if (suffix.element == NO_FLOAT)
    decode_integer(name, width, facts);
  else
    decode_float(name, suffix, width, facts);
}
