/* A client that stops dispatching while others go on: it delays nobody, gets one coalesced change when it
 * comes back, and is then exact.
 *   stalled [ACTIONS] */
#include "support.h"

int main(int argc, char **argv) {
  long actions = argc > 1 ? atol(argv[1]) : 100000;
  test_daemon daemon = make_daemon();
  start(&daemon, "none");
  lockstep_connection *writer = connect_to(daemon.socket, 0);
  lockstep_connection *reader = connect_to(daemon.socket, 0);
  await_state(writer, LOCKSTEP_STATE_LIVE);
  perform(writer, "set", "{\"path\":\"\",\"value\":{\"a\":0}}", LOCKSTEP_OUTCOME_APPLIED);
  uint64_t root, theirs;
  CHECK_EQUAL(lockstep_subscribe(reader, "", LOCKSTEP_PLACES, &root), 0);
  CHECK_EQUAL(lockstep_subscribe(writer, "", 0, &theirs), 0);
  await_mirror(reader, root);
  await_mirror(writer, theirs);
  lockstep_event event;
  while (lockstep_next_event(reader, &event) == 1) continue;

  /* The reader does not dispatch. Its socket and the daemon hold what they may; the rest is coalesced. */
  for (long index = 0; index < actions; index++) {
    char json[160];
    sprintf(json, "{\"path\":\"/place%ld\",\"value\":\"a text that takes some room in a socket %ld\"}",
            index % 50, index);
    CHECK_EQUAL(lockstep_send(writer, "set", json, 0, NULL), 0);
    if (index % 1000 == 999) CHECK(lockstep_wait(writer, 0) >= 0);
  }
  CHECK_EQUAL(await_outcomes(writer, NULL), (uint64_t)actions);
  lockstep_mirror_info info;
  CHECK_EQUAL(lockstep_get_mirror_info(writer, theirs, &info), 0);
  uint64_t revision = info.revision;

  int changes = 0;
  do {
    event = await_event(reader, LOCKSTEP_EVENT_CHANGED);
    CHECK(event.place_count >= 1 && event.place_count <= 50);
    changes++;
  } while (event.revision < revision);
  CHECK_EQUAL(event.revision, revision);
  char *ours, *expected;
  CHECK_EQUAL(
      lockstep_export_json(lockstep_get(reader, root, ""), LOCKSTEP_SORTED, &ours, NULL), 0);
  CHECK_EQUAL(
      lockstep_export_json(lockstep_get(writer, theirs, ""), LOCKSTEP_SORTED, &expected, NULL), 0);
  CHECK_TEXT(ours, expected);
  lockstep_release(ours);
  lockstep_release(expected);
  CHECK_EQUAL(lockstep_get_mirror_info(reader, root, &info), 0);
  CHECK_EQUAL(info.resyncs, 0);
  CHECK(info.coalesced > 0);
  CHECK(info.patches + info.coalesced >= (uint64_t)actions || info.snapshots > 1);
  CHECK_EQUAL(lockstep_state(reader), LOCKSTEP_STATE_LIVE);
  printf("%ld actions: %d events, %" PRIu64 " patches, %" PRIu64 " revisions coalesced\n", actions,
         changes, info.patches, info.coalesced);
  lockstep_free(reader);
  lockstep_free(writer);
  remove_daemon(&daemon);
  return 0;
}
