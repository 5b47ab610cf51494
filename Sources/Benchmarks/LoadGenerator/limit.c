// The limit's side of `Peer`: see limit-server/main.c.
#include <string.h>

#include "peers.h"
#include "support.h"

static void open_as(Stream *stream, const char *path, char use) {
  *stream = (Stream){.descriptor = connect_to(path)};
  write_all(stream->descriptor, &use, 1);
}

static void open_actions(Stream *stream, const char *path) { open_as(stream, path, 'C'); }
static void open_publisher(Stream *stream, const char *path) { open_as(stream, path, 'P'); }

static size_t action(uint8_t *out, uint64_t number, int64_t entry) {
  uint32_t slot = entry < 0 ? 0 : (uint32_t)entry;
  memcpy(out, &number, 8);
  memcpy(out + 8, &slot, 4);
  memset(out + 12, 0, 4);
  return 16;
}

static void answers(Stream *stream, const uint8_t *bytes, size_t count) {
  // Only the last whole frame matters; a frame may be cut by the end of a read.
  for (size_t index = 0; index < count; index++) {
    stream->head[stream->held++] = bytes[index];
    if (stream->held < 16) continue;
    memcpy(&stream->acknowledged, stream->head, 8);
    stream->held = 0;
  }
}

static size_t publish(uint8_t *out, uint64_t number) {
  memset(out, 0, 32);
  memcpy(out, &number, 8);
  return 32;
}

static void subscribe(Stream *stream, const char *path) {
  open_as(stream, path, 'S');
  stream->greeting = 1;
}

static void open_whole(Stream *stream, const char *path, uint64_t bytes) {
  open_as(stream, path, 'W');
  write_all(stream->descriptor, &bytes, sizeof bytes);
  stream->greeting = stream->snapshot = bytes;
}

static void changes(Stream *stream, const uint8_t *bytes, size_t count) {
  (void)bytes;
  size_t greeting = stream->greeting < count ? stream->greeting : count;
  stream->greeting -= greeting;
  stream->is_ready = stream->greeting == 0;
  size_t total = stream->remainder + count - greeting;
  stream->delivered += total / 32;
  stream->remainder = total % 32;
}

const Peer limit_peer = {
  .name = "limit", .open_actions = open_actions, .action = action, .answers = answers,
  .open_publisher = open_publisher, .publish = publish, .subscribe = subscribe, .changes = changes,
  .open_whole = open_whole, .whole = changes,
};
