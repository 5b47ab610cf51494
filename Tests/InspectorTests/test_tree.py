"""The state as a tree: unfolding, values that change, a million entries, and the history of a place."""

from __future__ import annotations

from conftest import Page, row_of
from browser import Window
from daemons import Daemon


def test_a_place_is_unfolded_and_folded(page: Page) -> None:
    page.window.element(row_of("/lamps"))
    assert page.window.find(row_of("/lamps/hall")) is None, (
        "nothing is unfolded that was not asked for"
    )
    page.unfold("/lamps", "/lamps/hall")
    page.until_value("/lamps/hall/level", "40")
    page.until_value("/lamps/hall/on", "true")
    page.window.click(f"{row_of('/lamps')} .fold")
    page.until("it is folded", lambda: page.window.find(row_of("/lamps/hall")) is None)
    assert page.window.attribute(row_of("/lamps"), "aria-expanded") == "false"


def test_a_row_has_kind_and_count_bytes_and_revision(page: Page) -> None:
    page.unfold("/lamps")
    assert page.value("/lamps") == "object · 2"
    revision = page.daemon.set("/lamps/hall/level", 4321)
    page.until(
        "its revision is shown",
        lambda: page.window.text(f"{row_of('/lamps/hall')} .changed") == str(revision),
    )
    page.unfold("/lamps/hall")
    page.until(
        "its bytes are shown",
        lambda: page.window.text(f"{row_of('/lamps/hall/level')} .bytes") not in ("", "1", "2"),
    )
    assert page.window.attribute(row_of("/name"), "data-kind") == "string"
    page.until_value("/name", '"first"')
    page.until_value("/nothing", "null")


def test_an_array_is_unfolded_from_its_value(page: Page) -> None:
    page.until("its value is known", lambda: "[3, 4]" in page.value("/list"))
    page.unfold("/list", "/list/1", "/list/2")
    page.until_value("/list/1/a", "2")
    page.until_value("/list/2/1", "4")
    before = page.flashes("/list/1/a")
    page.daemon.set("/list/1/a", 22)
    page.until_value("/list/1/a", "22")
    assert page.flashes("/list/1/a") > before


def test_a_large_array_is_asked_for_when_it_is_unfolded(daemon: Daemon, window: Window) -> None:
    daemon.start_with({"numbers": list(range(10_000)), "text": 'a { b [ c, "d"'})
    page = Page(window, daemon)
    page.until_value("/text", '"a { b [ c, \\"d\\""')
    page.until(
        "it says that it is large",
        lambda: page.value("/numbers").startswith("array · 10,000 it is too large"),
    )
    page.unfold("/numbers")
    page.until_value("/numbers/7", "7")
    daemon.set("/numbers/7", "seven")
    page.until_value("/numbers/7", '"seven"')


def test_what_changes_flashes_and_what_does_not_does_not(page: Page) -> None:
    page.unfold("/lamps", "/lamps/hall")
    page.until_value("/lamps/hall/level", "40")
    page.until_value("/visits", "0")
    # Rendered classes last for a second: a watcher sees them all.
    page.window.run(
        "window.flashed = new Set(); new MutationObserver(() => {"
        "for (const row of document.querySelectorAll('#tree .flash')) window.flashed.add(row.dataset.path)"
        "}).observe(document.querySelector('#tree'), {subtree: true, attributes: true, attributeFilter: ['class']})"
    )
    page.daemon.set("/lamps/hall/level", 41)
    page.until_value("/lamps/hall/level", "41")
    page.until(
        "it flashes", lambda: "/lamps/hall/level" in page.window.run("return [...window.flashed]")
    )
    page.daemon.lockstep("increment", "/visits")
    page.until("the other does", lambda: "/visits" in page.window.run("return [...window.flashed]"))
    assert set(page.window.run("return [...window.flashed]")) == {"/lamps/hall/level", "/visits"}
    page.until("it ends", lambda: not page.window.attributes("#tree .flash", "data-path"))


