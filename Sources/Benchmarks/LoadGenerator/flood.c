// W10: one user's connections that ask for as much as they can get, whatever it is.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

// Bytes that one connection has ready to be written, and actions that it has on their way.
enum { room = 20480, window = 256 };

typedef struct Flooder {
  Stream stream;
  uint64_t made;
  size_t begin, end;
  uint8_t out[room];
} Flooder;

static uint8_t buffer[1 << 16];

static void read_some(const Peer *peer, Stream *stream) {
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) fail("the server ended a connection of the flood");
  peer->answers(stream, buffer, (size_t)count);
}

// All are there before the flood begins.
static void settle(const Peer *peer, Stream *stream, FloodKind kind) {
  uint8_t out[32];
  if (kind == flood_digests) lockstep_subscribe(stream, "todos");
  write_all(stream->descriptor, out, lockstep_ping(out, 0));
  while (stream->pongs == 0) read_some(peer, stream);
}

// Make as many messages as there is room for, and as the window allows.
static void make(const Peer *peer, Flooder *flooder, FloodKind kind) {
  if (flooder->begin < flooder->end || kind == flood_nothing) return;
  flooder->begin = flooder->end = 0;
  size_t longest = kind == flood_values || kind == flood_deep ? 16384 : longest_action;
  while (flooder->end + longest <= room) {
    uint64_t number = flooder->made + 1;
    uint8_t *out = flooder->out + flooder->end;
    if (flood_is_action(kind) && number > flooder->stream.acknowledged + window) return;
    flooder->end += peer == &lockstep_peer ? lockstep_flood(out, kind, number)
                                           : peer->action(out, number, -1);
    flooder->made = number;
  }
}

static void push(Flooder *flooder) {
  if (flooder->begin == flooder->end) return;
  ssize_t sent = write(
    flooder->stream.descriptor, flooder->out + flooder->begin, flooder->end - flooder->begin);
  if (sent < 0 && errno != EAGAIN) fail("cannot write");
  if (sent > 0) flooder->begin += (size_t)sent;
}

void flood(const Peer *peer, const char *path, uint64_t clients, FloodKind kind) {
  Flooder *flooders = calloc(clients, sizeof *flooders);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  for (uint64_t index = 0; index < clients; index++) {
    Flooder *flooder = &flooders[index];
    peer->open_actions(&flooder->stream, path);
    if (peer == &lockstep_peer) settle(peer, &flooder->stream, kind);
    set_nonblocking(flooder->stream.descriptor);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = flooder};
    epoll_ctl(poll, EPOLL_CTL_ADD, flooder->stream.descriptor, &event);
  }
  struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poll, EPOLL_CTL_ADD, 0, &input);
  printf("ready=1\n");
  fflush(stdout);
  for (bool is_over = false; !is_over;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poll, events, 256, -1);
    for (int index = 0; index < ready; index++) {
      Flooder *flooder = events[index].data.ptr;
      if (!flooder) {
        is_over = true;
        continue;
      }
      // All that has come, since it is told once; then what there is room for.
      for (uint64_t left = 64; left > 0 && (events[index].events & EPOLLIN); left--) {
        ssize_t count = read(flooder->stream.descriptor, buffer, sizeof buffer);
        if (count == 0) fail("the server ended a connection of the flood");
        if (count < 0) break;
        peer->answers(&flooder->stream, buffer, (size_t)count);
      }
      do {
        make(peer, flooder, kind);
        push(flooder);
      } while (flooder->begin == flooder->end && flooder->end > 0);
    }
  }
  uint64_t made = 0;
  for (uint64_t index = 0; index < clients; index++) made += flooders[index].made;
  printf("made=%llu\n", (unsigned long long)made);
}
