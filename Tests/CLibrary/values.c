/* Reading, exporting and sending; and that nothing that a caller gives ends the process. */
#include "support.h"

#define LONG_TEXT "a text of more than fifteen bytes, which has an object of its own: \\u00e9"

static void check_errors(void) {
  for (int error = -40; error <= 1; error++) {
    const char *text = lockstep_error_text(error);
    CHECK(text != NULL && strlen(text) > 5);
  }
  CHECK_EQUAL(lockstep_abi_version(), LOCKSTEP_ABI_VERSION);
}

/* What the process has inherited: nohup ignores SIGHUP, for one. */
static void (*inherited[32])(int);

static void note_process(void) {
  for (int signal = 1; signal < 32; signal++) {
    struct sigaction action;
    if (sigaction(signal, NULL, &action) == 0) inherited[signal] = action.sa_handler;
  }
}

/* The process is as it was, but for descriptors: no thread, no handler of a signal. */
static void check_process(void) {
  for (int signal = 1; signal < 32; signal++) {
    struct sigaction action;
    if (sigaction(signal, NULL, &action) != 0) continue;
    CHECK(action.sa_handler == inherited[signal]);
    CHECK(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
  }
  CHECK(access("/proc/self/task", F_OK) == 0);
  FILE *status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  char line[200];
  int threads = 0;
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "Threads: %d", &threads) == 1) break;
  fclose(status);
  CHECK_EQUAL(threads, 1);
}

/* Every function with NULL, or with a connection that was freed. */
static void check_handle(lockstep_connection *handle, int error) {
  lockstep_value none = {0};
  lockstep_event event;
  lockstep_info info;
  lockstep_mirror_info mirror;
  uint64_t number;
  CHECK_EQUAL(lockstep_state(handle), error);
  CHECK_EQUAL(lockstep_close(handle), error);
  CHECK_EQUAL(lockstep_get_info(handle, &info), error);
  CHECK_TEXT(lockstep_last_message(handle), "");
  CHECK_EQUAL(lockstep_fd(handle), error);
  CHECK_EQUAL(lockstep_events(handle), error);
  CHECK_EQUAL(lockstep_timeout(handle), 0);
  CHECK_EQUAL(lockstep_dispatch(handle), error);
  CHECK_EQUAL(lockstep_wait(handle, 0), error);
  CHECK_EQUAL(lockstep_flush(handle), error);
  CHECK_EQUAL(lockstep_next_event(handle, &event), error);
  CHECK(lockstep_place(handle, 0, NULL) == NULL);
  CHECK_EQUAL(lockstep_subscribe(handle, "", 0, &number), error);
  CHECK_EQUAL(lockstep_unsubscribe(handle, 1), error);
  CHECK_EQUAL(lockstep_get_mirror_info(handle, 1, &mirror), error);
  CHECK_EQUAL(lockstep_kind(lockstep_get(handle, 1, "")), error);
  CHECK_EQUAL(lockstep_send(handle, "set", "{}", 0, &number), error);
  CHECK_EQUAL(lockstep_send_cbor(handle, "set", "\xa0", 1, 0, &number), error);
  CHECK_EQUAL(lockstep_send_encoded(handle, "\xa0", 1, 0, &number), error);
  CHECK_EQUAL(lockstep_query(handle, "status", NULL, 0, &number), error);
  (void)none;
  lockstep_free(handle);
}

