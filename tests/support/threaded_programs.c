// Programs whose threads each do something known: they work for a given processor time, and tell by the clock when they
// waited for what, so that what a sampler finds can be held against it. One program by its name in argv[1]; as a shared
// library, `burn` alone.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define ITERATIONS 5
#define MOST 64

static long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Works for so much processor time (ns).
long burn(long ns) {
  long begin = now(CLOCK_THREAD_CPUTIME_ID), used;
  volatile double value = 1;
  do {
    for (int i = 0; i < 2000; i++) value = value * 1.0000001;
    used = now(CLOCK_THREAD_CPUTIME_ID) - begin;
  } while (used < ns);
  return used;
}

// What a thread tells: from when to when it waited for what, and how long it worked.
struct told {
  const char *name;
  int tid, waits, works, ended;
  long born_ns, begun_ns, ended_ns;
  const char *kind[MOST];
  long begin_ns[MOST], end_ns[MOST], delay_ns[MOST];
  long work_begin_ns[MOST], work_end_ns[MOST], work_ns[MOST];
};

static struct told told[MOST];
static int threads;
static __thread struct told *mine;

static void work(long ns) {
  int number = mine->works++;
  mine->work_begin_ns[number] = now(CLOCK_MONOTONIC);
  mine->work_ns[number] = burn(ns);
  mine->work_end_ns[number] = now(CLOCK_MONOTONIC);
}

// For how long this thread waited for a processor so far, by the kernel's account.
static long delay_ns(void) {
  long ran, waited = 0;
  FILE *file = fopen("/proc/thread-self/schedstat", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &ran, &waited) != 2) abort();
  fclose(file);
  return waited;
}

#define WAIT(what, call)                                   \
  do {                                                     \
    int number = mine->waits;                              \
    mine->kind[number] = what;                             \
    mine->delay_ns[number] = -delay_ns();                  \
    mine->begin_ns[number] = now(CLOCK_MONOTONIC);         \
    call;                                                  \
    mine->end_ns[number] = now(CLOCK_MONOTONIC);           \
    mine->delay_ns[number] += delay_ns();                  \
    mine->waits++;                                         \
  } while (0)

static void begins(struct told *one, const char *name) {
  mine = one;
  mine->name = name;
  mine->tid = syscall(SYS_gettid);
  mine->begun_ns = now(CLOCK_MONOTONIC);
}

struct start {
  struct told *told;
  const char *name;
  void (*body)(long);
  long argument;
};

static void *runs(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  begins(start.told, start.name);
  start.body(start.argument);
  mine->ended_ns = now(CLOCK_MONOTONIC);
  return NULL;
}

static pthread_t started(const char *name, void (*body)(long), long argument) {
  pthread_t thread;
  struct start *start = malloc(sizeof *start);
  *start = (struct start){&told[++threads], name, body, argument};
  start->told->born_ns = now(CLOCK_MONOTONIC);
  pthread_create(&thread, NULL, runs, start);
  return thread;
}

static long iteration_begin_ns[ITERATIONS], iteration_end_ns[ITERATIONS];
static pthread_t helper, other;
static sem_t go, has, done, inner, inner_done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int asked, answered, ends[2];

// --- a helper that lives in one iteration only
static void short_iteration(int number) {
  work(10 * MS);
  if (number == 2) {
    helper = started("helper", (void (*)(long))work, 40 * MS);
    WAIT("end of thread", pthread_join(helper, NULL));
  }
  work(10 * MS);
}

// --- a barrier that the other thread reaches 20 ms later
static void barrier_helper(long ignored) {
  for (int number = 0; number < ITERATIONS; number++) {
    work(50 * MS);
    WAIT("pthread barrier", pthread_barrier_wait(&barrier));
  }
}
static void barrier_iteration(int number) {
  if (number == 0) {
    pthread_barrier_init(&barrier, NULL, 2);
    helper = started("helper", barrier_helper, 0);
  }
  work(30 * MS);
  WAIT("pthread barrier", pthread_barrier_wait(&barrier));
}

// --- a lock that another thread holds for 40 ms
static void lock_helper(long ignored) {
  for (int number = 0; number < ITERATIONS; number++) {
    WAIT("semaphore", sem_wait(&go));
    pthread_mutex_lock(&mutex);
    sem_post(&has);
    work(40 * MS);
    pthread_mutex_unlock(&mutex);
  }
}
static void lock_iteration(int number) {
  if (number == 0) helper = started("helper", lock_helper, 0);
  sem_post(&go);
  WAIT("semaphore", sem_wait(&has));
  work(10 * MS);
  WAIT("lock", pthread_mutex_lock(&mutex));
  pthread_mutex_unlock(&mutex);
  work(10 * MS);
}

