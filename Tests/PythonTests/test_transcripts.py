"""The transcripts of sessions.json, played to a session without a socket."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import load, meaning
from lockstep.core import messages
from lockstep.core.cbor import Raw, Reader, encode
from lockstep.core.frames import FrameDecoder, frame
from lockstep.core.schema import VALUE
from lockstep.core.session import Connect, Done, Reported, Session, StateChanged, Write
from lockstep.core.subscription import Subscription
from lockstep.core.tree import same
from lockstep.errors import LockstepError

TRANSCRIPTS = load("sessions")["transcripts"]
SORTS = {1: 1, 2: 2, 3: 2, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}
"""Messages of one sort keep their order; those of different sorts need not."""


def decode(data: bytes) -> Any:
    return Reader(data).item(level=0)


class Player:
    """Plays both the daemon and the user to a session."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.session = Session()
        self.frames = FrameDecoder()
        self.said: list[Any] = []
        self.subscriptions: dict[int, Subscription] = {}
        self.numbers: dict[int, dict[int, int]] = {5: {}, 7: {}}
        self.outcomes: dict[int, Any] = {}
        self.reports: list[Any] = []
        self.states: list[StateChanged] = []
        self.now = 0.0
        self.session.start()
        self.drain()

    def drain(self) -> None:
        """Do what the session says."""
        while out := self.session.take():
            for one in out:
                if isinstance(one, Write):
                    self.said += [decode(item) for item in self.frames.feed(one.data)]
                elif isinstance(one, Connect):
                    self.frames = FrameDecoder()
                    self.now += one.after
                    self.session.connected(self.now)
                elif isinstance(one, Done):
                    assert one.action not in self.outcomes, "an outcome comes once"
                    self.outcomes[one.action] = one.result
                elif isinstance(one, Reported):
                    self.reports.append(one.report)
                elif isinstance(one, StateChanged):
                    self.states.append(one)

    # The client's messages

    def expect(self, wanted: Any) -> None:
        """The session says this; if need be because its user does something."""
        found = self.find(wanted)
        if found is None:
            self.do(wanted)
            self.drain()
            found = self.find(wanted)
        assert found is not None, f"the client does not say {wanted}"
        self.said.remove(found)
        self.compare(wanted, found)

    def find(self, wanted: Any) -> Any:
        of_sort = [one for one in self.said if SORTS[one[0]] == SORTS[wanted[0]]]
        return of_sort[0] if of_sort and of_sort[0][0] == wanted[0] else None

    def do(self, wanted: Any) -> None:
        kind, session = wanted[0], self.session
        if kind == 2:
            self.subscriptions[wanted[1]] = session.subscribe(tuple(wanted[2]))
        elif kind == 3:
            session.unsubscribe(self.subscriptions[wanted[1]])
        elif kind == 4:
            session.submit(encode(wanted[3]), bool(wanted[2]))
        elif kind == 5:
            self.numbers[5][wanted[1]] = session.ping()
        elif kind == 6:
            none = Subscription(wanted[1], (), (), VALUE)
            session.request_digest(self.subscriptions.get(wanted[1], none))
        elif kind == 7:
            self.numbers[7][wanted[1]] = session.query(wanted[2], *wanted[3:4])
        elif kind == 8:
            session.close()

    def compare(self, wanted: Any, found: Any) -> None:
        kind = wanted[0]
        if kind == 1:
            assert found[1][0] <= 2 <= found[1][1]
            assert found[4] == wanted[4], "the token of the last welcome"
        elif kind == 2:
            assert same(found[2], wanted[2]) and found[3] == wanted[3], (found, wanted)
            known = [one for one in self.session.subscriptions.values() if one.number == found[1]]
            self.subscriptions[wanted[1]] = known[0]
        elif kind == 4:
            assert found[1:3] == wanted[1:3] and same(found[3], wanted[3])
        elif kind == 7:
            assert found[2:] == wanted[2:]

    # The daemon's messages

    def say(self, item: bytes) -> None:
        message = decode(item)
        kind = message[0]
        if kind in (12, 18) and message[1] in self.subscriptions:
            message[1] = self.subscriptions[message[1]].number
        elif kind in (16, 20):
            own = self.numbers[5 if kind == 16 else 7]
            message[1] = own.get(message[1], message[1])
        data = frame(item if kind == 11 else encode(message))
        for at in range(0, len(data), self.size):
            self.session.received(data[at : at + self.size], self.now)
        self.drain()

    def check(self, mirrors: Any) -> None:
        """The mirrors are what those of a correct client are."""
        for wanted in mirrors:
            one = self.subscriptions[wanted["subscription"]]
            assert same(one.value, decode(encode(meaning(wanted["value"]))))
            assert one.is_current == wanted["isCurrent"]
            position = wanted["position"]
            assert one.position == (position and messages.Position(*position))

    def play(self, steps: Any) -> None:
        for step in steps:
            if "client" in step:
                self.expect(decode(bytes.fromhex(step["client"])))
            elif "daemon" in step:
                self.say(bytes.fromhex(step["daemon"]))
                self.check(step["mirrors"])
            elif "closed" in step:
                self.session.disconnected(self.now)
                self.drain()


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["bytes", "frames"])
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=[one["name"] for one in TRANSCRIPTS])
def test_a_session_says_and_shows_what_the_transcript_does(transcript: Any, size: int) -> None:
    player = Player(size)
    player.play(transcript["steps"])
    if not player.session.has_ended:
        assert not [one for one in player.said if one[0] not in (5, 1, 2, 4)], (
            "nothing else is said"
        )
    failures = [one for one in player.states if isinstance(one.reason, LockstepError)]
    assert all("protocol" not in str(one.reason) for one in failures)


def played(name: str) -> Player:
    player = Player(1 << 20)
    player.play(next(one for one in TRANSCRIPTS if one["name"] == name)["steps"])
    return player


def test_outcomes_are_told() -> None:
    results = [type(one).__name__ for one in played("actions and their outcomes").outcomes.values()]
    assert "Rejected" in results and "Outcome" in results


def test_a_session_that_has_expired_tells_unknown_outcomes() -> None:
    results = [type(one).__name__ for one in played("a session that has expired").outcomes.values()]
    assert "OutcomeUnknown" in results


def test_actions_that_a_crash_took_back_are_counted() -> None:
    assert played("renumbering after a crash").session.lost_actions > 0


def test_pages_of_a_report_are_joined() -> None:
    reports = played("a report in pages").reports
    assert reports and all(reports)


def test_raw_bytes_are_an_item_already() -> None:
    assert encode((1, Raw(b"\x80"))) == b"\x82\x01\x80"
