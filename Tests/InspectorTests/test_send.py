"""The schema, and the form that sends an action."""

from __future__ import annotations

import json
from typing import Callable

from browser import Window
from conftest import Page
from daemons import Daemon


def send(page: Page) -> str:
    page.window.click("#send-button")
    found: str = page.until("an outcome", lambda: page.window.text("#send-outcome"))
    return found


def test_an_action_of_a_document(page: Page) -> None:
    page.until_value("/visits", "0")
    page.select("/visits")
    page.window.click("#tab-send")
    assert "set(path: path, value: value)" in page.window.text("#schema")
    page.window.choose("#send-action", "set")
    assert (
        page.window.run("return document.querySelector('[data-field=path]').value") == "/visits"
    ), "the selected place"
    assert page.window.attribute('[data-field="value"]', "placeholder")
    page.window.fill('[data-field="value"]', "12")
    assert "✓ Done, revision 1" in send(page)
    page.until_value("/visits", "12")
    page.window.choose("#send-action", "increment")
    page.window.fill('[data-field="path"]', "/visits")
    send(page)
    page.until_value("/visits", "13")
    page.window.choose("#send-action", "set")
    page.window.fill('[data-field="path"]', "/name")
    page.window.fill('[data-field="value"]', "text as it stands")
    send(page)
    page.until_value("/name", '"text as it stands"')


def test_what_was_typed_is_kept(page: Page) -> None:
    page.window.click("#tab-send")
    page.window.choose("#send-action", "set")
    page.window.fill('[data-field="value"]', "12")
    page.window.click("#tab-actions")
    page.select("/visits")
    page.window.click("#tab-send")
    assert page.window.run(
        "return [...document.querySelectorAll('#send-fields input')].map((input) => input.value)"
    ) == ["/visits", "12"]
    page.window.fill('[data-field="path"]', "/name")
    page.select("/nothing")
    page.window.click("#tab-actions")
    page.window.click("#tab-send")
    assert page.window.run("return document.querySelector('[data-field=path]').value") == "/name"


def test_a_rejection_is_a_sentence(page: Page) -> None:
    page.window.click("#tab-send")
    page.window.choose("#send-action", "increment")
    page.window.fill('[data-field="path"]', "/name")
    page.window.fill('[data-field="by"]', "1")
    text = send(page)
    assert page.window.attribute("#send-outcome", "data-outcome") == "refused"
    assert page.window.attribute("#send-outcome", "data-code") == "wrongType", text
    assert text.startswith("✗ ") and len(text.split()) > 4, text
    page.window.choose("#send-action", "set")
    page.window.fill('[data-field="path"]', "/name")
    page.window.fill('[data-field="value"]', '{"a": ')
    assert "is not JSON" in send(page)
    assert page.daemon.status()["revision"] == 0


def test_an_action_as_json(page: Page) -> None:
    page.window.click("#tab-send")
    page.window.click("#send-raw")
    page.window.fill("#send-text", '{"merge": {"path": "/lamps/hall", "value": {"level": 77}}}')
    assert "Done" in send(page)
    assert page.daemon.get("/lamps/hall/level") == 77
    page.window.fill("#send-text", '{"fly": {}}')
    send(page)
    page.until(
        "it is refused", lambda: page.window.attribute("#send-outcome", "data-outcome") == "refused"
    )
    assert "fly" in page.window.text("#send-outcome")


def test_an_action_of_a_typed_daemon(make_daemon: Callable[[str], Daemon], window: Window) -> None:
    daemon = make_daemon("boardd").start()
    page = Page(window, daemon)
    window.click("#tab-send")
    assert "addCard(text, column: text)" in window.text("#schema")
    window.choose("#send-action", "addColumn")
    window.fill('[data-field="_0"]', "later")
    send(page)
    window.choose("#send-action", "addCard")
    window.fill('[data-field="_0"]', "milk")
    window.fill('[data-field="column"]', "later")
    send(page)
    page.until("the card is there", lambda: "milk" in daemon.lockstep("get", "/columns"))
    # An action inside of an action: a choice, and what the chosen one carries.
    window.choose("#send-action", "hands")
    window.choose("#send-fields [data-choice]", "enter")
    window.fill('[data-field="name"]', "ann")
    window.fill('[data-field="card"]', "1")
    window.fill('[data-field="key"]', "left")
    assert json.loads(window.text("#send-preview")) == {
        "hands": {"enter": {"_0": {"name": "ann", "card": 1}, "key": "left"}}
    }
    assert "Done" in send(page)
    page.until("the hand was there", lambda: "ann" in daemon.lockstep("log"))


def test_an_action_that_carries_nothing(
    make_daemon: Callable[[str], Daemon], window: Window
) -> None:
    daemon = make_daemon("counterd").start()
    page = Page(window, daemon)
    page.until_value("/count", "0")
    window.click("#tab-send")
    window.choose("#send-action", "increment")
    assert "carries nothing" in window.text("#send-fields")
    send(page)
    page.until_value("/count", "1")
