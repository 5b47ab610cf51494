"""The past: the slider, jumping back, undo and redo, and the pause."""

from __future__ import annotations

from browser import Window
from conftest import Page
from daemons import Daemon


def test_the_slider_shows_the_state_of_then(page: Page) -> None:
    page.unfold("/lamps", "/lamps/hall")
    for level in range(1, 6):
        page.daemon.set("/lamps/hall/level", 100 + level)
    page.daemon.set("/lamps/attic", True)
    page.until_value("/lamps/attic", "true")
    page.show_revision(2)
    page.until_value("/lamps/hall/level", "102")
    page.until("the attic is not there", lambda: "/lamps/attic" not in page.children("/lamps"))
    assert "THE PAST: revision 2" in page.window.text("#moment")
    assert "past" in (page.window.attribute("#state", "class") or "")
    page.show_revision(4)
    page.until_value("/lamps/hall/level", "104")
    # What happens now does not change what was then.
    page.daemon.set("/lamps/hall/level", 200)
    page.until("it has come", lambda: page.window.attribute("#revision", "data-revision") == "7")
    assert page.value("/lamps/hall/level") == "104"
    page.window.click("#now")
    page.until_value("/lamps/hall/level", "200")
    page.until_value("/lamps/attic", "true")
    assert page.shown_revision() == "now" and page.window.text("#moment") == "now"


def test_the_past_of_what_is_too_large_for_one_answer(daemon: Daemon, window: Window) -> None:
    daemon.start_with(
        {"big": {f"entry{n:06}": n for n in range(100_000)}, "small": 1, "ahead": {"a": {"b": 1}}}
    )
    page = Page(window, daemon)
    page.until_past()
    page.unfold("/big", "/ahead")
    daemon.lockstep("remove", "/big/entry000002")
    daemon.set("/big/added", 1)
    daemon.set("/big/entry000003", "new")
    daemon.set("/small", 2)
    daemon.set("/ahead/a/b", 2)
    page.until_value("/big/entry000003", '"new"')
    page.show_revision(0)
    page.until_value("/big/entry000003", "3")
    # What has gone since is there, and what has come is not.
    page.until_value("/big/entry000002", "2")
    assert "/big/added" not in page.children("/big")
    page.unfold("/ahead/a")
    page.until_value("/ahead/a/b", "1")
    page.window.click("#now")
    page.until_value("/ahead/a/b", "2")


def test_a_jump_asks_first(page: Page) -> None:
    page.daemon.set("/visits", 1)
    page.daemon.set("/visits", 2)
    page.until_value("/visits", "2")
    page.show_revision(1)
    page.until_value("/visits", "1")
    page.window.click("#jump")
    page.until("it asks", lambda: page.window.is_shown("#confirm"))
    assert "revision 1" in page.window.text("#confirm-text")
    page.window.click("#confirm-no")
    page.until("it does not", lambda: not page.window.is_shown("#confirm"))
    assert page.daemon.status()["revision"] == 2
    page.window.click("#jump")
    page.window.click("#confirm-yes")
    page.until("it has jumped", lambda: page.daemon.get("/visits") == 1)
    page.until("it shows now", lambda: page.shown_revision() == "now")
    page.until_value("/visits", "1")
    page.until_text("#notice", "Jumped")


def test_undo_and_redo(page: Page) -> None:
    page.daemon.set("/visits", 5)
    page.until_value("/visits", "5")
    page.window.click("#undo")
    page.until_value("/visits", "0")
    page.until_text("#notice", "Undone")
    page.window.click("#redo")
    page.until_value("/visits", "5")
    page.window.click("#redo")
    page.until(
        "it says why not",
        lambda: (
            page.window.attribute("#notice", "role") == "status"
            and "Done again" not in page.window.text("#notice")
        ),
    )
    assert page.window.text("#notice") != ""


def test_pause_and_resume(page: Page) -> None:
    page.window.click("#pause")
    page.until_text("#banner", "paused")
    page.until("the daemon is paused", lambda: page.daemon.status()["pausedMs"] is not None)
    assert (
        page.window.text("#pause") == "Resume"
        and page.window.attribute("#pause", "aria-pressed") == "true"
    )
    page.window.click("#pause")
    page.until("the daemon goes on", lambda: page.daemon.status()["pausedMs"] is None)
    page.until("the banner is gone", lambda: not page.window.is_shown("#banner"))
    # A pause from elsewhere is seen, too.
    page.daemon.lockstep("pause")
    page.until_text("#banner", "paused")
    page.daemon.lockstep("resume")
    page.until("the banner is gone", lambda: not page.window.is_shown("#banner"))


def test_a_state_is_shown_from_an_action_and_from_a_history(page: Page) -> None:
    for visits in (1, 2, 3):
        page.daemon.set("/visits", visits)
    page.until_action(3)
    page.window.click('#actions [data-sequence="1"]')
    page.window.click('#action [data-show="1"]')
    page.until_value("/visits", "1")
    page.select("/visits")
    page.window.click('#place-rows [data-show="2"]')
    page.until_value("/visits", "2")
