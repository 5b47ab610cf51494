// The limit: a libuv server that does the least that the works need, so that the time of a real
// server can be told from that of sockets, system calls and the scheduler.
//
//   limit-server SOCKET [FILE]
//
// With a file, what counts is appended to it and synchronised, once for all that a turn of the loop has
// read, before it is acknowledged.
//
// The first byte of a connection says what it is for. Frames have a fixed length and no syntax.
//
//   E  echo        what comes is sent back
//   C  count       frames of 16 bytes, {number: u64, slot: u32, 0: u32}: the slot's counter rises;
//                  after each read one such frame acknowledges all numbers up to its own
//   P  publish     frames of 32 bytes, sent to every subscriber, all of a read in one write
//   S  subscribe   gets what is published; the byte comes back as a sign that it is so
//   W  whole       gets so many bytes as a number of 8 bytes says
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { slot_count = 1 << 20, count_frame = 16, publish_frame = 32 };

typedef struct CountFrame {
  uint64_t number;
  uint32_t slot;
  uint32_t zero;
} CountFrame;

typedef struct Connection {
  uv_pipe_t pipe;
  char use;
  // The beginning of a frame whose end has not come.
  char partial[32];
  size_t held;
  size_t place;
  // What it is answered once it is in the file.
  CountFrame answer;
  bool is_waiting;
} Connection;

typedef struct Rest {
  uv_write_t request;
  char bytes[];
} Rest;

static char buffer[65536 + 32];
static uint64_t slots[slot_count];
static Connection **subscribers;
static size_t subscriber_count, subscriber_room;

// The file, or -1; who waits for it, at most one entry for each connection that was read from.
static int file = -1;
static Connection **waiting;
static size_t waiting_count, waiting_room;

static void *grown(void *list, size_t count, size_t *room) {
  if (count < *room) return list;
  *room = *room ? 2 * *room : 64;
  return realloc(list, *room * sizeof(void *));
}

static void after_write(uv_write_t *request, int status) {
  (void)status;
  free(request);
}

static void put(Connection *connection, const char *bytes, size_t count) {
  uv_stream_t *stream = (uv_stream_t *)&connection->pipe;
  if (uv_stream_get_write_queue_size(stream) == 0) {
    uv_buf_t all = uv_buf_init((char *)bytes, (unsigned)count);
    int sent = uv_try_write(stream, &all, 1);
    if (sent > 0) {
      bytes += sent;
      count -= (size_t)sent;
    }
  }
  if (count == 0) return;
  Rest *rest = malloc(sizeof(Rest) + count);
  memcpy(rest->bytes, bytes, count);
  uv_buf_t left = uv_buf_init(rest->bytes, (unsigned)count);
  if (uv_write(&rest->request, stream, &left, 1, after_write) < 0) free(rest);
}

static void subscribe(Connection *connection) {
  subscribers = grown(subscribers, subscriber_count, &subscriber_room);
  connection->place = subscriber_count;
  subscribers[subscriber_count++] = connection;
  put(connection, "S", 1);
}

static void after_close(uv_handle_t *handle) {
  Connection *connection = (Connection *)handle;
  if (connection->use == 'S') {
    Connection *last = subscribers[--subscriber_count];
    subscribers[connection->place] = last;
    last->place = connection->place;
  }
  free(connection);
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *room) {
  (void)size;
  // Bytes of an unfinished frame go in front, so that frames are always whole in the buffer.
  Connection *connection = (Connection *)handle;
  memcpy(buffer, connection->partial, connection->held);
  *room = uv_buf_init(buffer + connection->held, 65536);
}

static size_t whole(Connection *connection, size_t count, size_t frame) {
  size_t used = count - count % frame;
  connection->held = count - used;
  memcpy(connection->partial, buffer + used, connection->held);
  return used;
}

