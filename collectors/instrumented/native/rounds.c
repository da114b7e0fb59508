/* What a rep prefix repeats: its rounds are executions of a block of their own, which loads and stores what one round
   does. The rest of the instruction (that it is one, its operands) counts once, in the block where it stands. */

/* A string instruction with a rep prefix: repz ret and pause have the prefix, and repeat nothing. */
static gboolean is_repeated(const cs_insn *instruction) {
  static const char *const strings[] = {"movs", "stos", "lods", "cmps", "scas", NULL};
  const char *space = strchr(instruction->mnemonic, ' ');
  return begins(instruction->mnemonic, "rep") && space != NULL && begins_with_any(space + 1, strings);
}

/* What moves or fills memory does all its rounds; what compares or searches may end before. */
static gboolean does_all_rounds(const cs_insn *instruction) {
  const char *name = strchr(instruction->mnemonic, ' ') + 1;
  return begins(name, "movs") || begins(name, "stos") || begins(name, "lods");
}

/* The block of its rounds, to which the bytes go over from `facts`; NULL: none are counted, or there is no room, and one
   round counts. */
static Block *begin_rounds(Context *context, const cs_insn *instruction, guint32 *facts) {
  Block *rounds;
  guint32 before[FACTS];
  if (!is_repeated(instruction) || instruction->detail->x86.addr_size != 8 || context->blocks_used == MAX_BLOCKS)
    return NULL;
  rounds = &context->blocks[next_block(context)];
  rounds->start = instruction->address;
  rounds->size = instruction->size;
  memset(before, 0, sizeof(before));
  decode(instruction, before);
  rounds->facts[LOAD_BYTES] = before[LOAD_BYTES];
  rounds->facts[STORE_BYTES] = before[STORE_BYTES];
  facts[LOAD_BYTES] -= before[LOAD_BYTES];
  facts[STORE_BYTES] -= before[STORE_BYTES];
  return rounds;
}

static void put_rounds_asked(Context *context, const Block *rounds, GumX86Writer *to) {
  static const guint8 add[] = {0x48, 0x8d, 0x04, 0x08}; /* lea rax, [rax + rcx] */
  if (rounds != NULL) put_addition(context, &context->counters[rounds - context->blocks], to, add, sizeof(add));
}

/* Of what may end before, rcx says how many were left. */
static void put_rounds_left(Context *context, const Block *rounds, const cs_insn *instruction, GumX86Writer *to) {
  static const guint8 subtract[] = {0x48, 0xf7, 0xd1,             /* not rcx */
                                    0x48, 0x8d, 0x44, 0x08, 0x01, /* lea rax, [rax + rcx + 1] */
                                    0x48, 0xf7, 0xd1};
  if (rounds != NULL && !does_all_rounds(instruction))
    put_addition(context, &context->counters[rounds - context->blocks], to, subtract, sizeof(subtract));
}
