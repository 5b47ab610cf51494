// The works; each prints its figures as `name=value` on one line.
#pragma once
#include "peers.h"

// W1: change the counter, wait for the change.
void roundtrip(const Peer *peer, const char *path, uint64_t count);

typedef struct Pipelining {
  uint64_t count;
  uint64_t window;
  // 0: the counter. Else that many entries, one of them at random for each action.
  uint64_t entries;
  // Actions a second, until the input ends; 0: as fast as the window lets, until all are done.
  uint64_t rate;
  // Lockstep: see the patches of all entries as well.
  bool mirrors;
  // The server's process, whose time is taken.
  uint64_t server;
} Pipelining;

// W2, W4, W8: pipelined actions.
void pipeline(const Peer *peer, const char *path, Pipelining how);

typedef struct FanOut {
  uint64_t subscribers;
  // Changes one at a time, then changes within a window; either may be 0.
  uint64_t singles;
  uint64_t count;
  uint64_t window;
  // The server's process, whose time is taken between the two.
  uint64_t server;
} FanOut;

// W3: one writer, many subscribers in two processes.
void fan_out(const Peer *peer, const char *path, FanOut how);

// W8: the longest time that the daemon took to answer a ping, until the input ends, and at most so
// many milliseconds.
void pause_of_loop(const char *path, uint64_t milliseconds);
// W7, W8: how long a new client takes to have all entries, or so many bytes (limit), again and again.
void join(const Peer *peer, const char *path, uint64_t times, uint64_t bytes);
// W2, W9: hold connections that subscribe to something nobody changes, until the input ends.
void idle(const Peer *peer, const char *path, uint64_t count);
// W10: so many connections that do this as fast as they are served, until the input ends.
void flood(const Peer *peer, const char *path, uint64_t clients, FloodKind kind);

typedef enum CrowdView { see_nothing, see_all, see_own } CrowdView;

typedef struct Crowd {
  uint64_t clients;
  // Actions of all together.
  uint64_t count;
  // What each mirrors (Lockstep): nothing, the counter that all change, or an entry that only it
  // changes. For the others the last means as well that each changes its own.
  CrowdView view;
  // The server's process, whose time is taken.
  uint64_t server;
} Crowd;

// W4, W9, W12: clients that have one action each on its way. Then they stay until the input ends.
void crowd(const Peer *peer, const char *path, Crowd how);
// W11: one connection with so many subscriptions, `more` of which come last, and actions of another
// connection that change one of them each.
void subscriptions(
  const Peer *peer, const char *path, uint64_t beside, uint64_t more, uint64_t actions,
  uint64_t server);
// W9: mirrors of the counter, or of so many entries, of which one stops reading and comes back. Each
// step prints a line, and the next begins when a line is read.
void stall(const char *path, uint64_t mirrors, uint64_t entries, uint64_t count, uint64_t server);