/* An absent value, and a failed lookup, as the argument of every function. */
static void check_nothing(lockstep_value value, int error) {
  bool boolean;
  int64_t integer;
  uint64_t number;
  double real;
  const char *text;
  const uint8_t *bytes;
  size_t length;
  char *json, buffer[4];
  uint8_t *cbor;
  lockstep_iterator iterator;
  CHECK_EQUAL(lockstep_boolean(value, &boolean), error);
  CHECK_EQUAL(lockstep_integer(value, &integer), error);
  CHECK_EQUAL(lockstep_unsigned(value, &number), error);
  CHECK_EQUAL(lockstep_double(value, &real), error);
  CHECK_EQUAL(lockstep_text(value, &text, &length), error);
  CHECK_EQUAL(lockstep_bytes(value, &bytes, &length), error);
  CHECK_EQUAL(lockstep_copy_text(value, buffer, sizeof buffer), error);
  CHECK_EQUAL(lockstep_count(value), error);
  CHECK_EQUAL(lockstep_iterate(value, &iterator), error);
  CHECK_EQUAL(lockstep_export_json(value, 0, &json, &length), error);
  CHECK_EQUAL(lockstep_export_cbor(value, 0, &cbor, &length), error);
}

static void check_scalars(lockstep_connection *connection, uint64_t root) {
  int64_t integer = 0;
  uint64_t number = 0;
  double real = 0;
  bool boolean = false;
#define AT(pointer) lockstep_get(connection, root, pointer)
  CHECK_EQUAL(lockstep_kind(AT("")), LOCKSTEP_OBJECT);
  CHECK_EQUAL(lockstep_kind(AT(NULL)), LOCKSTEP_OBJECT);
  CHECK_EQUAL(lockstep_kind(AT("/nothing")), LOCKSTEP_NULL);
  CHECK_EQUAL(lockstep_kind(AT("/yes")), LOCKSTEP_BOOLEAN);
  CHECK_EQUAL(lockstep_boolean(AT("/yes"), &boolean), 0);
  CHECK(boolean);
  CHECK_EQUAL(lockstep_integer(AT("/small"), &integer), 0);
  CHECK_EQUAL(integer, INT64_MIN);
  CHECK_EQUAL(lockstep_unsigned(AT("/small"), &number), LOCKSTEP_ERROR_RANGE);
  CHECK_EQUAL(lockstep_kind(AT("/large")), LOCKSTEP_INTEGER);
  CHECK_EQUAL(lockstep_integer(AT("/large"), &integer), LOCKSTEP_ERROR_RANGE);
  CHECK_EQUAL(lockstep_unsigned(AT("/large"), &number), 0);
  CHECK(number == UINT64_MAX);
  CHECK_EQUAL(lockstep_double(AT("/real"), &real), 0);
  CHECK(real == -0.5);
  CHECK_EQUAL(lockstep_double(AT("/one"), &real), 0);
  CHECK(real == 1.0);
  CHECK_EQUAL(lockstep_integer(AT("/real"), &integer), LOCKSTEP_ERROR_KIND);
  CHECK_EQUAL(lockstep_boolean(AT("/one"), NULL), LOCKSTEP_ERROR_KIND);
  CHECK_EQUAL(lockstep_integer(AT("/one"), NULL), 0);
  CHECK_EQUAL(lockstep_count(AT("/one")), LOCKSTEP_ERROR_KIND);
  CHECK_EQUAL(lockstep_kind(lockstep_element(AT("/one"), 0)), LOCKSTEP_ERROR_KIND);
  CHECK_EQUAL(lockstep_kind(lockstep_member(AT("/list"), "a", 1)), LOCKSTEP_ERROR_KIND);
  check_nothing(AT("/absent"), LOCKSTEP_ERROR_ABSENT);
  check_nothing(AT("/absent/further/down"), LOCKSTEP_ERROR_ABSENT);
  check_nothing(lockstep_child(AT("/absent"), "/x"), LOCKSTEP_ERROR_ABSENT);
  check_nothing(AT("no pointer"), LOCKSTEP_ERROR_PATH);
  check_nothing(AT("/~2"), LOCKSTEP_ERROR_PATH);
  check_nothing(AT("/\xff"), LOCKSTEP_ERROR_UTF8);
  check_nothing(lockstep_get(connection, 99, ""), LOCKSTEP_ERROR_SUBSCRIPTION);
  lockstep_value zero = {0};
  check_nothing(zero, LOCKSTEP_ERROR_ABSENT);
  zero.generation = 12345;
  CHECK(lockstep_kind(zero) < 0);
}

