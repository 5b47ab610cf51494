"""What the tests share: one chromedriver, a window for each test, daemons, and the page's words."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Callable, Iterator

import pytest
from browser import Driver, Window, wait
from daemons import BINARIES, Daemon, program

DOCUMENT: Any = {
    "lamps": {"hall": {"on": True, "level": 40}, "kitchen": {"on": False, "level": 7}},
    "list": [1, {"a": 2}, [3, 4]],
    "name": "first",
    "nothing": None,
    "visits": 0,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not BINARIES:
            item.add_marker(pytest.mark.skip(reason="LOCKSTEP_BINARIES names no folder"))
        elif not shutil.which("chromedriver"):
            item.add_marker(pytest.mark.skip(reason="there is no chromedriver"))


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.stop()


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder that is short enough for a socket, and that other users may enter."""
    path = tempfile.mkdtemp(prefix="inspect-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_daemon(folder: str) -> Iterator[Callable[[str], Daemon]]:
    daemons: list[Daemon] = []

    def make(name: str = "lockstepd") -> Daemon:
        if not os.path.exists(program(name)):
            pytest.skip(f"there is no {name}: LOCKSTEP_EXAMPLES names its folder")
        daemons.append(Daemon(folder, name))
        return daemons[-1]

    yield make
    for daemon in daemons:
        daemon.end()


@pytest.fixture
def daemon(make_daemon: Callable[[str], Daemon]) -> Daemon:
    """A document daemon, not started yet."""
    return make_daemon("lockstepd")


@pytest.fixture
def window(driver: Driver) -> Iterator[Window]:
    window = driver.window()
    yield window
    window.close()


@pytest.fixture
def page(daemon: Daemon, window: Window) -> Page:
    """The page of an inspector of a daemon with a small document."""
    daemon.start_with(DOCUMENT)
    page = Page(window, daemon)
    page.until_past()
    return page


class Page:
    """The page in a window, in the words of a person who uses it."""

    def __init__(self, window: Window, daemon: Daemon, user: int | None = None) -> None:
        self.window, self.daemon = window, daemon
        self.inspector = daemon.inspector(user)
        window.open(self.inspector.address)
        self.until_state("live")

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 20) -> Any:
        return self.window.until(what, holds, seconds)

    def until_state(self, state: str) -> None:
        self.until(
            f"the connection is {state}",
            lambda: self.window.attribute("#connection", "data-state") == state,
        )

    def until_text(self, selector: str, part: str, seconds: float = 20) -> str:
        try:
            found: str = wait(
                f"“{part}” in {selector}",
                lambda: part in self.window.text(selector) and self.window.text(selector),
                seconds,
            )
            return found
        except AssertionError as error:
            raise AssertionError(f"{error}, which says “{self.window.text(selector)}”") from None

    def until_past(self) -> None:
        """The daemon holds past states from when it is first asked for them: before, changes are not known."""
        self.until("there is a past", lambda: self.window.text("#time-since").isdigit())

    # The tree

    def unfold(self, *paths: str) -> None:
        for path in paths:
            row = row_of(path)
            self.window.element(row)
            if self.window.attribute(row, "aria-expanded") == "false":
                self.window.click(f"{row} .fold")
            self.until(
                f"{path} is unfolded", lambda: self.window.attribute(row, "aria-expanded") == "true"
            )

    def select(self, path: str) -> None:
        self.window.click(f"{row_of(path)} .key")

    def value(self, path: str) -> str:
        return self.window.text(f"{row_of(path)} .value")

    def until_value(self, path: str, value: str) -> None:
        try:
            wait("", lambda: self.value(path) == value)
        except AssertionError:
            raise AssertionError(f"{path} never showed {value}, but “{self.value(path)}”") from None

    def children(self, path: str) -> list[str]:
        """The paths of the rows directly below one, of those that are elements."""
        found = self.window.attributes("#tree [data-path]", "data-path")
        return [one for one in found if one.rpartition("/")[0] == path and one]

    def flashes(self, path: str) -> int:
        return int(self.window.attribute(row_of(path), "data-flashes") or 0)

    # The actions

    def sequences(self) -> list[int]:
        """The numbers of the actions that are elements."""
        return [
            int(number)
            for number in self.window.attributes("#actions [data-sequence]", "data-sequence")
        ]

    def until_action(self, sequence: int) -> str:
        """The text of an action, once it is shown."""
        selector = f'#actions [data-sequence="{sequence}"]'
        found: str = self.until(f"action {sequence} is shown", lambda: self.window.text(selector))
        return found

    def total(self) -> int:
        return int(self.window.attribute("#total", "data-total") or -1)

    # The time

    def show_revision(self, revision: int) -> None:
        """Move the slider to a revision."""
        self.until(f"revision {revision} is in the slider", lambda: self.window.run(
            "const s = document.querySelector('#slider');"
            "if (s.disabled || Number(s.max) <= arguments[0] || Number(s.min) > arguments[0]) return false;"
            "s.value = arguments[0]; s.dispatchEvent(new Event('input', {bubbles: true})); return true", revision))  # fmt: skip
        self.until(f"revision {revision} is shown", lambda: self.shown_revision() == str(revision))

    def shown_revision(self) -> str | None:
        return self.window.attribute("#state", "data-revision")


def row_of(path: str) -> str:
    return f"#tree [data-path={json.dumps(path)}]"
