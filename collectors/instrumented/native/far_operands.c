/* Operands relative to the instruction that are out of reach from its copy. Stalker puts their address into a register
   that the instruction does not name, but some use registers that they do not name: multiplied with rax as the address,
   the product was wrong. Those are copied here. */

#define FAR_DISTANCE 0x7ff00000L

static gboolean uses_unnamed_registers(const cs_insn *instruction) {
  switch (instruction->id) {
    case X86_INS_MUL: case X86_INS_DIV: case X86_INS_IDIV: case X86_INS_MULX: case X86_INS_CMPXCHG8B:
    case X86_INS_CMPXCHG16B: case X86_INS_PCMPESTRI: case X86_INS_PCMPESTRM: case X86_INS_VPCMPESTRI:
    case X86_INS_VPCMPESTRM: case X86_INS_SHLD: case X86_INS_SHRD:
      return TRUE;
    case X86_INS_IMUL:
      return instruction->detail->x86.op_count == 1;
    default:
      return FALSE;
  }
}

static gboolean is_far_and_uses_unnamed_registers(const cs_insn *instruction, GumX86Writer *to) {
  const cs_x86 *x86 = &instruction->detail->x86;
  gint64 distance = (gint64) (instruction->address + x86->disp) - (gint64) to->pc;
  if (!uses_unnamed_registers(instruction) || (x86->modrm & 0xc7) != 5) return FALSE;
  return distance > FAR_DISTANCE || distance < -FAR_DISTANCE;
}

/* One of rbp, rsi and rdi, which none of them uses unnamed. */
static int free_base(const cs_insn *instruction) {
  static const int candidates[] = {RBP, 6, 7};
  const cs_x86 *x86 = &instruction->detail->x86;
  int i, k;
  for (i = 0;; i++) {
    for (k = 0; k < x86->op_count; k++)
      if (x86->operands[k].type == X86_OP_REG && any_register(x86->operands[k].reg) == candidates[i]) break;
    if (k == x86->op_count) return candidates[i];
  }
}

/* The same on [base + displacement], where base is the address of the next instruction. */
static void rebase(guint8 *copy, const cs_insn *instruction, int base) {
  int modrm = instruction->detail->x86.encoding.modrm_offset;
  gboolean vex = copy[0] == 0xc4;
  if (vex) copy[1] |= 0x20; /* the inverted bit that would make it r13 to r15 */
  if (!vex && instruction->detail->x86.rex != 0) {
    int at = 0;
    while ((copy[at] & 0xf0) != 0x40) at++;
    copy[at] &= ~1;
  }
  copy[modrm] = 0x80 | (copy[modrm] & 0x38) | base;
}

static void put_with_own_base(const cs_insn *instruction, GumX86Writer *to) {
  static const guint8 below[] = {0x48, 0x8d, 0x64, 0x24, 0x80}; /* lea rsp, [rsp - 128]: functions keep things there */
  static const guint8 back[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0};
  int base = free_base(instruction);
  guint8 copy[16], move[10] = {0x48}, push = 0x50 | base, pop = 0x58 | base;
  memcpy(copy, instruction->bytes, instruction->size);
  rebase(copy, instruction, base);
  move[1] = 0xb8 | base;
  put64(move + 2, instruction->address + instruction->size);
  gum_x86_writer_put_bytes(to, below, sizeof(below));
  gum_x86_writer_put_bytes(to, &push, 1);
  gum_x86_writer_put_bytes(to, move, sizeof(move));
  gum_x86_writer_put_bytes(to, copy, instruction->size);
  gum_x86_writer_put_bytes(to, &pop, 1);
  gum_x86_writer_put_bytes(to, back, sizeof(back));
}
