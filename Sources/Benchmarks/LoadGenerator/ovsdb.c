// OVSDB: JSON-RPC (RFC 7047) over a Unix socket. A change is a transaction that raises the counter in a
// table's only row; clients that monitor the table get the row's new value and the old one. Messages
// have no separator, so they are parsed by their braces: an update nests deeper than the rest.
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "support.h"

#define MONITOR "{\"id\":0,\"method\":\"monitor\",\"params\":[\"Benchmark\",null," \
                "{\"Counter\":{\"columns\":[\"value\"]}}]}"

enum { update_depth = 4 };

// The state of parsing a message, stored in the stream's `head` between reads.
typedef struct Parser {
  // The last two numbers; the second may be incomplete.
  uint64_t numbers[2];
  uint8_t depth, deepest;
  // Whether a digit is part of a number: other digits are those of texts.
  enum { none, may_begin, follow } digits;
} Parser;

_Static_assert(sizeof(Parser) <= sizeof((Stream){0}.head), "the parser fits");

static void open_publisher(Stream *stream, const char *path) {
  *stream = (Stream){.descriptor = connect_to(path)};
}

static size_t publish(uint8_t *out, uint64_t number) {
  return (size_t)sprintf(
    (char *)out, "{\"id\":%llu,\"method\":\"transact\",\"params\":[\"Benchmark\",{\"op\":\"mutate\","
    "\"table\":\"Counter\",\"where\":[],\"mutations\":[[\"value\",\"+=\",1]]}]}",
    (unsigned long long)number);
}

static void subscribe(Stream *stream, const char *path) {
  open_publisher(stream, path);
  write_all(stream->descriptor, MONITOR, sizeof MONITOR - 1);
}

static void take_digit(Parser *parser, uint8_t digit) {
  if (parser->digits == none) return;
  if (parser->digits == may_begin) {
    parser->numbers[0] = parser->numbers[1];
    parser->numbers[1] = 0;
  }
  parser->digits = follow;
  parser->numbers[1] = parser->numbers[1] * 10 + digit;
}

static void message_ended(Stream *stream, const Parser *parser) {
  uint64_t a = parser->numbers[0], b = parser->numbers[1];
  // The reply to `monitor`, with the whole table, comes first.
  if (!stream->is_ready) {
    stream->is_ready = true;
  } else if (parser->deepest >= update_depth) {
    stream->delivered++;
    // A client that lags gets several changes as one.
    stream->coalesced += (a > b ? a - b : b - a) - 1;
  }
}

static void changes(Stream *stream, const uint8_t *bytes, size_t count) {
  Parser parser;
  memcpy(&parser, stream->head, sizeof parser);
  for (size_t index = 0; index < count; index++) {
    uint8_t byte = bytes[index];
    if (byte >= '0' && byte <= '9') {
      take_digit(&parser, byte - '0');
      continue;
    }
    parser.digits = byte == ':' ? may_begin : none;
    if (byte == '{') {
      if (++parser.depth > parser.deepest) parser.deepest = parser.depth;
    } else if (byte == '}' && --parser.depth == 0) {
      message_ended(stream, &parser);
      parser = (Parser){0};
    }
  }
  memcpy(stream->head, &parser, sizeof parser);
}

const Peer ovsdb_peer = {
  .name = "ovsdb", .open_actions = open_publisher, .open_publisher = open_publisher,
  .publish = publish, .subscribe = subscribe, .changes = changes,
};