static void check_texts(lockstep_connection *connection, uint64_t root) {
  const char *text;
  size_t length;
  char buffer[80];
  CHECK_EQUAL(lockstep_text(AT("/short"), &text, &length), 0);
  CHECK(length == 5 && memcmp(text, "short", 5) == 0);
  CHECK_EQUAL(lockstep_text(AT("/fifteen"), &text, &length), 0);
  CHECK(length == 15 && memcmp(text, "fifteen letters", 15) == 0);
  CHECK_EQUAL(lockstep_text(AT("/empty"), &text, &length), 0);
  CHECK(length == 0 && text != NULL);
  CHECK_EQUAL(lockstep_text(AT("/zero"), &text, &length), 0);
  CHECK(length == 3 && memcmp(text, "a\0b", 3) == 0);
  const char *again;
  CHECK_EQUAL(lockstep_text(AT("/long"), &text, &length), 0);
  CHECK(length == 69 && memcmp(text + 67, "\xc3\xa9", 2) == 0);
  CHECK_EQUAL(lockstep_text(AT("/long"), &again, NULL), 0);
  CHECK(text == again); /* the mirror's own */
  CHECK_EQUAL(lockstep_copy_text(AT("/long"), buffer, sizeof buffer), 69);
  CHECK(strlen(buffer) == 69);
  CHECK_EQUAL(lockstep_copy_text(AT("/long"), buffer, 69), 69); /* would cut é */
  CHECK_EQUAL(strlen(buffer), 67);
  CHECK_EQUAL(lockstep_copy_text(AT("/long"), buffer, 1), 69);
  CHECK_EQUAL(buffer[0], 0);
  CHECK_EQUAL(lockstep_copy_text(AT("/long"), NULL, 0), 69);
  CHECK_EQUAL(lockstep_copy_text(AT("/long"), NULL, 1), LOCKSTEP_ERROR_ARGUMENT);
  const uint8_t *bytes;
  CHECK_EQUAL(lockstep_kind(AT("/bytes")), LOCKSTEP_BYTES);
  CHECK_EQUAL(lockstep_bytes(AT("/bytes"), &bytes, &length), 0);
  CHECK(length == 3 && memcmp(bytes, "\x00\x01\xff", 3) == 0);
  CHECK_EQUAL(lockstep_text(AT("/bytes"), &text, &length), LOCKSTEP_ERROR_KIND);
}

static void check_collections(lockstep_connection *connection, uint64_t root) {
  CHECK_EQUAL(lockstep_count(AT("/list")), 3);
  CHECK_EQUAL(lockstep_kind(AT("/list/1")), LOCKSTEP_TEXT);
  CHECK_EQUAL(lockstep_kind(AT("/list/3")), LOCKSTEP_ABSENT);
  CHECK_EQUAL(lockstep_kind(AT("/list/01")), LOCKSTEP_ABSENT);
  CHECK_EQUAL(lockstep_kind(lockstep_element(AT("/list"), 2)), LOCKSTEP_OBJECT);
  CHECK_EQUAL(lockstep_kind(lockstep_element(AT("/list"), SIZE_MAX)), LOCKSTEP_ABSENT);
  CHECK_EQUAL(lockstep_kind(lockstep_child(AT("/list"), "/2/x")), LOCKSTEP_INTEGER);
  CHECK_EQUAL(lockstep_kind(lockstep_member(AT(""), "list and more", 4)), LOCKSTEP_ARRAY);
  CHECK_EQUAL(lockstep_kind(lockstep_member(AT(""), "\xff", 1)), LOCKSTEP_ERROR_UTF8);
  CHECK_EQUAL(lockstep_kind(lockstep_member(AT(""), NULL, 1)), LOCKSTEP_ERROR_ARGUMENT);
  lockstep_iterator iterator;
  CHECK_EQUAL(lockstep_iterate(AT("/list"), &iterator), 0);
  size_t count = 0;
  while (lockstep_next(&iterator) == 1) {
    CHECK(iterator.name == NULL && iterator.index == count);
    count++;
  }
  CHECK_EQUAL(count, 3);
  CHECK_EQUAL(lockstep_next(&iterator), 0);
  CHECK_EQUAL(lockstep_iterate(AT("/empty"), &iterator), LOCKSTEP_ERROR_KIND);
  CHECK_EQUAL(lockstep_iterate(AT(""), NULL), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_next(NULL), LOCKSTEP_ERROR_ARGUMENT);
  /* Names, small and large, are those under which the values are found. */
  CHECK_EQUAL(lockstep_iterate(AT(""), &iterator), 0);
  count = 0;
  while (lockstep_next(&iterator) == 1) {
    lockstep_value same = lockstep_member(AT(""), iterator.name, iterator.name_length);
    CHECK(same.place == iterator.value.place && same.place != NULL);
    count++;
  }
  CHECK_EQUAL(count, lockstep_count(AT("")));
  /* An empty object; and one whose entries have a trie of several levels. */
  CHECK_EQUAL(lockstep_iterate(AT("/list/2/none"), &iterator), 0);
  CHECK_EQUAL(lockstep_next(&iterator), 0);
}

