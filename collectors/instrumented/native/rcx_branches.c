/* Branches that count rcx down or test it. Stalker copies loop, loope and loopne as they stand, so their target is
   missed, and takes jecxz for jrcxz. The copy goes on in a stub instead, which does the same in instructions that Stalker
   knows. Stubs are code of ours: they count nothing, and no flag is changed in them. */

extern int munmap(gpointer address, gsize length);

#define STUB_BYTES 64

static gboolean is_rcx_branch(const cs_insn *instruction) {
  return begins(instruction->mnemonic, "loop") || begins(instruction->mnemonic, "jecxz");
}

static gboolean is_stub(guint64 address) {
  guint64 i, first;
  for (i = 0; i < control.stub_regions; i++) {
    first = (guint64) control.stubs[i];
    if (address >= first && address < first + STUBS_BYTES) return TRUE;
  }
  return FALSE;
}

#define JUMP_BYTES 5

/* A direct one: at indirect ones Stalker loses the overflow flag. */
static guint8 *put_jump(guint8 *at, guint64 target) {
  *at = 0xe9;
  put32(at + 1, target - ((guint64) at + JUMP_BYTES));
  return at + JUMP_BYTES;
}

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

/* --- memory for stubs, in reach of the code that they jump to */

#define PROT_ALL 7
#define STUB_REACH 0x70000000L
#define STUB_STEP 0x4000000L

static gboolean is_in_reach(gconstpointer region, guint64 code) {
  gint64 distance = (gint64) region - (gint64) code;
  return distance < STUB_REACH && distance > -STUB_REACH;
}

/* A region by its number, or STUB_REGIONS: there is none. */
static guint64 stub_region_near(guint64 code) {
  guint64 i;
  gint64 step;
  for (i = 0; i < control.stub_regions; i++)
    if (is_in_reach(control.stubs[i], code) && control.stubs_used[i] + STUB_BYTES <= STUBS_BYTES) return i;
  if (i == STUB_REGIONS) return i;
  for (step = STUB_STEP; step < STUB_REACH; step = step > 0 ? -step : STUB_STEP - step) {
    guint64 hint = (code + step) & ~(guint64) (STUBS_BYTES - 1);
    guint8 *made = mmap((gpointer) hint, STUBS_BYTES, PROT_ALL, MAP_PRIVATE_ANONYMOUS, -1, 0);
    if (made == (guint8 *) -1) return STUB_REGIONS;
    if (is_in_reach(made, code)) {
      control.stubs[i] = made;
      control.stub_regions++;
      return i;
    }
    munmap(made, STUBS_BYTES);
  }
  return STUB_REGIONS;
}

/* The stub of an instruction; NULL: there is no room. */
static gpointer make_stub(const cs_insn *instruction) {
  guint64 target = instruction->detail->x86.operands[0].imm, next = instruction->address + instruction->size, region;
  guint8 *stub = NULL;
  gum_spinlock_acquire(control.lock);
  region = stub_region_near(next);
  if (region != STUB_REGIONS) {
    stub = control.stubs[region] + control.stubs_used[region];
    control.stubs_used[region] += STUB_BYTES;
  }
  gum_spinlock_release(control.lock);
  if (stub == NULL) return NULL;
  if (instruction->mnemonic[0] == 'l')
    write_loop(stub, instruction->bytes, target, next);
  else
    write_jecxz(stub, target, next);
  return stub;
}
