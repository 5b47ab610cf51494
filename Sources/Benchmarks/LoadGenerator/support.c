#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void fail(const char *format, ...) {
  int error = errno;
  va_list arguments;
  va_start(arguments, format);
  fputs("load-generator: ", stderr);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, error ? " (%s)\n" : "\n", strerror(error));
  exit(1);
}

uint64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t cpu_nanoseconds(uint64_t process) {
  clockid_t clock;
  struct timespec time;
  if (process == 0 || clock_getcpuclockid((pid_t)process, &clock) != 0) return 0;
  if (clock_gettime(clock, &time) < 0) return 0;
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t own_cpu_nanoseconds(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) < 0) return 0;
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// The peer's own protocols must not be slowed by Nagle's algorithm.
static int connect_to_port(const char *host, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("no address: %s", host);
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (descriptor < 0) fail("no socket");
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
    fail("cannot connect to %s", host);
  }
  errno = 0;
  return descriptor;
}

int connect_to(const char *path) {
  const char *colon = strrchr(path, ':');
  if (colon && !strchr(path, '/')) {
    char host[64] = {0};
    if ((size_t)(colon - path) >= sizeof host) fail("no address: %s", path);
    memcpy(host, path, (size_t)(colon - path));
    return connect_to_port(host, (uint16_t)strtoul(colon + 1, NULL, 10));
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) fail("the path is too long: %s", path);
  strcpy(address.sun_path, path);
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("no socket");
  while (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
    // A full backlog.
    if (errno != EAGAIN) fail("cannot connect to %s", path);
    usleep(1000);
  }
  errno = 0;
  return descriptor;
}

void set_nonblocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void write_all(int descriptor, const void *bytes, size_t count) {
  while (count > 0) {
    ssize_t sent = write(descriptor, bytes, count);
    if (sent < 0 && errno == EAGAIN) {
      wait_for(descriptor, POLLOUT);
      continue;
    }
    if (sent < 0) fail("cannot write");
    bytes = (const char *)bytes + sent;
    count -= (size_t)sent;
  }
}

void wait_for(int descriptor, short events) {
  struct pollfd one = {.fd = descriptor, .events = events};
  int found = poll(&one, 1, 20000);
  if (found == 0) fail("the server said nothing for 20 s");
  if (found < 0 && errno != EINTR) fail("poll");
  errno = 0;
}

uint64_t random_next(uint64_t *state) {
  uint64_t mixed = *state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

static int ascending(const void *first, const void *second) {
  uint64_t a = *(const uint64_t *)first, b = *(const uint64_t *)second;
  return a < b ? -1 : a > b;
}

void print_percentiles(const char *name, uint64_t *values, size_t count) {
  if (count == 0) fail("nothing was measured");
  qsort(values, count, sizeof *values, ascending);
  double us = 1000;
  printf("%s_p50=%.3f %s_p90=%.3f %s_p99=%.3f %s_p999=%.3f %s_max=%.3f ", name,
         values[count / 2] / us, name, values[(size_t)((double)count * 0.9)] / us, name,
         values[(size_t)((double)count * 0.99)] / us, name,
         values[(size_t)((double)count * 0.999)] / us, name, values[count - 1] / us);
}

void print_each(const char *name, uint64_t nanoseconds, uint64_t count) {
  printf("%s=%.5f ", name, (double)nanoseconds / 1000 / (double)count);
}
