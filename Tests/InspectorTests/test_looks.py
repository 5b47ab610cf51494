"""Dark and light, contrast, calm, and narrow windows."""

from __future__ import annotations

import pytest
from browser import Driver
from conftest import DOCUMENT, Page, row_of
from daemons import Daemon

CONTRAST = """
// The texts whose contrast to what is behind them is less than WCAG's AA asks for.
const number = (text) => text.match(/[\\d.]+/g).map(Number);
const over = (a, b) => { const [r, g, bl, al = 1] = a; return [r, g, bl].map((c, i) => c * al + b[i] * (1 - al)); };
const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
const behind = (e) => { const stack = []; for (let at = e; at; at = at.parentElement) stack.push(number(getComputedStyle(at).backgroundColor)); return stack.reverse().reduce((below, c) => over(c, below), [255, 255, 255]) };
const bad = [];
for (const e of document.querySelectorAll('body *')) {
  if (!e.checkVisibility() || e.closest('svg, option, :disabled')) continue;
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const back = behind(e), front = over(number(getComputedStyle(e).color), back);
  const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} “${e.textContent.slice(0, 20)}” ${ratio.toFixed(2)}`);
}
return bad;
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_light_and_dark_have_contrast(driver: Driver, daemon: Daemon, dark: bool) -> None:
    daemon.start_with(DOCUMENT)
    window = driver.window(dark=dark)
    try:
        page = Page(window, daemon)
        page.until_past()
        brightness = sum(
            window.run(
                "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
            )
        )
        assert brightness < 200 if dark else brightness > 600
        daemon.set("/visits", 1)
        daemon.lockstep("remove", "/garden", status=1)
        daemon.set("/visits", 2)
        page.until_action(3)
        window.click('#actions [data-sequence="2"]')
        page.until_text("#action", "remove")
        page.until("nothing flashes", lambda: not window.attributes("#tree .flash", "class"))
        assert window.run(CONTRAST) == []
        page.show_revision(1)
        page.until_value("/visits", "1")
        window.click("#jump")
        for tab in ("effects", "clients", "plots", "send"):
            window.click(f"#tab-{tab}")
            page.until(f"{tab} is shown", lambda: window.is_shown(f"#panel-{tab}"))
            assert window.run(CONTRAST) == [], tab
    finally:
        window.close()


def test_who_wants_no_motion_gets_none(driver: Driver, daemon: Daemon) -> None:
    daemon.start_with(DOCUMENT)
    window = driver.window(calm=True)
    try:
        page = Page(window, daemon)
        page.until_value("/visits", "0")
        daemon.set("/visits", 1)
        page.until("it has changed", lambda: page.flashes("/visits") >= 1)
        page.until_value("/visits", "1")
        assert "flash" not in (window.attribute(row_of("/visits"), "class") or "").split()
    finally:
        window.close()


@pytest.mark.parametrize("width,columns", [(1280, 2), (920, 2), (880, 1)])
def test_the_panels_fold_under_in_a_narrow_window(page: Page, width: int, columns: int) -> None:
    page.window.resize(width, 800)
    page.window.element(row_of("/visits"))
    boxes = page.window.run(
        "return ['state', 'panels'].map((id) => document.getElementById(id).getBoundingClientRect().toJSON())"
    )
    state, panels = boxes
    if columns == 2:
        assert panels["left"] >= state["right"] and panels["top"] == state["top"]
        assert page.window.run("return document.documentElement.scrollHeight <= innerHeight"), (
            "all of it fits"
        )
    else:
        assert panels["top"] >= state["bottom"] and panels["left"] == state["left"]
    assert page.window.run("return document.documentElement.scrollWidth <= innerWidth"), (
        "nothing is cut off at the side"
    )
