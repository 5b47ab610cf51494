"""The blocking face."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import lockstep
import pytest
from conftest import Daemon


def test_a_script_sets_and_gets(daemon: Daemon) -> None:
    daemon.start()
    with lockstep.connect_blocking(daemon.socket, label="script") as connection:
        connection.set("/lamp", {"on": False, "level": 40})
        assert connection.increment("/lamp/level", 5).revision == 2
        connection.append("/list", 1)
        connection.insert("/list/0", 0)
        connection.move("/list/0", "/first")
        connection.copy("/list", "/copy")
        connection.merge("/lamp", {"on": True, "level": None})
        connection.replace("/first", "one")
        connection.test("/first", "one")
        connection.transaction([("increment", "/n"), ("increment", "/n", 2)])
        connection.remove("/copy/0")
        connection.send("set", "/last", True)
        assert connection.get() == {
            "lamp": {"on": True}, "list": [1], "first": "one", "copy": [], "n": 3, "last": True,
        }  # fmt: skip
        assert connection.get("/none", 7) == 7 and connection.get("/list/0") == 1
        assert connection.query("clients")[0]["label"] == "script"
        assert connection.ping() > 0 and connection.state is lockstep.State.LIVE
        with pytest.raises(lockstep.Rejected):
            connection.remove("/none")
    assert threading.active_count() == 1
    with pytest.raises(lockstep.Goodbye):
        connection.get()
    connection.close()


def test_changes_are_iterated(daemon: Daemon) -> None:
    daemon.start()
    with lockstep.connect_blocking(daemon.socket) as connection:
        mirror = connection.mirror("/n")
        changes = mirror.changes(timeout=10)
        with lockstep.connect_blocking(daemon.socket) as other:
            for _ in range(5):
                other.increment("/n")
        found = []
        for change in changes:
            found.append((change.old, change.new))
            if change.new == 5:
                break
        assert found == [(lockstep.ABSENT, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
        with pytest.raises(TimeoutError):
            next(mirror.changes(timeout=0.05))
        mirror.close()
        assert list(changes) == []


def test_a_mirror_goes_on_in_the_background(daemon: Daemon) -> None:
    daemon.start()
    with lockstep.connect_blocking(daemon.socket) as connection:
        connection.set("", {"lamp": {"n": 0}})
        mirror = connection.mirror()
        view = mirror.value
        with lockstep.connect_blocking(daemon.socket) as other:
            other.set("/lamp/n", 1)
        mirror.until(lambda whole: whole["lamp"]["n"] == 1, timeout=10)
        assert mirror["lamp"] == {"n": 1} and view == {"lamp": {"n": 0}}
        assert mirror.get("/lamp/n") == 1 and "lamp" in mirror and list(mirror) == ["lamp"]
        assert len(mirror) == 1 and mirror.exists and mirror.is_current and mirror.verify()
        with pytest.raises(TypeError, match="send an action"):
            mirror["lamp"] = 1


def test_threads_share_a_connection(daemon: Daemon) -> None:
    daemon.start()
    with lockstep.connect_blocking(daemon.socket) as connection, ThreadPoolExecutor(8) as pool:
        mirror = connection.mirror()
        for done in [pool.submit(connection.increment, "/n") for _ in range(200)]:
            done.result()
        assert mirror["n"] == 200


def test_a_script_survives_a_restart(daemon: Daemon) -> None:
    daemon.start_durable()
    with lockstep.connect_blocking(daemon.socket) as connection:
        connection.set("/n", 1, durable=True)
        daemon.kill()
        daemon.restart()
        connection.wait_live(timeout=30)
        assert connection.get("/n") == 1


def test_without_a_daemon_nothing_is_left_behind(folder: str) -> None:
    with pytest.raises(lockstep.DaemonUnavailable):
        lockstep.connect_blocking(folder + "/none")
    assert threading.active_count() == 1
