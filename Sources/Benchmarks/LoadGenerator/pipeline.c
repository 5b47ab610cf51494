#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

static uint8_t out[1 << 16], in[1 << 16];

static void settle(const Peer *peer, Stream *stream) {
  lockstep_subscribe(stream, "entries");
  while (!stream->is_ready) {
    ssize_t count = read(stream->descriptor, in, sizeof in);
    if (count <= 0) fail("the server ended the connection");
    peer->answers(stream, in, (size_t)count);
  }
}

// Until the next change is due, or an answer comes. Returns whether the input has ended.
static bool rest(int descriptor) {
  struct pollfd both[] = {{.fd = descriptor, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  poll(both, 2, 1);
  return both[1].revents != 0;
}

void pipeline(const Peer *peer, const char *path, Pipelining how) {
  Stream stream;
  peer->open_actions(&stream, path);
  if (how.mirrors && peer == &lockstep_peer) settle(peer, &stream);
  set_nonblocking(stream.descriptor);
  uint64_t made = 0, random = 42;
  size_t begin = 0, end = 0;
  uint64_t own = own_cpu_nanoseconds(), cpu = cpu_nanoseconds(how.server), start = nanoseconds();
  while (stream.acknowledged < how.count) {
    uint64_t most = stream.acknowledged + how.window;
    if (how.rate > 0) {
      uint64_t due = (nanoseconds() - start) * how.rate / 1000000000;
      if (due < most) most = due;
    }
    if (most > how.count) most = how.count;
    if (begin == end) begin = end = 0;
    while (made < most && end + longest_action <= sizeof out) {
      int64_t entry = how.entries == 0 ? -1 : (int64_t)(random_next(&random) % how.entries);
      end += peer->action(out + end, ++made, entry);
    }
    if (begin < end) {
      ssize_t sent = write(stream.descriptor, out + begin, end - begin);
      if (sent < 0 && errno != EAGAIN) fail("cannot write");
      if (sent > 0) begin += (size_t)sent;
    }
    ssize_t count = read(stream.descriptor, in, sizeof in);
    if (count > 0) {
      peer->answers(&stream, in, (size_t)count);
    } else if (count == 0) {
      fail("the server ended the connection");
    } else if (how.rate > 0) {
      if (rest(stream.descriptor)) break;
    } else if (begin < end || made == most) {
      wait_for(stream.descriptor, begin < end ? POLLIN | POLLOUT : POLLIN);
    }
  }
  double seconds = (double)(nanoseconds() - start) / 1e9;
  uint64_t done = stream.acknowledged;
  print_each("cpu_us", cpu_nanoseconds(how.server) - cpu, done);
  print_each("load_us", own_cpu_nanoseconds() - own, done);
  printf("seconds=%.6f rate=%.1f delivered=%llu\n", seconds, (double)done / seconds,
         (unsigned long long)stream.delivered);
}
