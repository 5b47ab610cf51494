// Lockstep's side of `Peer`: Protocols/wire.md. Frames are understood by their first 24 bytes; the
// rest is skipped, wherever a read ends.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"
#include "support.h"

enum { welcome = 11, subscribed, snapshot, patch, acknowledgement, pong, goodbye = 21 };
enum { frame_head = 24 };

// MARK: Writing

static size_t put_head(uint8_t *out, uint8_t major, uint64_t value) {
  uint8_t top = (uint8_t)(major << 5);
  int width = value < 24 ? 0 : value < 0x100 ? 1 : value < 0x10000 ? 2 : value >> 32 == 0 ? 4 : 8;
  if (width == 0) {
    out[0] = top | (uint8_t)value;
    return 1;
  }
  out[0] = top | (uint8_t)(24 + __builtin_ctz((unsigned)width));
  for (int place = width; place > 0; place--, value >>= 8) out[place] = (uint8_t)value;
  return 1 + (size_t)width;
}

static size_t put_text(uint8_t *out, const char *text) {
  size_t count = strlen(text), head = put_head(out, 3, count);
  memcpy(out + head, text, count);
  return head + count;
}

static size_t finish_frame(uint8_t *out, size_t end) {
  uint32_t length = (uint32_t)(end - 4);
  memcpy(out, &length, 4);
  return end;
}

// The payload of `increment ["counter"]`, and of `increment ["entries", "e0000000", "value"]`.
static const uint8_t increment_counter[] = "\x82\x03\x81\x67" "counter";
static const uint8_t increment_entry[] =
    "\x82\x03\x83\x67" "entries" "\x68" "e0000000" "\x65" "value";
enum { entry_digits = 4 + 7 + 1 + 1 };

bool actions_are_durable;
bool actions_set;

static size_t action(uint8_t *out, uint64_t number, int64_t entry) {
  out[4] = 0x84;
  out[5] = 4;
  size_t at = 6 + put_head(out + 6, 0, number);
  out[at++] = actions_are_durable;
  if (entry < 0) {
    memcpy(out + at, increment_counter, sizeof increment_counter - 1);
    return finish_frame(out, at + sizeof increment_counter - 1);
  }
  memcpy(out + at, increment_entry, sizeof increment_entry - 1);
  uint8_t *digit = out + at + entry_digits + 7;
  for (uint64_t rest = (uint64_t)entry; rest > 0; rest /= 10) *--digit = (uint8_t)('0' + rest % 10);
  size_t end = at + sizeof increment_entry - 1;
  if (actions_set) {
    // `set` with the same path, and a number of four bytes.
    out[at] = 0x83;
    out[at + 1] = 0;
    end += put_head(out + end, 0, (1u << 30) + number % (1u << 30));
  }
  return finish_frame(out, end);
}

static size_t publish(uint8_t *out, uint64_t number) { return action(out, number, -1); }

static size_t publish_entry(uint8_t *out, uint64_t number, uint64_t entry) {
  return action(out, number, (int64_t)entry);
}

size_t lockstep_ping(uint8_t *out, uint64_t value) {
  out[4] = 0x82;
  out[5] = 5;
  return finish_frame(out, 6 + put_head(out + 6, 0, value));
}

// MARK: Floods

bool flood_is_action(FloodKind kind) {
  return kind == flood_actions || kind == flood_values || kind == flood_deep;
}

// `set ["flood"]` to something that differs from the last.
static size_t set_flood(uint8_t *out, uint64_t number, bool is_deep) {
  out[4] = 0x84;
  out[5] = 4;
  size_t at = 6 + put_head(out + 6, 0, number);
  memcpy(out + at, "\x00\x83\x00\x81\x65" "flood", 10);
  at += 10;
  if (is_deep) {
    enum { chains = 460, levels = 30 };
    at += put_head(out + at, 4, chains);
    for (int chain = 0; chain < chains; chain++, at += levels + 1) {
      memset(out + at, 0x81, levels);
      out[at + levels] = number % 2;
    }
  } else {
    enum { members = 1000 };
    at += put_head(out + at, 5, members);
    for (int member = 0; member < members; member++) {
      at += (size_t)sprintf((char *)out + at, "\x69member%03d", member);
      out[at++] = number % 2;
    }
  }
  return finish_frame(out, at);
}

size_t lockstep_flood(uint8_t *out, FloodKind kind, uint64_t number) {
  size_t at = 6;
  switch (kind) {
    case flood_actions:
      out[4] = 0x84;
      out[5] = 4;
      at += put_head(out + at, 0, number);
      memcpy(out + at, "\x00\x82\x03\x81\x65" "flood", 10);
      return finish_frame(out, at + 10);
    case flood_values: return set_flood(out, number, false);
    case flood_deep: return set_flood(out, number, true);
    case flood_subscriptions:
      if (number % 2 == 1) {
        out[4] = 0x84;
        out[5] = 2;
        at += put_head(out + at, 0, number + 1);
        out[at++] = 0x81;
        at += put_text(out + at, "todos");
        out[at++] = 0xf6;
      } else {
        out[4] = 0x82;
        out[5] = 3;
        at += put_head(out + at, 0, number);
      }
      return finish_frame(out, at);
    case flood_digests:
      memcpy(out + 4, "\x82\x06\x01", 3);
      return finish_frame(out, 7);
    case flood_reports:
      out[4] = 0x83;
      out[5] = 7;
      at += put_head(out + at, 0, number);
      at += put_text(out + at, "clients");
      return finish_frame(out, at);
    case flood_nothing: case flood_pings: break;
  }
  return lockstep_ping(out, number);
}

