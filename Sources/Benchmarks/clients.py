"""Works on clients: W6 what a daemon is before it has any, W9 what many cost and one that stops, W10
floods, W11 many subscriptions of one, W12 many that do a little."""

import itertools
import math
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from run import ANYWHERE
from servers import CORES, HELLO, SERVER_CORE, receive, send
from states import drain, members

# A user that needs no entry in the password file.
FLOODER = 4242
SUBSCRIPTIONS = 5_000
# The number of this message.
PONG = 16
MANY = [f"--limit={name}=20000" for name in ["connections", "connectionsPerUser", "connectionsPerSecond"]]


# MARK: W6


def w6(run):
  """From the start of the process until it is of use: the daemon says so to its service manager, Redis
  answers a ping, the limit accepts a connection."""
  home = next(run.homes)
  for _ in range(run.count(11, 5)):
    for peer in run.keepers:
      with run.server(peer, entries=None) as server:
        run.note("W6", "start to ready, empty", "ms", server, server.ready * 1000)
        run.note("W6", "memory, empty", "MB", server, server.resident(only_private=False) / 1024)
        run.note("W6", "memory of its own, empty", "MB", server, server.resident() / 1024)
    with run.server("lockstep", home, entries=None, is_durable=True) as server:
      run.note("W6", "start to ready with a state directory", "ms", server, server.ready * 1000)
  for peer in run.keepers:
    with run.server(peer, entries=None) as server:
      program, libraries = sizes(os.path.realpath(f"/proc/{server.process.pid}/exe"), next(run.homes))
      run.note("W6", "program, stripped", "MB", server, program / 1e6)
      run.note("W6", "libraries of Swift beside it", "MB", server, libraries / 1e6)
      run.note("W6", "program and libraries, stripped", "MB", server, (program + libraries) / 1e6)


def sizes(program, copy):
  """The bytes of a program without its symbols, and of Swift's libraries that it needs."""
  strip = shutil.which("strip") or shutil.which("llvm-strip") or sys.exit("strip is missing")
  subprocess.run([strip, "-o", copy, program], check=True)
  linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
  paths = re.findall(r"=> (\S+/lib(?:swift|Foundation|_Foundation|dispatch|Blocks)\S*)", linked)
  return os.path.getsize(copy), sum(os.path.getsize(os.path.realpath(path)) for path in paths)


# MARK: W9


def w9(run):
  """10,000 clients that do nothing and 1,000 that do: what each costs in memory, and how long the
  busy ones wait. An idle client of Lockstep mirrors a path of its own, one of Redis subscribes to
  a channel; a busy one of Lockstep also mirrors what all of them change."""
  options = {"lockstep": MANY, "redis": ["--maxclients", "20000"]}
  for _ in range(run.count(run.rounds, 1)):
    for peer in run.keepers:
      if peer in options:
        with run.server(peer, options=options[peer]) as server:
          crowd(run, server)
    with run.server("lockstep", options=MANY) as server:
      stall(run, server, "the counter", 0)


def crowd(run, server):
  note = lambda row, unit, value: run.note("W9", row, unit, server, value)
  empty = server.resident()
  idle = run.load.begin("idle", server, connections=10_000)
  run.load.line(idle)
  # Redis shrinks the buffers of its idle clients within some seconds, to a quarter of their memory.
  first, pause = (8, 2) if server.peer == "redis" else (1, 0.5)
  time.sleep(first)
  full, before = server.resident(), math.inf
  while full < 0.99 * before:
    time.sleep(pause)
    full, before = server.resident(), full
  note("10,000 idle clients", "KB a client", (full - empty) / 10_000)
  busy = run.load.begin("crowd", server, clients=1_000, count=run.count(1_000_000, 200_000))
  result = run.load.line(busy)
  note("1,000 busy clients beside them", "KB a client", (server.resident() - full) / 1_000)
  for name in ["p50", "p99", "max"]:
    note(f"one action each on its way, acknowledged, {name}", "µs", result[f"us_{name}"])
  run.note_rate("W9", "one action each on its way", "M actions/s", server, result, 1e6)
  run.load.end(busy)
  if server.peer != "lockstep":
    return run.load.end(idle)
  for what in ["are connected", "end at once"]:
    with run.ping(server) as pings:
      if what == "end at once":
        run.load.end(idle)
      # Their deadlines are looked at once a second.
      time.sleep(1.2)
    note(f"10,000 idle clients {what}, a ping waits at most", "µs", pings["ping_max"])