static void count_up(Connection *connection, const char *bytes, size_t count) {
  if (count == 0) return;
  CountFrame frame = {0};
  for (size_t at = 0; at < count; at += count_frame) {
    memcpy(&frame, bytes + at, sizeof frame);
    slots[frame.slot % slot_count]++;
  }
  if (file < 0) return put(connection, (const char *)&frame, sizeof frame);
  if (write(file, bytes, count) != (ssize_t)count) abort();
  connection->answer = frame;
  if (connection->is_waiting) return;
  connection->is_waiting = true;
  waiting = grown(waiting, waiting_count, &waiting_room);
  waiting[waiting_count++] = connection;
}

// Runs before a closed connection is freed, and so knows only such as are there.
static void turn_ended(uv_check_t *check) {
  (void)check;
  if (waiting_count == 0) return;
  if (fdatasync(file) < 0) abort();
  for (size_t index = 0; index < waiting_count; index++) {
    Connection *connection = waiting[index];
    connection->is_waiting = false;
    if (uv_is_closing((uv_handle_t *)connection)) continue;
    put(connection, (const char *)&connection->answer, sizeof connection->answer);
  }
  waiting_count = 0;
}

static void send_whole(Connection *connection, const char *bytes) {
  enum { most = 1 << 30 };
  static char *state;
  uint64_t count;
  memcpy(&count, bytes, sizeof count);
  if (count > most) abort();
  if (!state) state = calloc(1, most);
  put(connection, state, count);
}

static void received(uv_stream_t *stream, ssize_t read, const uv_buf_t *room) {
  (void)room;
  Connection *connection = (Connection *)stream;
  if (read < 0) return uv_close((uv_handle_t *)stream, after_close);
  size_t count = connection->held + (size_t)read;
  char *bytes = buffer;
  if (read > 0 && connection->use == 0) {
    connection->use = bytes[0];
    if (connection->use == 'S') subscribe(connection);
    // The rest begins a buffer of its own, as later reads do.
    memmove(buffer, buffer + 1, --count);
  }
  switch (connection->use) {
    case 'E':
      if (count > 0) put(connection, bytes, count);
      break;
    case 'C':
      count_up(connection, bytes, whole(connection, count, count_frame));
      break;
    case 'P':
      count = whole(connection, count, publish_frame);
      for (size_t index = 0; count > 0 && index < subscriber_count; index++) {
        put(subscribers[index], bytes, count);
      }
      break;
    case 'W':
      count = whole(connection, count, sizeof(uint64_t));
      if (count > 0) send_whole(connection, bytes);
      break;
    default:
      break;
  }
}

static void connected(uv_stream_t *listener, int status) {
  if (status < 0) return;
  Connection *connection = calloc(1, sizeof *connection);
  uv_pipe_init(listener->loop, &connection->pipe, 0);
  if (uv_accept(listener, (uv_stream_t *)&connection->pipe) == 0) {
    uv_read_start((uv_stream_t *)&connection->pipe, allocate, received);
  } else {
    uv_close((uv_handle_t *)&connection->pipe, after_close);
  }
}

int main(int count, char **arguments) {
  if (count < 2 || count > 3) {
    fprintf(stderr, "usage: limit-server SOCKET [FILE]\n");
    return 64;
  }
  uv_loop_t *loop = uv_default_loop();
  uv_check_t check;
  if (count == 3) {
    file = open(arguments[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) {
      perror(arguments[2]);
      return 1;
    }
    uv_check_init(loop, &check);
    uv_check_start(&check, turn_ended);
  }
  uv_pipe_t listener;
  uv_pipe_init(loop, &listener, 0);
  int status = uv_pipe_bind(&listener, arguments[1]);
  if (status == 0) status = uv_listen((uv_stream_t *)&listener, 1024, connected);
  if (status < 0) {
    fprintf(stderr, "limit-server: %s: %s\n", arguments[1], uv_strerror(status));
    return 1;
  }
  return uv_run(loop, UV_RUN_DEFAULT);
}
