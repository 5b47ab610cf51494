// W11: what a subscription costs beside many others of the same connection.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

// Requests that are sent before their answers are waited for. Fewer than a daemon answers in a turn.
enum { batch = 500 };

static uint8_t in[1 << 16], out[batch * longest_change];

static void receive(const Peer *peer, Stream *stream) {
  wait_for(stream->descriptor, POLLIN);
  ssize_t count = read(stream->descriptor, in, sizeof in);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the server ended the connection");
  peer->subscriptions(stream, in, (size_t)count);
}

static void subscribe(const Peer *peer, Stream *stream, uint64_t first, uint64_t end) {
  while (first < end) {
    uint64_t last = first + batch < end ? first + batch : end;
    size_t count = 0;
    for (; first < last; first++) count += peer->subscription(out + count, first);
    write_all(stream->descriptor, out, count);
    while (stream->snapshots < last) receive(peer, stream);
  }
}

// Each entry in turn, a batch at a time, so that no change can be a part of another.
static void change(
  const Peer *peer, Stream *stream, Stream *writer, uint64_t actions, uint64_t entries
) {
  uint64_t made = 0, before = stream->delivered, most = entries < batch ? entries : batch;
  while (made < actions) {
    size_t count = 0;
    for (uint64_t index = 0; index < most; index++, made++) {
      count += peer->publish_entry(out + count, made + 1, made % entries);
    }
    write_all(writer->descriptor, out, count);
    while (stream->delivered < before + made) receive(peer, stream);
    while (read(writer->descriptor, in, sizeof in) > 0) {}
    errno = 0;
  }
}

void subscriptions(
  const Peer *peer, const char *path, uint64_t beside, uint64_t more, uint64_t actions,
  uint64_t server
) {
  Stream stream, writer;
  peer->open_actions(&stream, path);
  peer->open_actions(&writer, path);
  set_nonblocking(stream.descriptor);
  set_nonblocking(writer.descriptor);
  subscribe(peer, &stream, 0, beside);
  uint64_t start = cpu_nanoseconds(server);
  subscribe(peer, &stream, beside, beside + more);
  uint64_t middle = cpu_nanoseconds(server);
  change(peer, &stream, &writer, actions, beside);
  uint64_t end = cpu_nanoseconds(server);
  print_each("open_us", middle - start, more);
  print_each("cpu_us", end - middle, actions);
  printf("\n");
}
