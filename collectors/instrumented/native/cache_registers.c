/* Which general register an operand names, and which registers an instruction may change: a block records a register
   once, and again only where it may have changed. */

#define REGISTERS64 16
#define RCX 1
#define RSP 4
#define RBP 5
#define NO_REGISTER -1

typedef struct {
  x86_reg names[5]; /* 64, 32, 16, 8 and high 8 bits */
} RegisterNames;

#define LEGACY(r, l) {{X86_REG_R##r, X86_REG_E##r, X86_REG_##r, X86_REG_##l##L, X86_REG_##l##H}}
#define POINTER(r) {{X86_REG_R##r, X86_REG_E##r, X86_REG_##r, X86_REG_##r##L, X86_REG_INVALID}}
#define NUMBERED(r) {{X86_REG_R##r, X86_REG_R##r##D, X86_REG_R##r##W, X86_REG_R##r##B, X86_REG_INVALID}}

/* In the order in which encodings number them. */
static const RegisterNames GENERAL[REGISTERS64] = {
    LEGACY(AX, A), LEGACY(CX, C), LEGACY(DX, D), LEGACY(BX, B), POINTER(SP),  POINTER(BP),  POINTER(SI),  POINTER(DI),
    NUMBERED(8),   NUMBERED(9),   NUMBERED(10),  NUMBERED(11),  NUMBERED(12), NUMBERED(13), NUMBERED(14), NUMBERED(15)};

/* The number of the register of 64 bits. */
static int whole_register(x86_reg reg) {
  int number;
  for (number = 0; number < REGISTERS64; number++)
    if (GENERAL[number].names[0] == reg) return number;
  return NO_REGISTER;
}

/* The number of the register that it is a part of. */
static int any_register(x86_reg reg) {
  int number, part;
  for (number = 0; reg != X86_REG_INVALID && number < REGISTERS64; number++)
    for (part = 0; part < 5; part++)
      if (GENERAL[number].names[part] == reg) return number;
  return NO_REGISTER;
}

/* Instructions that change no general register but the one that is their first operand. */
static gboolean changes_only_its_result(const cs_insn *instruction, int vector_width) {
  const char *mnemonic = instruction->mnemonic;
  if (vector_width > 0) return !contains(mnemonic, "str"); /* pcmpistri has its result in ecx */
  switch (instruction->id) {
    case X86_INS_MOV: case X86_INS_MOVZX: case X86_INS_MOVSX: case X86_INS_MOVSXD: case X86_INS_MOVABS: case X86_INS_LEA:
    case X86_INS_ADD: case X86_INS_SUB: case X86_INS_AND: case X86_INS_OR: case X86_INS_XOR: case X86_INS_CMP:
    case X86_INS_TEST: case X86_INS_INC: case X86_INS_DEC: case X86_INS_NEG: case X86_INS_NOT: case X86_INS_SHL:
    case X86_INS_SHR: case X86_INS_SAR: case X86_INS_NOP:
      return TRUE;
    default:
      return begins(mnemonic, "prefetch") || begins(mnemonic, "set") || begins(mnemonic, "cmov") || mnemonic[0] == 'j';
  }
}