def w9_entries(run, servers, entries):
  for _ in range(run.count(run.rounds, 1)):
    for server in servers:
      if server.peer == "lockstep":
        stall(run, server, f"a map of {entries:,}", entries)


def stall(run, server, what, entries):
  """100 mirrors of the same path, of which one stops reading while changes go by, and comes back: what
  the others cost, and how long an unrelated client waits for an answer."""
  mirrors = run.load.begin(
    "stall", server, mirrors=100, entries=entries, count=run.count(1_000_000, 100_000),
    server=server.process.pid)
  for state in ["none", "one"]:
    cost = run.load.line(mirrors)["cpu_us"]
    run.note("W9", f"100 mirrors of {what}, {state} stopped", "server µs a delivery", server, cost)
    run.note("W9", f"100 mirrors of {what}, {state} stopped", "MB of memory", server,
             server.resident() / 1024)
    if state == "none":
      mirrors.stdin.write("\n")
      mirrors.stdin.flush()
  # The daemon may use every core: it may compute the difference beside the loop.
  server.pin(set(CORES))
  with run.ping(server) as pings:
    time.sleep(0.2)
    result = run.load.end(mirrors, "\n")
  server.pin({SERVER_CORE})
  row = f"100 mirrors of {what}, the stopped one comes back"
  for name, unit, value in [
    (row, "ms", result["return_us"] / 1000), (row, "KB received", result["bytes"] / 1000),
    (f"{row}, a ping waits at most", "µs", pings["ping_max"]),
  ]:
    run.note("W9", name, unit, server, value, placement=ANYWHERE)


# MARK: W10


def w10(run):
  """One user's 1,000 connections ask for as much as they get: how long another user's change takes
  to come back. The flood has the clients' core only while the other user has no use for it, so that
  what is measured is the server. Redis knows no users, and of these only actions."""
  kinds = ["nothing", "actions", "values", "deep values", "pings", "subscriptions", "digests",
           "reports"]
  os.chmod(run.folder, 0o711)
  policy = os.path.join(run.folder, "policy.yaml")
  with open(policy, "w") as file:
    file.write(f"version: 1\nrules:\n  - users: [{os.geteuid()}, {FLOODER}]\n"
               "    connect: true\n    administer: true\n    read: [/]\n    act: [\"*\"]\n")
  options = {
    "lockstep": ["--policy", policy, "--limit=connectionsPerSecond=5000"],
    "redis": ["--maxclients", "5000", "--unixsocketperm", "777"],
  }
  for _ in range(run.rounds):
    for peer in run.keepers:
      if peer in options:
        for number, kind in enumerate(kinds if peer == "lockstep" else kinds[:2]):
          # Each has its own, which owes nothing to the flood before.
          with run.server(peer, options=options[peer]) as server:
            flood(run, server, number, kind)


def flood(run, server, number, kind):
  process = run.load.begin("flood", server, kind=number, user=FLOODER)
  run.load.line(process)
  time.sleep(0.3)
  before = server.resident()
  if server.peer == "lockstep":
    begin = time.monotonic()
    with server.connect() as other:
      send(other, HELLO)
      receive(other)
    run.note("W10", f"a client is welcomed beside a flood of {kind}", "ms", server,
             (time.monotonic() - begin) * 1000)
  is_slow = server.peer == "redis" and number > 0
  result = run.load.run("roundtrip", server, count=run.count(100, 20) if is_slow else run.count(5_000, 1_000))
  grown = server.resident() - before
  run.load.end(process)
  for name in ["p50", "p99"]:
    run.note("W10", f"round trip beside a flood of {kind}, {name}", "µs", server,
             result[f"us_{name}"])
  run.note("W10", f"memory in a flood of {kind}", "KB", server, max(0, grown))


# MARK: W11


def w11(run):
  """One connection with subscriptions to so many entries, or channels of Redis: what one more costs,
  and an action of another connection that changes one of them."""
  how = {"lockstep": {"entries": 22_000, "options": ["--limit=subscriptions=30000"]}, "redis": {}}
  for _ in range(run.rounds):
    for beside in run.count([100, 1_000, 10_000, 20_000], [100, 20_000]):
      for peer in run.keepers:
        if peer in how:
          with run.server(peer, **how[peer]) as server:
            subscriptions(run, server, beside)
    if "lockstep" in run.keepers:
      crowded(run)


