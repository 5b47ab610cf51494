// D-Bus. The bus stores no state: the publisher owns the property, and announces its value with the
// signal `PropertiesChanged`. Messages are parsed by their first sixteen bytes.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"
#include "support.h"

enum { method_call = 1, method_return, signal_message = 4 };
enum { path_field = 1, interface_field, member_field, destination_field = 6, signature_field = 8 };
enum { message_head = 16 };

// MARK: Writing

typedef struct Message {
  uint8_t bytes[longest_change];
  size_t count;
} Message;

static void align(Message *message, size_t size) {
  while (message->count % size != 0) message->bytes[message->count++] = 0;
}

static void put_u32(Message *message, uint32_t value) {
  align(message, 4);
  memcpy(message->bytes + message->count, &value, 4);
  message->count += 4;
}

static void put_text(Message *message, const char *text) {
  put_u32(message, (uint32_t)strlen(text));
  strcpy((char *)message->bytes + message->count, text);
  message->count += strlen(text) + 1;
}

static void put_signature(Message *message, const char *text) {
  message->bytes[message->count++] = (uint8_t)strlen(text);
  strcpy((char *)message->bytes + message->count, text);
  message->count += strlen(text) + 1;
}

static void begin_message(Message *message, uint8_t type, uint32_t serial) {
  // Little endian, no reply is expected to a signal, version 1; the lengths follow later.
  *message = (Message){.bytes = {'l', type, type == signal_message, 1}, .count = 8};
  put_u32(message, serial);
  put_u32(message, 0);
}

static void put_field(Message *message, uint8_t field, const char *type, const char *value) {
  align(message, 8);
  message->bytes[message->count++] = field;
  put_signature(message, type);
  if (field == signature_field) {
    put_signature(message, value);
  } else {
    put_text(message, value);
  }
}

// Returns where the body begins.
static size_t end_fields(Message *message) {
  uint32_t length = (uint32_t)(message->count - message_head);
  memcpy(message->bytes + 12, &length, 4);
  align(message, 8);
  return message->count;
}

static void end_body(Message *message, size_t begin) {
  uint32_t length = (uint32_t)(message->count - begin);
  memcpy(message->bytes + 4, &length, 4);
}

static void call_bus(Stream *stream, uint32_t serial, const char *member, const char *argument) {
  Message message;
  begin_message(&message, method_call, serial);
  put_field(&message, path_field, "o", "/org/freedesktop/DBus");
  put_field(&message, destination_field, "s", "org.freedesktop.DBus");
  put_field(&message, interface_field, "s", "org.freedesktop.DBus");
  put_field(&message, member_field, "s", member);
  if (argument) put_field(&message, signature_field, "g", "s");
  size_t body = end_fields(&message);
  if (argument) put_text(&message, argument);
  end_body(&message, body);
  write_all(stream->descriptor, message.bytes, message.count);
}

// MARK: Publishing

static size_t publish(uint8_t *out, uint64_t number) {
  // Built once: only the value differs from one to the next.
  static Message message;
  static size_t value;
  if (message.count == 0) {
    begin_message(&message, signal_message, 1);
    put_field(&message, path_field, "o", "/counter");
    put_field(&message, interface_field, "s", "org.freedesktop.DBus.Properties");
    put_field(&message, member_field, "s", "PropertiesChanged");
    put_field(&message, signature_field, "g", "sa{sv}as");
    size_t body = end_fields(&message);
    put_text(&message, "a.Counter");
    put_u32(&message, 0);
    size_t entries = message.count;
    align(&message, 8);
    size_t begin = message.count;
    put_text(&message, "Value");
    put_signature(&message, "t");
    align(&message, 8);
    value = message.count;
    message.count += sizeof(uint64_t);
    uint32_t length = (uint32_t)(message.count - begin);
    memcpy(message.bytes + entries - 4, &length, 4);
    put_u32(&message, 0);
    end_body(&message, body);
  }
  memcpy(message.bytes + value, &number, sizeof number);
  memcpy(out, message.bytes, message.count);
  return message.count;
}

// MARK: Reading

static void understand(Stream *stream) {
  uint32_t body, fields;
  memcpy(&body, stream->head + 4, 4);
  memcpy(&fields, stream->head + 12, 4);
  stream->skip = (fields + 7) / 8 * 8 + body;
  switch (stream->head[1]) {
    case signal_message:
      // Before the rule is in place comes `NameAcquired`.
      stream->delivered += stream->is_ready;
      break;
    case method_return:
      // The replies to `Hello` and `AddMatch`.
      stream->is_ready = ++stream->acknowledged == 2;
      break;
    case method_call: break;
    default: fail("the bus refused a call");
  }
}

static void changes(Stream *stream, const uint8_t *bytes, size_t count) {
  while (count > 0) {
    size_t used;
    if (stream->skip > 0) {
      used = stream->skip < count ? stream->skip : count;
      stream->skip -= used;
    } else {
      used = message_head - stream->held;
      if (used > count) used = count;
      memcpy(stream->head + stream->held, bytes, used);
      stream->held = (stream->held + used) % message_head;
      if (stream->held == 0) understand(stream);
    }
    bytes += used;
    count -= used;
  }
}

// MARK: Connecting

static void open_publisher(Stream *stream, const char *path) {
  *stream = (Stream){.descriptor = connect_to(path)};
  // The user's number, whose digits are written in hexadecimal.
  char user[16], line[64];
  int digits = snprintf(user, sizeof user, "%u", getuid());
  size_t length = (size_t)sprintf(line, "%cAUTH EXTERNAL ", 0);
  for (int index = 0; index < digits; index++) {
    length += (size_t)sprintf(line + length, "%02x", user[index]);
  }
  length += (size_t)sprintf(line + length, "\r\n");
  write_all(stream->descriptor, line, length);
  for (char last = 0; last != '\n';) {
    if (read(stream->descriptor, &last, 1) != 1) fail("the bus refused the connection");
  }
  write_all(stream->descriptor, "BEGIN\r\n", 7);
  call_bus(stream, 1, "Hello", NULL);
}

static void subscribe(Stream *stream, const char *path) {
  open_publisher(stream, path);
  call_bus(stream, 2, "AddMatch", "path='/counter'");
}

const Peer dbus_peer = {
  .name = "dbus", .open_actions = open_publisher, .open_publisher = open_publisher,
  .publish = publish, .subscribe = subscribe, .changes = changes,
};
