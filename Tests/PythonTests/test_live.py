"""The library and real daemons."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from typing import Any, Optional

import lockstep
import pytest
from conftest import BEGINNING, Daemon, Proxy, eventually, random_changes
from lockstep import GoodbyeCode, Rejected, RejectionCode
from lockstep.core import messages
from lockstep.core.frames import frame

PATHS = ["", "/objects", "/objects/o1/z~1~0", "/lists", "/lists/o0/1", "/counts/o1", "/nothing"]


async def all_right(connection: lockstep.Connection, mirrors: list[lockstep.Mirror]) -> None:
    """Each mirror has the daemon's digest."""
    for mirror in mirrors:
        is_right = None
        while is_right is None:
            await mirror.wait_current()
            try:
                is_right = await mirror.verify()
            except lockstep.Disconnected:
                pass  # It was cut, and comes back.
        assert is_right, mirror.path


async def submit_all(connection: lockstep.Connection, actions: Any) -> int:
    """Have actions performed, many at a time. Returns how many were rejected."""
    futures = [connection.submit(*action) for action in actions]
    results = await asyncio.gather(*futures, return_exceptions=True)
    wrong = [one for one in results if not isinstance(one, (lockstep.Outcome, Rejected))]
    assert not wrong, wrong[:3]
    return sum(isinstance(one, Rejected) for one in results)


# Mirrors


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_mirrors_are_the_daemon_s_state(daemon: Daemon, seed: int) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as writer, lockstep.connect(daemon.socket) as reader:
        await writer.set("", BEGINNING)
        await writer.set("/long", "é" * 100_000)
        mirrors = [await reader.mirror(path) for path in PATHS]
        for number, action in enumerate(random_changes(seed, 1500)):
            future = writer.submit(*action)
            if number % 4 == 0:  # Waits sometimes, so that patches come one by one.
                await asyncio.gather(future, return_exceptions=True)
            else:
                future.add_done_callback(lambda done: done.exception())
        last = await writer.set("/end", True)
        await mirrors[0].until(lambda whole: (whole.revision or 0) >= last.revision)
        await all_right(reader, mirrors)
        whole = mirrors[0]._subscription
        assert whole.resyncs == 0 and whole.snapshots == 1 and whole.patches > 100
        welcome = reader._session.welcome
        assert welcome is not None
        status = await reader.query("status")
        assert status["digest"] == f"{whole.digest(welcome.seed):016x}"
        for mirror in mirrors:
            if mirror.path == "/lists/o0/1":  # No mirror looks into an array; `get` does.
                assert mirror.value is lockstep.ABSENT
                continue
            assert await writer.get(mirror.path, lockstep.ABSENT) == lockstep.plain(mirror.value)


async def test_a_large_state_comes_whole(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {f"key {n}": {"n": n} for n in range(50_000)})
        async with lockstep.connect(daemon.socket) as other:
            mirror = await other.mirror()
            assert len(mirror) == 50_000 and mirror["key 4711"]["n"] == 4711
            await connection.increment(["key 4711", "n"])
            await mirror.until(lambda whole: whole.get(["key 4711", "n"]) == 4712)


