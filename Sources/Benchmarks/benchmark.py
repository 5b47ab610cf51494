"""The system benchmark: the same works done by several servers in turn, A B C A B C, in one run.

Absolute figures of a virtual machine move by two times from run to run; what holds is the ratio
of servers that took turns. So every figure is the median over rounds, with the least and the
most, and every ratio is the median of the ratios within a round. Each server runs on the first
core and its clients on the second, unless a row says otherwise.

Scripts/benchmark builds and starts this. servers.py has what is measured; actions.py, states.py and
clients.py have the works; figures.py has what was measured, report.py shows it.
"""

import argparse
import datetime
import os
import platform
import signal
import sys
import tempfile

import actions
import clients
import report
import states
from run import Run
from servers import CORES, SERVERS

WORKS = [f"W{number}" for number in range(1, 13)]
# Works of messages, which all servers can do, beside one another.
WITH_ALL = {"W1": actions.w1, "W2": actions.w2, "W3": actions.w3, "W5": actions.w5}
# Those that start their own servers.
ALONE = {"W4": actions.w4, "W6": clients.w6, "W7": states.w7, "W9": clients.w9, "W10": clients.w10,
         "W11": clients.w11, "W12": clients.w12}
# Those on states of several sizes, or of the largest only.
ON_SIZES = {"W8": states.w8}
ON_LARGEST = {"W2": actions.w2_entries, "W8": states.w8, "W9": clients.w9_entries}


def perform(run, works):
  if WITH_ALL.keys() & set(works):
    with run.servers(run.peers) as servers:
      for work, measure in WITH_ALL.items():
        if work in works:
          run.say(work)
          measure(run, servers)
  for work, measure in ALONE.items():
    if work in works:
      run.say(work)
      measure(run)
  sizes = [1_000, 100_000, 1_000_000]
  for entries in sizes:
    # Removing all entries ends W8, so it comes last.
    measures = ON_LARGEST if entries == sizes[-1] else ON_SIZES
    measures = {work: measure for work, measure in measures.items() if work in works}
    if measures:
      with run.servers(run.keepers, entries=entries) as servers:
        for work in sorted(measures, key=lambda work: work == "W8"):
          run.say(f"{work}, {entries:,} entries")
          measures[work](run, servers, entries)


def main():
  parser = argparse.ArgumentParser(
    prog="Scripts/benchmark", description="Lockstep beside the limit and its peers, in one run.")
  parser.add_argument("--quick", action="store_true", help="two and a half minutes, and rougher")
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
  # So that servers are stopped then as well.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
  load_before = os.getloadavg()[0]
  with tempfile.TemporaryDirectory(prefix="lockstep-benchmark-") as folder:
    run = Run(options, folder)
    perform(run, options.works)
  run.figures.about = {
    "date": str(datetime.date.today()), "commit": commit, "mode": "quick" if options.quick else "full",
    "rounds": run.rounds, "processor": processor(), "cores": len(CORES),
    "linux": platform.release(), "placement": "beside each row: the core of the server / of its clients",
    "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
    "peers": {peer: SERVERS[peer].version() for peer in run.peers},
  }
  print("\n".join(report.plain(run.figures)))
  if options.markdown:
    with open(options.markdown, "w") as file:
      file.write("\n".join(report.markdown(run.figures)) + "\n")
  if options.json:
    run.figures.write(options.json)
  if options.record:
    report.record(run.figures)


def processor():
  with open("/proc/cpuinfo") as file:
    names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
  return names[0] if names else platform.machine()


if __name__ == "__main__":
  main()
