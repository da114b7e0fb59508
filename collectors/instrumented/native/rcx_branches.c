/* Branches that count rcx down or test it. Stalker copies loop, loope and loopne as they stand, so their target is
   missed, and takes jecxz for jrcxz. The copy goes on in a stub instead, which does the same in instructions that Stalker
   knows. Stubs are code of ours: they count nothing, and no flag is changed in them. */

#define STUB_BYTES 64

static gboolean is_rcx_branch(const cs_insn *instruction) {
  return begins(instruction->mnemonic, "loop") || begins(instruction->mnemonic, "jecxz");
}

static gboolean is_stub(guint64 address) {
  guint64 first = (guint64) control.stubs;
  return address >= first && address < first + STUBS_BYTES;
}

/* jmp [rip], to the address that follows */
static guint8 *put_jump(guint8 *at, guint64 target) {
  static const guint8 jump[] = {0xff, 0x25, 0, 0, 0, 0};
  memcpy(at, jump, sizeof(jump));
  put64(at + sizeof(jump), target);
  return at + sizeof(jump) + 8;
}

#define JUMP_BYTES 14

/* loop: rcx (ecx with an address-size prefix) is one less, and unless it is zero now, or the zero flag differs from
   what loope and loopne ask for, the target is next. */
static void write_loop(guint8 *at, const guint8 *code, guint64 target, guint64 next) {
  guint8 opcode = code[0] == 0x67 ? code[1] : code[0];
  gboolean asks = opcode != 0xe2;
  if (code[0] != 0x67) *at++ = 0x48;
  *at++ = 0x8d, *at++ = 0x49, *at++ = 0xff;                    /* lea rcx, [rcx - 1] */
  *at++ = 0xe3, *at++ = JUMP_BYTES + (asks ? 2 : 0);           /* jrcxz */
  if (asks) *at++ = opcode == 0xe1 ? 0x75 : 0x74, *at++ = JUMP_BYTES; /* jne, je */
  put_jump(put_jump(at, target), next);
}

/* jecxz: the upper half of rcx does not matter, and stays. */
static void write_jecxz(guint8 *at, guint64 target, guint64 next) {
  static const guint8 test[] = {0x48, 0x8d, 0x64, 0x24, 0x80, /* lea rsp, [rsp - 128]: below lies what functions keep */
                                0x51, 0x89, 0xc9};            /* push rcx; mov ecx, ecx */
  static const guint8 restore[] = {0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0}; /* pop rcx; lea rsp, [rsp + 128] */
  memcpy(at, test, sizeof(test));
  at += sizeof(test);
  *at++ = 0xe3, *at++ = sizeof(restore) + JUMP_BYTES; /* jrcxz */
  memcpy(at, restore, sizeof(restore));
  at = put_jump(at + sizeof(restore), next);
  memcpy(at, restore, sizeof(restore));
  put_jump(at + sizeof(restore), target);
}

/* The stub of an instruction; NULL: there is no room. */
static gpointer make_stub(const cs_insn *instruction) {
  guint64 target = instruction->detail->x86.operands[0].imm, next = instruction->address + instruction->size;
  guint8 *stub = NULL;
  gum_spinlock_acquire(control.lock);
  if (control.stubs_used + STUB_BYTES <= STUBS_BYTES) {
    stub = control.stubs + control.stubs_used;
    control.stubs_used += STUB_BYTES;
  }
  gum_spinlock_release(control.lock);
  if (stub == NULL) return NULL;
  if (instruction->mnemonic[0] == 'l')
    write_loop(stub, instruction->bytes, target, next);
  else
    write_jecxz(stub, target, next);
  return stub;
}
