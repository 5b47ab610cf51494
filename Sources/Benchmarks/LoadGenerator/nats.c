// NATS over TCP, which is all that it listens on. A change goes to subscribers as the counter's value
// in twelve digits, so messages are counted by their length. It keeps nothing.
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "support.h"

#define CONNECT "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n"
#define MESSAGE "MSG counter 1 12\r\n000000000000\r\n"
#define PONG "PONG\r\n"

static void open_publisher(Stream *stream, const char *path) {
  *stream = (Stream){.descriptor = connect_to(path)};
  write_all(stream->descriptor, CONNECT, sizeof CONNECT - 1);
}

static size_t publish(uint8_t *out, uint64_t number) {
  char text[64];
  int count = snprintf(text, sizeof text, "PUB counter 12\r\n%012llu\r\n", (unsigned long long)number);
  memcpy(out, text, (size_t)count);
  return (size_t)count;
}

static void subscribe(Stream *stream, const char *path) {
  open_publisher(stream, path);
  static const char request[] = "SUB counter 1\r\nPING\r\n";
  write_all(stream->descriptor, request, sizeof request - 1);
}

// The greeting is a line of any length; the answer to the ping ends it.
static void changes(Stream *stream, const uint8_t *bytes, size_t count) {
  size_t at = 0;
  for (; !stream->is_ready && at < count; at++) {
    stream->held = bytes[at] == PONG[stream->held] ? stream->held + 1 : bytes[at] == PONG[0];
    stream->is_ready = stream->held == sizeof PONG - 1;
  }
  size_t total = stream->remainder + count - at;
  stream->delivered += total / (sizeof MESSAGE - 1);
  stream->remainder = total % (sizeof MESSAGE - 1);
}

const Peer nats_peer = {
  .name = "nats", .open_actions = open_publisher, .open_publisher = open_publisher,
  .publish = publish, .subscribe = subscribe, .changes = changes,
};
