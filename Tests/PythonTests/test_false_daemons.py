"""The library and daemons that are none: garbage, lies, silence."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import subprocess
import sys
from collections.abc import Awaitable
from typing import Any, Callable

import lockstep
import pytest
from conftest import ROOT, eventually, load
from lockstep.core import session as core
from lockstep.core.cbor import encode
from lockstep.core.frames import FrameDecoder, frame
from lockstep.core.tree import ABSENT

WELCOME = next(
    bytes.fromhex(step["daemon"])
    for step in load("sessions")["transcripts"][0]["steps"]
    if step.get("type") == "welcome"
)
GOODBYE = encode((21, 0, "goodbye", None, None, None, None))
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class FalseDaemon:
    """Serves a path by a function, and counts connections."""

    def __init__(self, folder: str, serve: Serve) -> None:
        self.path = os.path.join(folder, "false")
        self.connections = 0
        self._serve = serve

    async def __aenter__(self) -> FalseDaemon:
        self._server = await asyncio.start_unix_server(self._accept, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def says(*items: bytes) -> Serve:
    """A daemon that says this, and then listens until the client is gone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for item in items:
            writer.write(frame(item))
        await reader.read(-1)

    return serve


def raw(data: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await reader.read(-1)

    return serve


@pytest.mark.parametrize("seed", range(20))
async def test_garbage_is_a_protocol_error(folder: str, seed: int) -> None:
    data = random.Random(seed).randbytes(100) if seed else b"HTTP/1.1 400 Bad Request\r\n\r\n"
    data = data[:3] + b"\xff" + data[4:] if seed % 2 else (5).to_bytes(4, "little") + data
    async with FalseDaemon(folder, raw(data)) as daemon:
        with pytest.raises(lockstep.ProtocolError) as caught:
            await lockstep.connect(daemon.path, timeout=5)
        assert str(caught.value) and daemon.connections == 1, "it does not come back for more"


@pytest.mark.parametrize(
    "item, code",
    [
        (encode((16, 0, 0)), "OUT_OF_ORDER"),
        (encode((5, 7)), "MALFORMED"),
        (encode((25, 7)), "UNKNOWN_MESSAGE"),
        (WELCOME[:2] + b"\x01" + WELCOME[3:], "VERSION"),
        (b"\x81" * 200, "MALFORMED"),
        (b"\xc1" + WELCOME, "MALFORMED"),
    ],
)
async def test_a_wrong_greeting_is_a_protocol_error(folder: str, item: bytes, code: str) -> None:
    async with FalseDaemon(folder, says(item)) as daemon:
        with pytest.raises(lockstep.ProtocolError) as caught:
            await lockstep.connect(daemon.path, timeout=5)
        assert caught.value.code.name == code


@pytest.mark.parametrize(
    "items",
    [
        [WELCOME],
        [encode((15, 1, 9, 1, 0, 0, None))],
        [encode((12, 1, 7, 9, 0, 0))],
        [encode((23, (1, 2)))],
        [b"\xff\xff"],
    ],
)
async def test_lies_of_a_live_daemon_end_the_connection(folder: str, items: list[bytes]) -> None:
    async with FalseDaemon(folder, says(WELCOME, *items)) as daemon:
        with pytest.raises(lockstep.ProtocolError):
            connection = await lockstep.connect(daemon.path)  # It may fail already.
            reason = await asyncio.wait_for(connection.wait_closed(), 5)
            assert isinstance(reason, lockstep.ProtocolError)
            await connection.set("/n", 1)
        assert daemon.connections == 1


async def test_a_goodbye_is_read_although_nobody_reads_our_hello(folder: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(encode((21, 10, "not you", None, None, None, None))))

    async with FalseDaemon(folder, serve) as daemon:
        with pytest.raises(lockstep.Goodbye) as caught:
            await lockstep.connect(daemon.path)
        assert caught.value.code is lockstep.GoodbyeCode.DENIED
        assert caught.value.message == "not you"


async def test_a_daemon_that_never_gives_a_good_snapshot_is_left(folder: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(WELCOME))
        frames, number = FrameDecoder(), 0
        while data := await reader.read(65536):
            for item in frames.feed(data):
                if item[1] == 2:  # subscribe
                    number = item[2]
                    writer.write(frame(encode((12, number, number, 2, 1, 5))))
                    writer.write(frame(encode((13, number, 5, 0, True, b"\x81"))))

    async with FalseDaemon(folder, serve) as daemon:
        connection = await lockstep.connect(daemon.path)
        with pytest.raises(lockstep.ProtocolError, match="never comes to be"):
            await connection.mirror()


async def test_a_patch_that_does_not_fit_costs_a_snapshot_and_shows_nothing_wrong(
    folder: str,
) -> None:
    patches = [{"a": 2, "b": {"c": ABSENT}}, [[0, 1, []], {}], {"b": ABSENT}]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(WELCOME))
        frames, snapshots = FrameDecoder(), 0
        while data := await reader.read(65536):
            for item in frames.feed(data):
                if item[1] == 2:
                    number = item[2]
                    value = encode({"a": snapshots})
                    writer.write(frame(encode((12, number, 3, 2, 1, 5))))
                    writer.write(frame(encode((13, 3, 5, 0, True, value))))
                    if snapshots < len(patches):
                        writer.write(frame(encode((14, 3, 5, 1, patches[snapshots]))))
                    snapshots += 1

    async with FalseDaemon(folder, serve) as daemon:
        connection = await lockstep.connect(daemon.path)
        mirror = await connection.mirror()
        seen = [mirror["a"]]

        def is_last(one: lockstep.Mirror) -> bool:
            seen.append(one["a"])
            return bool(one["a"] == len(patches))

        await mirror.until(is_last)
        assert seen == sorted(seen), "nothing of a wrong patch shows"
        assert mirror._subscription.resyncs == len(patches)
        connection._abandon()


