/* The one increment of a block's counter: where it stands, and how it is written. */

#define NEAR_BYTES 7
#define ADDITION_BYTES 64 /* more than any has */

/* Before an instruction that overwrites OF, SF, ZF, AF and PF without reading them, inc can do no harm: it leaves CF
   alone. Calls and returns are not among them, as functions that are written by hand may take or give flags, nor is
   multiplication, which leaves some as they are. */
static gboolean flags_are_free_before(const cs_insn *instruction) {
  switch (instruction->id) {
    case X86_INS_CMP: case X86_INS_TEST: case X86_INS_ADD: case X86_INS_SUB: case X86_INS_ADC: case X86_INS_SBB:
    case X86_INS_AND: case X86_INS_OR: case X86_INS_XOR: case X86_INS_INC: case X86_INS_DEC: case X86_INS_NEG:
    case X86_INS_COMISS: case X86_INS_COMISD: case X86_INS_UCOMISS:
    case X86_INS_UCOMISD: case X86_INS_VCOMISS: case X86_INS_VCOMISD: case X86_INS_VUCOMISS: case X86_INS_VUCOMISD:
    case X86_INS_PTEST: case X86_INS_VPTEST: case X86_INS_KORTESTB: case X86_INS_KORTESTW: case X86_INS_KORTESTD:
    case X86_INS_KORTESTQ:
      return TRUE;
    default:
      return FALSE;
  }
}

static gboolean ends_block(const cs_insn *instruction) {
  return instruction->id == X86_INS_CALL || instruction->id == X86_INS_RET || instruction->id == X86_INS_SYSCALL ||
         instruction->mnemonic[0] == 'j' || begins(instruction->mnemonic, "loop");
}

/* `opcode` (3 bytes with its ModRM for [rip+disp32]) on the memory at `address`. */
static void put_relative(GumX86Writer *to, const guint8 *opcode, gconstpointer address) {
  guint8 code[NEAR_BYTES];
  memcpy(code, opcode, 3);
  put32(code + 3, (guint64) address - (to->pc + NEAR_BYTES));
  gum_x86_writer_put_bytes(to, code, NEAR_BYTES);
}

/* `add`: code that changes rax, the counter, and no flag. */
static void put_addition(Context *context, guint64 *counter, GumX86Writer *to, const guint8 *add, guint32 bytes) {
  static const guint8 save[] = {0x48, 0x89, 0x05}, restore[] = {0x48, 0x8b, 0x05};
  guint64 *slot = saved_rax(context);
  if (is_near(counter, to->pc, ADDITION_BYTES) && is_near(slot, to->pc, ADDITION_BYTES)) {
    put_relative(to, save, slot);
    put_relative(to, restore, counter);
    gum_x86_writer_put_bytes(to, add, bytes);
    put_relative(to, save, counter);
    put_relative(to, restore, slot);
  } else {
    put_absolute(to, STORE_RAX, slot);
    put_absolute(to, LOAD_RAX, counter);
    gum_x86_writer_put_bytes(to, add, bytes);
    put_absolute(to, STORE_RAX, counter);
    put_absolute(to, LOAD_RAX, slot);
  }
}

static void put_increment(Context *context, guint64 *counter, GumX86Writer *to, gboolean flags_are_free) {
  static const guint8 inc[] = {0x48, 0xff, 0x05}, add[] = {0x48, 0x8d, 0x40, 0x01}; /* lea rax, [rax + 1] */
  if (flags_are_free && is_near(counter, to->pc, NEAR_BYTES)) {
    put_relative(to, inc, counter);
    return;
  }
  context->slow_increments++;
  put_addition(context, counter, to, add, sizeof(add));
}
