"""A user whose rights end at half of the tree."""

from __future__ import annotations

import os
import pathlib
import signal

import pytest
from browser import Window
from conftest import DOCUMENT, Page, row_of
from daemons import STRANGER, Daemon

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can start processes of other users"
)

POLICY = f"""
version: 1
rules:
- users: [root]
  connect: true
  administer: true
  read: [/]
  act: ["*"]
- users: [{STRANGER}]
  connect: true
  read: [/public]
  act: [set, increment]
  write: [/public]
- users: [{STRANGER + 1}]
  connect: true
  read: [/]
  deny-read: [/secret/lamps/hall]
"""


@pytest.fixture
def half(daemon: Daemon, window: Window) -> Page:
    policy = pathlib.Path(daemon.folder, "policy.yaml")
    policy.write_text(POLICY)
    policy.chmod(0o600)
    daemon.start_with(
        {"public": {"visits": 1, "list": [1]}, "secret": DOCUMENT}, "--policy", str(policy)
    )
    return Page(window, daemon, user=STRANGER)


def test_what_may_not_be_read_is_a_sentence(half: Page) -> None:
    text = half.until(
        "a sentence",
        lambda: (
            [t for t in half.window.texts("#tree .row.note, #tree .refused") if len(t.split()) > 3]
            or half.window.find(row_of("/public"))
        ),
    )
    assert text
    assert "level" not in half.window.text("#tree")
    half.window.fill("#goto-path", "/secret")
    half.window.press("Enter")
    half.until(
        "it says why not",
        lambda: (
            len(half.window.text("#notice").split()) > 3
            or half.window.texts("#tree .row.note, #tree .refused")
        ),
    )
    half.window.fill("#goto-path", "/public")
    half.window.press("Enter")
    half.window.element(row_of("/public"))
    half.unfold("/public")
    half.until_value("/public/visits", "1")


def test_what_is_denied_inside_of_what_may_be_read(half: Page) -> None:
    page = Page(half.window, half.daemon, user=STRANGER + 1)
    page.unfold("/secret", "/secret/lamps", "/secret/lamps/kitchen")
    page.until_value("/secret/lamps/kitchen/level", "7")
    assert page.children("/secret/lamps") == ["/secret/lamps/kitchen"]
    page.daemon.set("/secret/lamps/hall/level", 4141)
    page.daemon.set("/secret/lamps/kitchen/level", 8)
    page.until_value("/secret/lamps/kitchen/level", "8")
    assert "4141" not in page.window.text("body")
    page.window.fill("#goto-path", "/secret/lamps/hall/level")
    page.window.press("Enter")
    page.until_text("#notice", "/secret/lamps/hall")


def test_what_may_be_read_is_live(half: Page) -> None:
    half.window.fill("#goto-path", "/public")
    half.window.press("Enter")
    half.unfold("/public")
    half.daemon.set("/public/visits", 2)
    half.until_value("/public/visits", "2")
    half.daemon.set("/public/new", True)
    half.until("a new row", lambda: "/public/new" in half.children("/public"))


def test_the_list_of_actions_says_so(half: Page) -> None:
    half.daemon.set("/public/visits", 2)
    half.until(
        "it says so",
        lambda: (
            half.window.is_shown("#actions-empty.refused")
            and len(half.window.text("#actions-empty").split()) > 3
        ),
    )
    assert half.sequences() == []
    half.window.click("#tab-clients")
    half.until("the clients say so", lambda: half.window.text("#clients") != "")
    half.window.click("#tab-effects")
    half.until("the effects say so", lambda: half.window.text("#effects") != "")


def test_what_may_not_be_done_is_a_sentence(half: Page) -> None:
    half.window.click("#tab-send")
    half.window.click("#send-raw")
    half.window.fill("#send-text", '{"set": {"path": "/secret/name", "value": 1}}')
    half.window.click("#send-button")
    half.until(
        "it is refused", lambda: half.window.attribute("#send-outcome", "data-outcome") == "refused"
    )
    half.window.fill("#send-text", '{"set": {"path": "/public/visits", "value": 8}}')
    half.window.click("#send-button")
    half.until("it is done", lambda: half.daemon.get("/public/visits") == 8)
    assert half.daemon.get("/secret/name") == "first"


def test_what_is_for_others_cannot_be_pressed(half: Page) -> None:
    def disabled(page: Page, button: str) -> bool:
        return bool(page.window.run(f"return document.querySelector('#{button}').disabled"))

    buttons = {"undo": "everything", "redo": "everything", "pause": "administer"}
    half.until("all are disabled", lambda: all(disabled(half, button) for button in buttons))
    for button, reason in buttons.items():
        assert reason in (half.window.attribute(f"#{button}", "title") or "")
    root = Page(half.window, half.daemon)
    root.daemon.set("/public/visits", 2)
    root.until("root may undo", lambda: not disabled(root, "undo"))
    assert root.window.attribute("#undo", "title") == ""
    policy = pathlib.Path(root.daemon.folder, "policy.yaml")
    policy.write_text(policy.read_text().replace('act: ["*"]', "act: [set]"))
    assert root.daemon.process
    root.daemon.process.send_signal(signal.SIGHUP)
    root.until("not any more", lambda: disabled(root, "undo"))
    assert not disabled(root, "pause")
