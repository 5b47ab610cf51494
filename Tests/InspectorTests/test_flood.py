"""Ten thousand actions a second: the page answers, and its total is exact."""

from __future__ import annotations

import time

from conftest import Page

INCREMENTS = 300_000


def flood_while_clicking(page: Page) -> tuple[float, int]:
    """The seconds of the slowest click during a flood, and the most elements that the page had."""
    begun = page.daemon.status()["actions"]
    bench = page.daemon.beside("bench", "--round-trips", "1", "--increments", str(INCREMENTS))
    page.until("the flood has begun", lambda: page.total() > begun + 1000)
    rounds, slowest, most = 0, 0.0, 0
    while bench.poll() is None:
        for selector, shown in (
            ("#tab-clients", "#panel-clients"),
            ("#tab-actions", "#panel-actions"),
        ):
            start = time.monotonic()
            page.window.click(selector)
            page.until(f"{shown} is shown", lambda: page.window.is_shown(shown))
            slowest = max(slowest, time.monotonic() - start)
        most = max(most, page.window.run("return document.querySelectorAll('*').length"))
        rounds += 1
    assert bench.returncode == 0 and rounds > 0
    assert page.daemon.status()["actions"] >= begun + INCREMENTS
    return slowest, most


def test_a_flood_neither_freezes_the_page_nor_loses_count(page: Page) -> None:
    page.unfold("/lamps")
    tries: list[float] = []
    # A page that freezes does so in each flood; the machine may pause in one.
    while len(tries) < 3 and (not tries or tries[-1] >= 1):
        slowest, most = flood_while_clicking(page)
        tries.append(slowest)
        assert most < 4000, f"{most} elements"
    assert tries[-1] < 1, f"the slowest clicks were answered after {tries} seconds"
    expected = page.daemon.status()["actions"]
    page.until("the total is exact", lambda: page.total() == expected)
    assert page.window.text("#total") == f"{expected:,}"
    page.window.run("document.activeElement.blur()")
    page.until("the newest is shown", lambda: expected in page.sequences())


def test_the_list_is_drawn_four_times_a_second_and_keeps_a_thousand(page: Page) -> None:
    page.daemon.set("/visits", 1)
    page.until_action(1)
    # An observer is called once for each drawing, however much that changes.
    page.window.run(
        "window.drawings = 0; window.begun = performance.now();"
        "new MutationObserver(() => { window.drawings += 1 }).observe(document.querySelector('#actions .rows'), {childList: true})"
    )
    bench = page.daemon.beside("bench", "--round-trips", "1", "--increments", str(INCREMENTS))
    page.until("the flood is over", lambda: bench.poll() is not None, 120)
    drawings, seconds = page.window.run(
        "return [window.drawings, (performance.now() - window.begun) / 1000]"
    )
    assert 0 < drawings <= 4.2 * seconds + 2, f"{drawings} drawings in {seconds:.1f} seconds"
    expected = page.daemon.status()["actions"]
    page.until_text("#actions-counts", f"of {expected:,} in all", 60)
    kept = int(page.window.text("#actions-counts").split()[2].rstrip(",").replace(",", ""))
    assert 200 < kept <= 1000, kept


def test_what_is_left_out_is_said(page: Page) -> None:
    page.daemon.lockstep("bench", "--round-trips", "1", "--increments", "20000")
    expected = page.daemon.status()["actions"]
    page.until("the total is exact", lambda: page.total() == expected)
    page.until_text("#actions-counts", f"of {expected:,} in all")
    page.window.run("document.querySelector('#actions').scrollTop = 0")
    page.until_text("#actions-counts", "standing still")
    # From the top to the end, a view at a time, each of which is drawn before it is looked at.
    script = """
        const list = document.querySelector('#actions');
        const {top, bottom} = list.getBoundingClientRect();
        const rows = [...list.querySelectorAll('[role=option]')].map((row) => row.getBoundingClientRect());
        if (!rows.some((row) => row.top <= top && row.bottom > top)) return [];
        if (!rows.some((row) => row.top < bottom && row.bottom >= bottom - 1)) return [];
        const gaps = [...list.querySelectorAll('.gap')].map((gap) => [Number(gap.dataset.missed), gap.innerText]);
        if (gaps.length === 0) list.scrollTop += list.clientHeight - 60;
        return gaps;
    """
    gaps = page.until("a gap", lambda: page.window.run(script))
    assert all(missed > 0 and text == f"{missed:,} were left out" for missed, text in gaps)
