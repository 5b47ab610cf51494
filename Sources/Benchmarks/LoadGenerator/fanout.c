// The parent process writes and has one half of the subscribers, a child has the other. They share
// a page: how many of the child's subscribers are there, up to which change all of them have come,
// and when they came. The child wakes the parent through a descriptor.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

enum { ring = 1 << 12, most_events = 256 };

typedef struct Shared {
  _Atomic uint64_t ready;
  _Atomic uint64_t reached;
  _Atomic uint64_t when;
  _Atomic uint64_t delivered;
  _Atomic uint64_t coalesced;
  _Atomic uint64_t end;
} Shared;

// Some subscribers in one process.
typedef struct Half {
  const Peer *peer;
  Stream *streams;
  size_t count;
  size_t ready;
  int poll;
  // How many have come to each change, and the newest to which all have come.
  uint32_t come[ring];
  uint64_t reached;
  uint64_t when;
} Half;

static uint8_t buffer[1 << 16];
static int wake;

static void open_crowd(Half *crowd, const Peer *peer, const char *path, size_t count) {
  *crowd = (Half){.peer = peer, .count = count, .poll = epoll_create1(EPOLL_CLOEXEC)};
  crowd->streams = calloc(count, sizeof *crowd->streams);
  for (size_t index = 0; index < count; index++) {
    Stream *stream = &crowd->streams[index];
    peer->subscribe(stream, path);
    set_nonblocking(stream->descriptor);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = stream};
    epoll_ctl(crowd->poll, EPOLL_CTL_ADD, stream->descriptor, &event);
  }
}

static void receive(Half *crowd, Stream *stream) {
  bool was_ready = stream->is_ready;
  uint64_t before = stream->delivered + stream->coalesced;
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the server ended a subscriber's connection");
  crowd->peer->changes(stream, buffer, (size_t)count);
  if (stream->is_ready && !was_ready) crowd->ready++;
  uint64_t now = stream->delivered + stream->coalesced;
  for (uint64_t change = before + 1; change <= now; change++) {
    // Invariant: the window is smaller than the ring, so a slot is free before it is used again.
    if (++crowd->come[change % ring] == crowd->count) {
      crowd->come[change % ring] = 0;
      crowd->reached = change;
    }
  }
}

// Handle what is ready. Returns whether there was anything.
static bool turn(Half *crowd, int timeout) {
  struct epoll_event events[most_events];
  int count = epoll_wait(crowd->poll, events, most_events, timeout);
  uint64_t before = crowd->reached;
  for (int index = 0; index < count; index++) {
    if (events[index].data.ptr) {
      receive(crowd, events[index].data.ptr);
    } else {
      uint64_t ignored;
      if (read(wake, &ignored, sizeof ignored) < 0) errno = 0;
    }
  }
  if (crowd->reached > before) crowd->when = nanoseconds();
  return count > 0;
}

static void sum(Half *crowd, uint64_t *delivered, uint64_t *coalesced) {
  *delivered = *coalesced = 0;
  for (size_t index = 0; index < crowd->count; index++) {
    *delivered += crowd->streams[index].delivered;
    *coalesced += crowd->streams[index].coalesced;
  }
}

static void be_child(Half *crowd, Shared *shared) {
  uint64_t told = 0;
  while (!atomic_load(&shared->end)) {
    turn(crowd, 100);
    atomic_store(&shared->ready, crowd->ready);
    if (crowd->reached == told) continue;
    told = crowd->reached;
    uint64_t one = 1;
    atomic_store(&shared->when, crowd->when);
    atomic_store(&shared->reached, told);
    if (write(wake, &one, sizeof one) < 0) fail("cannot wake the writer");
  }
  uint64_t delivered, coalesced;
  sum(crowd, &delivered, &coalesced);
  atomic_store(&shared->delivered, delivered);
  atomic_store(&shared->coalesced, coalesced);
  _exit(0);
}

typedef struct Writer {
  const Peer *peer;
  Stream stream;
  uint64_t made;
} Writer;

