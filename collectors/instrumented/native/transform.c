/* What frida calls once for each basic block that it copies. */

static void put_increment_once(Context *context, guint64 number, GumX86Writer *to, gboolean flags_are_free,
                               gboolean *done) {
  if (!*done) put_increment(context, &context->counters[number], to, flags_are_free);
  *done = TRUE;
}

/* The bytes around it, for whoever is to find out what it is; none of another page, which may not be there. */
static void show_undecoded(guint64 code) {
  guint64 page = code & ~(guint64) 4095, begin = MAX(page, code - SHOWN_BYTES);
  guint64 end = MIN(page + 4096, code + SHOWN_BYTES);
  control.undecoded_before = code - begin;
  control.undecoded_shown = end - begin;
  memcpy(control.undecoded_bytes, (const guint8 *) begin, end - begin);
}

/* At an instruction that nobody can decode, the thread goes on in the original code, not instrumented any more: Python
   finds out by `undecoded` that its counts are not complete. */
static void leave_off(const guint8 *code, GumX86Writer *to) {
  control.undecoded++;
  control.undecoded_address = (guint64) code;
  show_undecoded((guint64) code);
  gum_spinlock_acquire(control.lock);
  stop_guarding();
  gum_spinlock_release(control.lock);
  put_jump_to(code, to);
}

/* Stalker goes on there when this block's copy ends. */
static void go_on_in_stub(const cs_insn *branch, Generator *generator, GumX86Writer *to) {
  gpointer stub = make_stub(branch);
  if (stub == NULL)
    leave_off((const guint8 *) branch->address, to);
  else
    generator->continuation = stub;
  generator->relocator->end_of_block = TRUE;
}

/* A call of what follows, for its address: Stalker reads on, but what it copies behind the call is never executed. */
static gboolean calls_next(const cs_insn *instruction) {
  const cs_x86_op *target = &instruction->detail->x86.operands[0];
  return instruction->id == X86_INS_CALL && target->type == X86_OP_IMM &&
         (guint64) target->imm == instruction->address + instruction->size;
}

/* Copies the instructions that the disassembler knows, with the increment before the first that allows it, or before
   the last. */
static guint64 copy_decoded(GumStalkerIterator *iterator, Generator *generator, Context *context, guint64 number,
                            GumX86Writer *to, gboolean *incremented, Recorder *recorder, guint64 *hash) {
  Block *block = &context->blocks[number];
  const cs_insn *instruction;
  Block *rounds;
  guint64 end = 0;
  while (gum_stalker_iterator_next(iterator, &instruction)) {
    gboolean free = flags_are_free_before(instruction);
    end = instruction->address + instruction->size;
    *hash = hash_bytes(*hash, instruction->bytes, instruction->size);
    decode(instruction, block->facts);
    rounds = begin_rounds(context, instruction, block->facts);
    if (instruction->id == X86_INS_SYSCALL) put_syscall_watch(iterator, instruction, to);
    record_instruction(recorder, instruction, to);
    if (ends_block(instruction)) end_record(recorder, iterator, to);
    if (free || ends_block(instruction)) put_increment_once(context, number, to, free, incremented);
    put_rounds_asked(context, rounds, to);
    if (is_rcx_branch(instruction)) {
      go_on_in_stub(instruction, generator, to);
      break;
    }
    if (is_far_and_uses_unnamed_registers(instruction, to))
      put_with_own_base(instruction, to); /* not kept, it is left out */
    else
      gum_stalker_iterator_keep(iterator);
    put_rounds_left(context, rounds, instruction, to);
    if (calls_next(instruction)) {
      generator->relocator->end_of_block = TRUE;
      break;
    }
  }
  return end;
}

/* A thread for which there is no room runs its own code from here on. */
static void leave_uncounted(const guint8 *code, GumX86Writer *to) {
  control.refused_contexts++;
  put_jump_to(code, to);
}

/* Stalker asks for room from the second instruction on that it decodes, and grants a block at least 9 KB. */
#define UNASKED_BYTES 4096

void transform(GumStalkerIterator *iterator, GumStalkerOutput *output, gpointer unused) {
  const Iterator *inner = (const Iterator *) iterator;
  Relocator *relocator = inner->generator->relocator;
  GumX86Writer *to = output->writer.x86;
  gboolean incremented = FALSE;
  Context *context = context_of(inner->execution_context);
  guint64 number, end, hash = NO_BYTES_HASH, begin = to->pc;
  Block *block;
  Recorder recorder;
  Watch *watch;
  if (context == NULL) {
    leave_uncounted(relocator->input_current, to);
    return;
  }
  number = next_block(context);
  block = &context->blocks[number];
  end = block->start = (guint64) relocator->input_current;
  watch = begin_watch(context, block->start, iterator, inner->generator, to);
  begin_recording(&recorder, context, number);
  if (is_stub(block->start)) recorder.thread = NULL;
  for (;;) {
    guint64 reached = copy_decoded(iterator, inner->generator, context, number, to, &incremented, &recorder, &hash);
    int copied;
    if (reached != 0)
      end = reached;
    else if (inner->generator->continuation != NULL) /* Stalker knows only the instructions that it decoded */
      inner->generator->continuation = (gpointer) relocator->input_current;
    if (inner->generator->continuation != NULL || relocator->end_of_block || relocator->end_of_input) break;
    record_undecoded(&recorder, relocator->input_current, to);
    copied = 0;
    if (inner->generator->instruction != NULL || to->pc - begin < UNASKED_BYTES)
      copied = copy_undecoded(context, relocator->input_current, to, block->facts);
    if (copied == 0) {
      put_increment_once(context, number, to, FALSE, &incremented);
      end_record(&recorder, NULL, to);
      leave_off(relocator->input_current, to);
      break;
    }
    hash = hash_bytes(hash, relocator->input_current, copied);
    relocator->input_current += copied;
    relocator->input_pc += copied;
    end += copied;
    block->partly_decoded = 1;
  }
  put_increment_once(context, number, to, FALSE, &incremented);
  end_record(&recorder, NULL, to);
  block->size = end - block->start;
  if (is_stub(block->start)) memset(block->facts, 0, sizeof(block->facts));
  if (watch != NULL)
    end_watch(context, watch, block->size, hash, to->pc);
  else
    end_unwatched(block, hash);
}

guint32 control_bytes(void) { return sizeof(Control); }
guint32 context_bytes(void) { return sizeof(Context); }
guint32 block_bytes(void) { return sizeof(Block); }

void own_code_ends(void) {}

/* Code up to here is run as it stands when instrumented code calls it, provided that the call names its target: so the
   function that Python calls by its address stands outside. */
void edge(void) { log_edge(); }
