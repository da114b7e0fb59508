/* What frida calls once for each basic block that it copies. */

/* The beginnings of structures that frida's headers do not show, as they are in the version that this is made for. */
typedef struct {
  int reference_count;
  int padding;
  guint64 capstone;
  const guint8 *input_start, *input_current;
  guint64 input_pc;
  GumX86Writer *output;
  gpointer *instructions;
  guint32 input_position, output_position;
  int end_of_block, end_of_input;
} Relocator;

typedef struct {
  gpointer instruction;
  Relocator *relocator;
  gpointer writer, slow_writer;
  gpointer continuation; /* where the block goes on when the memory for copies is full */
} Generator;

typedef struct {
  gpointer execution_context, execution_block;
  Generator *generator;
} Iterator;

/* Copies the instructions that the disassembler knows, with the increment before the first that allows it, or before
   the last. */
static guint64 copy_decoded(GumStalkerIterator *iterator, Context *context, guint64 number, GumX86Writer *to,
                            gboolean *incremented) {
  Block *block = &context->blocks[number];
  const cs_insn *instruction;
  guint64 end = 0;
  while (gum_stalker_iterator_next(iterator, &instruction)) {
    gboolean free = flags_are_free_before(instruction);
    end = instruction->address + instruction->size;
    if (instruction->address == (guint64) &munmap_address)
      gum_stalker_iterator_put_callout(iterator, on_munmap, NULL, NULL);
    decode(instruction, block->facts);
    if (!*incremented && (free || ends_block(instruction))) {
      put_increment(context, &context->counters[number], to, free);
      *incremented = TRUE;
    }
    gum_stalker_iterator_keep(iterator);
  }
  return end;
}

static void copy_uncounted(GumStalkerIterator *iterator) {
  control.refused_contexts++;
  while (gum_stalker_iterator_next(iterator, NULL)) gum_stalker_iterator_keep(iterator);
}

void transform(GumStalkerIterator *iterator, GumStalkerOutput *output, gpointer unused) {
  const Iterator *inner = (const Iterator *) iterator;
  Relocator *relocator = inner->generator->relocator;
  GumX86Writer *to = output->writer.x86;
  gboolean incremented = FALSE;
  Context *context = context_of(inner->execution_context, to->pc);
  guint64 number, end;
  Block *block;
  if (context == NULL) {
    copy_uncounted(iterator);
    return;
  }
  number = next_block(context);
  block = &context->blocks[number];
  end = block->start = (guint64) relocator->input_current;
  for (;;) {
    guint64 reached = copy_decoded(iterator, context, number, to, &incremented);
    int copied;
    if (reached != 0) end = reached;
    if (inner->generator->continuation != NULL || relocator->end_of_block || relocator->end_of_input) break;
    copied = copy_undecoded(relocator->input_current, to, block->facts);
    if (copied == 0) {
      control.undecoded++;
      control.undecoded_address = (guint64) relocator->input_current;
      break;
    }
    relocator->input_current += copied;
    relocator->input_pc += copied;
    end += copied;
    block->partly_decoded = 1;
  }
  if (!incremented) put_increment(context, &context->counters[number], to, FALSE);
  block->size = end - block->start;
  remember_code(block->start, end);
}

guint32 control_bytes(void) { return sizeof(Control); }
guint32 context_bytes(void) { return sizeof(Context); }
guint32 block_bytes(void) { return sizeof(Block); }

void own_code_ends(void) {}

/* Code up to here is run as it stands when followed code calls it, provided that the call names its target: so the
   function that Python calls by its address stands outside. */
void edge(void) { log_edge(); }