static void send_changes(Writer *writer, uint64_t up_to) {
  static uint8_t out[1 << 16];
  size_t end = 0;
  while (writer->made < up_to) {
    end += writer->peer->publish(out + end, ++writer->made);
    if (end + longest_change > sizeof out) {
      write_all(writer->stream.descriptor, out, end);
      end = 0;
    }
  }
  write_all(writer->stream.descriptor, out, end);
  // Acknowledgements are read, or the daemon would stop.
  while (read(writer->stream.descriptor, buffer, sizeof buffer) > 0) {}
  errno = 0;
}

static uint64_t both_reached(Half *crowd, Shared *shared) {
  uint64_t other = shared ? atomic_load(&shared->reached) : UINT64_MAX;
  return crowd->reached < other ? crowd->reached : other;
}

static void one_at_a_time(Writer *writer, Half *crowd, Shared *shared, uint64_t count) {
  uint64_t *times = calloc(count, sizeof *times);
  for (uint64_t round = 0; round < count; round++) {
    uint64_t begin = nanoseconds();
    send_changes(writer, writer->made + 1);
    while (both_reached(crowd, shared) < writer->made) {
      if (!turn(crowd, 20000)) fail("a change did not come to all subscribers");
    }
    uint64_t other = shared ? atomic_load(&shared->when) : 0;
    times[round] = (crowd->when > other ? crowd->when : other) - begin;
  }
  print_percentiles("last", times, count);
  free(times);
}

static void within_window(Writer *writer, Half *crowd, Shared *shared, FanOut how) {
  uint64_t begin = nanoseconds(), end = writer->made + how.count;
  for (uint64_t reached; (reached = both_reached(crowd, shared)) < end;) {
    uint64_t most = reached + how.window < end ? reached + how.window : end;
    // In batches, as a busy writer would: half a window at a time.
    if (most - writer->made >= how.window / 2 || (most == end && writer->made < end)) {
      send_changes(writer, most);
    }
    if (!turn(crowd, 20000)) fail("changes did not come to all subscribers");
  }
  double seconds = (double)(nanoseconds() - begin) / 1e9;
  printf("seconds=%.6f delivered=%.1f ", seconds,
         (double)how.count * (double)how.subscribers / seconds);
}

void fan_out(const Peer *peer, const char *path, FanOut how) {
  Shared *shared = NULL;
  Half *crowd = malloc(sizeof *crowd);
  size_t others = how.subscribers / 2;
  pid_t child = 0;
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (others > 0) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child = fork();
    if (child == 0) {
      open_crowd(crowd, peer, path, others);
      be_child(crowd, shared);
    }
  }
  open_crowd(crowd, peer, path, how.subscribers - others);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(crowd->poll, EPOLL_CTL_ADD, wake, &event);
  while (crowd->ready < crowd->count || (shared && atomic_load(&shared->ready) < others)) {
    turn(crowd, 10);
  }
  Writer writer = {.peer = peer};
  peer->open_publisher(&writer.stream, path);
  set_nonblocking(writer.stream.descriptor);
  uint64_t start = cpu_nanoseconds(how.server);
  if (how.singles > 0) one_at_a_time(&writer, crowd, shared, how.singles);
  uint64_t middle = cpu_nanoseconds(how.server);
  uint64_t own = own_cpu_nanoseconds() + cpu_nanoseconds((uint64_t)child);
  if (how.count > 0) within_window(&writer, crowd, shared, how);
  uint64_t end = cpu_nanoseconds(how.server);
  own = own_cpu_nanoseconds() + cpu_nanoseconds((uint64_t)child) - own;
  if (how.singles > 0) print_each("single_cpu_us", middle - start, how.singles * how.subscribers);
  if (how.count > 0) {
    print_each("cpu_us", end - middle, how.count * how.subscribers);
    print_each("load_us", own, how.count * how.subscribers);
  }
  uint64_t delivered, coalesced;
  sum(crowd, &delivered, &coalesced);
  if (shared) {
    atomic_store(&shared->end, 1);
    waitpid(child, NULL, 0);
    delivered += atomic_load(&shared->delivered);
    coalesced += atomic_load(&shared->coalesced);
  }
  if (delivered + coalesced != (how.singles + how.count) * how.subscribers) {
    fail("%llu changes came, and %llu as parts of others, of %llu", (unsigned long long)delivered,
         (unsigned long long)coalesced,
         (unsigned long long)((how.singles + how.count) * how.subscribers));
  }
  printf("coalesced=%llu\n", (unsigned long long)coalesced);
}