async def test_who_sends_sees_what_it_did(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        mirror, part = await connection.mirror(), await connection.mirror("/lamp")
        assert not part.exists and part.value is lockstep.ABSENT and part.get("") is None
        for level in range(50):
            outcome = await connection.set("/lamp", {"level": level})
            assert part["level"] == mirror["lamp"]["level"] == level
            assert part.revision == mirror.revision == outcome.revision
        assert (await connection.set("/lamp", {"level": 49})).kind is lockstep.OutcomeKind.UNCHANGED


async def test_mirrors_cannot_be_written(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {"lamp": {"on": True}, "list": [1, 2]})
        mirror: Any = await connection.mirror()
        lamp, numbers = mirror["lamp"], mirror["list"]

        def writes() -> Any:
            yield lambda: mirror.__setitem__("lamp", 1)
            yield lambda: mirror.__delitem__("lamp")
            yield lambda: setattr(mirror, "value", 1)
            yield lambda: mirror.update({})
            yield lambda: lamp.__setitem__("on", False)
            yield lambda: lamp.__delitem__("on")
            yield lambda: lamp.pop("on")
            yield lambda: lamp.setdefault("x", 1)
            yield lambda: lamp.clear()
            yield lambda: numbers.append(3)
            yield lambda: numbers.__setitem__(0, 3)
            yield lambda: numbers.__iadd__([3])
            yield lambda: numbers.sort()

        for write in writes():
            with pytest.raises(TypeError, match="send an action"):
                write()
        assert mirror.value == {"lamp": {"on": True}, "list": [1, 2]}


async def test_what_was_taken_out_stays_and_the_mirror_goes_on(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {"lamp": {"level": 1}, "list": [{"n": 1}]})
        mirror = await connection.mirror()
        lamp, first = mirror["lamp"], mirror["list"][0]
        await connection.set("/lamp/level", 2)
        await connection.insert("/list/0", 0)
        await connection.set("/list/1/n", 2)
        assert lamp == {"level": 1} and first == {"n": 1}
        assert mirror.value == {"lamp": {"level": 2}, "list": [0, {"n": 2}]}


async def test_mirrors_of_one_path_are_one(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        one, other = await connection.mirror("/a"), await connection.mirror(["a"])
        assert one is other
        await one.close()
        await connection.set("/a", 1)
        assert other.value == 1
        await other.close()
        await connection.set("/a", 2)
        assert other.value == 1
        assert (await connection.mirror("/a")).value == 2
        assert len((await connection.query("clients"))[0]["scopes"]) == 1


async def test_get_reads_once_and_into_arrays(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {"list": [{"7": "seven"}, 2], "0": None})
        assert await connection.get("/list/0/7") == "seven"
        assert await connection.get("/list/5", "none") == "none"
        assert await connection.get("/0", "none") is None
        assert await connection.get() == {"list": [{"7": "seven"}, 2], "0": None}
        assert not connection._mirrors


# Changes


async def test_changes_tell_each_revision(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {"lamp": {"on": False, "level": 1}, "other": 0})
        mirror = await connection.mirror()
        changes, others = mirror.changes("/lamp"), mirror.changes("/other")
        await connection.set("/lamp/on", True)
        await connection.increment("/other")
        await connection.merge("/lamp", {"level": 2, "hue": [1]})
        await connection.set("", {"lamp": {"on": True, "level": 2, "hue": [1]}, "other": 1})
        await connection.append("/lamp/hue", 2)
        await connection.remove("/lamp")
        found = [await changes.__anext__() for _ in range(4)]
        assert [one.places for one in found] == [
            ("/lamp/on",), found[1].places, ("/lamp/hue",), ("/lamp",)
        ]  # fmt: skip
        assert sorted(found[1].places) == ["/lamp/hue", "/lamp/level"]
        assert [one.revision for one in found] == sorted(one.revision for one in found)
        assert found[0].old == {"on": False, "level": 1} and found[0].new["on"] is True
        assert found[3].new is lockstep.ABSENT and found[3].old["hue"] == [1, 2]
        for before, after in zip(found, found[1:]):
            assert before.new == after.old
        assert (await others.__anext__()).new == 1
        changes.close()
        await mirror.close()
        assert [one async for one in others] == [], "a closed mirror ends its changes"


async def test_a_watcher_that_does_not_look_holds_a_limited_number_of_changes(
    daemon: Daemon,
) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        mirror = await connection.mirror()
        changes = mirror.changes("/n")
        await asyncio.gather(*[connection.submit("increment", "/n") for _ in range(3000)])
        assert len(changes._watcher.waiting) == 1024
        last = None
        while changes._watcher.waiting:
            change = await changes.__anext__()
            assert last is None or last.new == change.old
            last = change
        assert last is not None and last.new == 3000


async def test_changes_end_with_the_connection(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        changes = (await connection.mirror()).changes()
        waiting = asyncio.ensure_future(changes.__anext__())
        await connection.close()
        with pytest.raises(StopAsyncIteration):
            await waiting


# Outcomes


async def test_rejections_say_what_and_where(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", {"text": "a", "n": 1, "big": (1 << 64) - 1})
        cases: Any = [
            (("remove", "/nothing"), RejectionCode.BAD_PATH, "/nothing"),
            (("increment", "/text"), RejectionCode.WRONG_TYPE, "/text"),
            (("test", "/n", 2), RejectionCode.TEST_FAILED, "/n"),
            (("increment", "/big"), RejectionCode.NUMBER_OUT_OF_RANGE, "/big"),
            (("set", "/deep", deep(105)), RejectionCode.LIMIT, None),
        ]
        for action, code, path in cases:
            with pytest.raises(Rejected) as caught:
                await connection.send(*action)
            assert caught.value.code is code and caught.value.message
            if path is not None:
                assert caught.value.path == path
        with pytest.raises(Rejected):
            await connection.transaction([("set", "/n", 5), ("test", "/n", 6)])
        assert await connection.get("/n") == 1, "all of a transaction, or none"
        await connection.transaction([("test", "/n", 1), {"set": {"path": "/n", "value": 2}}])
        assert await connection.get("/n") == 2


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_what_is_no_action_is_not_sent(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("/n", 1)
        with pytest.raises(lockstep.UnknownName, match="there are: append"):
            await connection.send("sett", "/n", 2)
        with pytest.raises(lockstep.UnknownName, match="no field 'colour'"):
            await connection.send("set", "/n", colour=2)
        for value in ({1: 2}, object(), {"a": {1, 2}}):
            with pytest.raises(TypeError):
                await connection.set("/n", value)
        for wrong in (1 << 64, "\ud800", deep(200)):
            with pytest.raises(ValueError):
                await connection.set("/n", wrong)
        with pytest.raises(ValueError, match="begins with '/'"):
            await connection.set("n", 2)
        with pytest.raises(ValueError, match="bytes, and a frame"):
            await connection.set("/n", "x" * (17 << 20))
        assert await connection.get("/n") == 1
        assert (await connection.increment("/n")).revision == 2


async def test_every_kind_of_value_comes_back_as_it_was(daemon: Daemon) -> None:
    daemon.start()
    values: Any = [None, True, 1, -1, (1 << 64) - 1, -(1 << 63), 1.0, -0.0, 0.1, 1e300, "é", "é",
              "\0", b"\0\xff", [], {}, [[{}]], {"": {"/~": 1}}]  # fmt: skip
    async with lockstep.connect(daemon.socket) as connection:
        mirror = await connection.mirror()
        await connection.set("", {"all": values, "none": float("nan")})
        assert repr(lockstep.plain(mirror["all"])) == repr(values)
        assert mirror["none"] != mirror["none"]
        assert await mirror.verify() is True
        # A mirror's values are values.
        await connection.set("/copy", mirror.value)
        assert mirror["copy"]["all"] == mirror["all"]


async def test_durable_outcomes(daemon: Daemon) -> None:
    state = os.path.join(daemon.folder, "state")
    daemon.start("--state-dir", state, "--limit", "bookmarkIntervalMs=50")
    async with lockstep.connect(daemon.socket) as connection:
        outcome = await connection.set("/n", 1, durable=True)
        assert outcome.is_durable and outcome.sequence is not None
        await eventually(
            "a bookmark says so", lambda: (connection.durable_revision or 0) >= outcome.revision
        )
        assert not (await connection.set("/n", 2)).is_durable


async def test_a_daemon_that_keeps_nothing_says_so(daemon: Daemon) -> None:
    daemon.start("--durability", "none")
    async with lockstep.connect(daemon.socket) as connection:
        with pytest.raises(lockstep.NotDurable) as caught:
            await connection.set("/n", 1, durable=True)
        assert caught.value.outcome.revision == 1 and "state directory" in caught.value.reason
        assert await connection.get("/n") == 1, "it was performed"


# Requests


async def test_reports_pings_and_what_is_known(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket, label="kitchen") as connection:
        assert connection.state is lockstep.State.LIVE
        assert connection.peer == (os.getpid(), os.getuid(), os.getgid())
        assert connection.session == 1 and connection.limits["frameBytes"] == 1 << 24
        assert "transaction" in connection.actions
        assert 0 < await connection.ping() < 10
        assert (await connection.query("clients"))[0]["label"] == "kitchen"
        await asyncio.gather(*[connection.submit("increment", "/n") for _ in range(3000)])
        records = (await connection.query("log", 2000))["records"]
        assert len(records) == 2000 and records[-1]["payload"] == {"increment": {"path": "/n"}}
        with pytest.raises(lockstep.QueryFailed) as caught:
            await connection.query("nothing")
        assert caught.value.code == "unknown" and "status" in str(caught.value)


# Coming back


async def test_a_mirror_resumes_after_kill_and_restart(daemon: Daemon) -> None:
    daemon.start_durable()
    async with lockstep.connect(daemon.socket) as connection:
        await connection.set("", BEGINNING, durable=True)
        mirror = await connection.mirror()
        part = await connection.mirror("/counts")
        await submit_all(connection, random_changes(4, 300))
        await connection.set("/before", True, durable=True)
        changes = mirror.changes("/after")
        daemon.kill()
        await eventually("the connection is lost", lambda: not mirror.is_current)
        assert mirror["before"] is True, "it shows what it showed"
        with pytest.raises(lockstep.Disconnected):
            await connection.ping()
        sent = connection.submit("set", "/after", 1)
        daemon.restart()
        await sent
        assert mirror["after"] == 1 and (await changes.__anext__()).new == 1
        assert mirror._subscription.snapshots == 1, "it came back by a patch"
        await all_right(connection, [mirror, part])


async def test_what_a_crash_took_back_is_taken_back(daemon: Daemon) -> None:
    daemon.start("--durability", "none")
    async with lockstep.connect(daemon.socket) as connection:
        mirror = await connection.mirror()
        await connection.set("/n", 1)
        daemon.kill()
        await eventually("the connection is lost", lambda: not mirror.is_current)
        daemon.restart()
        await connection.set("/m", 2)
        assert mirror.value == {"m": 2}, "the state is gone, and mirrors say so"
        assert mirror._subscription.snapshots == 2
        assert await mirror.verify() is True


@pytest.mark.parametrize("seed", range(4))
async def test_each_action_is_performed_once_over_cut_connections(
    daemon: Daemon, seed: int
) -> None:
    daemon.start()
    async with Proxy(daemon.folder, daemon.socket, seed) as proxy:
        async with lockstep.connect(proxy.path, wait=True) as connection:
            mirror = await connection.mirror()
            for part in range(10):
                await submit_all(connection, [("increment", "/n")] * 40)
                assert mirror["n"] == 40 * (part + 1)
            await submit_all(connection, random_changes(seed, 100))
            proxy.spare()
            await connection.wait_live()
            await all_right(connection, [mirror])
            assert proxy.cuts >= 3 and mirror["n"] >= 400
            assert connection.lost_actions == 0


async def test_each_action_is_performed_once_over_a_cut_and_a_crash(daemon: Daemon) -> None:
    daemon.start_durable()
    async with Proxy(daemon.folder, daemon.socket) as proxy:
        async with lockstep.connect(proxy.path) as connection:
            mirror = await connection.mirror()
            for round_ in range(4):
                futures = [connection.submit("increment", "/n", durable=True) for _ in range(200)]
                await futures[20]
                if round_ % 2:
                    proxy.cut()
                else:
                    daemon.kill()
                    daemon.restart()
                outcomes = await asyncio.gather(*futures)
                assert all(one.is_durable for one in outcomes)
                assert mirror["n"] == 200 * (round_ + 1)
            await all_right(connection, [mirror])


async def test_a_session_that_expired_leaves_outcomes_unknown(daemon: Daemon) -> None:
    daemon.start("--durability", "none")
    async with Proxy(daemon.folder, daemon.socket) as proxy:
        async with lockstep.connect(proxy.path) as connection:
            await connection.set("/n", 1)
            proxy.forwards.clear()  # The daemon's answer is held.
            sent = connection.submit("set", "/n", 2)
            async with lockstep.connect(daemon.socket) as other:
                mirror = await other.mirror()
                await mirror.until(lambda whole: whole["n"] == 2)
            daemon.kill()
            unsent = asyncio.ensure_future(sent_later(connection))
            proxy.cut()
            proxy.forwards.set()
            daemon.restart()
            with pytest.raises(lockstep.OutcomeUnknown):
                await sent
            assert (await unsent).kind is lockstep.OutcomeKind.REDUCED


async def sent_later(connection: lockstep.Connection) -> lockstep.Outcome:
    """Send an action once the connection is lost."""
    while connection.state is lockstep.State.LIVE:
        await connection._change()
    return await connection.set("/m", 3)


async def test_a_mirror_that_is_not_read_delays_nobody_and_catches_up(daemon: Daemon) -> None:
    daemon.start()
    async with Proxy(daemon.folder, daemon.socket) as proxy:
        async with lockstep.connect(daemon.socket) as writer, lockstep.connect(proxy.path) as slow:
            await writer.set("", {"n": 0, "texts": {}})
            mirror = await slow.mirror()
            fast = await writer.mirror()
            proxy.forwards.clear()
            before, start = daemon.memory(), time.monotonic()
            for part in range(20):
                actions = [("set", ["texts", str(n % 50)], f"{part} {n} " + "x" * 500)
                           for n in range(500)]  # fmt: skip
                await submit_all(writer, actions)
            await writer.set("/n", 1)
            assert fast["n"] == 1 and mirror["n"] == 0
            assert time.monotonic() - start < 30
            assert daemon.memory() - before < 50_000, "a backlog is a state, not its patches"
            proxy.forwards.set()
            await mirror.until(lambda whole: whole["n"] == 1)
            assert mirror.value == fast.value
            assert mirror._subscription.patches < 5000, "they came coalesced"
            assert await mirror.verify() is True


# Goodbyes


async def test_a_daemon_that_stops_says_so_and_we_come_back(daemon: Daemon) -> None:
    daemon.start_durable()
    async with lockstep.connect(daemon.socket) as connection:
        mirror = await connection.mirror()
        await connection.set("/n", 1, durable=True)
        daemon.stop()
        await eventually("it is noticed", lambda: connection.state is lockstep.State.CONNECTING)
        daemon.restart()
        await mirror.wait_current()
        assert mirror["n"] == 1


async def test_who_is_replaced_does_not_come_back(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        changes = (await connection.mirror()).changes()
        welcome = connection._session.welcome
        assert welcome is not None
        _, writer = await asyncio.open_unix_connection(daemon.socket)
        writer.write(frame(messages.hello("thief", None, welcome.token, None)))
        reason = await connection.wait_closed()
        writer.close()
        assert isinstance(reason, lockstep.Goodbye) and reason.code is GoodbyeCode.REPLACED
        for failing in (connection.set("/n", 1), connection.ping(), changes.__anext__()):
            with pytest.raises(lockstep.Goodbye) as caught:
                await failing
            assert caught.value.code is GoodbyeCode.REPLACED
        assert connection.state is lockstep.State.CLOSED


async def test_a_limit_is_named_with_what_was_observed(daemon: Daemon) -> None:
    daemon.start("--limit", "connectionsPerUser=1")
    async with lockstep.connect(daemon.socket):
        with pytest.raises(lockstep.LockstepError) as caught:
            async with lockstep.connect(daemon.socket, timeout=5, reconnect=False):
                pass
        assert isinstance(caught.value, lockstep.Goodbye)
        assert caught.value.code is GoodbyeCode.LIMIT
        assert (caught.value.limit, caught.value.allowed) == ("connectionsPerUser", 1)
        assert caught.value.observed == 2 and "connectionsPerUser" in str(caught.value)


async def test_a_subscription_may_be_refused(daemon: Daemon) -> None:
    daemon.start("--limit", "pathKeys=2")
    async with lockstep.connect(daemon.socket) as connection:
        with pytest.raises(lockstep.SubscriptionRefused) as caught:
            await connection.mirror("/a/b/c")
        assert caught.value.reason is lockstep.SubscriptionReason.LIMIT
        assert (await connection.mirror("/a/b")).value is lockstep.ABSENT


async def test_to_close_waits_for_what_is_under_way(daemon: Daemon) -> None:
    daemon.start_durable()
    async with lockstep.connect(daemon.socket) as connection:
        futures = [connection.submit("increment", "/n", durable=True) for _ in range(500)]
        await connection.close()
        assert all(future.done() for future in futures)
        assert sum(1 for one in futures if one.exception() is None) == 500
        with pytest.raises(lockstep.Goodbye):
            await connection.set("/n", 1)
        await connection.close()


# No daemon


async def test_without_a_daemon_the_error_says_what_to_do(folder: str) -> None:
    path = os.path.join(folder, "none")
    with pytest.raises(lockstep.DaemonUnavailable, match="no such socket. Is lockstepd running"):
        await lockstep.connect(path)
    with open(path, "w"):
        pass
    with pytest.raises(ConnectionError, match="is not a socket"):
        await lockstep.connect(path)
    with pytest.raises(lockstep.DaemonUnavailable, match="1 to 107 bytes"):
        await lockstep.connect("/" + "x" * 200)
    with pytest.raises(TimeoutError):
        await lockstep.connect(os.path.join(folder, "other"), wait=True, timeout=0.2)


async def test_a_client_may_wait_for_its_daemon(daemon: Daemon) -> None:
    waiting = asyncio.ensure_future(connected(daemon.socket))
    await asyncio.sleep(0)
    daemon.start()
    connection = await waiting
    assert connection.state is lockstep.State.LIVE
    await connection.close()


async def connected(path: Optional[str]) -> lockstep.Connection:
    return await lockstep.connect(path, wait=True, timeout=30)


def test_the_socket_is_where_the_daemon_makes_it(
    monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("LOCKSTEP_SOCKET", "/a/socket")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    assert lockstep.standard_path() == "/a/socket"
    monkeypatch.setenv("LOCKSTEP_SOCKET", "")
    assert lockstep.standard_path() == folder + "/lockstep.sock"
    # Somebody else's, or none at all, as su and containers have it.
    for other in ["/proc/1" if os.geteuid() else "/nowhere", folder + "/nothing"]:
        monkeypatch.setenv("XDG_RUNTIME_DIR", other)
        assert not any(path.startswith(other) for path in lockstep.standard_paths())
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    places = ["/run/lockstep/lockstep.sock", f"/tmp/lockstep-{os.geteuid()}/lockstep.sock"]
    assert [path for path in lockstep.standard_paths() if path in places] == (
        places if os.access("/run/lockstep", os.W_OK) or os.geteuid() == 0 else places[::-1]
    )


def test_a_directory_that_others_could_have_made_counts_only_if_it_is_closed(
    monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    directory = folder + "/own"
    path = directory + "/lockstep.sock"
    other = folder + "/other"
    monkeypatch.setattr("lockstep.link.own_path", lambda: path)
    monkeypatch.setattr("lockstep.link.standard_paths", lambda: [path, other])
    assert lockstep.standard_path() == path
    os.mkdir(directory, 0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert lockstep.standard_path() == path
        for mode in [0o755, 0o770, 0o701]:
            os.chmod(directory, mode)
            assert lockstep.standard_path() == other
        os.chmod(directory, 0o700)
        os.rename(directory, directory + "-elsewhere")
        os.symlink(directory + "-elsewhere", directory)
        assert lockstep.standard_path() == other


async def test_without_a_path_a_client_waits_at_every_place_until_there_is_a_daemon(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [daemon.socket + ".nothing", daemon.socket]
    monkeypatch.setattr("lockstep.link.standard_paths", lambda: places)
    waiting = asyncio.ensure_future(connected(None))
    await asyncio.sleep(0)
    daemon.start()
    connection = await waiting
    assert connection.path == daemon.socket
    # Another daemon, even where it looked first, is not the one that it knows.
    monkeypatch.setattr("lockstep.link.standard_paths", lambda: places[:1])
    daemon.kill()
    await eventually("the loss is noticed", lambda: connection.state is not lockstep.State.LIVE)
    daemon.restart()
    await eventually("it is back", lambda: connection.state is lockstep.State.LIVE)
    assert connection.path == daemon.socket
    await connection.close()


async def test_a_daemon_and_a_client_that_are_told_nothing_meet(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_SOCKET", "")
    monkeypatch.setenv("XDG_RUNTIME_DIR", daemon.folder)
    with subprocess.Popen([daemon.program], stderr=subprocess.DEVNULL) as process:
        try:
            async with lockstep.connect(wait=True, timeout=30) as connection:
                assert connection.path == daemon.folder + "/lockstep.sock"
        finally:
            process.terminate()
