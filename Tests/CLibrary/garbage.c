/* A false daemon that sends garbage: the connection ends with a reason, and nothing else happens.
 *   garbage [ROUNDS] */
#include "support.h"

static char folder[64] = P_tmpdir "/lockstep-c-XXXXXX";
static char path[96];
static int listener;

static void listen_there(void) {
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/socket", folder);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, path);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(listener >= 0);
  CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
  CHECK_EQUAL(listen(listener, 8), 0);
}

static uint64_t state = 42;

static uint32_t random_number(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* A welcome, as a daemon of documents would send it, without its frame. It has the version, [epoch, run,
 * revision], a seed, a token, whether the session goes on, its last action, the window, the limits, the
 * schema, the peer and the durable revision. */
static const unsigned char welcome[] =
    "\x8c\x0b\x02\x83\x09\x01\x00\x07\x50"
    "0123456789abcdef"
    "\xf4\x00\x10\xa1\x6a" "frameBytes" "\x1a\x01\x00\x00\x00\xf6\x83\x01\x02\x03\xf6";

/* Connect a client, send it these bytes, and let it run until it closes, or the bytes are read and
 * nothing happens. */
static void play(const unsigned char *bytes, size_t length, size_t piece, bool must_close) {
  lockstep_connection *connection = NULL;
  lockstep_options options = {.socket = path, .flags = LOCKSTEP_NO_RECONNECT};
  CHECK_EQUAL(lockstep_connect(&options, &connection), 0);
  uint64_t root;
  CHECK_EQUAL(lockstep_subscribe(connection, "", LOCKSTEP_PLACES, &root), 0);
  CHECK_EQUAL(lockstep_send_encoded(connection, "\x83\x00\x81\x61\x65\x05", 6, 0, NULL), 0);
  int peer = accept(listener, NULL, NULL);
  CHECK(peer >= 0);
  bool is_closed = false;
  for (size_t sent = 0; sent <= length && !is_closed; sent += piece) {
    size_t count = length - sent < piece ? length - sent : piece;
    if (count > 0 && send(peer, bytes + sent, count, MSG_NOSIGNAL) < 0) break;
    lockstep_event event;
    int result = lockstep_dispatch(connection);
    CHECK(result == 0 || result == LOCKSTEP_ERROR_CLOSED);
    while (lockstep_next_event(connection, &event) == 1) {
      if (event.kind != LOCKSTEP_EVENT_STATE || event.state != LOCKSTEP_STATE_CLOSED) continue;
      is_closed = true;
      CHECK(event.message != NULL);
    }
    lockstep_kind(lockstep_get(connection, root, "/a"));
  }
  if (must_close) CHECK(is_closed);
  close(peer);
  while (!is_closed && lockstep_wait(connection, 1000) > 0) {
    lockstep_event event;
    while (lockstep_next_event(connection, &event) == 1)
      is_closed = is_closed || event.state == LOCKSTEP_STATE_CLOSED;
  }
  CHECK(is_closed);
  lockstep_free(connection);
}

/* Append a frame around an item. */
static size_t frame(unsigned char *buffer, const unsigned char *item, size_t length) {
  for (int index = 0; index < 4; index++) buffer[index] = (unsigned char)(length >> (8 * index));
  memcpy(buffer + 4, item, length);
  return length + 4;
}

static void play_frame(const char *item, size_t length, bool welcomed) {
  unsigned char buffer[600];
  size_t count = welcomed ? frame(buffer, welcome, sizeof welcome - 1) : 0;
  count += frame(buffer + count, (const unsigned char *)item, length);
  play(buffer, count, count, true);
  play(buffer, count, 1, true);
}

#define BAD(item) play_frame(item, sizeof item - 1, false)
#define BAD_LATER(item) play_frame(item, sizeof item - 1, true)

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 2000;
  listen_there();
  /* The welcome itself is good. */
  unsigned char buffer[4096];
  size_t length = frame(buffer, welcome, sizeof welcome - 1);
  play(buffer, length, length, false);
  play(buffer, length, 3, false);

  play((const unsigned char *)"\xff\xff\xff\xff", 4, 4, true); /* a frame over the limit */
  play((const unsigned char *)"\0\0\0\0", 4, 4, true);         /* an empty frame */
  play((const unsigned char *)"HTTP/1.1 400 Bad Request\r\n\r\n", 28, 28, true);
  BAD("\xff");             /* a break */
  BAD("\x82\x10\x07");     /* a pong before the welcome */
  BAD("\x8c\x0b\x02");     /* a welcome that ends early */
  BAD("\xf7");
  BAD("\x9f\x0b\xff");     /* indefinite length */
  BAD_LATER("\x01");
  BAD_LATER("\x80");
  BAD_LATER("\x82\x18\x63\x01");                     /* an unknown message */
  BAD_LATER("\x82\x05\x07");                         /* a message of clients */
  BAD_LATER("\x83\x10\x07");                         /* a pong that ends early */
  BAD_LATER("\x84\x10\x07\x00\x00\x00");             /* bytes behind */
  BAD_LATER("\x83\x10\x61\x37\x00");                 /* a number that is text */
  BAD_LATER("\x83\x10\x1b\xff\xff\xff\xff\xff\xff\xff"); /* a number that ends early */
  BAD_LATER("\x9b\xff\xff\xff\xff\xff\xff\xff\xff");  /* an array longer than memory */
  BAD_LATER("\x82\x13\xa1\x65state\x65other");       /* a schema that is none */

  /* Random changes of a good beginning, and pure noise. */
  for (int round = 0; round < rounds; round++) {
    length = frame(buffer, welcome, sizeof welcome - 1);
    /* subscribed 1, scope 1, a snapshot at revision 1; the snapshot; a patch of it */
    length += frame(buffer + length, (const unsigned char *)"\x86\x0c\x01\x01\x02\x01\x01", 7);
    length += frame(
        buffer + length, (const unsigned char *)"\x86\x0d\x01\x01\x00\xf5\x44\xa1\x61\x61\x01", 11);
    length += frame(
        buffer + length, (const unsigned char *)"\x85\x0e\x01\x01\x01\xa1\x61\x61\x02", 9);
    length += frame(buffer + length, (const unsigned char *)"\x87\x0f\x01\x01\x02\x00\x00\xf6", 8);
    size_t changes = 1 + random_number() % 4;
    for (size_t index = 0; index < changes; index++)
      buffer[random_number() % length] = (unsigned char)random_number();
    if (round % 10 == 0)
      for (size_t index = 4; index < length; index++) buffer[index] = (unsigned char)random_number();
    play(buffer, length, 1 + random_number() % length, false);
  }
  close(listener);
  unlink(path);
  rmdir(folder);
  return 0;
}
