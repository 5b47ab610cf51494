/* Kills and restarts the daemon under a client that sends: the client resumes by itself, and each action
 * is applied once, or its outcome is unknown. Durable actions survive.
 *   resume [ROUNDS] */
#include "support.h"

enum { BATCH = 200 };

/* Kill the daemon in the middle of a batch, and start it again. */
static void kill_in_batch(
    lockstep_connection *connection, test_daemon *daemon, const char *durability, uint64_t *applied,
    uint64_t *unknown) {
  for (int index = 0; index < BATCH; index++) {
    CHECK_EQUAL(
        lockstep_send(connection, "increment", "{\"path\":\"/n\",\"by\":1}", LOCKSTEP_DURABLE, NULL),
        0);
    if (index == BATCH / 2) {
      lockstep_flush(connection);
      CHECK(lockstep_wait(connection, 5) >= 0);
      end_daemon(daemon, SIGKILL);
    }
  }
  CHECK(lockstep_wait(connection, 50) >= 0);
  start(daemon, durability);
  *applied += await_outcomes(connection, unknown);
}

/* Cut this process's connections to the daemon, which goes on. */
static void cut(const test_daemon *daemon) {
  int count = 0;
  for (int descriptor = 3; descriptor < 100; descriptor++) {
    struct sockaddr_un peer;
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, (struct sockaddr *)&peer, &length) != 0) continue;
    if (peer.sun_family != AF_UNIX || strcmp(peer.sun_path, daemon->socket) != 0) continue;
    CHECK_EQUAL(shutdown(descriptor, SHUT_RDWR), 0);
    count++;
  }
  CHECK(count >= 1);
}

/* Actions over connections that are cut again and again: each is applied once. */
static void check_cuts(
    lockstep_connection *connection, const test_daemon *daemon, uint64_t root, int rounds) {
  int64_t before = integer_at(connection, root, "/n");
  uint64_t applied = 0;
  for (int round = 0; round < 3 * rounds; round++) {
    for (int index = 0; index < BATCH; index++) {
      CHECK_EQUAL(
          lockstep_send(connection, "increment", "{\"path\":\"/n\",\"by\":1}", 0, NULL), 0);
      if (index % 50 == 0) lockstep_dispatch(connection);
    }
    cut(daemon);
    applied += await_outcomes(connection, NULL);
    await_mirror(connection, root);
    CHECK_EQUAL(integer_at(connection, root, "/n"), before + (round + 1) * BATCH);
  }
  CHECK_EQUAL(applied, (uint64_t)3 * (uint64_t)rounds * BATCH);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 5;
  test_daemon daemon = make_daemon();
  start(&daemon, "sync");
  lockstep_connection *connection = connect_to(daemon.socket, 0);
  uint64_t root, part;
  CHECK_EQUAL(lockstep_subscribe(connection, "", 0, &root), 0);
  CHECK_EQUAL(lockstep_subscribe(connection, "/n", 0, &part), 0);
  await_mirror(connection, root);
  int fd = lockstep_fd(connection);
  /* From here on the journal knows the session. */
  perform_with(connection, "set", "{\"path\":\"\",\"value\":{\"n\":0}}", LOCKSTEP_DURABLE,
               LOCKSTEP_OUTCOME_APPLIED);
  lockstep_info before, after;
  CHECK_EQUAL(lockstep_get_info(connection, &before), 0);
  CHECK(before.is_durable);

  uint64_t applied = 0, unknown = 0;
  for (int round = 0; round < rounds; round++) {
    kill_in_batch(connection, &daemon, "sync", &applied, &unknown);
    CHECK_EQUAL(lockstep_state(connection), LOCKSTEP_STATE_LIVE);
  }
  CHECK_EQUAL(applied + unknown, (uint64_t)rounds * BATCH);
  /* The journal keeps sessions, so nothing became unknown, and everything was applied once. */
  CHECK_EQUAL(unknown, 0);
  await_mirror(connection, root);
  CHECK_EQUAL(integer_at(connection, root, "/n"), rounds * BATCH);
  CHECK_EQUAL(integer_at(connection, part, ""), rounds * BATCH);
  CHECK_EQUAL(lockstep_fd(connection), fd);
  CHECK_EQUAL(lockstep_get_info(connection, &after), 0);
  CHECK(after.session == before.session && after.epoch == before.epoch && after.run > before.run);

  check_cuts(connection, &daemon, root, rounds);
  int64_t counted = rounds * BATCH * 4;

  /* A goodbye of the daemon says why, and the client comes back. */
  end_daemon(&daemon, SIGTERM);
  lockstep_event event = await_state(connection, LOCKSTEP_STATE_STALE);
  CHECK_EQUAL(event.code, LOCKSTEP_GOODBYE_STOPPING);
  CHECK(event.message != NULL && strlen(event.message) > 0);
  CHECK_EQUAL(integer_at(connection, root, "/n"), counted);
  start(&daemon, "sync");
  await_state(connection, LOCKSTEP_STATE_LIVE);
  await_mirror(connection, root);
  CHECK_EQUAL(integer_at(connection, root, "/n"), counted);
  lockstep_mirror_info info;
  CHECK_EQUAL(lockstep_get_mirror_info(connection, root, &info), 0);
  CHECK_EQUAL(info.resyncs, 0);

  /* A daemon that keeps nothing has another state when it comes back: the mirror follows that, and what
   * was sent and not answered is unknown. */
  end_daemon(&daemon, SIGTERM);
  start(&daemon, "none");
  await_state(connection, LOCKSTEP_STATE_LIVE);
  await_mirror(connection, root);
  CHECK_EQUAL(lockstep_kind(lockstep_get(connection, root, "/n")), LOCKSTEP_ABSENT);
  perform(connection, "set", "{\"path\":\"\",\"value\":{\"n\":0}}", LOCKSTEP_OUTCOME_APPLIED);
  applied = unknown = 0;
  kill_in_batch(connection, &daemon, "none", &applied, &unknown);
  CHECK_EQUAL(applied + unknown, BATCH);

  /* Without reconnecting, a lost connection is the end. */
  lockstep_connection *once = connect_to(daemon.socket, LOCKSTEP_NO_RECONNECT);
  await_state(once, LOCKSTEP_STATE_LIVE);
  end_daemon(&daemon, SIGKILL);
  await_state(once, LOCKSTEP_STATE_CLOSED);
  CHECK_EQUAL(lockstep_dispatch(once), LOCKSTEP_ERROR_CLOSED);
  lockstep_free(once);

  /* A client may come before its daemon. */
  lockstep_options options = {.socket = daemon.socket, .flags = LOCKSTEP_WAIT_FOR_DAEMON};
  lockstep_connection *early;
  CHECK_EQUAL(lockstep_connect(&options, &early), 0);
  CHECK_EQUAL(lockstep_state(early), LOCKSTEP_STATE_CONNECTING);
  start(&daemon, "none");
  await_state(early, LOCKSTEP_STATE_LIVE);
  lockstep_free(early);
  lockstep_free(connection);
  remove_daemon(&daemon);
  return 0;
}
