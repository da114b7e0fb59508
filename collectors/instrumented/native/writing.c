/* Bytes of machine code. */

static void put32(guint8 *to, guint64 value) {
  to[0] = value;
  to[1] = value >> 8;
  to[2] = value >> 16;
  to[3] = value >> 24;
}

static gint64 get32(const guint8 *from) {
  return (gint64) (gint32) (from[0] | from[1] << 8 | from[2] << 16 | (guint32) from[3] << 24);
}

static gboolean fits32(gint64 value) { return value >= -0x7fffffffL && value <= 0x7fffffffL; }

/* Whether so many bytes of code from there on can name the address relative to themselves. */
static gboolean is_near(gconstpointer address, guint64 pc, gint64 code_bytes) {
  gint64 distance = (gint64) address - (gint64) pc;
  return fits32(distance - code_bytes) && fits32(distance);
}

static void put64(guint8 *to, guint64 value) {
  put32(to, value);
  put32(to + 4, value >> 32);
}

/* Between rax and memory anywhere. */
#define LOAD_RAX 0xa1
#define STORE_RAX 0xa3

/* A slot of the thread's own. */
static guint64 *saved_rax(Context *context) { return context->counters - SLOTS; }

static void put_absolute(GumX86Writer *to, guint8 opcode, gconstpointer address) {
  guint8 code[10] = {0x48};
  code[1] = opcode;
  put64(code + 2, (guint64) address);
  gum_x86_writer_put_bytes(to, code, sizeof(code));
}

static void put_jump_to(const guint8 *code, GumX86Writer *to) {
  static const guint8 jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp [rip], to the address that follows */
  guint8 address[8];
  put64(address, (guint64) code);
  gum_x86_writer_put_bytes(to, jump, sizeof(jump));
  gum_x86_writer_put_bytes(to, address, sizeof(address));
}
