// Many clients of a daemon: those that do nothing, and those that all write and see what all write.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "support.h"
#include "works.h"

static uint8_t buffer[1 << 16];

static void receive(const Peer *peer, Stream *stream) {
  ssize_t count = read(stream->descriptor, buffer, sizeof buffer);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the server ended a connection");
  peer->answers(stream, buffer, (size_t)count);
}

void idle(const Peer *peer, const char *path, uint64_t count) {
  Stream *streams = calloc(count, sizeof *streams);
  for (uint64_t index = 0; index < count; index++) {
    if (peer == &lockstep_peer) {
      char member[32];
      snprintf(member, sizeof member, "idle%llu", (unsigned long long)index);
      peer->open_actions(&streams[index], path);
      lockstep_subscribe(&streams[index], member);
    } else {
      peer->subscribe(&streams[index], path);
    }
    while (!streams[index].is_ready) {
      ssize_t read_count = read(streams[index].descriptor, buffer, sizeof buffer);
      if (read_count <= 0) fail("the server ended a connection");
      peer->changes(&streams[index], buffer, (size_t)read_count);
    }
  }
  printf("ready=1\n");
  fflush(stdout);
  while (read(0, buffer, sizeof buffer) > 0) {}
}

// A client with one action on its way.
typedef struct Writer {
  Stream stream;
  uint64_t made;
  uint64_t begin;
  // What it changes, or -1 for the counter.
  int64_t entry;
} Writer;

static void act(const Peer *peer, Writer *writer) {
  uint8_t out[longest_action];
  size_t count = peer->action(out, ++writer->made, writer->entry);
  writer->begin = nanoseconds();
  if (write(writer->stream.descriptor, out, count) != (ssize_t)count) fail("cannot write");
}

static void open_writer(const Peer *peer, const char *path, Writer *writer, CrowdView view) {
  Stream *stream = &writer->stream;
  peer->open_actions(stream, path);
  if (view != see_nothing && peer == &lockstep_peer) {
    if (view == see_all) {
      lockstep_subscribe(stream, "counter");
    } else {
      uint8_t out[longest_action];
      write_all(stream->descriptor, out, peer->subscription(out, (uint64_t)writer->entry));
    }
    while (!stream->is_ready) receive(peer, stream);
  }
  set_nonblocking(stream->descriptor);
}

void crowd(const Peer *peer, const char *path, Crowd how) {
  uint64_t clients = how.clients, count = how.count;
  Writer *writers = calloc(clients, sizeof *writers);
  uint64_t *times = calloc(count, sizeof *times);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  for (uint64_t index = 0; index < clients; index++) {
    Writer *writer = &writers[index];
    writer->entry = how.view == see_own ? (int64_t)index : -1;
    open_writer(peer, path, writer, how.view);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = writer};
    epoll_ctl(poll, EPOLL_CTL_ADD, writer->stream.descriptor, &event);
  }
  uint64_t own = own_cpu_nanoseconds(), cpu = cpu_nanoseconds(how.server);
  uint64_t done = 0, made = 0, start = nanoseconds();
  for (uint64_t index = 0; index < clients && made < count; index++, made++) {
    act(peer, &writers[index]);
  }
  while (done < count) {
    struct epoll_event events[256];
    int ready = epoll_wait(poll, events, 256, -1);
    for (int index = 0; index < ready; index++) {
      Writer *writer = events[index].data.ptr;
      uint64_t before = writer->stream.acknowledged;
      receive(peer, &writer->stream);
      if (writer->stream.acknowledged == before) continue;
      if (done < count) times[done++] = nanoseconds() - writer->begin;
      if (made < count) {
        made++;
        act(peer, writer);
      }
    }
  }
  double seconds = (double)(nanoseconds() - start) / 1e9;
  own = own_cpu_nanoseconds() - own;
  cpu = cpu_nanoseconds(how.server) - cpu;
  uint64_t delivered = 0;
  for (uint64_t index = 0; index < clients; index++) delivered += writers[index].stream.delivered;
  print_percentiles("us", times, count);
  print_each("load_us", own, count);
  print_each("cpu_us", cpu, count);
  printf("rate=%.1f delivered=%llu\n", (double)count / seconds, (unsigned long long)delivered);
  fflush(stdout);
  while (read(0, buffer, sizeof buffer) > 0) {}
}
