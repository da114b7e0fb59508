/* Instructions that frida's disassembler does not know (AVX512-BF16 and FP16, AVX-VNNI, AMX, serialize, ...): their
   length and facts follow from the VEX or EVEX encoding, and they are copied as they stand. */

typedef struct {
  int width; /* of the vectors, in bytes */
  int map, prefix, opcode;
  gboolean evex, memory;
  int element;      /* bytes of the one element that is repeated from memory, else 0 */
  int modrm;        /* offset of that byte */
  int displacement; /* offset of an instruction-relative displacement, else 0 */
  int length;
} Encoding;

static gboolean read_prefix(const guint8 *code, Encoding *e, int *at) {
  switch (code[0]) {
    case 0xc5: e->map = 1; e->prefix = code[1] & 3; e->width = code[1] & 4 ? 32 : 16; *at = 2; return TRUE;
    case 0xc4: e->map = code[1] & 31; e->prefix = code[2] & 3; e->width = code[2] & 4 ? 32 : 16; *at = 3; return TRUE;
    case 0x62:
      e->evex = TRUE; e->map = code[1] & 7; e->prefix = code[2] & 3; e->width = 16 << ((code[3] >> 5) & 3); *at = 4;
      if (e->width > 64) e->width = 64; /* the bits may hold a rounding mode instead */
      return TRUE;
  }
  return FALSE;
}

static gboolean read_encoding(const guint8 *code, Encoding *e) {
  int at, mod, rm;
  memset(e, 0, sizeof(*e));
  if (!read_prefix(code, e, &at)) return FALSE;
  e->opcode = code[at++];
  e->modrm = at;
  mod = code[at] >> 6;
  rm = code[at++] & 7;
  e->memory = mod != 3;
  if (e->evex && e->memory && (code[3] & 16) != 0) e->element = code[2] & 0x80 ? 8 : e->map >= 5 ? 2 : 4;
  if (mod != 3 && rm == 4) {
    if (mod == 0 && (code[at] & 7) == 5) at += 4; /* a base that is only a displacement */
    at++;
  }
  if (mod == 0 && rm == 5) {
    e->displacement = at;
    at += 4;
  }
  if (mod == 1) at += 1;
  if (mod == 2) at += 4;
  if (e->map == 3) at++; /* an immediate byte */
  e->length = at;
  return TRUE;
}

static gboolean is_tile_instruction(const Encoding *e) {
  return !e->evex && e->map == 2 && (e->opcode == 0x49 || e->opcode == 0x4b || (e->opcode >= 0x5c && e->opcode <= 0x5e));
}

static void decode_encoding(const Encoding *e, guint32 *facts) {
  int scalar = e->prefix & 2, op = e->opcode;
  facts[INSTRUCTIONS]++;
  if (is_tile_instruction(e)) {
    facts[TILES]++;
    return;
  }
  if (e->memory) load(facts, e->element != 0 ? e->element : e->width);
  if (e->element != 0) facts[BROADCASTS]++;
  facts[VECTOR_128 + width_step(e->width)]++;
  if (e->evex && e->map == 2 && e->prefix == 2 && op == 0x52) { /* vdpbf16ps: two multiply-adds a 32-bit lane */
    facts[FLOAT_INSTRUCTIONS]++;
    facts[MULTIPLY_ADDS]++;
    facts[FLOPS_BF16] += e->width;
  } else if (e->map == 2 && op >= 0x50 && op <= 0x53) { /* AVX-VNNI */
    count_dot_product(facts, e->width, op <= 0x51);
  } else if (e->map == 5 && (op == 0x51 || op == 0x58 || op == 0x59 || (op >= 0x5c && op <= 0x5f))) {
    facts[FLOAT_INSTRUCTIONS]++;
    facts[FLOPS_FP16] += scalar ? 1 : e->width / 2;
  } else if (e->map == 6 && op >= 0x96 && op <= 0xbf) {
    facts[FLOAT_INSTRUCTIONS]++;
    facts[MULTIPLY_ADDS]++;
    facts[FLOPS_FP16] += (op & 1) && (op & 15) > 8 ? 2 : e->width;
  } else {
    facts[VECTOR_INTEGER]++;
  }
}

/* The same instruction on [rax] instead of [rip+displacement]; its length. */
static int address_by_rax(guint8 *copy, const Encoding *e) {
  int after = e->displacement + 4;
  if (copy[0] != 0xc5) copy[1] |= 0x20; /* the inverted bit that would make it r8 */
  copy[e->displacement - 1] &= 0x38;    /* ModRM: mod 0, rm 0, the register stays */
  memmove(copy + e->displacement, copy + after, e->length - after);
  return e->length - 4;
}

/* Copies one instruction to the writer, its facts added; its length, or 0 where it cannot be done. */
static int copy_undecoded(Context *context, const guint8 *code, GumX86Writer *to, guint32 *facts) {
  guint8 copy[16];
  Encoding e;
  gint64 moved;
  if (code[0] == 0x0f && code[1] == 0x01 && code[2] >= 0xc0) { /* serialize, rdpru, ... */
    facts[INSTRUCTIONS]++;
    gum_x86_writer_put_bytes(to, code, 3);
    return 3;
  }
  if (!read_encoding(code, &e)) return 0;
  decode_encoding(&e, facts);
  memcpy(copy, code, e.length);
  if (e.displacement == 0) {
    gum_x86_writer_put_bytes(to, copy, e.length);
    return e.length;
  }
  moved = get32(code + e.displacement) + (gint64) code - (gint64) to->pc;
  if (fits32(moved)) {
    put32(copy + e.displacement, moved);
    gum_x86_writer_put_bytes(to, copy, e.length);
  } else { /* what it names is too far from the copy */
    int length = address_by_rax(copy, &e);
    put_absolute(to, STORE_RAX, saved_rax(context));
    gum_x86_writer_put_mov_reg_u64(to, GUM_X86_RAX, (guint64) code + e.length + get32(code + e.displacement));
    gum_x86_writer_put_bytes(to, copy, length);
    put_absolute(to, LOAD_RAX, saved_rax(context));
  }
  return e.length;
}