// --- a condition that another thread makes true after 30 ms
static void condition_helper(long ignored) {
  for (int number = 1; number <= ITERATIONS; number++) {
    pthread_mutex_lock(&mutex);
    while (asked < number) WAIT("condition", pthread_cond_wait(&condition, &mutex));
    pthread_mutex_unlock(&mutex);
    work(30 * MS);
    pthread_mutex_lock(&mutex);
    answered = number;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  }
}
static void condition_iteration(int number) {
  if (number == 0) helper = started("helper", condition_helper, 0);
  work(20 * MS);
  pthread_mutex_lock(&mutex);
  asked = number + 1;
  pthread_cond_broadcast(&condition);
  while (answered < number + 1) WAIT("condition", pthread_cond_wait(&condition, &mutex));
  pthread_mutex_unlock(&mutex);
}

// --- a thread that waits for a second one, for 30 ms of that one's and 15 ms of its own
static void inner_helper(long ignored) {
  for (int number = 0; number < ITERATIONS; number++) {
    WAIT("semaphore", sem_wait(&inner));
    work(30 * MS);
    sem_post(&inner_done);
  }
}
static void chain_helper(long ignored) {
  for (int number = 0; number < ITERATIONS; number++) {
    WAIT("semaphore", sem_wait(&go));
    sem_post(&inner);
    WAIT("semaphore", sem_wait(&inner_done));
    work(15 * MS);
    sem_post(&done);
  }
}
static void chain_iteration(int number) {
  if (number == 0) {
    helper = started("helper", chain_helper, 0);
    other = started("other", inner_helper, 0);
  }
  work(10 * MS);
  sem_post(&go);
  WAIT("semaphore", sem_wait(&done));
}

// --- a pipe that another thread fills after a sleep of 30 ms
static void io_helper(long ignored) {
  for (int number = 0; number < ITERATIONS; number++) {
    WAIT("semaphore", sem_wait(&go));
    WAIT("sleep", usleep(30000));
    if (write(ends[1], "x", 1) != 1) abort();
  }
}
static void io_iteration(int number) {
  char byte;
  if (number == 0) {
    if (pipe(ends)) abort();
    helper = started("helper", io_helper, 0);
  }
  work(20 * MS);
  sem_post(&go);
  WAIT("I/O", if (read(ends[0], &byte, 1) != 1) abort());
}

static struct {
  const char *name;
  void (*iteration)(int);
} programs[] = {
    {"short", short_iteration}, {"barrier", barrier_iteration}, {"lock", lock_iteration},
    {"condition", condition_iteration}, {"chain", chain_iteration}, {"io", io_iteration},
};

static void tell(void) {
  printf("{\"iterations\": [");
  for (int i = 0; i < ITERATIONS; i++)
    printf("%s[%ld, %ld]", i ? ", " : "", iteration_begin_ns[i], iteration_end_ns[i]);
  printf("], \"threads\": [");
  for (int i = 0; i <= threads; i++) {
    struct told *one = &told[i];
    printf("%s{\"name\": \"%s\", \"tid\": %d, \"born_ns\": %ld, \"begun_ns\": %ld, \"ended_ns\": %ld, \"waits\": [",
           i ? ", " : "", one->name, one->tid, one->born_ns, one->begun_ns, one->ended_ns);
    for (int j = 0; j < one->waits; j++)
      printf("%s[\"%s\", %ld, %ld, %ld]", j ? ", " : "", one->kind[j], one->begin_ns[j], one->end_ns[j],
             one->delay_ns[j]);
    printf("], \"works\": [");
    for (int j = 0; j < one->works; j++)
      printf("%s[%ld, %ld, %ld]", j ? ", " : "", one->work_begin_ns[j], one->work_end_ns[j], one->work_ns[j]);
    printf("]}");
  }
  printf("]}\n");
  fflush(stdout);
}

int main(int count, char **words) {
  void (*iteration)(int) = NULL;
  for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
    if (count > 1 && !strcmp(words[1], programs[i].name)) iteration = programs[i].iteration;
  if (iteration == NULL) return 2;
  begins(&told[0], "main");
  sem_init(&go, 0, 0), sem_init(&has, 0, 0), sem_init(&done, 0, 0), sem_init(&inner, 0, 0), sem_init(&inner_done, 0, 0);
  puts("ready");
  fflush(stdout);
  getchar();
  for (int number = 0; number < ITERATIONS; number++) {
    iteration_begin_ns[number] = now(CLOCK_MONOTONIC);
    iteration(number);
    iteration_end_ns[number] = now(CLOCK_MONOTONIC);
    usleep(2000);
  }
  tell();
  getchar();
  getchar();
  _exit(0);
}
