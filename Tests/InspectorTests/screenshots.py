"""Makes the two pictures of the inspector for a README.

LOCKSTEP_BINARIES=… python screenshots.py [FOLDER]     writes inspector-light.png and inspector-dark.png
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
from typing import Iterator

from browser import Driver, Window, wait
from daemons import Daemon
from png import shrink

MOST_BYTES = 200_000
ROOMS = ["attic", "cellar", "hall", "kitchen", "study"]
STATE = {
    "battery": {"charging": False, "percent": 87},
    "lamps": {room: {"level": 10 * at, "on": at % 2 == 0} for at, room in enumerate(ROOMS)},
    "log": {f"2026-11-{day:02}": day * 7 for day in range(1, 31)},
    "queue": [{"job": "backup", "state": "running"}, {"job": "report", "state": "waiting"}],
    "visits": 1041,
    "weather": {"temperature": 11.5, "wind": {"from": "NW", "speed": 4}},
}


def life(daemon: Daemon) -> Iterator[None]:
    """What a house does."""
    chance = random.Random(7)
    while True:
        room = chance.choice(ROOMS)
        for label, command in (
            ("lamp-switch", ["set", f"/lamps/{room}/on", json.dumps(chance.random() < 0.5)]),
            ("thermostat", ["increment", "/weather/temperature", chance.choice(["0.5", "-0.5"])]),
            ("dashboard", ["set", f"/lamps/{room}/level", str(chance.randrange(100))]),
            ("front-door", ["increment", "/visits"]),
            (
                "scheduler",
                ["set", "/queue/1/state", chance.choice(['"waiting"', '"running"', '"done"'])],
            ),
        ):
            daemon.lockstep("--label", label, *command)
            yield
        daemon.lockstep("--label", "lamp-switch", "remove", "/lamps/garden", status=1)
        yield


def clients(daemon: Daemon) -> None:
    """Some that follow, and one that is stopped and lags."""
    for label, path in (
        ("dashboard", ""),
        ("thermostat", "/weather"),
        ("tablet", "/log"),
        ("lamp-switch", "/lamps"),
    ):
        watching = daemon.beside("--label", label, "watch", path)
        assert watching.stdout and watching.stdout.readline()
        if label == "tablet":
            os.kill(watching.pid, signal.SIGSTOP)


def prepare(window: Window) -> None:
    """Unfold a little, and select a place and an action."""
    for path in ("/lamps", "/lamps/hall", "/weather"):
        window.click(f'#tree [data-path="{path}"] .fold')
        window.until(
            f"{path} is unfolded",
            lambda: window.attribute(f'#tree [data-path="{path}"]', "aria-expanded") == "true",
        )
    window.click('#tree [data-path="/lamps/hall/level"] .key')


def picture(window: Window, file: pathlib.Path) -> None:
    # The pointer is over nothing that lights up.
    move = {"type": "pointerMove", "duration": 0, "x": 640, "y": 42}
    window.call(
        "POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]}
    )
    window.screenshot(str(file))
    file.write_bytes(shrink(file.read_bytes()))
    size = file.stat().st_size
    print(f"{file}: {size // 1000} kB")
    assert size <= MOST_BYTES, "it is too large for a README"


def main() -> None:
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder = tempfile.mkdtemp(prefix="inspect-")
    daemon, driver = Daemon(folder), Driver()
    try:
        daemon.start_with(STATE)
        clients(daemon)
        inspector = daemon.inspector()
        lives = life(daemon)
        for dark in (False, True):
            window = driver.window(dark=dark, calm=False)
            window.open(inspector.address)
            wait("there is a past", lambda: window.text("#time-since").isdigit())
            for _ in range(30):
                next(lives)
            daemon.lockstep("--label", "dashboard", "set", "/lamps/hall/level", str(60 + dark))
            for _ in range(3):
                next(lives)
            prepare(window)
            if dark:
                window.click("#tab-clients")
                # What the stopped one cannot take: as much as makes it lag.
                for day in range(60):
                    daemon.lockstep(
                        "--label", "recorder", "set", "/log/2026-11-30", json.dumps("x" * 60_000)
                    )
                    daemon.lockstep("--label", "recorder", "set", "/log/2026-11-30", str(day))
                window.until(
                    "it lags",
                    lambda: (
                        int(window.attribute('#clients [data-label="tablet"]', "data-lag") or 0)
                        > 100
                    ),
                )
            else:
                number = window.attributes("#actions .rejected[data-sequence]", "data-sequence")[-1]
                window.click(f'#actions [data-sequence="{int(number) + 1}"]')
                window.until(
                    "its causes", lambda: window.attribute("#action .causes", "data-causes") == "1"
                )
                window.run("document.activeElement.blur()")
                for _ in range(4):
                    next(lives)
            window.until(
                "the value is known",
                lambda: window.text('#tree [data-path="/lamps/hall/level"] .value') != "…",
            )
            picture(window, target / f"inspector-{'dark' if dark else 'light'}.png")
            window.close()
    finally:
        driver.stop()
        daemon.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
