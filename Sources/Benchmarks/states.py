"""Works on large states: W7 how one is loaded, received and held, W8 how costs grow with it and how
long others wait."""

import contextlib
import itertools
import os
import socket
import sqlite3
import struct
import sys
import threading
import time

from run import ANYWHERE
from servers import CORES, HELLO, SERVER_CORE, receive, send

LARGE = 1_000_000
# The bytes of a snapshot of W7's state, which the limit writes as well.
WHOLE = 35_000_000
SUBSCRIBED, ACKNOWLEDGEMENT, DIGEST, REJECTED = 12, 15, 18, 4
CONTENDED = "one of whose places others change 1,000 times a second"


# MARK: W7


def w7(run):
  """1,000,000 entries of 32 bytes. Lockstep starts with them from a document and from its journal,
  Redis from its RDB; a new mirror and a new replica receive them, and the limit writes as many bytes."""
  homes = {peer: next(run.homes) for peer in run.keepers}
  for turn in range(run.count(run.rounds, 1)):
    for peer in run.keepers:
      {"limit": limit_state, "lockstep": lockstep_state, "redis": redis_state}[peer](
        run, homes[peer], turn)


def receive_whole(run, server):
  result = run.load.run("join", server, times=run.count(5, 2), bytes=WHOLE)
  run.note("W7", f"{LARGE:,} entries, connect to all received", "ms", server, result["join_p50"] / 1000)
  run.note("W7", f"{LARGE:,} entries, received", "MB", server, result["bytes"] / 1e6)


def limit_state(run, home, turn):
  with run.server("limit", home) as server:
    receive_whole(run, server)


def ready(run, server, source):
  run.note("W7", f"{LARGE:,} entries, start to ready from {source}", "ms", server, server.ready * 1000)


def held(run, server, empty, source):
  run.note("W7", f"{LARGE:,} entries from {source}", "bytes of memory an entry", server,
           (server.resident() - empty) * 1024 / LARGE)


def lockstep_state(run, home, turn):
  with run.server("lockstep", entries=None) as server:
    empty = server.resident()
  with run.server("lockstep", entries=LARGE, is_flat=True) as server:
    ready(run, server, "a document")
    held(run, server, empty, "a document")
  if turn == 0:
    with run.server("lockstep", home, entries=LARGE, is_flat=True, is_durable=True):
      pass
  with run.server("lockstep", home, entries=None, is_durable=True) as server:
    ready(run, server, "what it kept")
    held(run, server, empty, "what it kept")
    receive_whole(run, server)


def redis_state(run, home, turn):
  if turn == 0:
    with run.server("redis", home, entries=LARGE, is_flat=True) as server:
      server.ask(b"SAVE\r\n")
  with run.server("redis") as server:
    empty = server.resident()
  with run.server("redis", home) as server:
    ready(run, server, "what it kept")
    held(run, server, empty, "what it kept")
    receive_whole(run, server)


# MARK: W8


def w8(run, servers, entries):
  for _ in range(run.rounds):
    for server in servers:
      run.pipeline("W8", f"{entries:,} entries, change and patch", server, 1_000, entries, mirrors=1)
    for server in servers:
      if server.peer == "lockstep" and (entries == LARGE or not run.quick):
        pauses(run, server, entries)
  for server in servers:
    if server.peer == "lockstep" and (entries == LARGE or not run.quick):
      large(run, server, entries)
      asked(run, entries)
      jumps(run, entries)
      kept(run, entries)


def pauses(run, server, entries):
  """How long a ping waits while 10,000 changes a second go by. The daemon may use every core,
  since a snapshot is encoded beside the loop; nobody else sees the entries, so none is cached."""
  server.pin(set(CORES))
  for what in ["changes only", "a mirror joins"]:
    changes = run.load.begin(
      "pipeline", server, set(CORES), window=1_000, entries=entries, rate=10_000, count=1 << 40)
    time.sleep(0.1)
    with run.ping(server) as pings:
      if what == "changes only":
        time.sleep(run.count(1, 0.3))
      else:
        joined = run.load.run("join", server, set(CORES), times=1)
        run.note("W8", f"{entries:,} entries, a mirror has its snapshot", "ms", server,
                 joined["join_max"] / 1000, placement=ANYWHERE)
    run.load.end(changes)
    row = f"{entries:,} entries, {what}, a ping waits"
    run.note("W8", f"{row} p99", "µs", server, pings["ping_p99"], placement=ANYWHERE)
    run.note("W8", f"{row} at most", "µs", server, pings["ping_max"], placement=ANYWHERE)
  server.pin({SERVER_CORE})


def drain(connection):
  """Read what comes, and do nothing with it, until the connection ends."""
  try:
    while connection.recv(1 << 20):
      pass
  except OSError:
    pass