def subscriptions(run, server, beside):
  result = run.load.run(
    "subscriptions", server, beside=beside, more=1_000, count=run.count(100_000, 20_000),
    server=server.process.pid)
  run.note("W11", f"one more beside {beside:,} of its connection", "server µs each", server,
           result["open_us"])
  run.note("W11", f"an action that changes one of {beside:,}", "server µs an action", server,
           result["cpu_us"])


def crowded(run):
  """How long a ping waits while an action changes many subscriptions of many connections, and while a
  connection comes back that has not read what changed many of its subscriptions."""
  with run.server("lockstep") as server, server.connect() as writer:
    server.pin(set(CORES))
    numbers = itertools.count(1)
    send(writer, HELLO)
    receive(writer)

    def replace():
      number = next(numbers)
      send(writer, struct.pack(">BBBB", 0x84, 4, 0x18, number) + b"\x00\x83\x00\x81\x65large"
           + members(SUBSCRIPTIONS, number % 2))
      receive(writer)

    replace()
    mirrors = [seeing_each(server) for _ in range(10)]
    readers = [threading.Thread(target=drain, args=(mirror,), daemon=True) for mirror in mirrors]
    for reader in readers:
      reader.start()
    with run.ping(server) as pings:
      for _ in range(run.count(10, 3)):
        replace()
        time.sleep(0.1)
    row = f"an action changes {SUBSCRIPTIONS:,} subscriptions of each of 10 connections"
    run.note("W11", f"{row}, a ping waits at most", "µs", server, pings["ping_max"],
             placement=ANYWHERE)
    with run.ping(server) as pings:
      for mirror in mirrors:
        mirror.shutdown(socket.SHUT_RDWR)
      for reader in readers:
        reader.join()
      time.sleep(0.5)
    row = f"10 connections with {SUBSCRIPTIONS:,} subscriptions each end"
    run.note("W11", f"{row}, a ping waits at most", "µs", server, pings["ping_max"],
             placement=ANYWHERE)

    with seeing_each(server) as mirror:
      # More than the kernel keeps for it.
      for _ in range(40):
        replace()
      reader = threading.Thread(target=drain, args=(mirror,), daemon=True)
      with run.ping(server) as pings:
        time.sleep(0.1)
        reader.start()
        time.sleep(1)
      mirror.shutdown(socket.SHUT_RDWR)
      reader.join()
    row = f"a connection with {SUBSCRIPTIONS:,} subscriptions comes back"
    run.note("W11", f"{row}, a ping waits at most", "µs", server, pings["ping_max"],
             placement=ANYWHERE)


def seeing_each(server):
  """A connection with a subscription to each member."""
  connection = server.connect()
  send(connection, HELLO)
  receive(connection)
  for first in range(0, SUBSCRIPTIONS, 500):
    for number in range(first, first + 500):
      send(connection, struct.pack(">BBBH", 0x84, 2, 0x19, number)
           + b"\x82\x65large\x68e%07d\xf6" % number)
    send(connection, b"\x82\x05\x00")
    while receive(connection)[1] != PONG:
      pass
  return connection


# MARK: W12


def w12(run):
  """Clients that have one small action each in flight: on a counter without subscribers, and each on an
  entry of its own, which it mirrors (Lockstep only)."""
  with run.servers(run.keepers, entries=1_000) as servers:
    for _ in range(run.rounds):
      for clients in run.count([1, 10, 100, 1_000], [100]):
        for view, what in [(0, "no subscriber"), (2, "each its own entry")]:
          for server in servers:
            result = run.load.run(
              "crowd", server, clients=clients, view=view, server=server.process.pid,
              count=run.count(200_000, 50_000) // (10 if clients < 10 else 1))
            row = f"{clients:,} client{'s' if clients > 1 else ''}, an action each, {what}"
            run.note_rate("W12", row, "M actions/s", server, result, 1e6)
            run.note("W12", row, "server µs an action", server, result["cpu_us"])
            run.note("W12", f"{row}, acknowledged, p50", "µs", server, result["us_p50"])