static void check_export(lockstep_connection *connection, uint64_t root) {
  check_json(AT("/list"), "[1,\"two\",{\"none\":{},\"x\":3}]");
  char *json;
  CHECK_EQUAL(lockstep_export_json(AT("/bytes"), LOCKSTEP_PRETTY, &json, NULL), 0);
  CHECK_TEXT(json, "{\"$bytes\": \"AAH/\"}");
  lockstep_release(json);
  CHECK_EQUAL(lockstep_export_json(AT(""), 4, &json, NULL), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_export_json(AT(""), 0, NULL, NULL), LOCKSTEP_ERROR_ARGUMENT);
  uint8_t *cbor;
  size_t length;
  CHECK_EQUAL(lockstep_export_cbor(AT("/list/2"), LOCKSTEP_SORTED, &cbor, &length), 0);
  CHECK(length == 10 && memcmp(cbor, "\xa2\x61x\x03\x64none\xa0", 10) == 0);
  lockstep_release(cbor);
  CHECK_EQUAL(lockstep_export_cbor(AT("/one"), 0, &cbor, &length), 0);
  CHECK(length == 1 && cbor[0] == 1);
  lockstep_release(cbor);
  lockstep_release(NULL);
}

/* Values end with a dispatch, and say so. */
static void check_lifetime(lockstep_connection *connection, uint64_t root) {
  lockstep_value old = AT("");
  lockstep_iterator iterator;
  CHECK_EQUAL(lockstep_iterate(old, &iterator), 0);
  CHECK_EQUAL(lockstep_next(&iterator), 1);
  CHECK_EQUAL(lockstep_dispatch(connection), 0);
  check_nothing(old, LOCKSTEP_ERROR_STALE);
  CHECK_EQUAL(lockstep_next(&iterator), LOCKSTEP_ERROR_STALE);
  CHECK_EQUAL(lockstep_kind(lockstep_child(old, "/a")), LOCKSTEP_ERROR_STALE);
}