def large(run, server, entries):
  """How long a ping waits while one action of somebody else changes very much, which is mirrored."""
  server.pin(set(CORES))

  with server.connect() as writer, server.connect() as mirror:
    send(mirror, HELLO)
    send(mirror, b"\x84\x02\x01\x81\x65large\xf6")
    reader = threading.Thread(target=drain, args=(mirror,), daemon=True)
    reader.start()
    send(writer, HELLO)
    receive(writer)
    moves = [b"\x83\x06\x81\x65large\x81\x65moved", b"\x83\x06\x81\x65moved\x81\x65large"]
    works = {
      "entries are removed": [b"\x82\x02\x81\x67entries"],
      "members are set": [b"\x83\x00\x81\x65large" + members(entries, 1)],
      "entries, a transaction of 100,000 actions": [transaction(100_000)],
      # Others change the counter all the time, which is the last that it changes.
      f"entries, a transaction of 100,000 actions {CONTENDED}": [
        transaction(100_000, b"\x82\x03\x81\x67counter")],
      "members are replaced": [b"\x83\x00\x81\x65large" + members(entries, 2)],
      "members are moved": moves[:1],
      "members are moved back and forth, 50 moves": [moves[1], moves[0]] * 25,
      "members are replaced by none": [b"\x83\x00\x81\x65moved\xa0"],
    }
    last = 0
    for what, actions in works.items():
      changes = run.load.begin(
        "pipeline", server, set(CORES), window=10, rate=1_000, count=1 << 40
      ) if CONTENDED in what else None
      with run.ping(server) as pings:
        time.sleep(0.1)
        for action in actions:
          last += 1
          send(writer, b"\x84\x04" + head(0, last) + b"\x00" + action)
        while acknowledged(receive(writer)) < last:
          pass
        # Until what has been dropped is released.
        time.sleep(0.3)
      if changes:
        run.load.end(changes)
      run.note("W8", f"{entries:,} {what}, a ping waits at most", "µs", server, pings["ping_max"],
               placement=ANYWHERE)
    mirror.shutdown(socket.SHUT_RDWR)
    reader.join()
  server.pin({SERVER_CORE})


def head(major, value):
  """The head of a CBOR item, of a value below 256."""
  return bytes([major << 5 | value] if value < 24 else [major << 5 | 24, value])


def acknowledged(message):
  """The number of the last action that a message says is done; 0 if it says nothing of any."""
  if message[1] != ACKNOWLEDGEMENT:
    return 0
  rest = iter(message[2:])
  values = []
  for byte in itertools.islice(rest, 5):
    length = 1 << byte - 24 if byte >= 24 else 0
    values.append(int.from_bytes(itertools.islice(rest, length)) if length else byte)
  _, last, _, _, outcome = values
  if outcome == REJECTED:
    sys.exit(f"lockstepd rejected a large action: {message!r}")
  return last


def members(count, value):
  """An object with so many members of this value, as CBOR."""
  return b"\xba" + struct.pack(">I", count) + b"".join(
    b"\x68e%07d%c" % (number, value) for number in range(count))


def transaction(count, *more):
  """As many actions in one, as CBOR: these, and before them some that each set another member of an
  object."""
  return b"\x82\x09\x9a" + struct.pack(">I", count) + b"".join(
    b"\x83\x00\x82\x65large\x68e%07d\x03" % number for number in range(count - len(more))
  ) + b"".join(more)


def asked(run, entries):
  """How long a ping waits while somebody else's short message asks for much: 1,000 changes of a number,
  below which are 10,000 mirrors without a value; the mirror of all entries that has missed 300,000
  changes; the digest of an object of as many members, which has just been set; a mirror of all entries
  while somebody makes 500,000 changes."""
  with run.server("lockstep", entries=entries) as server, server.connect() as client:
    server.pin(set(CORES))
    send(client, HELLO)
    position = first_position(receive(client))

    def note(what, messages, is_answer):
      with run.ping(server) as pings:
        time.sleep(0.1)
        for message in messages:
          send(client, message)
        while not is_answer(receive(client)):
          pass
        time.sleep(0.1)
      run.note("W8", f"{entries:,} entries, {what}, a ping waits at most", "µs", server,
               pings["ping_max"], placement=ANYWHERE)

    def act(number, action):
      return b"\x84\x04\x19" + struct.pack(">H", number) + b"\x00" + action

    for number in range(10_000):
      send(client, b"\x84\x02\x19%b\x82\x67nothing\x64%04d\xf6" % (
        struct.pack(">H", 1000 + number), number))
      if number % 500 == 499:
        for _ in range(500):
          while receive(client)[1] != SUBSCRIBED:
            pass
    changes = [act(number, b"\x82\x03\x81\x67nothing") for number in range(1, 1001)]
    note("1,000 changes above 10,000 mirrors of nothing", changes,
         lambda message: acknowledged(message) == 1000)
    for number in range(10_000):
      send(client, b"\x82\x03\x19" + struct.pack(">H", 1000 + number))
    run.load.run("pipeline", server, set(CORES), window=1_000, count=300_000)
    note("a mirror returns after 300,000 changes",
         [b"\x84\x02\x01\x81\x67entries" + position], is_current)
    send(client, b"\x84\x02\x02\x81\x65large\xf6")
    send(client, act(1001, b"\x83\x00\x81\x65large" + members(entries, 1)))
    while acknowledged(receive(client)) < 1001:
      pass
    note("a digest of as many members that were set", [b"\x82\x06\x02"],
         lambda message: message[1] == DIGEST)
    # More than the history has come while the snapshot is encoded. They are as many as can be made, so that
    # pings wait behind them by themselves.
    for what in ["500,000 changes", "500,000 changes while a mirror joins"]:
      with server.connect() as mirror, run.ping(server) as pings:
        send(mirror, HELLO)
        threading.Thread(target=drain, args=(mirror,), daemon=True).start()
        if "joins" in what:
          send(mirror, b"\x84\x02\x01\x81\x67entries\xf6")
        run.load.run("pipeline", server, set(CORES), window=1_000, entries=entries, count=500_000)
      run.note("W8", f"{entries:,} entries, {what}, a ping waits at most", "µs", server,
               pings["ping_max"], placement=ANYWHERE)


