/* Records where each instruction of a range begins that is executed with the trap flag set. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static uint64_t first, end, most, *steps;
static volatile uint64_t recorded;
static struct sigaction before;

/* A rep instruction traps after every round. */
static int is_repeated(uint64_t address) {
  const uint8_t *code = (const uint8_t *) address;
  if (*code != 0xf3 && *code != 0xf2) return 0;
  code++;
  if ((*code & 0xf0) == 0x40) code++;
  return (*code >= 0xa4 && *code <= 0xa7) || (*code >= 0xaa && *code <= 0xaf);
}

static void on_trap(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *) context)->uc_mcontext.gregs;
  uint64_t at = registers[REG_RIP];
  if (at < first || at >= end) return;
  registers[REG_EFL] |= TRAP_FLAG; /* popf may have cleared it */
  if (recorded > 0 && steps[recorded - 1] == at && is_repeated(at)) return;
  if (recorded == most) abort();
  steps[recorded++] = at;
}

void begin(uint64_t from, uint64_t to, uint64_t *into, uint64_t room) {
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}; /* the sequences look at what lies below their stack */
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  first = from, end = to, steps = into, most = room;
  sigaltstack(&stack, NULL);
  sigaction(SIGTRAP, &action, &before);
}

void reset(void) { recorded = 0; }
uint64_t used(void) { return recorded; }
void restore(void) { sigaction(SIGTRAP, &before, NULL); }