static void check_sending(lockstep_connection *connection, uint64_t root) {
  uint64_t action = 77;
  CHECK_EQUAL(lockstep_send(connection, "set", "{", 0, &action), LOCKSTEP_ERROR_JSON);
  CHECK(strstr(lockstep_last_message(connection), "line 1") != NULL);
  CHECK_EQUAL(lockstep_send(connection, "st", "{}", 0, &action), LOCKSTEP_ERROR_ACTION);
  CHECK(strstr(lockstep_last_message(connection), "increment") != NULL);
  CHECK_EQUAL(lockstep_send(connection, "set.more", "{}", 0, &action), LOCKSTEP_ERROR_ACTION);
  CHECK_EQUAL(lockstep_send(connection, "", "{}", 0, &action), LOCKSTEP_ERROR_ACTION);
  CHECK_EQUAL(lockstep_send(connection, "..", NULL, 0, &action), LOCKSTEP_ERROR_ACTION);
  CHECK_EQUAL(lockstep_send(connection, NULL, NULL, 0, &action), LOCKSTEP_ERROR_ACTION);
  CHECK_EQUAL(lockstep_send(connection, "\xff", NULL, 0, &action), LOCKSTEP_ERROR_UTF8);
  CHECK_EQUAL(lockstep_send(connection, "set", "\"\xff\"", 0, &action), LOCKSTEP_ERROR_UTF8);
  CHECK_EQUAL(lockstep_send(connection, "remove", "{\"path\":\"/x\"}", 8, &action), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_send_cbor(connection, "set", "\xff", 1, 0, &action), LOCKSTEP_ERROR_CBOR);
  CHECK_EQUAL(lockstep_send_cbor(connection, "set", "\xa0\xa0", 2, 0, &action), LOCKSTEP_ERROR_CBOR);
  CHECK_EQUAL(lockstep_send_encoded(connection, "\x82", 1, 0, &action), LOCKSTEP_ERROR_CBOR);
  CHECK_EQUAL(lockstep_send_encoded(connection, "", 0, 0, &action), LOCKSTEP_ERROR_CBOR);
  CHECK_EQUAL(lockstep_send_encoded(connection, NULL, 0, 0, &action), LOCKSTEP_ERROR_ARGUMENT);
  char deep[400] = "{\"path\":\"/x\",\"value\":";
  size_t length = strlen(deep);
  memset(deep + length, '[', 127);
  memset(deep + length + 127, ']', 127);
  strcpy(deep + length + 254, "}");
  CHECK_EQUAL(lockstep_send(connection, "set", deep, 0, &action), LOCKSTEP_ERROR_LIMIT);
  CHECK_EQUAL(action, 77);
  char *large = malloc(20 << 20);
  memset(large, ' ', 20 << 20);
  memcpy(large, "\x5a\x01\x3f\xff\xfb", 5); /* bytes of 20 MiB - 5 */
  CHECK_EQUAL(lockstep_send_encoded(connection, large, 20 << 20, 0, &action), LOCKSTEP_ERROR_LIMIT);
  free(large);
  /* By name with CBOR, whole as JSON, and encoded. */
  CHECK_EQUAL(
      lockstep_send_cbor(
          connection, "set", "\xa2\x64path\x62/c\x65value\x43\x00\x01\xff", 19, 0, &action), 0);
  CHECK_EQUAL(
      lockstep_send(connection, NULL, "{\"set\":{\"path\":\"/d\",\"value\":4}}", 0, &action), 0);
  CHECK_EQUAL(lockstep_send_encoded(connection, "\x83\x00\x81\x61\x65\x05", 6, 0, &action), 0);
  CHECK_EQUAL(await_outcomes(connection, NULL), 3);
  CHECK_EQUAL(integer_at(connection, root, "/d"), 4);
  CHECK_EQUAL(integer_at(connection, root, "/e"), 5);
  CHECK_EQUAL(lockstep_kind(AT("/c")), LOCKSTEP_BYTES);
  /* What is no action of the daemon, though CBOR, is rejected by it. */
  CHECK_EQUAL(lockstep_send_encoded(connection, "\xf7", 1, 0, &action), 0);
  CHECK_EQUAL(
      await_event(connection, LOCKSTEP_EVENT_OUTCOME).outcome, LOCKSTEP_OUTCOME_REJECTED);
}

static void check_rejection(lockstep_connection *connection) {
  uint64_t action;
  CHECK_EQUAL(
      lockstep_send(connection, "increment", "{\"path\":\"/short\",\"by\":1}", 0, &action), 0);
  lockstep_event event = await_event(connection, LOCKSTEP_EVENT_OUTCOME);
  CHECK_EQUAL(event.outcome, LOCKSTEP_OUTCOME_REJECTED);
  CHECK(event.action == action && event.last_action == action);
  CHECK(event.code > 2 && event.message != NULL && strlen(event.message) > 10);
  CHECK_TEXT(event.path, "/short");
  perform(connection, "set", "{\"path\":\"/one\",\"value\":1}", LOCKSTEP_OUTCOME_UNCHANGED);
}