// MARK: Reading

static uint64_t take(const uint8_t *head, size_t *at) {
  uint8_t information = head[*at] & 0x1f;
  *at += 1;
  if (information < 24) return information;
  uint64_t value = 0;
  for (int left = 1 << (information - 24); left > 0; left--) value = value << 8 | head[(*at)++];
  return value;
}

static void take_patches(Stream *stream, const uint8_t *head, size_t at, uint64_t count) {
  take(head, &at);
  uint64_t from = take(head, &at), span = take(head, &at);
  // A client that lagged gets several revisions in one patch. The first span is in the head; the next
  // frame's base tells those of the others.
  uint64_t next = stream->revision;
  if (next != 0 && from > next) stream->coalesced += from - next;
  stream->coalesced += span - 1;
  stream->delivered += count;
  stream->revision = from + span + count - 1;
}

static void take_part(Stream *stream, const uint8_t *head, size_t at, uint64_t length) {
  take(head, &at);
  uint64_t revision = take(head, &at);
  take(head, &at);
  stream->snapshot += length;
  if (head[at] != 0xf5) return;
  stream->is_ready = true;
  stream->snapshots++;
  stream->revision = revision;
}

static void understand(Stream *stream, const uint8_t *head, uint64_t length) {
  size_t at = 4;
  uint64_t items = take(head, &at);
  switch (take(head, &at)) {
    case patch:
      take_patches(stream, head, at, (items - 3) / 2);
      break;
    case acknowledgement:
      take(head, &at);
      stream->acknowledged = take(head, &at);
      take(head, &at);
      take(head, &at);
      if (take(head, &at) == 4) fail("an action was rejected");
      break;
    case snapshot:
      take_part(stream, head, at, length);
      break;
    case pong: stream->pongs++; break;
    case goodbye: fail("the daemon said goodbye: %.16s", head + 8);
    default: break;
  }
}

static void consume(Stream *stream, const uint8_t *bytes, size_t count) {
  while (count > 0) {
    if (stream->skip > 0) {
      size_t skipped = stream->skip < count ? stream->skip : count;
      stream->skip -= skipped;
      bytes += skipped;
      count -= skipped;
      continue;
    }
    const uint8_t *head = bytes;
    uint32_t length;
    if (stream->held > 0 || count < frame_head) {
      // Gather until the head is whole; what follows it may be taken along and given back.
      size_t more = sizeof stream->head - stream->held;
      if (more > count) more = count;
      memcpy(stream->head + stream->held, bytes, more);
      size_t total = stream->held + more;
      if (total < 4) {
        stream->held = total;
        return;
      }
      memcpy(&length, stream->head, 4);
      size_t needed = length + 4 < frame_head ? length + 4 : frame_head;
      if (total < needed) {
        stream->held = total;
        return;
      }
      understand(stream, stream->head, length);
      size_t of_frame = total < (size_t)length + 4 ? total : (size_t)length + 4;
      bytes += of_frame - stream->held;
      count -= of_frame - stream->held;
      stream->held = 0;
      stream->skip = (size_t)length + 4 - of_frame;
      continue;
    }
    memcpy(&length, head, 4);
    understand(stream, head, length);
    size_t of_frame = count < (size_t)length + 4 ? count : (size_t)length + 4;
    stream->skip = (size_t)length + 4 - of_frame;
    bytes += of_frame;
    count -= of_frame;
  }
}

// MARK: Connecting

static void open_actions(Stream *stream, const char *path) {
  *stream = (Stream){.descriptor = connect_to(path)};
  uint8_t out[64] = {[4] = 0x86, 1, 0x82, 1, 1};
  size_t end = 9 + put_text(out + 9, "benchmark");
  // The fingerprint of the document's schema, so that the welcome is short: null, null behind it.
  memcpy(out + end, "\xf6\xf6\xf6", 3);
  write_all(stream->descriptor, out, finish_frame(out, end + 3));
}

void lockstep_subscribe(Stream *stream, const char *member) {
  uint8_t out[96] = {[4] = 0x84, 2, 1, 0x81};
  size_t end = 8 + put_text(out + 8, member);
  out[end] = 0xf6;
  write_all(stream->descriptor, out, finish_frame(out, end + 1));
}

// Each entry has a subscription of its own number.
size_t lockstep_subscription(uint8_t *out, uint64_t entry) {
  char name[16];
  snprintf(name, sizeof name, "e%07llu", (unsigned long long)entry % 10000000);
  out[4] = 0x84;
  out[5] = 2;
  size_t end = 6 + put_head(out + 6, 0, entry + 1);
  out[end++] = 0x82;
  end += put_text(out + end, "entries");
  end += put_text(out + end, name);
  out[end] = 0xf6;
  return finish_frame(out, end + 1);
}

static void subscribe(Stream *stream, const char *path) {
  open_actions(stream, path);
  lockstep_subscribe(stream, "counter");
}

static void open_whole(Stream *stream, const char *path, uint64_t bytes) {
  (void)bytes;
  open_actions(stream, path);
  lockstep_subscribe(stream, "entries");
}

const Peer lockstep_peer = {
  .name = "lockstep", .open_actions = open_actions, .action = action, .answers = consume,
  .open_publisher = open_actions, .publish = publish, .subscribe = subscribe, .changes = consume,
  .open_whole = open_whole, .whole = consume, .subscription = lockstep_subscription,
  .subscriptions = consume, .publish_entry = publish_entry,
};