def skip(message, start):
  """The end of a number in a message, or of the head of an array."""
  return start + 1 + (1 << message[start] % 32 - 24 if message[start] % 32 >= 24 else 0)


def first_position(welcome):
  """The position in a welcome, as CBOR: an array of three numbers, behind the version."""
  end = 3
  for _ in range(4):
    end = skip(welcome, end)
  return welcome[3:end]


def is_current(message):
  """Whether a message says that a mirror has everything."""
  return message[1] == SUBSCRIBED and message[skip(message, skip(message, 2))] == 0


def jumps(run, entries):
  """How long a ping waits while a jump brings back an object of so many members: while nothing else
  changes, and beside 1,000 changes a second, where it is refused if it is large."""
  most = f"historyBytes={100 * entries + (4 << 20)}"
  with run.server("lockstep", options=["--limit", most]) as server:
    server.pin(set(CORES))
    with server.connect() as writer:
      send(writer, HELLO)
      receive(writer)

      def ask(name, *arguments):
        texts = b"".join(bytes([0x78, len(text)]) + text for text in map(str.encode, arguments))
        send(writer, b"\x84\x07\x01\x78" + bytes([len(name)]) + name.encode()
             + bytes([0x80 + len(arguments)]) + texts)
        return receive(writer)

      def act(number, action):
        send(writer, b"\x84\x04" + bytes([number]) + b"\x00" + action)
        receive(writer)

      # The first checkpoint: a second after the start, if what is there is small.
      while b"revision" not in ask("past", "", "0"):
        time.sleep(0.1)
      act(1, b"\x83\x00\x81\x65large" + members(entries, 1))
      act(2, b"\x82\x02\x81\x65large")
      for what in ["", " beside 1,000 changes a second"]:
        if what:
          act(3, b"\x82\x02\x81\x65large")
          changes = run.load.begin(
            "pipeline", server, set(CORES), window=10, rate=1_000, count=1 << 40)
        with run.ping(server) as pings:
          time.sleep(0.1)
          start = time.monotonic()
          if b"error" in ask("jump", "1") and not what:
            sys.exit("lockstepd did not jump")
          took = time.monotonic() - start
          time.sleep(0.3)
        if what:
          run.load.end(changes)
        row = f"{entries:,} members are jumped back{what}"
        run.note("W8", f"{row}, a ping waits at most", "µs", server, pings["ping_max"],
                 placement=ANYWHERE)
        if not what:
          run.note("W8", row, "ms", server, took * 1000, placement=ANYWHERE)


def kept(run, entries):
  """How long a ping waits while the journal gets a snapshot of so many entries, beside 1,000 durable
  changes a second."""
  with run.server("lockstep", entries=entries, is_durable=True,
                  options=["--limit", "journalAgeMs=1000"]) as server:
    server.pin(set(CORES))
    journal = os.path.join(server.home, "state", "journal.sqlite")
    changes = run.load.begin("pipeline", server, set(CORES), window=100, entries=entries, durable=1,
                             rate=1_000, count=1 << 40)
    first, end = newest_snapshot(journal), time.monotonic() + 60
    with run.ping(server) as pings:
      while newest_snapshot(journal) < first + 2:
        if time.monotonic() > end:
          sys.exit("the journal got no snapshot")
        time.sleep(0.1)
    run.load.end(changes)
    row = f"{entries:,} entries, the journal gets a snapshot, a ping waits"
    run.note("W8", f"{row} p99", "µs", server, pings["ping_p99"], placement=ANYWHERE)
    run.note("W8", f"{row} at most", "µs", server, pings["ping_max"], placement=ANYWHERE)


def newest_snapshot(journal):
  with contextlib.closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as file:
    return file.execute("SELECT coalesce(max(id), 0) FROM snapshot").fetchone()[0]
