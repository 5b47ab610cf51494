"""The system benchmark: the same works done by three servers in turn, A B C A B C, in one run.

Absolute figures of a virtual machine move by two times from run to run; what holds is the ratio
of servers that took turns. So every figure is the median over rounds, with the least and the
most, and every ratio is the median of the ratios within a round. Each server runs on the first
core and its clients on the second, unless a row says otherwise.

The servers: `limit` does the least that the work needs on the same sockets (limit-server);
`lockstep` is the stock daemon; `redis` is Redis over a Unix socket without persistence, and `nats`
NATS over loopback, which it needs, for the works that it can do; these if they are installed.
Scripts/benchmark builds and starts this; figures.py has what was measured, report.py shows it.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import report
from figures import PEERS, Figures

# The programs of peers that may be missing.
PROGRAMS = {"redis": "redis-server", "nats": "nats-server"}
WORKS = ["W1", "W2", "W3", "W4", "W5", "W8", "W9", "W10"]
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]
# A user that needs no entry in the password file.
FLOODER = 4242


def run_on(cores, user=None):
  """What a child does before it becomes another program: settle on its cores, and become a user that
  gets them last."""

  def prepare():
    os.sched_setaffinity(0, cores)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if user is not None:
      os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
      os.setuid(user)

  return prepare


# MARK: Servers


class Server:
  """A running server, pinned to its core."""

  def __init__(self, peer, folder, programs, entries=0, options=(), is_durable=False):
    self.peer = peer
    self.entries = entries
    self.options = options
    self.is_durable = is_durable
    kind = "durable" if is_durable else entries
    self.socket = os.path.join(folder, f"{peer}-{kind}.sock")
    if peer == "nats":
      self.socket = f"127.0.0.1:{free_port()}"
    start = time.monotonic()
    self.process = subprocess.Popen(
      self.command(programs, folder), stdout=subprocess.DEVNULL,
      preexec_fn=run_on({SERVER_CORE}))
    self.wait()
    if peer == "redis" and entries:
      self.fill()
    self.ready = time.monotonic() - start

  def command(self, programs, folder):
    if self.peer == "limit":
      file = [os.path.join(folder, "limit.journal")] if self.is_durable else []
      return [programs["limit"], self.socket, *file]
    if self.peer == "redis":
      kept = ["yes", "--appendfsync", "always"] if self.is_durable else ["no"]
      return ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
              "--appendonly", *kept, "--dir", folder, *self.options]
    if self.peer == "nats":
      host, port = self.socket.split(":")
      return ["nats-server", "--addr", host, "--port", port, "--log", os.devnull]
    kept = ["--state-dir", os.path.join(folder, "state"), "--durability", "sync"]
    return [programs["lockstep"], "--socket", self.socket, "--log-level", "warning", "--load",
            document(folder, self.entries), *(kept if self.is_durable else []), *self.options]

  def wait(self):
    for _ in range(6000):
      with contextlib.suppress(OSError), client_of(self):
        return
      if self.process.poll() is not None:
        sys.exit(f"{self.peer} did not start")
      time.sleep(0.01)
    sys.exit(f"{self.peer} did not open its socket within a minute")

  def fill(self):
    """Give Redis the entries that Lockstep's document begins with."""
    with socket.socket(socket.AF_UNIX) as client:
      client.connect(self.socket)
      for first in range(0, self.entries, 10_000):
        last = min(first + 10_000, self.entries)
        client.sendall("".join(
          f"*6\r\n$4\r\nHSET\r\n$8\r\ne{n:07}\r\n$5\r\nvalue\r\n$1\r\n0\r\n"
          f"$4\r\nname\r\n$13\r\nentry {n:07}\r\n" for n in range(first, last)).encode())
        left = 4 * (last - first)
        while left > 0:
          left -= len(client.recv(left))

  def pin(self, cores):
    for thread in os.listdir(f"/proc/{self.process.pid}/task"):
      os.sched_setaffinity(int(thread), cores)

  def resident(self):
    """The kilobytes that are the process's own in memory."""
    with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
      return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))

  def stop(self):
    self.process.terminate()
    self.process.wait()


