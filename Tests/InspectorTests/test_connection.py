"""Connections that are lost, come back, or end; and what the program serves at all."""

from __future__ import annotations

import http.client
import urllib.parse

import pytest
from browser import Window
from conftest import DOCUMENT, Page, row_of
from daemons import Daemon


def test_a_daemon_that_is_killed_and_comes_back(daemon: Daemon, window: Window) -> None:
    daemon.start("--state-dir", daemon.folder + "/state")
    daemon.set("", DOCUMENT)
    page = Page(window, daemon)
    page.unfold("/lamps", "/lamps/hall")
    page.until_value("/lamps/hall/level", "40")
    page.select("/lamps/hall/level")
    daemon.kill()
    page.until_state("stale")
    page.until_text("#banner", "lost")
    assert page.value("/lamps/hall/level") == "40", "what was known is still shown"
    daemon.restart()
    page.until_state("live")
    page.until("the banner is gone", lambda: not window.is_shown("#banner"))
    # What was unfolded is unfolded, and live.
    page.until_value("/lamps/hall/level", "40")
    daemon.set("/lamps/hall/level", 99)
    page.until_value("/lamps/hall/level", "99")
    page.until_text("#place-rows", "+ 99")


def test_a_daemon_that_comes_back_as_another(daemon: Daemon, window: Window) -> None:
    daemon.start_with(DOCUMENT)
    page = Page(window, daemon)
    page.unfold("/lamps")
    for visits in range(5):
        daemon.set("/visits", visits + 10)
    page.until_action(5)
    daemon.kill()
    page.until_state("stale")
    daemon.start_with({"lamps": {"garden": 1}, "other": True})
    page.until_state("live")
    page.until_value("/other", "true")
    page.until("the new lamps", lambda: page.children("/lamps") == ["/lamps/garden"])
    page.until("no action of before", lambda: page.sequences() == [] and page.total() == 0)
    daemon.set("/other", 2)
    page.until_value("/other", "2")
    page.until_action(1)


def test_a_daemon_that_says_goodbye(page: Page) -> None:
    page.daemon.stop()
    page.until(
        "it is said",
        lambda: page.window.attribute("#connection", "data-state") in ("closed", "stale"),
    )
    page.until(
        "the banner says it",
        lambda: page.window.is_shown("#banner") and len(page.window.text("#banner")) > 20,
    )
    assert page.window.find(row_of("/lamps")), "what was known is still shown"


def test_an_inspector_that_ends(page: Page) -> None:
    page.inspector.end()
    page.until_state("gone")
    page.until_text("#banner", "lockstep inspect")


def test_there_is_no_daemon(daemon: Daemon, window: Window) -> None:
    inspector = daemon.start().inspector()
    daemon.kill()
    window.open(inspector.address)
    window.until("a sentence", lambda: len(window.text("#banner").split()) > 5)
    assert window.attribute("#connection", "data-state") == "stale"


# What the program serves


def get(address: str, path: str | None = None, host: str | None = None) -> http.client.HTTPResponse:
    parts = urllib.parse.urlsplit(address)
    assert parts.hostname and parts.port
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    connection.request(
        "GET", parts.path if path is None else path, headers={"Host": host} if host else {}
    )
    return connection.getresponse()


def test_only_the_whole_address_is_served(daemon: Daemon) -> None:
    address = daemon.start().inspector().address
    path = urllib.parse.urlsplit(address).path
    good = get(address)
    assert good.status == 200 and good.headers["Content-Type"].startswith("text/html")
    for wrong in (
        "/",
        path[:-2] + "/",
        "/" + "0" * (len(path) - 2) + "/",
        path + "nothing.js",
        path + "../../etc/passwd",
    ):
        assert get(address, wrong).status == 404, wrong
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1"):
        assert get(address, host=host).status == 403, host
    policy = good.headers["Content-Security-Policy"]
    assert (
        "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    )


@pytest.mark.parametrize("name,type", [("main.js", "text/javascript"), ("style.css", "text/css")])
def test_the_files_have_their_types(daemon: Daemon, name: str, type: str) -> None:
    address = daemon.start().inspector().address
    answer = get(address, urllib.parse.urlsplit(address).path + name)
    assert answer.status == 200 and answer.headers["Content-Type"].startswith(type)


def test_the_browser_has_nothing_to_complain_of(page: Page) -> None:
    for tab in ("effects", "clients", "plots", "send", "actions"):
        page.window.click(f"#tab-{tab}")
    page.unfold("/lamps")
    page.daemon.set("/visits", 3)
    page.until_value("/visits", "3")
    assert page.window.complaints() == []
