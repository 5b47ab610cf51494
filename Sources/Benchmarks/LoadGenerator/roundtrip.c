#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

static uint8_t buffer[65536];

// Read once. As an event loop does, and not asleep in `read`: the kernel wakes that thread when the
// server takes what it has sent, too, and on one core it ran, and slept again, in each round trip.
static size_t receive(Stream *stream) {
  wait_for(stream->descriptor, POLLIN);
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count <= 0) fail("the server ended the connection");
  return (size_t)count;
}

static void wait_until_ready(const Peer *peer, Stream *stream) {
  while (!stream->is_ready) peer->changes(stream, buffer, receive(stream));
}

// Lockstep: the action and the patch travel on one connection.
static void on_one_connection(const Peer *peer, const char *path, uint64_t *times, uint64_t count) {
  Stream stream;
  peer->subscribe(&stream, path);
  wait_until_ready(peer, &stream);
  for (uint64_t number = 1; number <= count; number++) {
    uint8_t out[longest_change];
    size_t length = peer->action(out, number, -1);
    uint64_t begin = nanoseconds();
    write_all(stream.descriptor, out, length);
    while (stream.delivered < number) peer->changes(&stream, buffer, receive(&stream));
    times[number - 1] = nanoseconds() - begin;
  }
}

// The others: what is published comes on another connection than that which publishes.
static void on_two_connections(
  const Peer *peer, const char *path, uint64_t *times, uint64_t count
) {
  Stream stream, writer;
  peer->subscribe(&stream, path);
  wait_until_ready(peer, &stream);
  peer->open_publisher(&writer, path);
  set_nonblocking(writer.descriptor);
  for (uint64_t number = 1; number <= count; number++) {
    uint8_t out[longest_change];
    size_t length = peer->publish(out, number);
    uint64_t begin = nanoseconds();
    write_all(writer.descriptor, out, length);
    while (stream.delivered < number) peer->changes(&stream, buffer, receive(&stream));
    times[number - 1] = nanoseconds() - begin;
    // The answers are read now and then, before they fill the socket, and cost the figure nothing.
    while (number % 64 == 0 && read(writer.descriptor, buffer, sizeof buffer) > 0) {}
    errno = 0;
  }
}

// The limit: an echo of 32 bytes.
static void echo(const char *path, uint64_t *times, uint64_t count) {
  int descriptor = connect_to(path);
  write_all(descriptor, "E", 1);
  uint8_t out[32] = {0};
  for (uint64_t number = 0; number < count; number++) {
    memcpy(out, &number, sizeof number);
    uint64_t begin = nanoseconds();
    write_all(descriptor, out, sizeof out);
    for (size_t come = 0; come < sizeof out;) {
      wait_for(descriptor, POLLIN);
      ssize_t more = read(descriptor, buffer, sizeof out - come);
      if (more <= 0) fail("the server ended the connection");
      come += (size_t)more;
    }
    times[number] = nanoseconds() - begin;
  }
}

void roundtrip(const Peer *peer, const char *path, uint64_t count) {
  uint64_t warm_up = count / 10, *times = calloc(count + warm_up, sizeof *times);
  if (peer == &limit_peer) {
    echo(path, times, count + warm_up);
  } else if (peer == &lockstep_peer) {
    on_one_connection(peer, path, times, count + warm_up);
  } else {
    on_two_connections(peer, path, times, count + warm_up);
  }
  print_percentiles("us", times + warm_up, count);
  printf("\n");
}
