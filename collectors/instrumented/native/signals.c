/* What a signal's handler executes is not counted: the kernel has the thread run it as it stands. How long that takes
   is told. Each handler is called by ours, also one that is set meanwhile; whoever asks for one gets his own. */

#define SYS_RT_SIGACTION 13
#define SIG_IGN 1

typedef struct {
  guint64 handler, flags, restorer, mask;
} Action; /* the kernel's struct sigaction */

typedef void (*SignalHandler)(int number, gpointer info, gpointer context);

/* The time of a handler within a handler is the outer one's. */
void on_signal(int number, gpointer info, gpointer context) {
  SignalHandler handler = (SignalHandler) control.handlers[number];
  Context *thread = counted_thread(syscall(SYS_GETTID));
  gint64 begin_ns, end_ns;
  if (thread == NULL || thread->in_handler) {
    handler(number, info, context);
    return;
  }
  thread->in_handler = 1;
  read_clock(CLOCK_THREAD_CPUTIME_ID, &begin_ns);
  handler(number, info, context);
  read_clock(CLOCK_THREAD_CPUTIME_ID, &end_ns);
  thread->handlers_ns += end_ns - begin_ns;
  thread->in_handler = 0;
}

/* An instrumented thread sets or asks for a handler: what it wants is done here, with ours in the place of its own, and
   of its system call the question remains, whose answer nobody sees. */
static void set_handler(GumCpuContext *cpu) {
  guint64 number = cpu->rdi, own = (guint64) (gsize) &on_signal, earlier;
  const Action *wanted = (const Action *) cpu->rsi;
  Action set, before;
  if (number >= SIGNALS || !control.handlers_watched[number]) return;
  earlier = control.handlers[number];
  if (wanted != NULL) set = *wanted;
  if (wanted != NULL && set.handler > SIG_IGN && set.handler != own) {
    control.handlers[number] = set.handler; /* first: the signal may come at once */
    set.handler = own;
  }
  if (syscall(SYS_RT_SIGACTION, number, wanted != NULL ? &set : NULL, &before, cpu->r10) != 0) {
    control.handlers[number] = earlier;
    return;
  }
  if (before.handler == own) before.handler = earlier;
  if (cpu->rdx != 0) *(Action *) cpu->rdx = before;
  cpu->rsi = cpu->rdx = 0;
}
