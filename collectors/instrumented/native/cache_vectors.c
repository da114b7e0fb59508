/* Gathers and scatters: their indices are the elements of a vector, which goes to the ring with the mask. Decoded from
   the encoding, as are the instructions that the disassembler does not know. */

/* What an instruction with a vector of indices adds to a record; index_bytes is 0 where there is none. */
typedef struct {
  gboolean evex;
  int index, index_bytes; /* the vector register and how much of it there is */
  int mask;               /* EVEX: a mask register, else a vector register */
  int mask_bytes;
  guint32 index_word, mask_word;
} VectorWords;

#define VECTOR_WORDS 8

/* vmovdqu [scratch + 8 * word], vector */
static void put_vector_word(GumX86Writer *to, gboolean evex, int scratch, guint32 word, int vector, int bytes) {
  guint8 code[10];
  int at = 0;
  if (evex) {
    code[at++] = 0x62;
    code[at++] = 0x61 | (vector & 8 ? 0 : 0x80) | (vector & 16 ? 0 : 0x10);
    code[at++] = 0xfe;
    code[at++] = 0x08 | (bytes == 64 ? 2 : bytes == 32 ? 1 : 0) << 5;
  } else {
    code[at++] = 0xc5;
    code[at++] = 0x7a | (vector & 8 ? 0 : 0x80) | (bytes == 32 ? 4 : 0);
  }
  code[at++] = 0x7f;
  code[at++] = 0x80 | (vector & 7) << 3 | scratch;
  put32(code + at, 8 * word);
  gum_x86_writer_put_bytes(to, code, at + 4);
}

/* kmovw [scratch + 8 * word], mask */
static void put_mask_word(GumX86Writer *to, int scratch, guint32 word, int mask) {
  guint8 code[8] = {0xc5, 0xf8, 0x91};
  code[3] = 0x80 | mask << 3 | scratch;
  put32(code + 4, 8 * word);
  gum_x86_writer_put_bytes(to, code, sizeof(code));
}

static void put_vectors(GumX86Writer *to, int scratch, const VectorWords *words) {
  put_vector_word(to, words->evex, scratch, words->index_word, words->index, words->index_bytes);
  if (words->evex)
    put_mask_word(to, scratch, words->mask_word, words->mask);
  else
    put_vector_word(to, FALSE, scratch, words->mask_word, words->mask, words->mask_bytes);
}

static gboolean gathers_or_scatters(const Encoding *e) {
  gboolean gather = e->opcode >= 0x90 && e->opcode <= 0x93, scatter = e->opcode >= 0xa0 && e->opcode <= 0xa3;
  return e->map == 2 && e->prefix == 1 && (gather || (scatter && e->evex));
}
