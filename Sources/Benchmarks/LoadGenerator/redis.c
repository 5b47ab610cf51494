// Redis over RESP2. The counter is raised by INCR, an entry by HINCRBY, or set by HSET. A change goes to subscribers as what
// a user of Redis would send: INCR, and PUBLISH with the new value, in one write. The value has a
// fixed width, so messages are counted by their length.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"
#include "support.h"

#define MESSAGE "*3\r\n$7\r\nmessage\r\n$7\r\ncounter\r\n$12\r\n000000000000\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$7\r\ncounter\r\n:1\r\n"

static void open_actions(Stream *stream, const char *path) {
  *stream = (Stream){.descriptor = connect_to(path)};
}

void put_digits(uint8_t *end, uint64_t value) {
  for (; value > 0; value /= 10) *--end = (uint8_t)('0' + value % 10);
}

static size_t set_entry(uint8_t *out, uint64_t number, uint64_t entry) {
  static const char set[] =
      "*4\r\n$4\r\nHSET\r\n$8\r\ne0000000\r\n$5\r\nvalue\r\n$10\r\n1000000000\r\n";
  memcpy(out, set, sizeof set - 1);
  put_digits(out + 4 + 10 + 4 + 8, entry);
  put_digits(out + sizeof set - 1 - 2, (1u << 30) + number % (1u << 30));
  return sizeof set - 1;
}

static size_t action(uint8_t *out, uint64_t number, int64_t entry) {
  static const char increment[] = "*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n";
  static const char in_entry[] =
      "*4\r\n$7\r\nHINCRBY\r\n$8\r\ne0000000\r\n$5\r\nvalue\r\n$1\r\n1\r\n";
  if (entry < 0) {
    memcpy(out, increment, sizeof increment - 1);
    return sizeof increment - 1;
  }
  if (actions_set) return set_entry(out, number, (uint64_t)entry);
  memcpy(out, in_entry, sizeof in_entry - 1);
  put_digits(out + 4 + 13 + 4 + 8, (uint64_t)entry);
  return sizeof in_entry - 1;
}

static void answers(Stream *stream, const uint8_t *bytes, size_t count) {
  if (bytes[0] == '-') fail("Redis said %.*s", (int)count, bytes);
  uint64_t lines = 0;
  for (size_t index = 0; index < count; index++) lines += bytes[index] == '\n';
  stream->acknowledged += lines;
}

static size_t publish(uint8_t *out, uint64_t number) {
  static const char both[] =
      "*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"
      "*3\r\n$7\r\nPUBLISH\r\n$7\r\ncounter\r\n$12\r\n000000000000\r\n";
  memcpy(out, both, sizeof both - 1);
  put_digits(out + sizeof both - 1 - 2, number);
  return sizeof both - 1;
}

static void subscribe(Stream *stream, const char *path) {
  open_actions(stream, path);
  stream->greeting = sizeof SUBSCRIBED - 1;
  static const char request[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$7\r\ncounter\r\n";
  write_all(stream->descriptor, request, sizeof request - 1);
}

static void changes(Stream *stream, const uint8_t *bytes, size_t count) {
  (void)bytes;
  size_t greeting = stream->greeting < count ? stream->greeting : count;
  stream->greeting -= greeting;
  stream->is_ready = stream->greeting == 0;
  size_t total = stream->remainder + count - greeting;
  stream->delivered += total / (sizeof MESSAGE - 1);
  stream->remainder = total % (sizeof MESSAGE - 1);
}

// The handshake of a replica: Redis answers with lines, of which the last names a mark of 40 characters;
// then come the state and the mark.
enum { mark_length = 40 };
static char mark[mark_length], tail[mark_length];

static void open_whole(Stream *stream, const char *path, uint64_t bytes) {
  (void)bytes;
  open_actions(stream, path);
  static const char capability[] = "REPLCONF capa eof\r\n", request[] = "SYNC\r\n";
  write_all(stream->descriptor, capability, sizeof capability - 1);
  static char line[128];
  for (size_t count = 0;; count++) {
    if (count == sizeof line) fail("Redis said %.128s", line);
    if (read(stream->descriptor, line + count, 1) != 1) fail("Redis ended the connection");
    if (line[count] != '\n') continue;
    if (count > mark_length && memcmp(line, "$EOF:", 5) == 0) {
      memcpy(mark, line + 5, mark_length);
      return;
    }
    if (line[0] == '-') fail("Redis said %.*s", (int)count, line);
    if (line[0] == '+') write_all(stream->descriptor, request, sizeof request - 1);
    count = (size_t)-1;
  }
}

// Only the last bytes matter, wherever the reads end.
static void whole(Stream *stream, const uint8_t *bytes, size_t count) {
  stream->snapshot += count;
  size_t more = count < mark_length ? count : mark_length;
  memmove(tail, tail + more, mark_length - more);
  memcpy(tail + mark_length - more, bytes + count - more, more);
  stream->is_ready = memcmp(tail, mark, mark_length) == 0;
}

// A channel for each entry.
static size_t subscription(uint8_t *out, uint64_t entry) {
  static const char request[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$8\r\ne0000000\r\n";
  memcpy(out, request, sizeof request - 1);
  put_digits(out + sizeof request - 1 - 2, entry);
  return sizeof request - 1;
}

// Answers and messages begin with a star; the last line of an answer begins with a colon.
static void subscriptions(Stream *stream, const uint8_t *bytes, size_t count) {
  for (size_t index = 0; index < count; index++) {
    bool is_first = stream->held == 0;
    stream->held = bytes[index] != '\n';
    if (!is_first) continue;
    if (bytes[index] == '*') stream->delivered++;
    if (bytes[index] != ':') continue;
    stream->delivered--;
    stream->snapshots++;
  }
}

static size_t publish_entry(uint8_t *out, uint64_t number, uint64_t entry) {
  static const char message[] = "*3\r\n$7\r\nPUBLISH\r\n$8\r\ne0000000\r\n$1\r\n1\r\n";
  size_t count = action(out, number, (int64_t)entry);
  memcpy(out + count, message, sizeof message - 1);
  put_digits(out + count + 4 + 13 + 4 + 8, entry);
  return count + sizeof message - 1;
}

const Peer redis_peer = {
  .name = "redis", .open_actions = open_actions, .action = action, .answers = answers,
  .open_publisher = open_actions, .publish = publish, .subscribe = subscribe, .changes = changes,
  .open_whole = open_whole, .whole = whole, .subscription = subscription,
  .subscriptions = subscriptions, .publish_entry = publish_entry,
};
