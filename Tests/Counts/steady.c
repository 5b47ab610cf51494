// Preloaded into a daemon that runs under callgrind: makes every run of it the same, and cuts its
// profile where the client says.
//
// - A clock advances by a microsecond with each look at it, so no timer of the daemon is ever due,
//   however slow the machine is, and a wait for events has no end but an event.
// - Random numbers, from which the daemon makes its hash seed, are one sequence.
// - A client that has bound its socket to the abstract address `lockstep-counts/ID/LABEL` is a
//   mark, and the daemon never sees it: what was counted so far is written out under the label. The
//   label `begin` starts the counting instead; before it, nothing is instrumented.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

static const char mark_prefix[] = "lockstep-counts/";

// Cuts the profile if the peer is a mark. Returns whether it was one.
static bool take_mark(const struct sockaddr_un *peer, socklen_t size) {
  char name[sizeof peer->sun_path + 1] = {0};
  if (size <= offsetof(struct sockaddr_un, sun_path) + 1 || size > sizeof *peer) return false;
  memcpy(name, peer->sun_path + 1, size - offsetof(struct sockaddr_un, sun_path) - 1);
  if (strncmp(name, mark_prefix, sizeof mark_prefix - 1) != 0) return false;
  const char *label = strrchr(name, '/') + 1;
  if (strcmp(label, "begin") == 0) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
  } else {
    CALLGRIND_DUMP_STATS_AT(label);
  }
  return true;
}

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
  while (true) {
    struct sockaddr_un peer;
    socklen_t size = sizeof peer;
    int descriptor = (int)syscall(SYS_accept4, listener, &peer, &size, flags);
    if (descriptor < 0) return descriptor;
    if (!take_mark(&peer, size)) {
      if (address != NULL) memcpy(address, &peer, *length < size ? *length : size);
      if (length != NULL) *length = size;
      return descriptor;
    }
    // The client waits for this: the mark has been made.
    close(descriptor);
  }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static _Atomic uint64_t microseconds = 1800000000ull * 1000000;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME: break;
    default: return (int)syscall(SYS_clock_gettime, clock, now);
  }
  uint64_t time = atomic_fetch_add_explicit(&microseconds, 1, memory_order_relaxed);
  now->tv_sec = (time_t)(time / 1000000);
  now->tv_nsec = (long)(time % 1000000 * 1000);
  return 0;
}

// What Swift's SystemRandomNumberGenerator calls.
void swift_stdlib_random(void *bytes, size_t count) {
  static _Atomic uint64_t state = 42;
  uint8_t *next = bytes;
  for (; count > 0; count--) {
    uint64_t mixed = atomic_fetch_add_explicit(&state, 0x9e3779b97f4a7c15, memory_order_relaxed);
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    *next++ = (uint8_t)(mixed ^ mixed >> 31);
  }
}

// The fault that Scripts/counts --self-test plants: some work and one allocation for each wait.
__attribute__((noinline)) static void planted_slowness(int instructions) {
  void *volatile memory = malloc(64);
  for (volatile int done = 0; done < instructions / 4; done++) {}
  free(memory);
}

static int planted = 0;

__attribute__((constructor)) static void plant(void) {
  const char *instructions = getenv("LOCKSTEP_COUNTS_PLANT");
  if (instructions != NULL) planted = atoi(instructions);
}

// Two loops take turns: one runs until it waits for events, and only then the other. Else the one
// that is woken would spin until the other comes to the end of its uv_async_send.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static __thread bool has_turn __attribute__((tls_model("initial-exec"))) = false;

int epoll_wait(int descriptor, struct epoll_event *events, int count, int timeout) {
  if (planted > 0) planted_slowness(planted);
  if (has_turn) pthread_mutex_unlock(&turn);
  int wait = timeout > 0 ? -1 : timeout;
  int found = (int)syscall(SYS_epoll_wait, descriptor, events, count, wait);
  int error = errno;
  pthread_mutex_lock(&turn);
  has_turn = true;
  errno = error;
  return found;
}