def test_a_folded_place_flashes_for_what_is_below(page: Page) -> None:
    page.window.element(row_of("/lamps"))
    page.daemon.set("/lamps/hall/level", 41)
    page.until("it flashes", lambda: page.flashes("/lamps") == 1)


def test_rows_appear_and_vanish(page: Page) -> None:
    page.unfold("/lamps")
    page.daemon.set("/lamps/attic", {"on": True})
    page.until("the new one is there", lambda: "/lamps/attic" in page.children("/lamps"))
    page.until("the count is right", lambda: page.value("/lamps") == "object · 3")
    page.daemon.lockstep("remove", "/lamps/kitchen")
    page.until(
        "the other is gone", lambda: page.children("/lamps") == ["/lamps/attic", "/lamps/hall"]
    )
    page.daemon.set("/lamps/attic", 12)
    page.until_value("/lamps/attic", "12")


def test_a_million_entries_are_paged(daemon: Daemon, window: Window) -> None:
    daemon.start_with({"big": {f"entry{n:07}": n for n in range(1_000_000)}, "small": 1})
    page = Page(window, daemon)
    page.until_value("/big", "object · 1,000,000")
    page.unfold("/big")
    window.element(row_of("/big/entry0000000"))
    page.until_value("/big/entry0000003", "3")
    for shown in (400, 600):
        window.run("document.querySelector('#tree').scrollTop = 1e9")
        window.click('[data-more="/big"]')
        page.until(
            f"{shown} are loaded",
            lambda: window.attribute(row_of(f"/big/entry{shown - 200:07}"), "tabindex") == "0",
        )
    window.run("document.querySelector('#tree').scrollTop = 24 * 500")
    page.until_value("/big/entry0000505", "505")
    assert window.run("return document.querySelectorAll('#tree *').length") < 1000, (
        "only what is in view is an element"
    )
    # One of them that no page has shown is found by its path.
    window.fill("#goto-path", "/big/entry0777777")
    window.press("Enter")
    page.until_value("/big/entry0777777", "777777")
    daemon.set("/big/entry0777777", -1)
    page.until_value("/big/entry0777777", "-1")


def test_the_history_of_a_place(page: Page) -> None:
    page.unfold("/lamps", "/lamps/hall")
    page.daemon.set("/lamps/hall/level", 41)
    page.daemon.set("/name", "other")
    last = page.daemon.set("/lamps/hall/level", 42)
    page.select("/lamps/hall/level")
    page.until(
        "two changes",
        lambda: (
            page.window.attributes("#place-rows li[data-revision]", "data-revision")
            == [str(last), "1"]
        ),
    )
    text = page.window.text(f'#place-rows [data-revision="{last}"]')
    for part in ("− 41", "+ 42", "set", "lockstep set", ":"):
        assert part in text, text
    # It goes on by itself.
    newest = page.daemon.set("/lamps/hall/level", 43)
    page.until(
        "the third",
        lambda: (
            page.window.attributes("#place-rows li[data-revision]", "data-revision")[0]
            == str(newest)
        ),
    )
    page.select("/name")
    page.until_text("#place-rows", '+ "other"')
    assert page.window.text("#place-path") == "/name"


def test_what_a_daemon_says_is_never_markup(daemon: Daemon, window: Window) -> None:
    evil = "<img src=x onerror='window.bad=1'>"
    daemon.start_with({evil: evil})
    page = Page(window, daemon)
    page.until("it is there as text", lambda: evil in window.text("#tree"))
    daemon.lockstep("--label", evil, "set", "/" + evil, '"<b>x</b>"')
    page.until_text("#actions", "<b>x</b>")
    window.click("#actions [data-sequence]")
    page.until_text("#action", evil)
    assert window.run("return document.querySelectorAll('main img, main .value b').length") == 0
    assert window.run("return window.bad") is None