def free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


def document(folder, entries):
  """The JSON file that the daemon begins with."""
  path = os.path.join(folder, f"{entries}.json")
  with open(path, "w") as file:
    todos = [{"title": f"todo number {n}", "done": False} for n in range(1000)]
    file.write(f'{{"counter":0,"todos":{json.dumps(todos)},"entries":{{')
    file.write(",".join(f'"e{n:07}":{{"value":0,"name":"entry {n:07}"}}' for n in range(entries)))
    file.write("}}")
  return path


# MARK: Works


class Load:
  """Runs the load generator."""

  def __init__(self, program):
    self.program = program

  def begin(self, work, server, cores=None, /, user=None, **options):
    """Start a work; as a user, only when nobody else wants the processor."""
    command = [self.program, work, server.peer, server.socket]
    command += [f"{name}={value}" for name, value in options.items()]
    return subprocess.Popen(
      command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
      preexec_fn=run_on(cores or {CLIENT_CORE}, user))

  def end(self, process):
    output, _ = process.communicate(timeout=600)
    if process.returncode != 0:
      sys.exit(f"the load generator failed: {' '.join(process.args)}")
    return {name: float(value) for name, value in (pair.split("=") for pair in output.split())}

  def run(self, work, server, cores=None, /, **options):
    return self.end(self.begin(work, server, cores, **options))


def bytes_to_mirror(server):
  """W5: the bytes that a mirror of the whole gets when one todo of 1,000 is done."""
  if server.peer == "limit":
    return 8
  if server.peer == "redis":
    return redis_bytes(server)
  with client_of(server) as mirror, client_of(server) as writer:
    send(mirror, bytes.fromhex("8601820101616df6f6f6"))
    send(mirror, bytes.fromhex("84020180f6"))
    message = b""
    while message[1:2] != b"\x0d" or b"\xf5" not in message[2:12]:
      message = receive(mirror)
    send(writer, bytes.fromhex("86018201016177f6f6f6"))
    send(writer, b"\x84\x04\x01\x00\x83\x00\x83\x65todos\x18\x2a\x64done\xf5")
    message = receive(mirror)
    assert message[1] == 14 and b"done\xf5" in message, message.hex()
    return 4 + len(message)


def redis_bytes(server):
  """The same change as a JSON Patch, published."""
  with client_of(server) as mirror, client_of(server) as writer:
    mirror.sendall(b"SUBSCRIBE todos\r\n")
    mirror.recv(4096)
    patch = b'[{"op":"replace","path":"/todos/42/done","value":true}]'
    writer.sendall(b"*3\r\n$7\r\nPUBLISH\r\n$5\r\ntodos\r\n$%d\r\n%s\r\n" % (len(patch), patch))
    return len(mirror.recv(4096))


def client_of(server):
  if server.peer == "nats":
    host, port = server.socket.split(":")
    return socket.create_connection((host, int(port)))
  client = socket.socket(socket.AF_UNIX)
  try:
    client.connect(server.socket)
  except OSError:
    client.close()
    raise
  return client


def send(client, message):
  client.sendall(struct.pack("<I", len(message)) + message)


def receive(client):
  length, = struct.unpack("<I", client.recv(4, socket.MSG_WAITALL))
  return client.recv(length, socket.MSG_WAITALL)


# MARK: The plan


