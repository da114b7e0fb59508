/* An edge: what every instrumented thread has executed since the last one goes to the log, block by block. Called on
   the thread that calls the model; the others go on counting meanwhile, so a counter is read once. */

#define CHUNK 64 /* counters that are compared in one go */

static void log_changes(guint64 number, Context *context, guint64 first, guint64 end) {
  guint64 i;
  for (i = first; i < end; i++) {
    guint64 now = context->counters[i];
    LogEntry *entry;
    if (now == context->seen[i]) continue;
    if (control.log_used == LOG_ENTRIES) {
      control.log_overflowed = 1;
      return;
    }
    entry = &control.log[control.log_used++];
    entry->context = number;
    entry->block = i;
    entry->executions = now - context->seen[i];
    context->seen[i] = now;
  }
}

static void log_edge(void) {
  guint64 number, contexts = control.contexts_used;
  log_cache_edge(control.edges);
  look_at_read_only_pages();
  for (number = 0; number < contexts; number++) {
    Context *context = &control.contexts[number];
    guint64 first, used = context->blocks_used;
    for (first = 0; first < used; first += CHUNK) {
      if (memcmp(context->counters + first, context->seen + first, CHUNK * sizeof(guint64)) == 0) continue;
      log_changes(number, context, first, first + CHUNK);
    }
  }
  if (control.edges == MAX_EDGES) {
    control.log_overflowed = 1;
    return;
  }
  read_clock(CLOCK_MONOTONIC, &control.edge_times[control.edges]);
  log_cpu_times(control.edges);
  control.log_ends[control.edges++] = control.log_given + control.log_used;
}
