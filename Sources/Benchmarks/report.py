"""Shows figures: as a table for people, in the README, and as pictures.

  python3 report.py --check   fails if the README or a picture is not what figures.json says, or if
                              what an action costs has changed since these figures were taken
  python3 report.py --write   makes them anew from figures.json
"""

import os
import re
import subprocess
import sys

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
NAMES = {"limit": "limit", "lockstep": "Lockstep", "redis": "Redis", "nats": "NATS"}


# MARK: All figures


def conditions(about):
  peers = ", ".join(f"{NAMES[p]} {v}" for p, v in about["peers"].items() if v) or "no other peers"
  return [
    f"{about['date']}, {about['commit'] or 'not committed'}, {about['processor']}, "
    f"{about['cores']} cores, Linux {about['linux']}",
    f"{about['placement']}; {peers}; load average {about['load'][0]} before, {about['load'][1]} after",
    f"{about['mode']}, {about['rounds']} rounds: median (least … most); ▲ more is better, ▼ less is "
    "better; ratios are Lockstep's figure to the other's, the median over the rounds",
  ]


def table(figures):
  others = [peer for peer in figures.peers if peer != "lockstep"]
  head = ["", "", "", *(NAMES[peer] for peer in figures.peers)]
  head += [f"to {NAMES[peer]}" for peer in others]
  lines = [
    [work, f"{row}, {unit}", "▲" if better == "more" else "▼",
     *(cell(values.get(peer)) for peer in figures.peers), *(ratio(values, peer) for peer in others)]
    for (work, row, unit, better), values in figures.rows.items()]
  return head, lines


def plain(figures):
  head, lines = table(figures)
  widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
  yield from conditions(figures.about)
  yield ""
  for row in [head, *lines]:
    yield "  ".join(
      part.ljust(width) if column < 3 else part.rjust(width)
      for column, (part, width) in enumerate(zip(row, widths))).rstrip()


def markdown(figures):
  head, lines = table(figures)
  yield from (f"{line}  " for line in conditions(figures.about))
  yield ""
  yield "| " + " | ".join(head) + " |"
  yield "| --- | --- | --- |" + " ---: |" * (len(head) - 3)
  yield from ("| " + " | ".join(row) + " |" for row in lines)


# MARK: The README

# A row of the README: what it says, by how much its figures are divided, and where they are.
LARGE = "1,000,000"
FLOODS = ["actions", "values", "deep values", "pings", "subscriptions", "digests", "reports"]
ROWS = [
  ("round trip, one core / two cores, p50, µs", 1,
   [("W1", "round trip, one core, p50", "µs"), ("W1", "round trip, two cores, p50", "µs")]),
  ("the same beside 1,000 connections of another user that flood it with actions, p50 / p99, µs", 1,
   [("W10", "round trip beside a flood of actions, p50", "µs"),
    ("W10", "round trip beside a flood of actions, p99", "µs")]),
  ("pipelined actions, 10,000 in flight, CPU each, µs", 1,
   [("W2", "W = 10,000", "server µs an action")]),
  ("one change to the last of 100 / 1,000 mirrors, p50, µs", 1,
   [("W3", f"N = {count}, one change, to the last p50", "µs") for count in ["100", "1,000"]]),
  ("changes delivered to 100 / 1,000 mirrors, millions a second", 1,
   [("W3", f"N = {count}, window 256", "M deliveries/s") for count in ["100", "1,000"]]),
  ("durable: one writer, p50, µs", 1, [("W4", "durable, 1 writer, p50", "µs")]),
  ("durable: 50 writers / 10,000 in flight, thousands a second", 1000,
   [("W4", "durable, 50 writers", "actions/s"), ("W4", "durable, W = 10,000", "actions/s")]),
  (f"change and patch with 1,000 / {LARGE} entries, CPU each, µs", 1,
   [("W8", f"{count} entries, change and patch", "server µs an action") for count in ["1,000", LARGE]]),
  (f"longest wait for an answer while a mirror of {LARGE} entries joins / all are removed / an object "
   "of as many members is set, ms", 1000,
   [("W8", f"{LARGE} {what}, a ping waits at most", "µs")
    for what in ["entries, a mirror joins", "entries are removed", "members are set"]]),
  ("memory a client, 10,000 idle / 1,000 busy beside them, KB", 1,
   [("W9", "10,000 idle clients", "KB a client"),
    ("W9", "1,000 busy clients beside them", "KB a client")]),
]


