"""What all works share: the servers that take turns, the load generator, and where figures go."""

import contextlib
import datetime
import itertools
import os
import subprocess
import sys

from figures import PEERS, Figures
from servers import CLIENT_CORE, CORES, SERVER_CORE, SERVERS, run_on

# Where a server and its clients run, as the tables say it.
APART = f"{SERVER_CORE} / {CLIENT_CORE}"
TOGETHER = f"{SERVER_CORE} / {SERVER_CORE}"
ANYWHERE = "all / all"
# Peers that have a state, which actions change and clients can ask for. The others carry messages.
KEEPERS = ["limit", "lockstep", "redis"]


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

  def line(self, process):
    """What the next line says of a work that goes on."""
    line = process.stdout.readline()
    if not line:
      sys.exit(f"the load generator failed: {' '.join(process.args)}")
    return values_of(line)

  def end(self, process, more=""):
    output, _ = process.communicate(more, timeout=600)
    if process.returncode != 0:
      sys.exit(f"the load generator failed: {' '.join(process.args)}")
    return values_of(output)

  def run(self, work, server, cores=None, /, **options):
    return self.end(self.begin(work, server, cores, **options))


def values_of(text):
  return {name: float(value) for name, value in (pair.split("=") for pair in text.split())}


class Run:
  def __init__(self, options, folder):
    self.quick = options.quick
    self.folder = folder
    self.rounds = options.rounds or (3 if options.quick else 5)
    self.programs = {"limit": options.limit_server, "lockstep": options.lockstepd}
    self.load = Load(options.load_generator)
    self.peers = [peer for peer in PEERS if SERVERS[peer].is_installed()]
    self.keepers = [peer for peer in self.peers if peer in KEEPERS]
    self.figures = Figures()
    self.homes = (os.path.join(folder, str(number)) for number in itertools.count())

  def count(self, full, quick):
    """A count, or a list of cases, for this mode."""
    return quick if self.quick else full

  def say(self, text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

  def note(self, work, row, unit, server, value, better="less", placement=APART):
    self.figures.note(work, row, unit, server.peer, value, better, placement)

  def note_rate(self, work, row, unit, server, result, scale=1, placement=APART):
    """A rate, and what the load alone could do with the time that it needed for each."""
    rate = result.get("rate") or result["delivered"]
    self.note(work, row, unit, server, rate / scale, "more", placement)
    if result.get("load_us"):
      self.note(work, f"{row}, the load's ceiling", unit, server,
                1e6 / result["load_us"] / scale, "more", placement)

  @contextlib.contextmanager
  def server(self, peer, home=None, **how):
    """A server until the end of a block; in a new folder, unless it is told one."""
    server = SERVERS[peer](home or next(self.homes), self.programs, **how)
    try:
      yield server
    finally:
      server.stop()

  @contextlib.contextmanager
  def servers(self, peers, **how):
    with contextlib.ExitStack() as stack:
      yield [stack.enter_context(self.server(peer, **how)) for peer in peers]

  def pipeline(self, work, row, server, window, entries=0, **options):
    # Long enough that the clock is no matter; the limit is many times faster.
    scale = 20 if server.peer == "limit" and window > 100 else 1
    result = self.load.run(
      "pipeline", server, window=window, count=scale * self.count(1_000_000, 100_000),
      entries=entries, server=server.process.pid, **options)
    self.note_rate(work, row, "M actions/s", server, result, 1e6)
    self.note(work, row, "server µs an action", server, result["cpu_us"])

  @contextlib.contextmanager
  def ping(self, server):
    """Ping the daemon while a block runs; what is yielded has the times at its end."""
    result = {}
    pinger = self.load.begin("pause", server, set(CORES), milliseconds=20_000)
    yield result
    result.update(self.load.end(pinger))