static void check_subscriptions(lockstep_connection *connection, uint64_t root) {
  uint64_t other = 0, same = 0;
  CHECK_EQUAL(lockstep_subscribe(connection, "", 0, &same), LOCKSTEP_ERROR_DUPLICATE);
  CHECK_EQUAL(same, root);
  CHECK_EQUAL(lockstep_subscribe(connection, NULL, 0, &same), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_subscribe(connection, "a", 0, &same), LOCKSTEP_ERROR_PATH);
  CHECK_EQUAL(lockstep_subscribe(connection, "/a", 2, &same), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_subscribe(connection, "/deep/x~1y", LOCKSTEP_PLACES, &other), 0);
  await_mirror(connection, other);
  CHECK_EQUAL(lockstep_kind(lockstep_get(connection, other, "")), LOCKSTEP_ABSENT);
  perform(connection, "set", "{\"path\":\"/deep\",\"value\":{}}", LOCKSTEP_OUTCOME_APPLIED);
  perform(connection, "set", "{\"path\":\"/deep/x~1y\",\"value\":{\"a\":[1,2],\"m\":{\"n\":1}}}",
          LOCKSTEP_OUTCOME_APPLIED);
  check_json(lockstep_get(connection, other, ""), "{\"a\":[1,2],\"m\":{\"n\":1}}");
  /* Several changes share an event, with all of their places. */
  uint64_t action;
  CHECK_EQUAL(
      lockstep_send(connection, "increment", "{\"path\":\"/deep/x~1y/m/n\",\"by\":1}", 0, &action), 0);
  CHECK_EQUAL(lockstep_send(connection, "set", "{\"path\":\"/deep/x~1y/a/1\",\"value\":3}", 0, &action), 0);
  CHECK_EQUAL(lockstep_send(connection, "set", "{\"path\":\"/deep/x~1y/~0\",\"value\":[]}", 0, &action), 0);
  int changes = 0, places = 0;
  char seen[200] = "";
  for (bool is_done = false; !is_done;) {
    lockstep_event event;
    while (lockstep_next_event(connection, &event) == 1) {
      if (event.kind == LOCKSTEP_EVENT_OUTCOME && event.last_action == action) is_done = true;
      if (event.kind != LOCKSTEP_EVENT_CHANGED || event.subscription != other) continue;
      changes++;
      for (size_t index = 0; index < event.place_count; index++) {
        size_t length;
        const char *place = lockstep_place(connection, index, &length);
        CHECK_EQUAL(strlen(place), length);
        CHECK(lockstep_kind(lockstep_get(connection, other, place)) > 0);
        strcat(strcat(seen, place), " ");
        places++;
      }
      CHECK(lockstep_place(connection, event.place_count, NULL) == NULL);
    }
    if (!is_done) CHECK(lockstep_wait(connection, 10000) >= 0);
  }
  CHECK(changes >= 1 && changes <= 3 && places == 3);
  CHECK(strstr(seen, "/a/1 ") && strstr(seen, "/m/n ") && strstr(seen, "/~0 "));
  /* Insertion moves the elements behind it, so the array changed. */
  perform(connection, "insert", "{\"path\":\"/deep/x~1y/a/0\",\"value\":0}", LOCKSTEP_OUTCOME_APPLIED);
  check_json(lockstep_get(connection, other, "/a"), "[0,1,3]");
  CHECK_EQUAL(lockstep_unsubscribe(connection, other), 0);
  CHECK_EQUAL(lockstep_unsubscribe(connection, other), LOCKSTEP_ERROR_SUBSCRIPTION);
  CHECK_EQUAL(lockstep_kind(lockstep_get(connection, other, "")), LOCKSTEP_ERROR_SUBSCRIPTION);
  CHECK(lockstep_kind(AT("/deep")) == LOCKSTEP_OBJECT);
}

