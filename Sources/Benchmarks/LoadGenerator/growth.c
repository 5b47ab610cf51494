#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

static uint8_t buffer[1 << 16];

static size_t receive(Stream *stream) {
  wait_for(stream->descriptor, POLLIN);
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count <= 0) fail("the server ended the connection");
  return (size_t)count;
}

void pause_of_loop(const char *path, uint64_t milliseconds) {
  Stream stream;
  lockstep_peer.open_actions(&stream, path);
  size_t most = milliseconds * 1000, count = 0;
  uint64_t *times = calloc(most, sizeof *times);
  uint64_t end = nanoseconds() + milliseconds * 1000000;
  for (uint64_t begin; count < most && (begin = nanoseconds()) < end;) {
    uint8_t out[32];
    write_all(stream.descriptor, out, lockstep_ping(out, count));
    while (stream.pongs <= count) lockstep_peer.changes(&stream, buffer, receive(&stream));
    times[count++] = nanoseconds() - begin;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (poll(&input, 1, 0) != 0) break;
    usleep(100);
  }
  print_percentiles("ping", times, count);
  printf("\n");
}

void join(const Peer *peer, const char *path, uint64_t times, uint64_t bytes) {
  uint64_t *durations = calloc(times, sizeof *durations);
  for (uint64_t time = 0; time < times; time++) {
    Stream stream;
    uint64_t begin = nanoseconds();
    peer->open_whole(&stream, path, bytes);
    while (!stream.is_ready || stream.skip > 0) peer->whole(&stream, buffer, receive(&stream));
    durations[time] = nanoseconds() - begin;
    bytes = stream.snapshot;
    close(stream.descriptor);
  }
  print_percentiles("join", durations, times);
  printf("bytes=%llu\n", (unsigned long long)bytes);
}
