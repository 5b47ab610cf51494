"""Check that what an example's README shows is what its story says.

    Scripts/examples/NAME 2>&1 | python3 Tests/Stories/check_transcript.py README.md

Every line of the README's blocks that begins at a command ("$ …") or a heading ("== …") must be in
the story, in this order. What differs from run to run is not compared: times, ids, numbers of
processes and clients, folders in /tmp, and the widths of columns.
"""

import re
import sys

MASKS = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"client \d+ \(pid \d+, uid \d+\)", "CLIENT"),
    (r"/tmp/[^/ ]+/", "/tmp/…/"),
    (r"\s+", " "),
]


def masked(line):
    for pattern, name in MASKS:
        line = re.sub(pattern, name, line)
    line = line.strip()
    # The example shuffles its cars, once loaded.
    kind, colon, cars = line.partition(": ")
    if kind in ("loading", "ready"):
        line = kind + colon + ", ".join(sorted(cars.split(", ")))
    # A row of a table: its other numbers are counts of what ran before it.
    return re.sub(r"\b\d+\b", "N", line) if "ID" in line or "TIME" in line else line


def transcript(readme):
    """The lines of the blocks that show a terminal."""
    lines = []
    shows = False
    for line in readme.split("\n"):
        if not line.startswith("    "):
            # An empty line is within a block if the next line goes on with it.
            shows = shows and not line
            continue
        text = line[4:]
        shows = shows or text.startswith(("$ ", "== "))
        if shows:
            lines.append(text)
    return lines


def missing(shown, story):
    """The first line shown that does not come in the story behind the one before it."""
    told = iter([masked(line) for line in story])
    return next((line for line in shown if masked(line) not in told), None)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        shown = transcript(file.read())
    story = sys.stdin.read().split("\n")
    if len(shown) < 4:
        sys.exit(f"{sys.argv[1]} shows no transcript")
    line = missing(shown, story)
    if line is not None:
        sys.exit(f"{sys.argv[1]} shows what its story does not say there: {line}")


if __name__ == "__main__":
    main()
