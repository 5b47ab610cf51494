// The client side of the benchmark: see works.h.
//
//   load-generator WORK PEER SOCKET [name=value ...]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "works.h"

static int count_of_arguments;
static char **arguments;

static uint64_t option(const char *name, uint64_t otherwise) {
  size_t length = strlen(name);
  for (int index = 4; index < count_of_arguments; index++) {
    const char *argument = arguments[index];
    if (strncmp(argument, name, length) == 0 && argument[length] == '=') {
      return strtoull(argument + length + 1, NULL, 10);
    }
  }
  return otherwise;
}

const Peer *peer_named(const char *name) {
  const Peer *peers[] = {&lockstep_peer, &redis_peer, &limit_peer,
                         &nats_peer, &dbus_peer, &ovsdb_peer};
  for (size_t index = 0; index < sizeof peers / sizeof *peers; index++) {
    if (strcmp(peers[index]->name, name) == 0) return peers[index];
  }
  fail("there is no peer %s", name);
}

int main(int count, char **given) {
  count_of_arguments = count;
  arguments = given;
  if (count < 4) {
    fprintf(stderr, "usage: load-generator WORK PEER SOCKET [name=value ...]\n"
                    "works: roundtrip pipeline fanout pause join idle crowd flood subscriptions stall\n"
                    "peers: lockstep redis limit nats dbus ovsdb\n");
    return 64;
  }
  const char *work = given[1], *path = given[3];
  const Peer *peer = peer_named(given[2]);
  uint64_t actions = option("count", 100000);
  actions_are_durable = option("durable", 0) != 0;
  actions_set = option("set", 0) != 0;
  if (strcmp(work, "roundtrip") == 0) {
    roundtrip(peer, path, actions);
  } else if (strcmp(work, "pipeline") == 0) {
    pipeline(peer, path, (Pipelining){
      .count = actions, .window = option("window", 1000), .entries = option("entries", 0),
      .rate = option("rate", 0), .mirrors = option("mirrors", 0) != 0,
      .server = option("server", 0)});
  } else if (strcmp(work, "fanout") == 0) {
    fan_out(peer, path, (FanOut){
      .subscribers = option("subscribers", 10), .singles = option("singles", 0),
      .count = option("count", 0), .window = option("window", 256),
      .server = option("server", 0)});
  } else if (strcmp(work, "pause") == 0) {
    pause_of_loop(path, option("milliseconds", 1000));
  } else if (strcmp(work, "join") == 0) {
    join(peer, path, option("times", 1), option("bytes", 0));
  } else if (strcmp(work, "idle") == 0) {
    idle(peer, path, option("connections", 1000));
  } else if (strcmp(work, "flood") == 0) {
    flood(peer, path, option("clients", 1000), (FloodKind)option("kind", flood_actions));
  } else if (strcmp(work, "crowd") == 0) {
    crowd(peer, path, (Crowd){
      .clients = option("clients", 1000), .count = actions,
      .view = (CrowdView)option("view", see_all), .server = option("server", 0)});
  } else if (strcmp(work, "subscriptions") == 0) {
    subscriptions(peer, path, option("beside", 100), option("more", 1000), actions,
                  option("server", 0));
  } else if (strcmp(work, "stall") == 0) {
    stall(path, option("mirrors", 100), option("entries", 0), actions, option("server", 0));
  } else {
    fail("there is no work %s", work);
  }
  return 0;
}