static void check_reports(lockstep_connection *connection) {
  uint64_t query, next;
  int64_t revision;
  CHECK_EQUAL(lockstep_query(connection, "status", NULL, 0, &query), 0);
  const char *arguments[] = {"3"};
  CHECK_EQUAL(lockstep_query(connection, "log", arguments, 1, &next), 0);
  const char *wrong[] = {NULL};
  CHECK_EQUAL(lockstep_query(connection, "log", wrong, 1, &next), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_query(connection, "log", arguments, 17, &next), LOCKSTEP_ERROR_LIMIT);
  lockstep_event event = await_event(connection, LOCKSTEP_EVENT_REPORT);
  CHECK_EQUAL(event.query, query);
  CHECK_EQUAL(lockstep_integer(lockstep_child(event.value, "/revision"), &revision), 0);
  CHECK(revision > 0);
  event = await_event(connection, LOCKSTEP_EVENT_REPORT);
  CHECK_EQUAL(lockstep_count(lockstep_child(event.value, "/records")), 3);
}

static void check_connecting(const char *socket) {
  lockstep_connection *connection = (lockstep_connection *)1;
  char path[300];
  memset(path, 'a', sizeof path);
  path[sizeof path - 1] = 0;
  lockstep_options options = {.socket = path};
  CHECK_EQUAL(lockstep_connect(NULL, NULL), LOCKSTEP_ERROR_ARGUMENT);
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_SOCKET_PATH);
  CHECK(connection == NULL);
  options.socket = "";
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_SOCKET_PATH);
  options.socket = "/no/such/socket";
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_SYSTEM);
  CHECK_EQUAL(errno, ENOENT);
  options.socket = "\xff";
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_UTF8);
  options.socket = socket;
  char label[2000];
  memset(label, 'l', sizeof label);
  label[sizeof label - 1] = 0;
  options.label = label;
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_LIMIT);
  options.label = "\xff";
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_UTF8);
  options.label = NULL;
  options.flags = 256;
  CHECK_EQUAL(lockstep_connect(&options, &connection), LOCKSTEP_ERROR_ARGUMENT);
  /* The standard path. */
  setenv("LOCKSTEP_SOCKET", socket, 1);
  CHECK_EQUAL(lockstep_connect(NULL, &connection), 0);
  await_state(connection, LOCKSTEP_STATE_LIVE);
  CHECK_EQUAL(lockstep_state(connection), LOCKSTEP_STATE_LIVE);
  lockstep_info info;
  CHECK_EQUAL(lockstep_get_info(connection, &info), 0);
  CHECK(info.protocol_version >= 1 && info.session > 0 && info.window > 0);
  CHECK(info.pid == (uint64_t)getpid() && info.uid == getuid() && info.gid == getgid());
  /* Before a daemon has answered, there is no schema. */
  lockstep_connection *early;
  uint64_t action;
  CHECK_EQUAL(lockstep_connect(NULL, &early), 0);
  CHECK_EQUAL(lockstep_send(early, "set", "{}", 0, &action), LOCKSTEP_ERROR_NOT_CONNECTED);
  CHECK_EQUAL(lockstep_query(early, "status", NULL, 0, &action), LOCKSTEP_ERROR_NOT_CONNECTED);
  CHECK_EQUAL(lockstep_send_encoded(early, "\x83\x00\x81\x61\x7a\x05", 6, 0, &action), 0);
  CHECK_EQUAL(await_outcomes(early, NULL), 1);
  lockstep_free(early);
  /* Closed by this side. */
  CHECK_EQUAL(lockstep_close(connection), 0);
  CHECK_EQUAL(lockstep_close(connection), 0);
  lockstep_event event = await_state(connection, LOCKSTEP_STATE_CLOSED);
  CHECK_EQUAL(event.code, LOCKSTEP_GOODBYE_DONE);
  CHECK_EQUAL(lockstep_dispatch(connection), LOCKSTEP_ERROR_CLOSED);
  CHECK_EQUAL(lockstep_wait(connection, -1), LOCKSTEP_ERROR_CLOSED);
  CHECK_EQUAL(lockstep_send(connection, "set", "{}", 0, &action), LOCKSTEP_ERROR_CLOSED);
  CHECK_EQUAL(lockstep_subscribe(connection, "/x", 0, &action), LOCKSTEP_ERROR_CLOSED);
  lockstep_free(connection);
  check_handle(connection, LOCKSTEP_ERROR_HANDLE);
  check_handle(NULL, LOCKSTEP_ERROR_ARGUMENT);
}