class Benchmark:
  def __init__(self, options, folder):
    self.quick = options.quick
    self.works = options.works
    self.folder = folder
    self.rounds = options.rounds or (3 if options.quick else 5)
    self.programs = {"limit": options.limit_server, "lockstep": options.lockstepd}
    self.load = Load(options.load_generator)
    self.peers = [p for p in PEERS if p not in PROGRAMS or shutil.which(PROGRAMS[p])]
    # NATS has no state that actions change, so it does the works of messages alone.
    self.keepers = [peer for peer in self.peers if peer != "nats"]
    self.figures = Figures()

  def count(self, full, quick):
    """A count, or a list of cases, for this mode."""
    return quick if self.quick else full

  def run(self):
    servers = [Server(peer, self.folder, self.programs) for peer in self.peers]
    try:
      for work, measure in [("W1", self.w1), ("W2", self.w2), ("W3", self.w3), ("W5", self.w5)]:
        if work in self.works:
          self.say(work)
          messages = work in ["W1", "W3"]
          measure([s for s in servers if messages or s.peer in self.keepers])
    finally:
      for server in servers:
        server.stop()
    if "W4" in self.works:
      self.say("W4")
      self.w4()
    if "W9" in self.works:
      self.say("W9")
      self.w9()
    if "W10" in self.works:
      self.say("W10")
      self.w10()
    sizes = self.count([1_000, 100_000, 1_000_000], [1_000, 1_000_000])
    for entries in sizes:
      if "W8" in self.works or "W2" in self.works and entries == sizes[-1]:
        self.with_entries(entries, entries == sizes[-1])

  def say(self, text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

  def w1(self, servers):
    for _ in range(self.rounds):
      for place, core in [("one core", SERVER_CORE), ("two cores", CLIENT_CORE)]:
        for server in servers:
          result = self.load.run(
            "roundtrip", server, {core}, count=self.count(50_000, 3_000))
          for name in ["p50", "p99", "p999"]:
            self.figures.note(
              "W1", f"round trip, {place}, {name}", "µs", server.peer, result[f"us_{name}"])

  def w2(self, servers):
    for turn in range(self.rounds):
      for window in self.count([100, 1_000, 10_000], [100, 10_000]):
        for server in servers:
          self.pipeline("W2", f"W = {window:,}", server, window)
      if turn == 0 or not self.quick:
        self.idle(servers)

  def idle(self, servers):
    """Nothing may cost more because many others are connected."""
    for server in servers:
      if server.peer != "lockstep":
        continue
      crowd = self.load.begin("idle", server, connections=1_000)
      crowd.stdout.readline()
      self.pipeline("W2", "W = 10,000 beside 1,000 idle mirrors", server, 10_000)
      crowd.communicate()

  def pipeline(self, work, row, server, window, entries=0, **options):
    # Long enough that the clock is no matter; the limit is many times faster.
    scale = 20 if server.peer == "limit" and window > 100 else 1
    result = self.load.run(
      "pipeline", server, window=window, count=scale * self.count(1_000_000, 100_000),
      entries=entries, server=server.process.pid, **options)
    self.figures.note(work, row, "M actions/s", server.peer, result["rate"] / 1e6, "more")
    self.figures.note(work, row, "server µs an action", server.peer, result["cpu_us"])

  def w3(self, servers):
    for _ in range(self.rounds):
      for subscribers in self.count([1, 10, 100, 1_000], [1, 100, 1_000]):
        for server in servers:
          result = self.load.run(
            "fanout", server, subscribers=subscribers,
            singles=self.count(10_000, 2_000) // max(10, subscribers),
            count=self.count(2_000_000, 400_000) // max(20, subscribers),
            server=server.process.pid)
          row = f"N = {subscribers:,}"
          note = lambda *values: self.figures.note("W3", *values)
          note(f"{row}, one change, to the last p50", "µs", server.peer, result["last_p50"])
          note(f"{row}, one change", "server µs a delivery", server.peer, result["single_cpu_us"])
          note(f"{row}, window 256", "M deliveries/s", server.peer, result["delivered"] / 1e6,
               "more")
          note(f"{row}, window 256", "server µs a delivery", server.peer, result["cpu_us"])
          if server.peer == "lockstep":
            assert result["coalesced"] == 0, "the subscribers were too slow to count"

  def w4(self):
    """Actions that are acknowledged once they are on the disk: the limit appends to a file, Redis has
    its append-only file, and each synchronises before it answers. On every core, because writing is
    not the loop's work."""
    servers = [Server(peer, self.folder, self.programs, is_durable=True) for peer in self.keepers]
    for server in servers:
      server.pin(set(CORES))
    try:
      for _ in range(self.rounds):
        for writers in [1, 50]:
          for server in servers:
            self.durable_crowd(server, writers)
        for window in self.count([1_000, 10_000], [10_000]):
          for server in servers:
            self.durable_pipeline(server, window)
    finally:
      for server in servers:
        server.stop()

  def durable_crowd(self, server, writers):
    process = self.load.begin(
      "crowd", server, set(CORES), clients=writers, mirrors=0, durable=1,
      count=self.count(20_000, 3_000) if writers == 1 else self.count(200_000, 40_000))
    result = dict(pair.split("=") for pair in process.stdout.readline().split())
    process.communicate()
    row = f"durable, {writers} writer{'s' if writers > 1 else ''}"
    self.figures.note("W4", f"{row}, p50", "µs", server.peer, float(result["us_p50"]))
    self.figures.note("W4", f"{row}, p99", "µs", server.peer, float(result["us_p99"]))
    self.figures.note("W4", row, "actions/s", server.peer, float(result["rate"]), "more")

  def durable_pipeline(self, server, window):
    result = self.load.run(
      "pipeline", server, set(CORES), window=window, count=self.count(1_000_000, 200_000),
      server=server.process.pid, durable=1)
    row = f"durable, W = {window:,}"
    self.figures.note("W4", row, "actions/s", server.peer, result["rate"], "more")
    self.figures.note("W4", row, "server µs an action", server.peer, result["cpu_us"])

  def w5(self, servers):
    for server in servers:
      self.figures.note(
        "W5", "todos[42].done of 1,000", "bytes to a mirror", server.peer, bytes_to_mirror(server))

  def with_entries(self, entries, also_w2):
    self.say(f"{entries:,} entries")
    servers = [Server(peer, self.folder, self.programs, entries) for peer in self.keepers]
    try:
      if also_w2 and "W2" in self.works:
        for _ in range(self.rounds):
          for window in self.count([100, 1_000, 10_000], [1_000]):
            for server in servers:
              self.pipeline(
                "W2", f"one of {entries:,} entries, W = {window:,}", server, window, entries)
      if "W8" in self.works:
        self.w8(servers, entries)
    finally:
      for server in servers:
        server.stop()

  def w8(self, servers, entries):
    for _ in range(self.rounds):
      for server in servers:
        self.pipeline(
          "W8", f"{entries:,} entries, change and patch", server, 1_000, entries, mirrors=1)
      for server in servers:
        if server.peer == "lockstep":
          self.pauses(server, entries)
    for server in servers:
      if server.peer == "lockstep":
        self.large(server, entries)

  def w9(self):
    """10,000 clients that do nothing and 1,000 that do: what each costs in memory, and how long the
    busy ones wait. An idle client of Lockstep mirrors a path of its own, one of Redis subscribes to
    a channel; a busy one of Lockstep also mirrors what all of them change."""
    limits = [f"--limit={name}=20000" for name in
              ["connections", "connectionsPerUser", "connectionsPerSecond"]]
    for _ in range(self.rounds):
      for peer in self.keepers:
        if peer == "limit":
          continue
        server = Server(
          peer, self.folder, self.programs,
          options=limits if peer == "lockstep" else ["--maxclients", "20000"])
        try:
          self.crowd(server)
        finally:
          server.stop()

  def w10(self):
    """One user's 1,000 connections ask for as much as they get: how long another user's change takes
    to come back. The flood has the clients' core only while the other user has no use for it, so that
    what is measured is the server. Redis knows no users, and of these only actions."""
    kinds = ["nothing", "actions", "values", "deep values", "pings", "subscriptions", "digests",
             "reports"]
    os.chmod(self.folder, 0o711)
    policy = os.path.join(self.folder, "policy.yaml")
    with open(policy, "w") as file:
      file.write(f"version: 1\nrules:\n  - users: [{os.geteuid()}, {FLOODER}]\n"
                 "    connect: true\n    administer: true\n    read: [/]\n    act: [\"*\"]\n")
    for _ in range(self.rounds):
      for peer in self.keepers:
        if peer == "limit":
          continue
        options = ["--policy", policy, "--limit=connectionsPerSecond=5000"]
        if peer == "redis":
          options = ["--maxclients", "5000", "--unixsocketperm", "777"]
        server = Server(peer, self.folder, self.programs, options=options)
        try:
          for number, kind in enumerate(kinds if peer == "lockstep" else kinds[:2]):
            self.flood(server, number, kind)
        finally:
          server.stop()

  def flood(self, server, number, kind):
    flood = self.load.begin("flood", server, kind=number, user=FLOODER)
    if flood.stdout.readline() != "ready=1\n":
      sys.exit("the flood could not begin")
    time.sleep(0.3)
    before = server.resident()
    is_slow = server.peer == "redis" and number > 0
    result = self.load.run("roundtrip", server, count=100 if is_slow else self.count(5_000, 1_000))
    grown = server.resident() - before
    flood.communicate()
    for name in ["p50", "p99"]:
      self.figures.note("W10", f"round trip beside a flood of {kind}, {name}", "µs", server.peer,
                        result[f"us_{name}"])
    self.figures.note("W10", f"memory in a flood of {kind}", "KB", server.peer, max(0, grown))

  def crowd(self, server):
    note = lambda row, unit, value: self.figures.note("W9", row, unit, server.peer, value)
    empty = server.resident()
    idle = self.load.begin("idle", server, connections=10_000)
    idle.stdout.readline()
    full = server.resident()
    note("10,000 idle clients", "KB a client", (full - empty) / 10_000)
    busy = self.load.begin(
      "crowd", server, clients=1_000, count=self.count(1_000_000, 200_000))
    result = dict(pair.split("=") for pair in busy.stdout.readline().split())
    note("1,000 busy clients beside them", "KB a client", (server.resident() - full) / 1_000)
    for name in ["p50", "p99", "max"]:
      note(f"one action each on its way, acknowledged, {name}", "µs", float(result[f"us_{name}"]))
    self.figures.note("W9", "one action each on its way", "M actions/s", server.peer,
                      float(result["rate"]) / 1e6, "more")
    for process in [busy, idle]:
      process.communicate()

  def pauses(self, server, entries):
    """How long a ping waits while 10,000 changes a second go by. The daemon may use every core,
    since a snapshot is encoded beside the loop; nobody else sees the entries, so none is cached."""
    server.pin(set(CORES))
    for what in ["changes only", "a mirror joins"]:
      changes = self.load.begin(
        "pipeline", server, set(CORES), window=1_000, entries=entries, rate=10_000,
        count=1 << 40)
      time.sleep(0.1)
      pinger = self.load.begin("pause", server, set(CORES), milliseconds=20_000)
      if what == "changes only":
        time.sleep(self.count(1, 0.3))
      else:
        joined = self.load.run("join", server, set(CORES), times=1)
      result = self.load.end(pinger)
      if what == "a mirror joins":
        self.figures.note(
          "W8", f"{entries:,} entries, a mirror has its snapshot", "ms", server.peer,
          joined["join_max"] / 1000)
      self.load.end(changes)
      row = f"{entries:,} entries, {what}, a ping waits"
      self.figures.note("W8", f"{row} p99", "µs", server.peer, result["ping_p99"])
      self.figures.note("W8", f"{row} at most", "µs", server.peer, result["ping_max"])
    server.pin({SERVER_CORE})

  def large(self, server, entries):
    """How long a ping waits while one action of somebody else changes very much."""
    server.pin(set(CORES))

    def members(value):
      return b"\xba" + struct.pack(">I", entries) + b"".join(
        b"\x68e%07d%c" % (number, value) for number in range(entries))

    with client_of(server) as writer:
      send(writer, bytes.fromhex("86018201016177f6f6f6"))
      receive(writer)
      actions = {
        "entries are removed": b"\x82\x02\x81\x67entries",
        "members are set": b"\x83\x00\x81\x65large" + members(1),
        "members are replaced": b"\x83\x00\x81\x65large" + members(2),
        "members are moved": b"\x83\x06\x81\x65large\x81\x65moved",
        "members are replaced by none": b"\x83\x00\x81\x65moved\xa0",
      }
      for number, (what, action) in enumerate(actions.items(), 1):
        pinger = self.load.begin("pause", server, set(CORES), milliseconds=20_000)
        time.sleep(0.1)
        send(writer, b"\x84\x04" + bytes([number]) + b"\x00" + action)
        receive(writer)
        # Until what has been dropped is released.
        time.sleep(0.3)
        result = self.load.end(pinger)
        self.figures.note("W8", f"{entries:,} {what}, a ping waits at most", "µs",
                          server.peer, result["ping_max"])
    server.pin({SERVER_CORE})


def main():
  parser = argparse.ArgumentParser(
    prog="Scripts/benchmark", description="Lockstep beside the limit and its peers, in one run.")
  parser.add_argument("--quick", action="store_true", help="about four minutes, and rougher")
  parser.add_argument("--rounds", type=int, help="how often each figure is taken")
  parser.add_argument("--markdown", metavar="FILE", help="also write the table as Markdown")
  parser.add_argument("--json", metavar="FILE", help="also write every value as JSON")
  parser.add_argument(
    "--record", action="store_true",
    help="write figures.json, the pictures and the README's table, of a tree that is committed")
  parser.add_argument(
    "works", nargs="*", default=[w for w in WORKS if w != "W10" or os.geteuid() == 0],
    help="default: all; W10 needs root, for it has two users")
  for program in ["limit-server", "load-generator", "lockstepd"]:
    parser.add_argument(f"--{program}", required=True, help=argparse.SUPPRESS)
  options = parser.parse_args()
  commit = report.commit()
  if options.record and (commit is None or len(options.works) < len(WORKS)):
    sys.exit("--record needs all works, and a tree that is committed: figures are of a commit")
  load_before = os.getloadavg()[0]
  with tempfile.TemporaryDirectory(prefix="lockstep-benchmark-") as folder:
    benchmark = Benchmark(options, folder)
    benchmark.run()
  benchmark.figures.about = {
    "date": str(datetime.date.today()), "commit": commit, "mode": "quick" if options.quick else "full",
    "rounds": benchmark.rounds, "processor": processor(), "cores": len(CORES),
    "linux": platform.release(), "placement":
    f"server on core {SERVER_CORE}, clients on core {CLIENT_CORE}",
    "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
    "peers": {peer: version_of(peer) for peer in benchmark.peers},
  }
  print("\n".join(report.plain(benchmark.figures)))
  if options.markdown:
    with open(options.markdown, "w") as file:
      file.write("\n".join(report.markdown(benchmark.figures)) + "\n")
  if options.json:
    benchmark.figures.write(options.json)
  if options.record:
    report.record(benchmark.figures)


def processor():
  with open("/proc/cpuinfo") as file:
    names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
  return names[0] if names else platform.machine()


def version_of(peer):
  """The version of a peer's program; empty for ours."""
  if peer not in PROGRAMS:
    return ""
  said = subprocess.run([PROGRAMS[peer], "--version"], capture_output=True, text=True).stdout
  found = re.search(r"v=?(\d+(\.\d+)+)", said)
  return found.group(1) if found else said.strip()


if __name__ == "__main__":
  main()
