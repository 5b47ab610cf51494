"""The list of actions: what each is, what it changed, what led to it, and filters."""

from __future__ import annotations

import pathlib
import re
from typing import Callable

from browser import Window
from conftest import Page
from daemons import Daemon


def test_actions_come_with_number_time_outcome_who_and_payload(page: Page) -> None:
    page.daemon.lockstep("--label", "a lamp's switch", "set", "/lamps/hall/level", "41")
    text = page.until_action(1)
    for part in ("#1", "✓ changed", "set", '"/lamps/hall/level"', "a lamp's switch", ":"):
        assert part in text, text
    page.daemon.lockstep("remove", "/garden", status=1)
    text = page.until_action(2)
    assert "✗ rejected" in text and 'no member "garden"' in text, text
    page.daemon.lockstep("set", "/name", '"first"')
    page.until_action(3)
    assert page.window.attribute('#actions [data-sequence="3"]', "data-outcome") == "unchanged"
    page.until("the total", lambda: page.total() == 3)
    page.until("the rejected", lambda: page.window.text("#rejected") == "1")


def test_what_was_before_the_page_is_there(daemon: Daemon, window: Window) -> None:
    daemon.start()
    daemon.set("/early", 1)
    assert "/early" in Page(window, daemon).until_action(1)


def test_an_action_shows_its_diff_with_signs(page: Page) -> None:
    page.daemon.lockstep("merge", "/lamps/hall", '{"level": 50, "on": null, "colour": "red"}')
    page.until_action(1)
    page.window.click('#actions [data-sequence="1"]')
    page.until_text("#action .changes", "/lamps/hall/level")
    lines = page.window.texts("#action .change")
    assert sorted(line.replace("\n", " ") for line in lines) == [
        '/lamps/hall/colour + "red"', "/lamps/hall/level − 40 + 50", "/lamps/hall/on − true"
    ]  # fmt: skip
    colours = [
        page.window.run(f"return getComputedStyle(document.querySelector('#action {tag}')).color")
        for tag in ("ins", "del")
    ]
    assert colours[0] != colours[1]


def test_a_chain_of_causes(make_daemon: Callable[[str], Daemon], window: Window) -> None:
    daemon = make_daemon("counterd").start()
    page = Page(window, daemon)
    daemon.lockstep("send", "numberFactButtonTapped")
    page.until_action(2)
    assert page.window.attribute('#actions [data-sequence="1"]', "data-depth") == "0"
    assert page.window.attribute('#actions [data-sequence="2"]', "data-depth") == "1"
    assert "↳ #1" in page.until_action(2)
    window.click('#actions [data-sequence="2"] .name')
    page.until(
        "both causes", lambda: window.attributes("#action [data-cause]", "data-cause") == ["2", "1"]
    )
    assert "numberFactButtonTapped" in window.text('#action [data-cause="1"]')
    window.click('#action [data-cause="1"] button')
    page.until("the cause is selected", lambda: window.attribute("#action", "data-sequence") == "1")
    page.until(
        "it is marked in the list",
        lambda: window.attribute('#actions [data-sequence="1"]', "aria-selected") == "true",
    )


def test_how_long_what_followed_took(make_daemon: Callable[[str], Daemon], window: Window) -> None:
    daemon = make_daemon("counterd")
    facts = pathlib.Path(daemon.folder, "facts")
    facts.write_text("#!/bin/sh\nsleep 0.3\necho a fact about $1\n")
    facts.chmod(0o755)
    daemon.start("--facts-command", str(facts))
    page = Page(window, daemon)
    daemon.lockstep("send", "numberFactButtonTapped")
    page.until_action(1)
    # It is shown before anything follows, and what follows is added.
    window.click('#actions [data-sequence="1"] .name')
    page.until(
        "what followed", lambda: window.attribute("#action [data-followed]", "data-followed") == "1"
    )
    # The list stands still while somebody looks at one.
    window.click("#follow")
    told = re.search(r"One action .* after (\S+ \S+)\.", window.text("#action [data-followed]"))
    beside = re.search(r"↳ #1 after (\S+ m?s)", page.until_action(2))
    assert told and beside and told[1] == beside[1]
    number, unit = told[1].split()
    assert unit == "s" or unit == "ms" and float(number) >= 300


def test_filters(page: Page) -> None:
    page.daemon.lockstep("--label", "alice", "set", "/name", '"x"')
    page.daemon.lockstep("--label", "bob", "increment", "/visits")
    page.daemon.lockstep("--label", "alice", "increment", "/lamps/hall/level")
    page.daemon.lockstep("--label", "bob", "remove", "/garden", status=1)
    page.until_action(4)
    for text, left in (
        ("alice", [1, 3]),
        ("increment", [2, 3]),
        ("increment bob", [2]),
        ("rejected", [4]),
        ("", [1, 2, 3, 4]),
    ):
        page.window.fill("#filter", text)
        page.until(f"“{text}” leaves {left}", lambda: page.sequences() == left)
    page.window.click("#filter-rejected")
    page.until("only rejected", lambda: page.sequences() == [4])
    assert "1 of 4 match" in page.window.text("#actions-counts")
    page.window.click("#filter-rejected")
    page.unfold("/lamps")
    page.select("/lamps/hall")
    page.window.click("#filter-path")
    page.until("only the selected place", lambda: page.sequences() == [3])
    page.select("/visits")
    page.until("another place", lambda: page.sequences() == [2])


def test_the_list_follows_until_somebody_reads_it(page: Page) -> None:
    page.daemon.set("/n", 0)
    for _ in range(30):
        page.daemon.lockstep("increment", "/n")
    page.until_action(31)
    assert page.window.attribute("#actions", "data-follows") == "true"
    page.window.run("document.querySelector('#actions').scrollTop = 0")
    page.until(
        "it stands still", lambda: page.window.attribute("#actions", "data-follows") == "false"
    )
    page.until_action(1)
    for _ in range(3):
        page.daemon.lockstep("increment", "/n")
    page.until_text("#follow", "3 new")
    assert (
        page.sequences()[0] == 1
        and page.window.run("return document.querySelector('#actions').scrollTop") == 0
    )
    page.window.click("#follow")
    page.until_action(34)
    # The focus in it holds it, too.
    page.window.press("a")
    page.until(
        "it stands still", lambda: page.window.attribute("#actions", "data-follows") == "false"
    )
    page.daemon.lockstep("increment", "/n")
    page.until_text("#follow", "1 new")
    assert 35 not in page.sequences()
    page.window.click("#goto-path")
    page.until_action(35)
