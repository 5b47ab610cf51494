"""What was measured: values by row and peer, one for each round, and under which conditions."""

import collections
import json
import statistics

PEERS = ["limit", "lockstep", "redis", "nats", "dbus", "ovsdb"]


class Figures:
  def __init__(self):
    self.about = {}
    self.rows = collections.OrderedDict()
    # The cores of the server and of its clients, by row.
    self.placements = {}

  def note(self, work, row, unit, peer, value, better="less", placement=""):
    key = (work, row, unit, better)
    self.placements[key] = placement
    self.rows.setdefault(key, collections.defaultdict(list))[peer].append(value)

  def median(self, work, row, unit, peer):
    """The median over the rounds; None if it was not measured."""
    for better in ["less", "more"]:
      values = self.rows.get((work, row, unit, better), {}).get(peer)
      if values:
        return statistics.median(values)
    return None

  def factor(self, work, row, unit, peer):
    """How many times better a peer is than Lockstep; None if one of them was not measured."""
    ours, theirs = (self.median(work, row, unit, which) for which in ["lockstep", peer])
    if not ours or not theirs:
      return None
    return theirs / ours if (work, row, unit, "more") in self.rows else ours / theirs

  @property
  def peers(self):
    return [peer for peer in PEERS if peer in self.about["peers"]]

  def write(self, path):
    rows = [
      {"work": key[0], "row": key[1], "unit": key[2], "better": key[3],
       "cores": self.placements.get(key, ""),
       "values": {peer: [float(f"{value:.5g}") for value in values[peer]] for peer in values}}
      for key, values in self.rows.items()]
    with open(path, "w") as file:
      # A row on a line, so that a difference of two runs can be read.
      lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
      file.write(f'{{\n  "about": {json.dumps(self.about, ensure_ascii=False)},\n')
      file.write(f'  "rows": [\n{lines}\n  ]\n}}\n')

  @classmethod
  def read(cls, path):
    figures = cls()
    with open(path) as file:
      stored = json.load(file)
    figures.about = stored["about"]
    for row in stored["rows"]:
      key = (row["work"], row["row"], row["unit"], row["better"])
      figures.rows[key] = row["values"]
      figures.placements[key] = row.get("cores", "")
    return figures


def text(value):
  """A figure with three digits, and all before the point."""
  if value >= 1000:
    return f"{value:,.0f}"
  return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def cell(values):
  if not values:
    return "–"
  middle = text(statistics.median(values))
  return middle if min(values) == max(values) else f"{middle} ({text(min(values))} … {text(max(values))})"


def ratio(values, other):
  """The median of the ratios of Lockstep's figure to another's within each round."""
  pairs = list(zip(values.get("lockstep", []), values.get(other, [])))
  if not pairs or any(b == 0 for _, b in pairs):
    return "–"
  return f"{text(statistics.median(a / b for a, b in pairs))}×"
