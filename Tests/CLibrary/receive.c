/* Mirrors the root up to a revision, for comparing what clients cost (stream.py).
 *   receive SOCKET REVISION [places] */
#include "support.h"

int main(int argc, char **argv) {
  CHECK(argc >= 3);
  uint64_t last = strtoull(argv[2], NULL, 10), root, events = 0;
  lockstep_connection *connection = connect_to(argv[1], LOCKSTEP_NO_DIGESTS);
  CHECK_EQUAL(lockstep_subscribe(connection, "", argc > 3 ? LOCKSTEP_PLACES : 0, &root), 0);
  lockstep_event event;
  do {
    event = await_event(connection, LOCKSTEP_EVENT_CHANGED);
    events++;
  } while (event.revision < last);
  CHECK_EQUAL(event.revision, last);
  lockstep_mirror_info info;
  CHECK_EQUAL(lockstep_get_mirror_info(connection, root, &info), 0);
  CHECK_EQUAL(info.patches, last);
  char pointer[40];
  sprintf(pointer, "/member%d", (int)(last * 7919 % 1000));
  CHECK_EQUAL(integer_at(connection, root, pointer), last);
  printf("%" PRIu64 " events\n", events);
  lockstep_free(connection);
  return 0;
}
