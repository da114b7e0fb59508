/* Memory operands that are read from the encoding: ModRM, SIB and prefix of VEX and EVEX instructions. */

typedef struct {
  int base, index, scale; /* index: of a general register or of a vector, without what EVEX adds */
  gint64 displacement;
} EncodedAddress;

/* `unit`: what a displacement of one byte counts in. */
static EncodedAddress encoded_address(const guint8 *code, const Encoding *e, int unit) {
  gboolean long_prefix = code[0] != 0xc5;
  int high_base = long_prefix && !(code[1] & 0x20) ? 8 : 0, high_index = long_prefix && !(code[1] & 0x40) ? 8 : 0;
  const guint8 *at = code + e->modrm;
  int mod = *at >> 6;
  EncodedAddress address = {*at & 7, NO_REGISTER, 0, 0};
  at++;
  if (address.base == RSP) { /* there is a SIB byte */
    address.base = *at & 7;
    address.index = (*at >> 3 & 7) | high_index;
    address.scale = 1 << (*at++ >> 6);
  }
  address.base = mod == 0 && address.base == RBP ? NO_REGISTER : address.base | high_base;
  if (mod == 1) address.displacement = (gint64) (gint8) *at * unit;
  if (mod == 2 || address.base == NO_REGISTER) address.displacement = get32(at);
  return address;
}

static void add_encoded(Recorder *recorder, const guint8 *code, const Encoding *e, NewWords *added) {
  gboolean broadcast = e->evex && (code[3] & 16) != 0;
  gboolean half = (e->map == 5 && e->prefix & 2) || (e->map == 6 && e->opcode & 1); /* one element of 16 bits */
  int size = half ? 2 : broadcast ? (code[2] & 0x80 ? 8 : 4) : e->width;
  EncodedAddress address;
  if (e->displacement) {
    add_address(recorder, NO_REGISTER, NO_REGISTER, 0, (gint64) code + e->length + get32(code + e->displacement), size,
                added);
    return;
  }
  address = encoded_address(code, e, e->evex ? size : 1);
  if (address.index == RSP) address.index = NO_REGISTER;
  add_address(recorder, address.base, address.index, address.scale, address.displacement, size, added);
}

static void add_gather(Recorder *recorder, const guint8 *code, const Encoding *e, NewWords *added) {
  int size = code[2] & 0x80 ? 8 : 4, index_bytes = e->opcode & 1 ? 8 : 4;
  int elements = e->width / (size > index_bytes ? size : index_bytes);
  EncodedAddress address = encoded_address(code, e, e->evex ? size : 1);
  VectorWords *vectors = &added->vectors;
  CacheOperand *operand = add_address(recorder, address.base, NO_REGISTER, 0, address.displacement, size, added);
  if (operand == NULL) return;
  make_special(recorder, operand, CACHE_INDEXED);
  vectors->evex = e->evex;
  vectors->index = address.index | (e->evex && !(code[3] & 8) ? 16 : 0);
  vectors->index_bytes = elements * index_bytes > 16 ? elements * index_bytes : 16;
  vectors->mask = e->evex ? code[3] & 7 : ~code[2] >> 3 & 15;
  vectors->mask_bytes = elements * size > 16 ? elements * size : 16;
  vectors->index_word = operand->index = recorder->words;
  vectors->mask_word = operand->how = recorder->words + VECTOR_WORDS;
  recorder->words += 2 * VECTOR_WORDS;
  operand->scale = address.scale;
  operand->elements = elements;
  operand->index_bytes = index_bytes;
  operand->mask_bytes = e->evex ? 0 : size;
}

static void add_encoded_or_untraced(Recorder *recorder, const guint8 *code, NewWords *added) {
  Encoding e;
  if (!read_encoding(code, &e) || is_tile_instruction(&e)) {
    recorder->untraced++;
    return;
  }
  if (!e.memory) return;
  if (gathers_or_scatters(&e))
    add_gather(recorder, code, &e, added);
  else
    add_encoded(recorder, code, &e, added);
}
