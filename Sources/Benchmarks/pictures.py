"""Draws figures as SVG that reads in light and dark."""

import html
import math

WIDTH = 720
STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .grid { stroke: #d0d7de }
  .limit { stroke: #8c959f; fill: #8c959f } .lockstep { stroke: #0969da; fill: #0969da }
  .redis { stroke: #cf222e; fill: #cf222e } .nats { stroke: #1a7f37; fill: #1a7f37 }
  .dbus { stroke: #9a6700; fill: #9a6700 } .ovsdb { stroke: #8250df; fill: #8250df }
  .line { fill: none; stroke-width: 2 } .mark { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .grid { stroke: #373e47 }
    .lockstep { stroke: #4493f8; fill: #4493f8 } .redis { stroke: #f85149; fill: #f85149 }
    .nats { stroke: #3fb950; fill: #3fb950 } .limit { stroke: #9198a1; fill: #9198a1 }
    .dbus { stroke: #d29922; fill: #d29922 } .ovsdb { stroke: #ab7df8; fill: #ab7df8 }
  }
</style>"""


def document(height, title, parts):
  return (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
    f'aria-label="{html.escape(title)}">\n{STYLE}\n'
    + label(16, 24, title, "title") + "\n".join(parts) + "\n</svg>\n")


def label(x, y, words, kind="", anchor="start"):
  return (f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
          f"{html.escape(words)}</text>\n")


def short(value):
  for unit, scale in [("M", 1e6), ("k", 1e3)]:
    if value >= 10 * scale or value >= scale and value % scale == 0:
      return f"{value / scale:.3g}{unit}"
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def powers(least, most):
  """The powers of ten from that below the least to that above the most."""
  return range(math.floor(math.log10(least)), math.ceil(math.log10(most) + 1e-9) + 1)


def lines(title, below, series, marks=None):
  """Lines by a number, both axes logarithmic. A series is a name, a peer and its points; marks name some
  of the numbers otherwise."""
  marks = marks or {}
  height, left, top, right, bottom = 360, 64, 44, 584, 312
  xs = sorted({x for _, _, points in series for x, _ in points})
  ys = [y for _, _, points in series for _, y in points]
  grid = powers(min(ys), max(ys))

  def across(x):
    span = math.log(xs[-1] / xs[0]) or 1
    return left + 16 + (right - left - 32) * math.log(x / xs[0]) / span

  def up(y):
    return bottom - (bottom - top) * (math.log10(y) - grid[0]) / (grid[-1] - grid[0] or 1)

  parts = []
  for power in grid:
    y = up(10 ** power)
    parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts.append(label(left - 8, y + 4, short(10 ** power), anchor="end"))
  for x in xs:
    parts.append(label(across(x), bottom + 20, marks.get(round(x)) or short(x), anchor="middle"))
  parts.append(label((left + right) / 2, bottom + 40, below, anchor="middle"))
  ends = []
  for name, peer, points in series:
    places = [(across(x), up(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline class="line {peer}" points="{path}"/>')
    parts += [f'<circle class="mark {peer}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
              for x, y in places]
    ends.append((places[-1][1], f"{name} {short(points[-1][1])}"))
  # The names beside the ends of their lines, no two closer than a line of text.
  last = -math.inf
  for y, words in sorted(ends):
    last = max(y, last + 16)
    parts.append(label(right + 4, last + 4, words))
  return document(height, title, parts)


def bars(title, rows):
  """Bars on one logarithmic axis. A row is what it is, its value, and its peer."""
  rows = [row for row in rows if row[1]]
  left, right, top, step = 230, 640, 44, 20
  height = top + step * len(rows) + 36
  grid = powers(min(value for _, value, _ in rows), max(value for _, value, _ in rows))

  def across(value):
    return left + (right - left) * (math.log10(value) - grid[0]) / (grid[-1] - grid[0])

  parts = []
  for power in grid:
    x = across(10 ** power)
    parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - 28}"/>')
    parts.append(label(x, height - 10, short(10 ** power), anchor="middle"))
  for index, (words, value, peer) in enumerate(rows):
    y = top + step * index
    parts.append(label(left - 8, y + 14, words, anchor="end"))
    parts.append(f'<rect class="mark {peer}" x="{left}" y="{y + 4}" '
                 f'width="{max(1, across(value) - left):.1f}" height="{step - 7}"/>')
    parts.append(label(across(value) + 5, y + 14, short(value)))
  return document(height, title, parts)