def section(figures):
  about = figures.about
  processor = re.sub(r"\(.*?\)| Processor| CPU.*", "", about["processor"]).strip()
  linux = ".".join(about["linux"].split(".")[:2])
  quick = " --quick" if about["mode"] == "quick" else ""
  yield f"From `Scripts/benchmark{quick}` on {about['cores']} cores ({processor}, Linux {linux}),"
  yield f"{about['date']}, commit {about['commit']}: medians of {about['rounds']} interleaved rounds. The"
  yield "limit is a C server on libuv that does the least possible. Compare the columns, not one machine with"
  yield "another; all rows, with the least and the most, are in"
  yield "[`figures.json`](Sources/Benchmarks/figures.json)."
  yield ""
  versions = {p: f" {'.'.join(v.split('.')[:2])}" if v else "" for p, v in about["peers"].items()}
  yield "| | " + " | ".join(NAMES[peer] + versions[peer] for peer in figures.peers) + " |"
  yield "| ---" + " | ---:" * len(figures.peers) + " |"
  for what, scale, places in ROWS:
    cells = []
    for peer in figures.peers:
      values = [figures.median(*place, peer) for place in places]
      shown = ["–" if value is None else text(value / scale) for value in values]
      cells.append("" if all(value is None for value in values) else " / ".join(shown))
    yield f"| {what} | " + " | ".join(cells) + " |"
  yield ""
  yield "![changes delivered a second, by the number of mirrors](Sources/Benchmarks/pictures/deliveries.svg)"
  yield "![round trips beside a flood](Sources/Benchmarks/pictures/floods.svg)"


def drawings(figures):
  """The pictures, by the names of their files."""
  counts = ["1", "10", "100", "1,000"]
  entries = ["1,000", "100,000", LARGE]
  names = {peer: NAMES[peer] for peer in figures.peers}

  def series(names_of_places, place):
    for peer in figures.peers:
      points = [
        (int(name.replace(",", "")), figures.median(*place(name), peer)) for name in names_of_places]
      points = [(x, y) for x, y in points if y is not None]
      if points:
        yield names[peer], points

  yield "deliveries.svg", pictures.lines(
    "Changes delivered, millions a second", "mirrors",
    series(counts, lambda n: ("W3", f"N = {n}, window 256", "M deliveries/s")))
  yield "state.svg", pictures.lines(
    "CPU of one change and its patch, µs", "entries in the state",
    series(entries, lambda n: ("W8", f"{n} entries, change and patch", "server µs an action")))
  yield "latency.svg", pictures.bars(
    "Round trip on two cores, µs",
    [(f"{names[peer]}, {name}", figures.median("W1", f"round trip, two cores, {name}", "µs", peer), peer)
     for name in ["p50", "p99", "p999"] for peer in figures.peers])
  floods = [(kind, "lockstep") for kind in ["nothing", *FLOODS]] + [("actions", "redis")]
  yield "floods.svg", pictures.bars(
    "Round trip of one user while 1,000 connections of another flood the server, µs",
    [(f"{names.get(peer, peer)}: {kind}, {name}",
      figures.median("W10", f"round trip beside a flood of {kind}, {name}", "µs", peer), peer)
     for kind, peer in floods for name in ["p50", "p99"]])


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


def counts():
  """The instructions of each work, from the baseline of Scripts/counts."""
  with open(BASELINE) as file:
    return {name: float(total) for name, total in re.findall(
      r"^\[([\w-]+)\].*\n\s*([\d.]+)\s+[\d.-]+\s+total", file.read(), re.MULTILINE)}


def record(figures):
  figures.about["counts"] = counts()
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
  then = figures.about["counts"]
  for name, now in counts().items():
    if name not in then or abs(now - then[name]) > TOLERANCE * then[name]:
      yield (f"{name} takes {now:,.0f} instructions, and {then.get(name, 0):,.0f} when the README's figures "
             "were taken: Scripts/benchmark --quick --with-peers --record")


def main():
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
