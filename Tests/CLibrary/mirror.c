/* Mirrors the root, for the transcripts of false daemons: prints `at REVISION JSON` whenever that changes.
 * It may send an action, which is given in hexadecimal digits, as it travels.
 *   mirror SOCKET [ACTION] */
#include "support.h"

static void send_hexadecimal(lockstep_connection *connection, const char *digits) {
  unsigned char bytes[100];
  size_t length = strlen(digits) / 2;
  CHECK(length <= sizeof bytes);
  for (size_t index = 0; index < length; index++)
    CHECK_EQUAL(sscanf(digits + 2 * index, "%2hhx", &bytes[index]), 1);
  CHECK_EQUAL(lockstep_send_encoded(connection, bytes, length, 0, NULL), 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2 || argc == 3);
  lockstep_connection *connection = connect_to(argv[1], LOCKSTEP_NO_DIGESTS);
  uint64_t root;
  CHECK_EQUAL(lockstep_subscribe(connection, "", LOCKSTEP_PLACES, &root), 0);
  bool has_sent = argc == 2;
  int result;
  while ((result = lockstep_wait(connection, -1)) > 0) {
    lockstep_event event;
    while (lockstep_next_event(connection, &event) == 1) {
      if (event.kind == LOCKSTEP_EVENT_STATE && event.state == LOCKSTEP_STATE_LIVE && !has_sent) {
        send_hexadecimal(connection, argv[2]);
        has_sent = true;
      }
      if (event.kind != LOCKSTEP_EVENT_CHANGED) continue;
      lockstep_mirror_info info;
      CHECK_EQUAL(lockstep_get_mirror_info(connection, root, &info), 0);
      char *json;
      CHECK_EQUAL(
          lockstep_export_json(lockstep_get(connection, root, ""), LOCKSTEP_SORTED, &json, NULL), 0);
      printf("at %" PRIu64 " %s\n", info.revision, json);
      fflush(stdout);
      lockstep_release(json);
    }
  }
  CHECK_EQUAL(result, LOCKSTEP_ERROR_CLOSED);
  lockstep_free(connection);
  return 0;
}
