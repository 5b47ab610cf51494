// W9: one of many mirrors stops reading. What the others cost meanwhile, and how long it takes to catch up.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

enum { window = 256 };

typedef struct Mirrors {
  Stream *streams;
  uint64_t count;
  int poll;
  // Bytes that have come to the first, which is the one that stops.
  uint64_t bytes;
} Mirrors;

static uint8_t buffer[1 << 16];

static void receive(Mirrors *mirrors, Stream *stream) {
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the daemon ended a connection");
  if (stream == mirrors->streams) mirrors->bytes += (uint64_t)count;
  lockstep_peer.changes(stream, buffer, (size_t)count);
}

static void listen_to(Mirrors *mirrors, Stream *stream) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = stream};
  epoll_ctl(mirrors->poll, EPOLL_CTL_ADD, stream->descriptor, &event);
}

static void turn(Mirrors *mirrors) {
  struct epoll_event events[256];
  int count = epoll_wait(mirrors->poll, events, 256, 20000);
  if (count == 0) fail("the daemon said nothing for 20 s");
  for (int index = 0; index < count; index++) receive(mirrors, events[index].data.ptr);
}

// Make changes within a window until the mirrors from `first` on have all of them.
static void change(Mirrors *mirrors, Stream *writer, uint64_t count, uint64_t entries, size_t first) {
  static uint64_t made, random = 42;
  uint64_t end = made + count, start = mirrors->streams[first].revision - made;
  for (uint64_t come; (come = mirrors->streams[first].revision - start) < end;) {
    uint8_t out[window * longest_action];
    size_t length = 0;
    uint64_t most = come + window < end ? come + window : end;
    while (made < most) {
      int64_t entry = entries == 0 ? -1 : (int64_t)(random_next(&random) % entries);
      length += lockstep_peer.action(out + length, ++made, entry);
    }
    if (length > 0) write_all(writer->descriptor, out, length);
    while (read(writer->descriptor, buffer, sizeof buffer) > 0) {}
    errno = 0;
    turn(mirrors);
  }
  for (size_t index = first; index < mirrors->count; index++) {
    while (mirrors->streams[index].revision - start < end) turn(mirrors);
  }
}

static void next_step(void) {
  printf("\n");
  fflush(stdout);
  char line[16];
  if (!fgets(line, sizeof line, stdin)) exit(0);
}

void stall(const char *path, uint64_t count, uint64_t entries, uint64_t changes, uint64_t server) {
  Mirrors mirrors = {.streams = calloc(count, sizeof(Stream)), .count = count};
  mirrors.poll = epoll_create1(EPOLL_CLOEXEC);
  for (uint64_t index = 0; index < count; index++) {
    Stream *stream = &mirrors.streams[index];
    lockstep_peer.open_actions(stream, path);
    lockstep_subscribe(stream, entries == 0 ? "counter" : "entries");
    while (!stream->is_ready || stream->skip > 0) receive(&mirrors, stream);
    set_nonblocking(stream->descriptor);
    listen_to(&mirrors, stream);
  }
  Stream writer;
  lockstep_peer.open_actions(&writer, path);
  set_nonblocking(writer.descriptor);
  // Warm up.
  change(&mirrors, &writer, changes / 10, entries, 0);

  uint64_t cpu = cpu_nanoseconds(server);
  change(&mirrors, &writer, changes, entries, 0);
  print_each("cpu_us", cpu_nanoseconds(server) - cpu, changes * count);
  next_step();

  Stream *stopped = &mirrors.streams[0];
  epoll_ctl(mirrors.poll, EPOLL_CTL_DEL, stopped->descriptor, NULL);
  cpu = cpu_nanoseconds(server);
  change(&mirrors, &writer, changes, entries, 1);
  print_each("cpu_us", cpu_nanoseconds(server) - cpu, changes * (count - 1));
  next_step();

  listen_to(&mirrors, stopped);
  mirrors.bytes = 0;
  uint64_t begin = nanoseconds();
  while (stopped->revision < mirrors.streams[1].revision || stopped->skip > 0) turn(&mirrors);
  print_each("return_us", nanoseconds() - begin, 1);
  printf("bytes=%llu\n", (unsigned long long)mirrors.bytes);
}
