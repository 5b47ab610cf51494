"""Effects, clients and plots."""

from __future__ import annotations

import os
import pathlib
import signal
from typing import Callable

from browser import Window
from conftest import Page
from daemons import Daemon


def test_effects_run_and_are_cancelled(
    make_daemon: Callable[[str], Daemon], window: Window, folder: str
) -> None:
    slow = pathlib.Path(folder, "facts")
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    daemon = make_daemon("counterd").start("--facts-command", str(slow))
    page = Page(window, daemon)
    window.click("#tab-effects")
    page.until_text("#effects", "No effect runs")
    daemon.lockstep("send", "numberFactButtonTapped")
    page.until_text('#effects [data-name="fact"]', "numberFactButtonTapped")
    assert "#1" in window.text('#effects [data-name="fact"]')
    page.until("the tab counts it", lambda: window.text("#effects-count") == "1")
    window.click('#effects [data-name="fact"] td:last-child button')
    page.until_text("#notice", "Cancelled fact")
    page.until_text("#effects", "No effect runs")
    assert daemon.lockstep("effects").strip() in ("", "[]")


def test_clients_are_a_picture_of_their_lag(page: Page) -> None:
    page.daemon.set("/text", "")
    slow = page.daemon.beside("--label", "slow", "watch", "/text")
    fast = page.daemon.beside("--label", "fast", "watch", "/visits")
    assert slow.stdout and fast.stdout and slow.stdout.readline() and fast.stdout.readline()
    page.window.click("#tab-clients")
    for label in ("slow", "fast"):
        page.until(
            f"{label} is up to date",
            lambda: page.window.attribute(f'#clients [data-label="{label}"]', "data-lag") == "0",
        )
    os.kill(slow.pid, signal.SIGSTOP)
    try:
        # More than what the kernel takes for it.
        for number in range(40):
            page.daemon.set("/text", chr(97 + number % 26) * 60_000)
        width = "return document.querySelector('#clients [data-label=\"%s\"] .bar').getBoundingClientRect().width"
        page.until(
            "it lags",
            lambda: int(page.window.attribute('#clients [data-label="slow"]', "data-lag") or 0) > 5,
        )
        page.until(
            "its bar is longer",
            lambda: page.window.run(width % "slow") > 3 * page.window.run(width % "fast"),
        )
        text = page.window.text('#clients [data-label="slow"] .lag')
        assert "behind" in text and "B" in text, text
        assert page.window.attributes("#clients li", "data-label")[0] == "slow", (
            "the farthest behind is first"
        )
    finally:
        os.kill(slow.pid, signal.SIGCONT)
    page.until(
        "it catches up",
        lambda: page.window.attribute('#clients [data-label="slow"]', "data-lag") == "0",
    )
    fast.kill()
    page.until(
        "it is gone", lambda: "fast" not in page.window.attributes("#clients li", "data-label")
    )


def test_plots_have_points_and_numbers(page: Page) -> None:
    page.window.click("#tab-plots")
    names = page.window.attributes("#plots figure", "data-plot")
    assert names == ["actions", "latency", "bytes", "held", "queue"]

    def points() -> list[int]:
        return [int(number or 0) for number in page.window.attributes("#plots path", "data-points")]

    page.until("each line has points", lambda: len(points()) == 6 and min(points()) >= 3, 30)
    for name in names:
        assert any(c.isdigit() for c in page.window.text(f'[data-plot="{name}"] .current')), name
        assert "now" in (page.window.attribute(f'[data-plot="{name}"] svg', "aria-label") or "")
    page.daemon.lockstep("bench", "--round-trips", "1", "--increments", "3000")
    page.until(
        "the actions are counted by name",
        lambda: page.window.text('#facts-table [data-action="increment"]'),
    )
    rises = "const d = document.querySelector('[data-line=actions]').getAttribute('d'); return new Set(d.match(/ [0-9.]+/g)).size > 1"
    page.until("the line rises", lambda: page.window.run(rises))
