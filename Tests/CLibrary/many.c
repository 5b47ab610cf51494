/* Mirrors many entries, and changes of them.
 *   many [ENTRIES]     default 1,000,000 */
#include "support.h"

enum { CHUNK = 10000 };

/* {"set": {"path": "/groupN", "value": {"k0": 0, …}}} */
static char *chunk(long group, long count) {
  char *json = malloc((size_t)count * 40 + 100);
  CHECK(json != NULL);
  size_t length = (size_t)sprintf(json, "{\"path\":\"/group%ld\",\"value\":{", group);
  for (long index = 0; index < count; index++)
    length += (size_t)sprintf(
        json + length, "%s\"k%ld\":%ld", index ? "," : "", index, group * CHUNK + index);
  sprintf(json + length, "}}");
  return json;
}

int main(int argc, char **argv) {
  long entries = argc > 1 ? atol(argv[1]) : 1000000;
  long groups = (entries + CHUNK - 1) / CHUNK;
  test_daemon daemon = make_daemon();
  start(&daemon, "none");
  lockstep_connection *writer = connect_to(daemon.socket, 0);
  await_state(writer, LOCKSTEP_STATE_LIVE);
  perform(writer, "set", "{\"path\":\"\",\"value\":{\"a\":0}}", LOCKSTEP_OUTCOME_APPLIED);
  for (long group = 0; group < groups; group++) {
    long left = entries - group * CHUNK;
    char *json = chunk(group, left < CHUNK ? left : CHUNK);
    CHECK_EQUAL(lockstep_send(writer, "set", json, 0, NULL), 0);
    free(json);
  }
  CHECK_EQUAL(await_outcomes(writer, NULL), (uint64_t)groups);

  int64_t begin = milliseconds();
  lockstep_connection *reader = connect_to(daemon.socket, 0);
  uint64_t root;
  CHECK_EQUAL(lockstep_subscribe(reader, "", 0, &root), 0);
  await_mirror(reader, root);
  int64_t mirrored = milliseconds();
  lockstep_iterator outer, inner;
  CHECK_EQUAL(lockstep_iterate(lockstep_get(reader, root, ""), &outer), 0);
  long count = 0;
  long long sum = 0;
  while (lockstep_next(&outer) == 1) {
    if (outer.name_length == 1) continue; /* "a" */
    CHECK_EQUAL(lockstep_iterate(outer.value, &inner), 0);
    while (lockstep_next(&inner) == 1) {
      int64_t number;
      CHECK_EQUAL(lockstep_integer(inner.value, &number), 0);
      CHECK_EQUAL(strtol(inner.name + 1, NULL, 10) % CHUNK, number % CHUNK);
      sum += number;
      count++;
    }
  }
  int64_t walked = milliseconds();
  CHECK_EQUAL(count, entries);
  CHECK_EQUAL(sum, (long long)entries * (entries - 1) / 2);
  for (long index = 0; index < entries; index += 97) {
    char pointer[64];
    sprintf(pointer, "/group%ld/k%ld", index / CHUNK, index % CHUNK);
    CHECK_EQUAL(integer_at(reader, root, pointer), index);
  }
  int64_t looked = milliseconds();

  /* It follows changes. */
  for (int index = 0; index < 1000; index++) {
    char json[100];
    sprintf(json, "{\"path\":\"/group0/k%d\",\"by\":1}", index % 100);
    CHECK_EQUAL(lockstep_send(writer, "increment", json, 0, NULL), 0);
  }
  CHECK_EQUAL(await_outcomes(writer, NULL), 1000);
  perform(writer, "set", "{\"path\":\"/end\",\"value\":true}", LOCKSTEP_OUTCOME_APPLIED);
  while (lockstep_kind(lockstep_get(reader, root, "/end")) != LOCKSTEP_BOOLEAN)
    await_event(reader, LOCKSTEP_EVENT_CHANGED);
  for (int index = 0; index < 100; index++) {
    char pointer[64];
    sprintf(pointer, "/group0/k%d", index);
    CHECK_EQUAL(integer_at(reader, root, pointer), index + 10);
  }
  lockstep_mirror_info info;
  CHECK_EQUAL(lockstep_get_mirror_info(reader, root, &info), 0);
  CHECK(info.snapshots == 1 && info.resyncs == 0);
  printf("%ld entries: mirrored in %" PRId64 " ms, walked in %" PRId64 " ms, %ld lookups in %" PRId64
         " ms, %" PRIu64 " bytes received\n",
         entries, mirrored - begin, walked - mirrored, entries / 97 + 1, looked - walked, info.bytes);
  lockstep_free(reader);
  lockstep_free(writer);
  remove_daemon(&daemon);
  return 0;
}