/* A daemon with types: its state is shown by names, and its actions are sent by names. */
static void check_typed(void) {
  test_daemon daemon = make_daemon();
  const char *nothing[] = {NULL};
  start_with(&daemon, "TypedCounter", "none", nothing);
  lockstep_connection *connection = connect_to(daemon.socket, 0);
  uint64_t root, count;
  CHECK_EQUAL(lockstep_subscribe(connection, "", LOCKSTEP_PLACES, &root), 0);
  CHECK_EQUAL(lockstep_subscribe(connection, "/count", 0, &count), 0);
  await_mirror(connection, root);
  await_mirror(connection, count);
  check_json(lockstep_get(connection, root, ""), "{\"count\":0}");
  perform(connection, "increment", NULL, LOCKSTEP_OUTCOME_APPLIED);
  CHECK_EQUAL(integer_at(connection, root, "/count"), 1);
  CHECK_EQUAL(integer_at(connection, count, ""), 1);
  uint64_t action;
  CHECK_EQUAL(lockstep_send(connection, NULL, "\"increment\"", 0, &action), 0);
  lockstep_event event;
  do {
    event = await_event(connection, LOCKSTEP_EVENT_CHANGED);
  } while (event.subscription != root);
  CHECK_EQUAL(event.place_count, 1);
  CHECK_TEXT(lockstep_place(connection, 0, NULL), "/count");
  CHECK_EQUAL(lockstep_send(connection, "decrement", NULL, 0, &action), LOCKSTEP_ERROR_ACTION);
  lockstep_free(connection);
  remove_daemon(&daemon);
}

int main(void) {
  note_process();
  check_errors();
  test_daemon daemon = make_daemon();
  start(&daemon, "none");
  lockstep_connection *connection = connect_to(daemon.socket, LOCKSTEP_NO_DIGESTS);
  uint64_t root;
  CHECK_EQUAL(lockstep_subscribe(connection, "", 0, &root), 0);
  await_mirror(connection, root);
  perform(connection, "set",
          "{\"path\":\"\",\"value\":{\"nothing\":null,\"yes\":true,\"small\":-9223372036854775808,"
          "\"large\":18446744073709551615,\"real\":-0.5,\"one\":1,\"short\":\"short\","
          "\"fifteen\":\"fifteen letters\",\"empty\":\"\",\"zero\":\"a\\u0000b\","
          "\"a name of more than fifteen bytes\":1,\"long\":\"" LONG_TEXT "\","
          "\"list\":[1,\"two\",{\"x\":3,\"none\":{}}]}}",
          LOCKSTEP_OUTCOME_APPLIED);
  uint64_t action;
  CHECK_EQUAL(
      lockstep_send_cbor(
          connection, "set", "\xa2\x64path\x66/bytes\x65value\x43\x00\x01\xff", 23, 0, &action), 0);
  CHECK_EQUAL(await_outcomes(connection, NULL), 1);
  check_scalars(connection, root);
  check_texts(connection, root);
  check_collections(connection, root);
  check_export(connection, root);
  check_lifetime(connection, root);
  check_sending(connection, root);
  check_rejection(connection);
  check_subscriptions(connection, root);
  check_reports(connection);
  check_process();
  check_connecting(daemon.socket);
  lockstep_free(connection);
  remove_daemon(&daemon);
  check_typed();
  return 0;
}
