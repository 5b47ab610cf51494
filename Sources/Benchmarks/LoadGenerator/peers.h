// What the load generator says to each kind of server, and how it understands the answers: by
// precomputed bytes, and as little parsing as counting needs. The server is what is measured.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The bytes of an action, and of a change that is published, at most.
enum { longest_action = 128, longest_change = 256 };

// What has come on a connection.
typedef struct Stream {
  int descriptor;
  // The beginning of a frame, until it says what it is; then the bytes of it that are left to skip.
  uint8_t head[32];
  size_t held;
  size_t skip;
  // Bytes of greetings that are still to come (Redis, limit).
  size_t greeting;
  // Bytes of changes that have come but do not make a whole one (Redis, limit).
  size_t remainder;
  // Whether what was subscribed to is here.
  bool is_ready;
  uint64_t acknowledged;
  // Changes that came each by itself, and those that came only as a part of a later one.
  uint64_t delivered;
  uint64_t coalesced;
  // The revision that the next patch must be based on.
  uint64_t revision;
  uint64_t pongs;
  // Bytes of snapshots, and how many are whole; for Redis, what has been subscribed to.
  uint64_t snapshot;
  uint64_t snapshots;
} Stream;

typedef struct Peer {
  const char *name;
  // Connect to send actions that are acknowledged.
  void (*open_actions)(Stream *, const char *path);
  // An action: raise the counter, or that of one of the entries if `entry` is not negative.
  size_t (*action)(uint8_t *out, uint64_t number, int64_t entry);
  // Understand what answers to actions have come.
  void (*answers)(Stream *, const uint8_t *, size_t);
  // Connect to send changes that go to subscribers.
  void (*open_publisher)(Stream *, const char *path);
  size_t (*publish)(uint8_t *out, uint64_t number);
  // Connect to see the changes of the counter. Ready when `is_ready` is set by `changes`.
  void (*subscribe)(Stream *, const char *path);
  void (*changes)(Stream *, const uint8_t *, size_t);
  // Connect to get the whole state, or so many bytes (limit). All is there when `is_ready` is set by
  // `whole` and nothing is left to skip.
  void (*open_whole)(Stream *, const char *path, uint64_t bytes);
  void (*whole)(Stream *, const uint8_t *, size_t);
  // One more subscription of a connection that `open_actions` made: to one of the entries. It is there
  // when `subscriptions` has raised `snapshots`.
  size_t (*subscription)(uint8_t *out, uint64_t entry);
  // Understand what comes of several subscriptions.
  void (*subscriptions)(Stream *, const uint8_t *, size_t);
  // Change one of the entries, so that its subscribers see it.
  size_t (*publish_entry)(uint8_t *out, uint64_t number, uint64_t entry);
} Peer;

// What a flood consists of. Redis and the limit know actions only.
typedef enum FloodKind {
  // Connections that are quiet.
  flood_nothing,
  // Small actions.
  flood_actions,
  // Actions that replace 1,000 members, and those with deep values, each of nearly 16 KB.
  flood_values,
  flood_deep,
  flood_pings,
  // A subscription and its end.
  flood_subscriptions,
  // The digest of a part of the state.
  flood_digests,
  // The list of all clients.
  flood_reports,
} FloodKind;

extern const Peer lockstep_peer, redis_peer, limit_peer, nats_peer, dbus_peer, ovsdb_peer;

// Whether Lockstep is to acknowledge actions once they are durable; others are told when they start.
extern bool actions_are_durable;

// Whether actions on entries put a new number there, instead of raising the one that is there.
extern bool actions_set;

const Peer *peer_named(const char *name);

// Lockstep only.
// The next message of a flood, and whether its kind is one that is acknowledged.
size_t lockstep_flood(uint8_t *out, FloodKind kind, uint64_t number);
bool flood_is_action(FloodKind kind);
size_t lockstep_ping(uint8_t *out, uint64_t value);
// Subscribe to the counter ("counter") or to all entries ("entries"), or to a path nobody changes.
void lockstep_subscribe(Stream *, const char *member);
size_t lockstep_subscription(uint8_t *out, uint64_t entry);
// Digits that end here, written over zeros.
void put_digits(uint8_t *end, uint64_t value);
