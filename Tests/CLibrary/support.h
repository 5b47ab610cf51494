/* What the tests of liblockstep share: checks that say where they fail, daemons as child processes, and
 * waiting for events. Each test is a program that ends with status 0 if everything held. */
#ifndef SUPPORT_H
#define SUPPORT_H

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <lockstep.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline void fail(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  exit(1);
}

/* End the test unless a condition holds. */
#define CHECK(condition)                                                                               \
  do {                                                                                                 \
    if (!(condition)) fail(__FILE__, __LINE__, "not so: " #condition);                                 \
  } while (0)

/* End the test unless two integers are equal. */
#define CHECK_EQUAL(is, expected)                                                                      \
  do {                                                                                                 \
    long long is_ = (long long)(is), expected_ = (long long)(expected);                                \
    if (is_ != expected_) {                                                                            \
      char text_[400];                                                                                 \
      snprintf(text_, sizeof text_, "%s is %lld, not %lld", #is, is_, expected_);                      \
      fail(__FILE__, __LINE__, text_);                                                                 \
    }                                                                                                  \
  } while (0)

/* End the test unless two texts are equal. */
#define CHECK_TEXT(is, expected)                                                                       \
  do {                                                                                                 \
    const char *is_ = (is), *expected_ = (expected);                                                   \
    if (is_ == NULL || strcmp(is_, expected_) != 0) {                                                  \
      char text_[1000];                                                                                \
      snprintf(text_, sizeof text_, "%s is %s, not %s", #is, is_ ? is_ : "NULL", expected_);           \
      fail(__FILE__, __LINE__, text_);                                                                 \
    }                                                                                                  \
  } while (0)

static inline int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How long anything may take before a test fails. */
enum { PATIENCE_MS = 60000 };

/* ---- Daemons ---- */

typedef struct test_daemon {
  char folder[64];
  char socket[96];
  pid_t process;
} test_daemon;

/* Make a folder for a daemon that is not started yet. */
static inline test_daemon make_daemon(void) {
  test_daemon daemon = {.folder = P_tmpdir "/lockstep-c-XXXXXX"};
  CHECK(mkdtemp(daemon.folder) != NULL);
  snprintf(daemon.socket, sizeof daemon.socket, "%s/socket", daemon.folder);
  return daemon;
}

enum { MOST_ARGUMENTS = 20 };

/* Start it with further arguments, the last of which is NULL. `name` is the program's; `durability` is
 * "none", or how its folder keeps the state. */
static inline void start_with(
    test_daemon *daemon, const char *name, const char *durability, const char *const *further) {
  const char *binaries = getenv("LOCKSTEP_BINARIES");
  CHECK(binaries != NULL);
  char program[1024], state[96];
  snprintf(program, sizeof program, "%s/%s", binaries, name);
  snprintf(state, sizeof state, "%s/state", daemon->folder);
  const char *arguments[MOST_ARGUMENTS] = {program, "--socket",     daemon->socket, "--log-level",
                                           "error", "--durability", durability};
  int count = 7;
  if (strcmp(durability, "none") != 0) {
    arguments[count++] = "--state-dir";
    arguments[count++] = state;
  }
  while (*further != NULL && count < MOST_ARGUMENTS - 1) arguments[count++] = *further++;
  pid_t parent = getpid();
  daemon->process = fork();
  CHECK(daemon->process >= 0);
  if (daemon->process > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  execv(program, (char *const *)arguments);
  perror(program);
  _exit(127);
}

static inline void start(test_daemon *daemon, const char *durability) {
  const char *nothing[] = {NULL};
  start_with(daemon, "lockstepd", durability, nothing);
}

static inline void end_daemon(test_daemon *daemon, int signal) {
  if (daemon->process <= 0) return;
  kill(daemon->process, signal);
  while (waitpid(daemon->process, NULL, 0) < 0) CHECK(errno == EINTR);
  daemon->process = 0;
}

static inline void remove_daemon(test_daemon *daemon) {
  end_daemon(daemon, SIGKILL);
  char command[128];
  snprintf(command, sizeof command, "rm --recursive --force %s", daemon->folder);
  CHECK_EQUAL(system(command), 0);
}

/* ---- Connections ---- */

static inline lockstep_connection *connect_to(const char *socket, uint32_t flags) {
  lockstep_options options = {.socket = socket, .label = "test", .flags = flags};
  lockstep_connection *connection;
  int64_t end = milliseconds() + PATIENCE_MS;
  int error;
  while ((error = lockstep_connect(&options, &connection)) == LOCKSTEP_ERROR_SYSTEM
         && (errno == ENOENT || errno == ECONNREFUSED) && milliseconds() < end) {
    CHECK(connection == NULL);
    usleep(10000);
  }
  CHECK_EQUAL(error, 0);
  return connection;
}

/* Wait until an event of a kind comes, and drop those before it. */
static inline lockstep_event await_event(lockstep_connection *connection, int kind) {
  int64_t end = milliseconds() + PATIENCE_MS;
  for (;;) {
    lockstep_event event;
    int result = lockstep_next_event(connection, &event);
    CHECK(result >= 0);
    if (result == 1) {
      if (event.kind == kind) return event;
      continue;
    }
    CHECK(milliseconds() < end);
    CHECK(lockstep_wait(connection, 1000) >= 0);
  }
}

/* Wait until the connection is in a state, and drop the events up to that. */
static inline lockstep_event await_state(lockstep_connection *connection, int state) {
  for (;;) {
    lockstep_event event = await_event(connection, LOCKSTEP_EVENT_STATE);
    if (event.state == state) return event;
  }
}

/* Wait until everything that was sent has an outcome. Returns how many of them were applied; any other
 * outcome is counted in `others`, if it is not NULL, and else fails the test. */
static inline uint64_t await_outcomes(lockstep_connection *connection, uint64_t *others) {
  uint64_t applied = 0;
  int64_t end = milliseconds() + PATIENCE_MS;
  for (;;) {
    lockstep_event event;
    while (lockstep_next_event(connection, &event) == 1) {
      if (event.kind != LOCKSTEP_EVENT_OUTCOME) continue;
      uint64_t count = event.last_action - event.action + 1;
      if (event.outcome == LOCKSTEP_OUTCOME_APPLIED) applied += count;
      else if (others != NULL) *others += count;
      else CHECK_EQUAL(event.outcome, LOCKSTEP_OUTCOME_APPLIED);
    }
    lockstep_info info;
    CHECK_EQUAL(lockstep_get_info(connection, &info), 0);
    if (info.unacknowledged == 0) return applied;
    CHECK(milliseconds() < end);
    CHECK(lockstep_wait(connection, 1000) >= 0);
  }
}

/* Wait until a mirror is complete and live. */
static inline void await_mirror(lockstep_connection *connection, uint64_t subscription) {
  int64_t end = milliseconds() + PATIENCE_MS;
  for (;;) {
    lockstep_mirror_info info;
    CHECK_EQUAL(lockstep_get_mirror_info(connection, subscription, &info), 0);
    if (info.is_complete && info.is_live) return;
    lockstep_event event;
    while (lockstep_next_event(connection, &event) == 1) continue;
    CHECK(milliseconds() < end);
    CHECK(lockstep_wait(connection, 100) >= 0);
  }
}

/* Do an action and wait for its outcome, which must be this. */
static inline void perform_with(
    lockstep_connection *connection, const char *name, const char *arguments, uint32_t flags,
    int outcome) {
  uint64_t action;
  int error = lockstep_send(connection, name, arguments, flags, &action);
  if (error != 0) {
    fprintf(stderr, "%s %s: %s: %s\n", name, arguments, lockstep_error_text(error),
            lockstep_last_message(connection));
    exit(1);
  }
  for (;;) {
    lockstep_event event = await_event(connection, LOCKSTEP_EVENT_OUTCOME);
    if (event.action > action || event.last_action < action) continue;
    if (event.outcome != outcome)
      fprintf(stderr, "%s %s: %s\n", name, arguments, event.message ? event.message : "");
    CHECK_EQUAL(event.outcome, outcome);
    if (flags & LOCKSTEP_DURABLE) CHECK(event.is_durable);
    return;
  }
}

static inline void perform(
    lockstep_connection *connection, const char *name, const char *arguments, int outcome) {
  perform_with(connection, name, arguments, 0, outcome);
}

/* Whether a value as JSON, sorted, is this. */
static inline void check_json(lockstep_value value, const char *expected) {
  char *json = NULL;
  size_t length = 0;
  CHECK_EQUAL(lockstep_export_json(value, LOCKSTEP_SORTED, &json, &length), 0);
  CHECK_EQUAL(strlen(json), length);
  CHECK_TEXT(json, expected);
  lockstep_release(json);
}

static inline int64_t integer_at(
    lockstep_connection *connection, uint64_t subscription, const char *pointer) {
  int64_t number = -1;
  CHECK_EQUAL(lockstep_integer(lockstep_get(connection, subscription, pointer), &number), 0);
  return number;
}

#endif
