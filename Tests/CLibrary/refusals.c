/* What the daemon refuses: connections beyond a limit, subscriptions and actions that the policy denies;
 * each with its reason. */
#include "support.h"

static void check_limits(void) {
  test_daemon daemon = make_daemon();
  const char *limits[] = {"--limit", "connectionsPerUser=2", "--limit", "subscriptions=2", NULL};
  start_with(&daemon, "lockstepd", "none", limits);
  lockstep_connection *first = connect_to(daemon.socket, 0);
  lockstep_connection *second = connect_to(daemon.socket, 0);
  await_state(first, LOCKSTEP_STATE_LIVE);
  await_state(second, LOCKSTEP_STATE_LIVE);
  lockstep_connection *third = connect_to(daemon.socket, LOCKSTEP_NO_RECONNECT);
  lockstep_event event = await_state(third, LOCKSTEP_STATE_CLOSED);
  CHECK_EQUAL(event.code, LOCKSTEP_GOODBYE_LIMIT);
  CHECK(event.message != NULL);
  CHECK_TEXT(event.limit, "connectionsPerUser");
  CHECK_EQUAL(event.allowed, 2);
  CHECK_EQUAL(event.observed, 3);
  lockstep_free(third);

  uint64_t numbers[3];
  const char *paths[] = {"/a", "/b", "/c"};
  for (int index = 0; index < 3; index++)
    CHECK_EQUAL(lockstep_subscribe(first, paths[index], 0, &numbers[index]), 0);
  event = await_event(first, LOCKSTEP_EVENT_REFUSED);
  CHECK_EQUAL(event.subscription, numbers[2]);
  CHECK_EQUAL(event.code, LOCKSTEP_REFUSAL_LIMIT);
  CHECK(event.message != NULL);
  CHECK_EQUAL(lockstep_kind(lockstep_get(first, numbers[2], "")), LOCKSTEP_ABSENT);
  lockstep_free(second);
  lockstep_free(first);
  remove_daemon(&daemon);
}

static void check_policy(void) {
  test_daemon daemon = make_daemon();
  char policy[96];
  snprintf(policy, sizeof policy, "%s/policy.yaml", daemon.folder);
  FILE *file = fopen(policy, "w");
  CHECK(file != NULL);
  fputs("version: 1\nrules:\n  - everyone: true\n    connect: true\n    read: [/open, /closed]\n"
        "    act: [\"*\"]\n    deny-write: [/closed]\n", file);
  fclose(file);
  const char *arguments[] = {"--policy", policy, NULL};
  start_with(&daemon, "lockstepd", "none", arguments);
  lockstep_connection *connection = connect_to(daemon.socket, 0);
  uint64_t root, open, hidden;
  CHECK_EQUAL(lockstep_subscribe(connection, "", LOCKSTEP_PLACES, &root), 0);
  CHECK_EQUAL(lockstep_subscribe(connection, "/open", 0, &open), 0);
  CHECK_EQUAL(lockstep_subscribe(connection, "/hidden", 0, &hidden), 0);
  lockstep_event event = await_event(connection, LOCKSTEP_EVENT_REFUSED);
  CHECK_EQUAL(event.subscription, hidden);
  CHECK_EQUAL(event.code, LOCKSTEP_REFUSAL_DENIED);
  await_mirror(connection, root);
  perform(connection, "set", "{\"path\":\"/open\",\"value\":1}", LOCKSTEP_OUTCOME_APPLIED);
  perform(connection, "set", "{\"path\":\"/hidden\",\"value\":2}", LOCKSTEP_OUTCOME_REJECTED);
  check_json(lockstep_get(connection, root, ""), "{\"open\":1}");
  CHECK_EQUAL(integer_at(connection, open, ""), 1);
  CHECK_EQUAL(
      lockstep_send(connection, "set", "{\"path\":\"/closed\",\"value\":3}", 0, NULL), 0);
  event = await_event(connection, LOCKSTEP_EVENT_OUTCOME);
  CHECK_EQUAL(event.outcome, LOCKSTEP_OUTCOME_REJECTED);
  CHECK(event.code > 0 && event.message != NULL);
  lockstep_free(connection);
  remove_daemon(&daemon);
}

int main(void) {
  check_limits();
  check_policy();
  return 0;
}
