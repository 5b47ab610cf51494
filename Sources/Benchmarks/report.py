"""Shows figures: as a table for people, in the README, and as pictures.

  python3 report.py --check   fails if the README or a picture is not what figures.json says, if what an
                              action costs has changed since these figures were taken, or if code of the
                              daemon is newer than they are
  python3 report.py --write   makes them anew from figures.json
  python3 report.py --self-test   shows that newer code is found, in a repository of its own
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap

import pictures
from figures import Figures, cell, ratio, text

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIGURES = os.path.join(HERE, "figures.json")
README = os.path.join(ROOT, "README.md")
BASELINE = os.path.join(ROOT, "Tests", "Counts", "baseline.txt")
BEGIN = "<!-- Scripts/benchmark --record writes what follows -->\n"
END = "<!-- until here -->\n"
# A count that has changed by more than this needs new figures.
TOLERANCE = 0.03
# So does any code of these.
MEASURED = ["Package.swift", "Sources/Core", "Sources/Daemon", "Sources/System",
            ":!Sources/Core/ClientCore"]
COMMENT = re.compile(r"\s*//")
NAMES = {"limit": "limit", "lockstep": "Lockstep", "redis": "Redis", "nats": "NATS",
         "dbus": "dbus-broker", "ovsdb": "OVSDB"}


# MARK: All figures


def conditions(about):
  peers = ", ".join(f"{NAMES[p]} {v}" for p, v in about["peers"].items() if v) or "no other peers"
  return [
    f"{about['date']}, {about['commit'] or 'not committed'}, {about['processor']}, "
    f"{about['cores']} cores, Linux {about['linux']}",
    f"{about['placement']}; {peers}; load average {about['load'][0]} before, {about['load'][1]} after",
    f"{about['mode']}, up to {about['rounds']} rounds: median (least … most); ▲ more is better, ▼ less is "
    "better; ratios are Lockstep's figure to the other's, the median over the rounds",
    "the load's ceiling is what the clients could do with the processor's time that they took; a rate close "
    "to it is at least so much",
  ]


def table(figures):
  others = [peer for peer in figures.peers if peer != "lockstep"]
  head = ["", "", "", "cores", *(NAMES[peer] for peer in figures.peers)]
  head += [f"to {NAMES[peer]}" for peer in others]
  lines = [
    [key[0], f"{key[1]}, {key[2]}", "▲" if key[3] == "more" else "▼", figures.placements[key],
     *(cell(values.get(peer)) for peer in figures.peers), *(ratio(values, peer) for peer in others)]
    for key, values in figures.rows.items()]
  return head, lines


def plain(figures):
  head, lines = table(figures)
  widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
  yield from conditions(figures.about)
  yield ""
  for row in [head, *lines]:
    yield "  ".join(
      part.ljust(width) if column < 4 else part.rjust(width)
      for column, (part, width) in enumerate(zip(row, widths))).rstrip()


def markdown(figures):
  head, lines = table(figures)
  yield from (f"{line}  " for line in conditions(figures.about))
  yield ""
  yield "| " + " | ".join(head) + " |"
  yield "| --- | --- | --- | --- |" + " ---: |" * (len(head) - 4)
  yield from ("| " + " | ".join(row) + " |" for row in lines)


# MARK: The README

# A row of the README: what it says, by how much its figures are divided, and where they are.
LARGE = "1,000,000"
WHOLE = f"{LARGE} entries"
FLOODS = ["actions", "values", "deep values", "pings", "subscriptions", "digests", "reports"]
# Those that a user feels come first, then what a single action costs.
ROWS = [
  ("round trip, one core / two cores, p50, µs", 1,
   [("W1", "round trip, one core, p50", "µs"), ("W1", "round trip, two cores, p50", "µs")]),
  ("the same beside 1,000 connections of another user that flood it with actions, p50 / p99, µs", 1,
   [("W10", "round trip beside a flood of actions, p50", "µs"),
    ("W10", "round trip beside a flood of actions, p99", "µs")]),
  (f"beside floods of {' / '.join(FLOODS[1:])}, p99, µs", 1,
   [("W10", f"round trip beside a flood of {kind}, p99", "µs") for kind in FLOODS[1:]]),
  ("one change to the last of 100 / 1,000 mirrors, p50, µs", 1,
   [("W3", f"N = {count}, one change, to the last p50", "µs") for count in ["100", "1,000"]]),
  ("changes delivered to 100 / 1,000 mirrors, millions a second", 1,
   [("W3", f"N = {count}, window 256", "M deliveries/s") for count in ["100", "1,000"]]),
  (f"longest wait for an answer while a mirror of {LARGE} entries joins / all are removed / an object "
   "of as many members is set / one transaction has 100,000 actions, ms", 1000,
   [("W8", f"{LARGE} {what}, a ping waits at most", "µs")
    for what in ["entries, a mirror joins", "entries are removed", "members are set",
                 "entries, a transaction of 100,000 actions"]]),
  (f"the same while 1,000 changes are above 10,000 mirrors of nothing / a mirror of {LARGE} entries comes "
   "back after 300,000 changes / a digest is behind an object of as many members, ms", 1000,
   [("W8", f"{LARGE} entries, {what}, a ping waits at most", "µs")
    for what in ["1,000 changes above 10,000 mirrors of nothing",
                 "a mirror returns after 300,000 changes",
                 "a digest of as many members that were set"]]),
  (f"longest wait for an answer while a stopped mirror of a counter / of {LARGE} entries comes back, ms",
   1000,
   [("W9", f"100 mirrors of {what}, the stopped one comes back, a ping waits at most", "µs")
    for what in ["the counter", f"a map of {LARGE}"]]),
  (f"{LARGE} entries of 32 bytes: start to ready from its journal (Redis: RDB) / from a document, ms", 1,
   [("W7", f"{WHOLE}, start to ready from {source}", "ms") for source in ["what it kept", "a document"]]),
  ("the same: connect to all received, ms / memory an entry, bytes", 1,
   [("W7", f"{WHOLE}, connect to all received", "ms"),
    ("W7", f"{WHOLE} from what it kept", "bytes of memory an entry")]),
  ("durable: one writer, p50, µs", 1, [("W4", "durable, 1 writer, p50", "µs")]),
  ("durable: 50 writers / 10,000 in flight, thousands a second", 1000,
   [("W4", "durable, 50 writers", "actions/s"), ("W4", "durable, W = 10,000", "actions/s")]),
  ("pipelined actions, 10,000 in flight, CPU each, µs", 1,
   [("W2", "W = 10,000", "server µs an action")]),
  (f"change and patch with 1,000 / {LARGE} entries, CPU each, µs", 1,
   [("W8", f"{count} entries, change and patch", "server µs an action") for count in ["1,000", LARGE]]),
  ("memory a client, 10,000 idle / 1,000 busy beside them, KB", 1,
   [("W9", "10,000 idle clients", "KB a client"),
    ("W9", "1,000 busy clients beside them", "KB a client")]),
  ("100 clients with one action each in flight, CPU an action, µs: no subscriber / each its own scope", 1,
   [("W12", f"100 clients, an action each, {what}", "server µs an action")
    for what in ["no subscriber", "each its own entry"]]),
  ("one more subscription beside 100 / 20,000 of its connection, CPU, µs", 1,
   [("W11", f"one more beside {count} of its connection", "server µs each")
    for count in ["100", "20,000"]]),
  ("an action that changes one of 100 / 20,000 subscriptions of a connection, CPU, µs", 1,
   [("W11", f"an action that changes one of {count}", "server µs an action")
    for count in ["100", "20,000"]]),
  ("bytes of one nested boolean, `todos[42].done` of 1,000, to a mirror, with its frame", 1,
   [("W5", "todos[42].done of 1,000", "bytes to a mirror")]),
  (f"CPU a delivery to 100 mirrors of a counter, none / one of them stopped; of {LARGE} entries, none / "
   "one, µs", 1,
   [("W9", f"100 mirrors of {what}, {count} stopped", "server µs a delivery")
    for what in ["the counter", f"a map of {LARGE}"] for count in ["none", "one"]]),
  ("start to ready, empty, ms / memory, MB / program with its libraries of Swift, stripped, MB", 1,
   [("W6", "start to ready, empty", "ms"), ("W6", "memory, empty", "MB"),
    ("W6", "program and libraries, stripped", "MB")]),
]


# What Scripts/counts has counted, of Lockstep alone.
COUNTED = {
  "action": "an action of a document", "typed-action": "of a typed counter", "delivery": "a delivery",
  "round-trip": "a round trip", "durable": "a durable action",
}

# The pictures that the README shows.
SHOWN = {
  "latency.svg": "round trips on one core, by percentile",
  "deliveries.svg": "changes delivered a second, by the number of mirrors",
  "state.svg": "CPU of a change, by the size of the state",
  "scopes.svg": "CPU of a change, by the number of subscriptions",
}


def section(figures):
  about = figures.about
  processor = re.sub(r"\(.*?\)| Processor| CPU.*", "", about["processor"]).strip()
  linux = ".".join(about["linux"].split(".")[:2])
  quick = " --quick" if about["mode"] == "quick" else ""
  yield f"From `Scripts/benchmark{quick}` on {about['cores']} cores ({processor}, Linux {linux}),"
  yield f"{about['date']}, commit {about['commit']}: medians of up to {about['rounds']} interleaved rounds. The"
  yield "limit is a C server on libuv that does the least possible. Compare the columns, not one machine with"
  yield "another; all rows, with the least and the most, are in"
  yield "[`figures.json`](Sources/Benchmarks/figures.json)."
  yield ""
  versions = {p: f" {'.'.join(v.split('.')[:2])}" if v else "" for p, v in about["peers"].items()}
  yield "| | " + " | ".join(NAMES[peer] + versions[peer] for peer in figures.peers) + " |"
  yield "| ---" + " | ---:" * len(figures.peers) + " |"
  for what, scale, places in ROWS:
    cells = [
      " / ".join(shown(figures, place, peer, scale) for place in places)
      if any(figures.median(*place, peer) is not None for place in places) else ""
      for peer in figures.peers]
    if any(cells):
      yield f"| {what} | " + " | ".join(cells) + " |"
  for kind, unit in [("counts", "instructions"), ("allocations", "allocations")]:
    counted = " / ".join(text(about[kind][name]) for name in COUNTED)
    cells = [counted if peer == "lockstep" else "" for peer in figures.peers]
    yield f"| {unit}: {' / '.join(COUNTED.values())} | " + " | ".join(cells) + " |"
  yield ""
  for peer in figures.peers:
    ahead = list(where_ahead(figures, peer)) if peer not in ("limit", "lockstep") else []
    if ahead:
      yield from textwrap.wrap(
        f"{NAMES[peer]} is ahead by more than a tenth in these, with how many times: {'; '.join(ahead)}.",
        105, break_on_hyphens=False)
      yield ""
  for name, what in SHOWN.items():
    if name in dict(drawings(figures)):
      yield f"![{what}](Sources/Benchmarks/pictures/{name})"


def where_ahead(figures, peer):
  """The rows in which a peer is better than Lockstep by more than a tenth, and how many times."""
  for what, _, places in ROWS:
    # Clients that reached their own ceiling do not say which server is better.
    factors = [None if shown(figures, place, "lockstep", 1).startswith("≥") else figures.factor(*place, peer)
               for place in places]
    if any(factor and factor > 1.1 for factor in factors):
      times = " / ".join(text(factor) if factor and factor > 1.1 else "–" for factor in factors)
      yield f"{what.rpartition(', ')[0]} ({times})"


def shown(figures, place, peer, scale):
  value = figures.median(*place, peer)
  # Less than nothing: a server has given back meanwhile what it had taken before.
  if value is None or value < 0:
    return "–"
  work, row, unit = place
  ceiling = figures.median(work, f"{row}, the load's ceiling", unit, peer)
  # Within a tenth of what the load can do, the server may well do more.
  return ("≥ " if ceiling and value > 0.9 * ceiling else "") + text(value / scale)


def drawings(figures):
  """The pictures by the names of their files; of what was measured at no two places there is none."""
  names = {peer: NAMES[peer] for peer in figures.peers}

  def series(places):
    """For each peer its points, of places by their x."""
    for peer in figures.peers:
      points = [(x, figures.median(*place, peer)) for x, place in places.items()]
      points = [(x, y) for x, y in points if y]
      if len(points) > 1:
        yield names[peer], peer, points

  def lines(name, title, below, places, marks=None):
    found = list(series(places))
    if found:
      yield name, pictures.lines(title, below, found, marks)

  for name, where in [("latency.svg", "one core"), ("latency-two-cores.svg", "two cores")]:
    yield from lines(
      name, f"Round trip on {where}, µs", "percentile of the round trips",
      {1 / (1 - share / 1000): ("W1", f"round trip, {where}, {percentile}", "µs")
       for share, percentile in [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p999")]},
      {2: "50", 10: "90", 100: "99", 1000: "99.9"})
  yield from lines(
    "deliveries.svg", "Changes delivered, millions a second", "mirrors",
    {count: ("W3", f"N = {count:,}, window 256", "M deliveries/s") for count in [1, 10, 100, 1_000]})
  yield from lines(
    "state.svg", "CPU of one change and its patch, µs", "entries in the state",
    {count: ("W8", f"{count:,} entries, change and patch", "server µs an action")
     for count in [1_000, 100_000, 1_000_000]})
  subscriptions = [100, 1_000, 10_000, 20_000]
  yield from lines(
    "scopes.svg", "CPU of an action that changes one subscription of many, µs",
    "subscriptions of the connection",
    {count: ("W11", f"an action that changes one of {count:,}", "server µs an action")
     for count in subscriptions})
  yield from lines(
    "subscriptions.svg", "CPU of one more subscription, µs", "subscriptions that the connection has",
    {count: ("W11", f"one more beside {count:,} of its connection", "server µs each")
     for count in subscriptions})
  floods = [(kind, "lockstep") for kind in ["nothing", *FLOODS]] + [("actions", "redis")]
  rows = [
    (f"{names.get(peer, peer)}: {kind}, {name}",
     figures.median("W10", f"round trip beside a flood of {kind}, {name}", "µs", peer), peer)
    for kind, peer in floods for name in ["p50", "p99"]]
  if any(value for _, value, _ in rows):
    yield "floods.svg", pictures.bars(
      "Round trip of one user while 1,000 connections of another flood the server, µs", rows)


def outputs(figures):
  """Everything that is made of the figures: contents by path."""
  with open(README) as file:
    readme = file.read()
  begin, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
  yield README, readme[:begin] + "\n".join(section(figures)) + "\n" + readme[end:]
  for name, drawing in drawings(figures):
    yield os.path.join(HERE, "pictures", name), drawing


# MARK: Keeping them true


def commit():
  """The commit of the tree; None if it has changes that are not committed."""
  def said(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
  if said("status", "--porcelain").stdout.strip():
    return None
  found = said("rev-parse", "--short=7", "HEAD")
  return found.stdout.strip() if found.returncode == 0 else None


def newer_code(than, root=ROOT):
  """A line of the daemon's code that has changed since a commit; None if there is none but comments, or
  if that commit is not here, as in a clone without the history."""
  git = lambda *words: subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
  if git("cat-file", "-e", f"{than}^{{commit}}").returncode != 0:
    return None
  changes = git("diff", "--unified=0", "--no-renames", "--no-color", "--no-ext-diff", "--src-prefix=a/",
                "--dst-prefix=b/", than, "--", *MEASURED)
  if changes.returncode != 0:
    sys.exit(f"git cannot compare with the commit of the figures: {changes.stderr.strip()}")
  for line in changes.stdout.splitlines():
    if line.startswith(("--- a/", "+++ b/")):
      file = line[6:]
    elif line.startswith(("---", "+++")):
      continue
    elif line.startswith(("-", "+")) and line[1:].strip() and not COMMENT.match(line[1:]):
      return f"{file}: {line[1:].strip()}"
  return None


def counted():
  """The instructions and the allocations of each work, from the baseline of Scripts/counts."""
  with open(BASELINE) as file:
    totals = re.findall(r"^\[([\w-]+)\].*\n\s*([\d.]+)\s+([\d.]+)\s+total", file.read(), re.MULTILINE)
  return {
    "counts": {name: float(instructions) for name, instructions, _ in totals},
    "allocations": {name: float(allocations) for name, _, allocations in totals},
  }


def record(figures):
  figures.about |= counted()
  figures.write(FIGURES)
  write(Figures.read(FIGURES))


def write(figures):
  os.makedirs(os.path.join(HERE, "pictures"), exist_ok=True)
  for path, contents in list(outputs(figures)):
    with open(path, "w") as file:
      file.write(contents)


def check(figures):
  """What is not as it should be, as sentences."""
  for path, contents in outputs(figures):
    name = os.path.relpath(path, ROOT)
    if not os.path.exists(path) or open(path).read() != contents:
      yield f"{name} is not what figures.json says: python3 Sources/Benchmarks/report.py --write"
  if line := newer_code(figures.about["commit"]):
    yield (f"the figures are of {figures.about['commit']}, and code is newer ({line}): "
           "Scripts/benchmark --quick --with-peers --record")
  for kind, unit, least in [("counts", "instructions", 0), ("allocations", "allocations", 0.1)]:
    then = figures.about[kind]
    for name, now in counted()[kind].items():
      if name not in then or abs(now - then[name]) > max(TOLERANCE * then[name], least):
        yield (f"{name} takes {text(now)} {unit}, and {text(then.get(name, 0))} when the README's figures "
               "were taken: Scripts/benchmark --quick --with-peers --record")


def self_test():
  """Newer code is found, and nothing else."""
  with tempfile.TemporaryDirectory() as root:
    def git(*words):
      author = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
      subprocess.run(["git", "-C", root, *author, *words], check=True, capture_output=True)

    def write(path, contents):
      os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
      with open(os.path.join(root, path), "w") as file:
        file.write(contents)

    git("init")
    daemon, client = "Sources/Core/DaemonCore/Turn.swift", "Sources/Core/ClientCore/Session.swift"
    write(daemon, "let a = 1\n")
    write(client, "let a = 1\n")
    git("add", ".")
    git("commit", "--message", "first")
    expected = [
      ([(daemon, "let a = 1\n")], None),
      ([(daemon, "// Why.\nlet a = 1\n\n  /// What.\n")], None),
      ([(client, "let a = 2\n")], None),
      ([(daemon, "let a = 1\nlet b = 2  // Why.\n")], f"{daemon}: let b = 2  // Why."),
      ([(daemon, "")], f"{daemon}: let a = 1"),
    ]
    for changes, line in expected:
      for path, contents in changes:
        write(path, contents)
      found = newer_code("HEAD", root)
      assert found == line, f"{changes}: {found}"
    assert newer_code("0" * 40, root) is None


def main():
  if sys.argv[1:] == ["--self-test"]:
    return self_test()
  figures = Figures.read(FIGURES)
  if sys.argv[1:] == ["--write"]:
    write(figures)
  elif sys.argv[1:] == ["--check"]:
    faults = list(check(figures))
    if faults:
      sys.exit("\n".join(faults))
  else:
    sys.exit(__doc__.strip())


if __name__ == "__main__":
  main()
