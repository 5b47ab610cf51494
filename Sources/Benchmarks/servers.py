"""The servers that are measured, each started on its core and stopped again.

`limit` does the least that the work needs on the same sockets (limit-server); `lockstep` is the stock
daemon; `redis` is Redis over a Unix socket without persistence; `nats` is NATS over loopback, which it
needs; `dbus` is dbus-broker; `ovsdb` is OVSDB over a Unix socket. All but the first two may be missing.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time

import bus

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]


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


class Server:
  """A running server, pinned to its core. `ready` is the seconds that it took to be of use."""

  peer = ""
  # What must be installed.
  needs = []

  def __init__(self, home, programs, entries=0, options=(), is_durable=False, is_flat=False):
    """Start it in a folder of its own, which has what an earlier one kept there. Flat entries are
    texts; others are objects that can be counted in."""
    os.makedirs(home, exist_ok=True)
    # Other users come in as well.
    os.chmod(home, 0o755)
    self.home = home
    self.program = programs.get(self.peer)
    self.entries, self.is_flat = entries, is_flat
    self.options, self.is_durable = options, is_durable
    self.socket = os.path.join(home, "socket")
    with contextlib.suppress(FileNotFoundError):
      os.unlink(self.socket)
    self.prepare()
    start = time.monotonic()
    self.process = self.start()
    try:
      self.wait()
      self.ready = time.monotonic() - start
      self.fill()
    except BaseException:
      self.stop()
      raise

  def prepare(self):
    """What must be there before the program starts."""

  def command(self):
    raise NotImplementedError

  def start(self):
    return subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, preexec_fn=run_on({SERVER_CORE}))

  def is_ready(self):
    with self.connect():
      return True

  def wait(self):
    end = time.monotonic() + 60
    while time.monotonic() < end:
      with contextlib.suppress(OSError):
        if self.is_ready():
          return
      if self.process.poll() is not None:
        sys.exit(f"{self.peer} did not start")
      time.sleep(0.0005)
    sys.exit(f"{self.peer} was not ready within a minute")

  def fill(self):
    """Give it its entries, if it did not begin with them."""

  def connect(self):
    client = socket.socket(socket.AF_UNIX)
    try:
      client.connect(self.socket)
    except OSError:
      client.close()
      raise
    return client

  def pin(self, cores):
    for thread in os.listdir(f"/proc/{self.process.pid}/task"):
      os.sched_setaffinity(int(thread), cores)

  def resident(self, only_private=True):
    """The kilobytes that the process has in memory: its own, or also those shared with files."""
    kinds = "Private_" if only_private else "Rss:"
    with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
      return sum(int(line.split()[1]) for line in file if line.startswith(kinds))

  def stop(self):
    self.process.terminate()
    try:
      self.process.wait(60)
    except subprocess.TimeoutExpired:
      self.process.kill()
      self.process.wait()

  @classmethod
  def is_installed(cls):
    return all(shutil.which(program) for program in cls.needs)

  @classmethod
  def version(cls):
    """The version of the program; empty for ours."""
    if not cls.needs:
      return ""
    said = subprocess.run([cls.needs[0], "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", said) or re.search(r"\d+", said)
    return found.group() if found else said.strip()


class Limit(Server):
  peer = "limit"

  def command(self):
    file = [os.path.join(self.home, "journal")] if self.is_durable else []
    return [self.program, self.socket, *file]


class Lockstep(Server):
  """The daemon is ready when it says so to its service manager. Without entries it gets the document
  that the works need; with `entries` None nothing, so that it starts with what it kept, or empty."""

  peer = "lockstep"

  def prepare(self):
    path = os.path.join(self.home, "notify")
    with contextlib.suppress(FileNotFoundError):
      os.unlink(path)
    self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    self.manager.bind(path)
    self.document = None
    if self.entries is not None:
      self.document = write_document(self.home, self.entries, self.is_flat)

  def command(self):
    loaded = ["--load", self.document] if self.document else []
    kept = ["--state-dir", os.path.join(self.home, "state"), "--durability", "sync"]
    return [self.program, "--socket", self.socket, "--log-level", "warning", *loaded,
            *(kept if self.is_durable else []), *self.options]

  def start(self):
    environment = dict(os.environ, NOTIFY_SOCKET=self.manager.getsockname())
    return subprocess.Popen(
      self.command(), env=environment, stdout=subprocess.DEVNULL, preexec_fn=run_on({SERVER_CORE}))

  def is_ready(self):
    self.manager.settimeout(0.1)
    return b"READY=1" in self.manager.recv(4096).split(b"\n")

  def stop(self):
    super().stop()
    self.manager.close()


class Redis(Server):
  peer = "redis"
  needs = ["redis-server"]

  def command(self):
    kept = ["yes", "--appendfsync", "always"] if self.is_durable else ["no"]
    return ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
            "--repl-diskless-sync-delay", "0", "--appendonly", *kept, "--dir", self.home, *self.options]

  def is_ready(self):
    with self.connect() as client:
      client.sendall(b"PING\r\n")
      return client.recv(64) == b"+PONG\r\n"

  def ask(self, request):
    with self.connect() as client:
      client.sendall(request)
      return client.recv(4096)

  def fill(self):
    """The entries that Lockstep's document begins with: a hash, or a text, for each."""
    with self.connect() as client:
      for first in range(0, self.entries or 0, 10_000):
        last = min(first + 10_000, self.entries)
        client.sendall("".join(
          f"*3\r\n$3\r\nSET\r\n$8\r\ne{n:07}\r\n$24\r\n{flat_text(n)}\r\n" if self.is_flat else
          f"*6\r\n$4\r\nHSET\r\n$8\r\ne{n:07}\r\n$5\r\nvalue\r\n$1\r\n0\r\n"
          f"$4\r\nname\r\n$13\r\nentry {n:07}\r\n" for n in range(first, last)).encode())
        left = (5 if self.is_flat else 4) * (last - first)
        while left > 0:
          left -= len(client.recv(left))