async def test_a_wrong_digest_costs_a_snapshot(folder: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(WELCOME))
        frames = FrameDecoder()
        while data := await reader.read(65536):
            for item in frames.feed(data):
                if item[1] == 2:
                    writer.write(frame(encode((12, item[2], 3, 2, 1, 5))))
                    writer.write(frame(encode((13, 3, 5, 0, True, b"\x07"))))
                elif item[1] == 6:
                    writer.write(frame(encode((18, item[2], 5, 4711))))

    async with FalseDaemon(folder, serve) as daemon:
        connection = await lockstep.connect(daemon.path)
        mirror = await connection.mirror()
        assert await mirror.verify() is False
        await mirror.wait_current()
        assert mirror.value == 7 and mirror._subscription.resyncs == 1
        connection._abandon()


async def test_a_snapshot_has_a_limit(folder: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(WELCOME))
        frames = FrameDecoder()
        while data := await reader.read(65536):
            for item in frames.feed(data):
                if item[1] == 2:
                    writer.write(frame(encode((12, item[2], 3, 2, 1, 5))))
                    for part in range(20):
                        writer.write(frame(encode((13, 3, 5, part, False, b"\x00" * 60_000))))

    async with FalseDaemon(folder, serve) as daemon:
        connection = await lockstep.connect(daemon.path, max_snapshot_bytes=1_000_000)
        with pytest.raises(lockstep.ProtocolError, match="max_snapshot_bytes") as caught:
            await connection.mirror()
        assert caught.value.code is lockstep.GoodbyeCode.LIMIT


async def test_a_claimed_length_takes_no_memory(folder: str) -> None:
    head = (16 << 20).to_bytes(4, "little") + b"\x9a\x00\xff\xff\xff"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with FalseDaemon(folder, raw(head)) as daemon:
        with pytest.raises(TimeoutError):
            await lockstep.connect(daemon.path, timeout=0.2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


# Silence. The session is told the time, so no test waits for it.


def test_a_silent_daemon_is_pinged_and_then_left() -> None:
    session = core.Session(seed=1)
    session.start()
    session.connected(0)
    session.received(frame(WELCOME), 0)
    session.take()
    session.tick(9.9)
    assert not session.take()
    session.tick(10.1)
    assert session.take() == [core.Write(frame(encode((5, 0))))]
    session.tick(11)
    assert not session.take(), "one ping in two intervals"
    session.tick(20.1)
    assert session.take() == [core.Disconnect()]


def test_a_daemon_that_does_not_greet_is_left() -> None:
    session = core.Session(seed=1)
    session.start()
    session.connected(0)
    session.take()
    session.tick(9.9)
    assert not session.take()
    session.tick(10.1)
    assert session.take() == [core.Disconnect()]


def test_waits_between_retries_grow_and_mind_what_the_daemon_asks_for() -> None:
    session = core.Session(seed=1)
    session.start()
    waits = []
    for _ in range(12):
        session.disconnected(0)
        waits += [one.after for one in session.take() if isinstance(one, core.Connect)]
        session.start()
        session.connected(0)
    assert 0 <= waits[0] == 0.0 and 0.01 <= waits[1] <= 0.02 and 2.5 <= waits[-1] <= 5
    session.received(frame(encode((21, 6, "stopping", None, None, None, 7000))), 0)
    session.disconnected(0)
    after = [one.after for one in session.take() if isinstance(one, core.Connect)]
    assert 7 <= after[0] <= 9.5


def test_no_more_actions_are_under_way_than_the_window_allows() -> None:
    session = core.Session(seed=1)
    session.start()
    session.connected(0)
    session.received(frame(WELCOME), 0)
    assert session.welcome is not None
    window = session.welcome.window
    for _ in range(window + 5):
        session.submit(b"\x00")
    session.take()
    assert session.unacknowledged == window + 5
    session.received(frame(encode((15, 1, 3, 1, 0, 1, None))), 0)
    written = [one for one in session.take() if isinstance(one, core.Write)]
    assert len(written) == 1 and session.unacknowledged == window + 2
    frames = list(FrameDecoder().feed(written[0].data))
    assert frames[0] == encode((4, window + 1, 0, 0)) and len(frames) == 3


# The false daemon of the protocol's tests, which plays transcripts


async def play(
    folder: str, name: str, user: Callable[[lockstep.Connection], Awaitable[Any]]
) -> None:
    path = os.path.join(folder, "transcript")
    script = str(ROOT / "Tests" / "ProtocolTests" / "false_daemon.py")
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-B", script, path, name, "--timeout", "20", stdout=subprocess.PIPE
    )
    assert daemon.stdout is not None
    try:
        assert await daemon.stdout.readline() == b"listening\n"
        async with lockstep.connect(path, timeout=20) as connection:
            await user(connection)
        output = await daemon.stdout.read()
        assert await daemon.wait() == 0, output.decode()
    finally:
        if daemon.returncode is None:
            daemon.kill()
            await daemon.wait()


async def test_the_shell_plays_gap_and_resync(folder: str) -> None:
    async def user(connection: lockstep.Connection) -> None:
        mirror = await connection.mirror()
        await eventually("it began again", lambda: mirror._subscription.resyncs == 1)
        await mirror.wait_current()

    await play(folder, "gap and resync", user)


async def test_the_shell_sends_a_lost_action_again(folder: str) -> None:
    async def user(connection: lockstep.Connection) -> None:
        mirror = await connection.mirror()
        assert (await connection.increment("/n")).kind is lockstep.OutcomeKind.REDUCED
        assert mirror["n"] == 1

    await play(folder, "an action that was lost", user)
