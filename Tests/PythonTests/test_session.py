"""A session, by events: what transcripts do not have."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from conftest import eventually, load
from lockstep import ABSENT, OutcomeUnknown, Rejected, plain
from lockstep.core.cbor import Raw, Reader, encode
from lockstep.core.frames import FrameDecoder, frame
from lockstep.core.patches import apply
from lockstep.core.session import Done, Session, State, StateChanged, Write
from lockstep.core.views import show
from lockstep.link import Link

FIRST = next(
    bytes.fromhex(step["daemon"])
    for step in load("sessions")["transcripts"][0]["steps"]
    if step.get("type") == "welcome"
)


def welcome(**changed: Any) -> bytes:
    """A welcome, with other fields."""
    names = ["type", "version", "position", "seed", "token", "is_resumed", "last_action", "window",
             "limits", "schema", "peer", "durable", "session"]  # fmt: skip
    fields = dict(zip(names, Reader(FIRST).item(level=0)))
    return encode([{**fields, **changed}[name] for name in names])


class Bench:
    """A session, and what it says."""

    def __init__(self, first: bytes = FIRST) -> None:
        self.session = Session(seed=1)
        self.said: list[Any] = []
        self.done: list[Any] = []
        self.session.start()
        self.greet(first)

    def greet(self, message: bytes) -> None:
        self.session.connected(0)
        self.hear(message)

    def lose(self) -> None:
        self.session.disconnected(0)
        self.drain()

    def hear(self, *messages: Any) -> None:
        for message in messages:
            item = message if isinstance(message, bytes) else encode(message)
            self.session.received(frame(item), 0)
        self.drain()

    def drain(self) -> None:
        for one in self.session.take():
            if isinstance(one, Write):
                self.said += [
                    plain(show(Reader(item).item(level=0)))
                    for item in FrameDecoder().feed(one.data)
                ]
            elif isinstance(one, Done):
                self.done.append((one.action, type(one.result)))
            elif isinstance(one, StateChanged) and one.state is State.CLOSED:
                self.done.append(one.reason)

    def actions(self) -> list[Any]:
        self.drain()
        return [one[1] for one in self.said if one[0] == 4]


def test_a_session_that_expires_again_and_again_forgets_only_what_was_sent() -> None:
    bench = Bench(welcome(window=2))
    ids = [bench.session.submit(b"\x00") for _ in range(5)]
    assert bench.actions() == [1, 2]
    bench.lose()
    bench.said.clear()
    bench.greet(welcome(window=2))
    assert bench.done == [(ids[0], OutcomeUnknown), (ids[1], OutcomeUnknown)]
    assert bench.actions() == [1, 2], "those that were never sent begin a session"
    bench.lose()
    bench.said.clear()
    bench.greet(welcome(window=2))
    assert bench.done[2:] == [(ids[2], OutcomeUnknown), (ids[3], OutcomeUnknown)]
    assert bench.actions() == [1]
    bench.session.close()
    bench.lose()
    assert bench.done[4] == (ids[4], OutcomeUnknown)


def test_actions_that_were_never_sent_are_told_so_at_the_end() -> None:
    bench = Bench(welcome(window=1))
    ids = [bench.session.submit(b"\x00") for _ in range(2)]
    bench.hear((21, 7, "replaced", None, None, None, None))
    bench.lose()
    assert bench.done[:2] == [(ids[0], OutcomeUnknown), (ids[1], Rejected)]
    assert bench.session.has_ended


def test_what_comes_behind_a_goodbye_does_not_count() -> None:
    bench = Bench()
    action = bench.session.submit(b"\x00")
    bench.drain()
    bench.hear((21, 7, "replaced", None, None, None, None), (15, 1, 1, 1, 0, 0, None), b"\xff")
    bench.lose()
    assert bench.done[0] == (action, OutcomeUnknown)


def test_an_outcome_waits_until_a_mirror_that_begins_again_shows_it() -> None:
    bench = Bench()
    mirror = bench.session.subscribe(())
    bench.hear((12, 1, 3, 2, 1, 5), (13, 3, 5, 0, True, encode({"n": 0})))
    action = bench.session.submit(b"\x00")
    bench.drain()
    bench.hear((14, 3, 7, 1, {"n": 1}))  # from 7: there is a gap
    assert [one[0] for one in bench.said[-2:]] == [3, 2]
    bench.hear((15, 1, 1, 8, 0, 0, None))
    assert not bench.done and mirror.value == {"n": 0}
    bench.hear((12, mirror.number, 3, 2, 1, 8), (13, 3, 8, 0, True, encode({"n": 1})))
    assert [one for one, _ in bench.done] == [action] and mirror.value == {"n": 1}


def test_patches_that_a_mirror_has_are_skipped() -> None:
    bench = Bench()
    mirror = bench.session.subscribe(())
    bench.hear((12, 1, 3, 2, 1, 4), (13, 3, 5, 0, True, encode([1])))
    appended = [[0, 0, [7]], {}]
    bench.hear((14, 3, 3, 1, appended, 1, appended, 1, appended))
    assert mirror.value == [7, 1] and mirror.position and mirror.position.revision == 6
    assert mirror.resyncs == 0


def test_the_daemon_may_allow_longer_frames() -> None:
    head = (17 << 20).to_bytes(4, "little")
    bench = Bench(welcome(limits={"frameBytes": 32 << 20}))
    bench.session.received(head, 0)
    assert not bench.session.has_ended
    bench = Bench()
    bench.session.received(head, 0)
    assert bench.session.has_ended


def test_another_schema_is_taken_over() -> None:
    old, new = (
        {"state": ["type", "S"], "types": {"S": ["struct", fields]}, "action": "value"}
        for fields in ([[0, "a", "int"]], [[0, "a", "int"], [1, "b", "int"]])
    )
    bench = Bench(welcome(schema=old))
    mirror = bench.session.subscribe(("a",))
    bench.hear((12, 1, 3, 2, 1, 5), (13, 3, 5, 0, True, b"\x01"))
    assert bench.said[-1][2] == [0] and mirror.value == 1
    bench.hear((19, new))
    assert mirror.is_current, "the path is what it was"
    assert bench.session.schema and bench.session.schema.keys(("b",)) == (1,)
    whole = bench.session.subscribe(())
    bench.hear((12, whole.number, 4, 2, 1, 5), (13, 4, 5, 0, True, encode({0: 1, 1: 2})))
    assert show(whole.value, whole.kind) == {"a": 1, "b": 2}


def test_a_schema_in_which_the_path_is_another_costs_a_snapshot() -> None:
    def schema(number: int) -> Any:
        types = {"S": ["struct", [[number, "a", "int"]]]}
        return {"state": ["type", "S"], "types": types, "action": "value"}

    bench = Bench(welcome(schema=schema(0)))
    mirror = bench.session.subscribe(("a",))
    bench.hear((12, 1, 3, 2, 1, 5), (13, 3, 5, 0, True, b"\x01"), (19, schema(7)))
    assert bench.said[-1] == [2, mirror.number, [7], None] and mirror.number != 1


def test_a_view_that_is_held_over_many_changes_stays() -> None:
    value = Reader(encode({"a": {"n": 0}, "b": {"n": 0}})).item(level=0)
    view = show(value)
    for key in "abab":
        value, _ = apply(value, Reader(encode({key: {"n": 1, key: [1]}})).item(level=0))
        if "c" not in value:
            value, _ = apply(value, Reader(encode({"c": 1})).item(level=0))
    assert view == {"a": {"n": 0}, "b": {"n": 0}}
    child = view["a"]
    del view
    value, _ = apply(value, Reader(encode({"a": ABSENT})).item(level=0))
    assert child == {"n": 0}
    assert encode(Raw(b"\x07")) == b"\x07"


async def test_what_a_daemon_said_is_read_although_it_reads_no_more(folder: str) -> None:
    path = os.path.join(folder, "socket")
    heard: list[Any] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        link = Link(asyncio.get_running_loop(), heard.append, heard.append)
        link.open(path, lambda: None)
        connection, _ = listener.accept()
        connection.sendall(b"goodbye")
        connection.close()
        link.write(b"hello")
        link.write(b"hello")
        await eventually("it is lost", lambda: None in heard)
    assert heard == [b"goodbye", None]