class Nats(Server):
  peer = "nats"
  needs = ["nats-server"]

  def prepare(self):
    with socket.socket() as probe:
      probe.bind(("127.0.0.1", 0))
      self.address = probe.getsockname()
    self.socket = f"127.0.0.1:{self.address[1]}"

  def command(self):
    return ["nats-server", "--addr", self.address[0], "--port", str(self.address[1]),
            "--log", os.devnull]

  def connect(self):
    return socket.create_connection(self.address)


class DBus(Server):
  peer = "dbus"
  needs = ["dbus-broker"]

  def start(self):
    process, self.controller = bus.start(self.needs[0], self.socket, run_on({SERVER_CORE}))
    return process

  def stop(self):
    super().stop()
    self.controller.close()


class Ovsdb(Server):
  """A database with one row, whose counter has twelve digits from the beginning."""

  peer = "ovsdb"
  needs = ["ovsdb-server", "ovsdb-tool"]

  def prepare(self):
    schema, self.database = (os.path.join(self.home, name) for name in ["schema", "database"])
    counter = {"columns": {"value": {"type": "integer"}}, "maxRows": 1, "isRoot": True}
    with open(schema, "w") as file:
      json.dump({"name": "Benchmark", "version": "1.0.0", "tables": {"Counter": counter}}, file)
    subprocess.run(["ovsdb-tool", "create", self.database, schema], check=True)

  def command(self):
    return ["ovsdb-server", f"--remote=punix:{self.socket}", "--verbose=off", "--no-chdir",
            f"--unixctl={os.path.join(self.home, 'control')}", self.database]

  def fill(self):
    insert = {"op": "insert", "table": "Counter", "row": {"value": 10 ** 11}}
    with self.connect() as client:
      client.sendall(json.dumps(
        {"id": 0, "method": "transact", "params": ["Benchmark", insert]}).encode())
      client.recv(4096)


SERVERS = {kind.peer: kind for kind in [Limit, Lockstep, Redis, Nats, DBus, Ovsdb]}


def flat_text(number):
  """With its key of 8 bytes an entry has 32."""
  return f"entry {number:018}"


def write_document(folder, entries, is_flat=False):
  """The JSON file that the daemon begins with."""
  path = os.path.join(folder, f"{entries}{'-flat' if is_flat else ''}.json")
  with open(path, "w") as file:
    todos = [{"title": f"todo number {n}", "done": False} for n in range(1000)]
    file.write(f'{{"counter":0,"todos":{json.dumps(todos)},"entries":{{')
    file.write(",".join(
      f'"e{n:07}":"{flat_text(n)}"' if is_flat else
      f'"e{n:07}":{{"value":0,"name":"entry {n:07}"}}' for n in range(entries)))
    file.write("}}")
  return path


# MARK: What Python says to the daemon itself

HELLO = bytes.fromhex("86018201016177f6f6f6")


def send(client, message):
  client.sendall(struct.pack("<I", len(message)) + message)


def receive(client):
  length, = struct.unpack("<I", client.recv(4, socket.MSG_WAITALL))
  return client.recv(length, socket.MSG_WAITALL)
