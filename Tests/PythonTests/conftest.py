"""What the tests share: vectors, real daemons, a proxy that cuts, and a clock with a deadline."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

import hypothesis
import pytest
from lockstep.core.tree import ABSENT

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "Protocols" / "vectors"
BINARIES = os.environ.get("LOCKSTEP_BINARIES")
EXAMPLES = os.environ.get("LOCKSTEP_EXAMPLES")
TIMEOUT = 60.0
"""How long one test may take, on a machine that has other things to do as well."""

hypothesis.settings.register_profile("lockstep", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("lockstep")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "daemon" in getattr(item, "fixturenames", ()) and not BINARIES:
            item.add_marker(pytest.mark.skip(reason="LOCKSTEP_BINARIES names no folder"))


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    """Run tests that are coroutines, each on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), TIMEOUT))
    return True


# Vectors


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def vectors(name: str) -> pytest.MarkDecorator:
    """A parameter for each vector of a file."""
    found = load(name)["vectors"]
    names = [str(one.get("name", one.get("reason", at))) for at, one in enumerate(found)]
    return pytest.mark.parametrize("vector", found, ids=names)


def meaning(plain: Any) -> Any:
    """A value in the notation of the vectors."""
    if isinstance(plain, list):
        return [meaning(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((form, content),) = plain.items()
        if form == "$undefined":
            return ABSENT
        if form == "$double":
            return float(content)
        if form == "$bytes":
            return bytes.fromhex(content)
        if form == "$map":
            return {key: meaning(item) for key, item in content}
    return {key: meaning(item) for key, item in plain.items()}


def bytes_of(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else bytes.fromhex(text)


def number_of(text: Optional[str]) -> Optional[int]:
    return None if text is None else int(text, 16)


# Waiting


async def eventually(what: str, holds: Callable[[], Any], seconds: float = 30.0) -> None:
    """Wait until something holds that nothing tells us of."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.005)


# Daemons


class Daemon:
    """A `lockstepd`, or a daemon like it, in a folder of its own."""

    def __init__(self, folder: str, program: str) -> None:
        self.folder = folder
        self.program = program
        self.socket = os.path.join(folder, "socket")
        self.arguments: list[str] = []
        self.process: Optional[subprocess.Popen[bytes]] = None

    def start(self, *arguments: str) -> None:
        """Start it, and wait until it serves."""
        self.arguments = list(arguments)
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--socket", self.socket, *arguments],
                stdout=log, stderr=log,
                env={**os.environ, "XDG_STATE_HOME": "", "STATE_DIRECTORY": ""},
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while not self.serves():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self.program} does not serve: {self.log()}")
            time.sleep(0.005)

    def serves(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def start_durable(self) -> None:
        self.start("--state-dir", os.path.join(self.folder, "state"))

    def kill(self) -> None:
        """As a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As its administrator would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.log()

    def restart(self) -> None:
        self.start(*self.arguments)

    def log(self) -> str:
        return pathlib.Path(self.folder, "log").read_text(errors="replace")

    def memory(self) -> int:
        assert self.process is not None
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder whose path is short enough for a socket."""
    path = tempfile.mkdtemp(prefix="lockstep-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def serving(folder: str, program: str) -> Iterator[Daemon]:
    daemon = Daemon(folder, program)
    yield daemon
    if daemon.process is not None and daemon.process.poll() is None:
        daemon.kill()


@pytest.fixture
def daemon(folder: str) -> Iterator[Daemon]:
    """A document daemon, not started yet."""
    yield from serving(folder, os.path.join(BINARIES or "", "lockstepd"))


# A proxy


class Proxy:
    """Stands before a daemon, and cuts or holds what passes.

    With a seed it cuts each connection after a random number of bytes, until `spare`.
    """

    def __init__(self, folder: str, target: str, seed: Optional[int] = None) -> None:
        self.path = os.path.join(folder, "proxy")
        self.target = target
        self.random = random.Random(seed) if seed is not None else None
        self.connections = 0
        self.cuts = 0
        self.forwards = asyncio.Event()
        self.forwards.set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def spare(self) -> None:
        self.random = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            inner_reader, inner_writer = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, inner_writer]
        left = [self.random.randrange(50, 4000) if self.random else None]

        async def pump(source: asyncio.StreamReader, to: asyncio.StreamWriter, holds: bool) -> None:
            try:
                while data := await source.read(65536):
                    if holds:
                        await self.forwards.wait()
                    if left[0] is not None and self.random:
                        data, left[0] = data[: left[0]], left[0] - len(data)
                    to.write(data)
                    await to.drain()
                    if left[0] is not None and left[0] <= 0 and self.random:
                        self.cuts += 1
                        break
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                # What was written goes out first: a cut is at a byte, and it is not a reset.
                to.close()
                if source is reader:
                    writer.close()

        await asyncio.gather(pump(reader, inner_writer, False), pump(inner_reader, writer, True))


def random_changes(seed: int, count: int) -> Iterator[Any]:
    """Actions of all sorts on a small document, most of which are not rejected."""
    chance = random.Random(seed)
    for number in range(count):
        name = f"o{chance.randrange(6)}"
        index = chance.randrange(4)
        value = chance.choice(
            [None, True, number, -number, number / 4, "é" * chance.randrange(5), b"\x00\xff",
             [number, {"a": [number]}], {"z/~": {"deep": [number]}, "b": {}}]
        )  # fmt: skip
        yield chance.choice(
            [
                ("set", ["objects", name], value),
                ("set", ["objects", name], {"z/~": number, "list": []}),
                ("merge", ["objects"], {name: {"n": number, "gone": None}}),
                ("remove", ["objects", name]),
                ("increment", ["counts", name], chance.choice([1, -3, 0.5])),
                ("append", ["lists", name], value),
                ("insert", ["lists", name, index], value),
                ("remove", ["lists", name, index]),
                ("set", ["lists", name, index], {"a": number}),
                ("increment", ["lists", name, index, "a"], 1),
                ("move", ["lists", name, index], ["lists", name, 0]),
                ("copy", ["objects", name], ["lists", name, "-"]),
                ("transaction", [("increment", ["n"]), ("set", ["counts", name], number)]),
            ]
        )


BEGINNING: Any = {"objects": {}, "counts": {}, "lists": {f"o{n}": [] for n in range(6)}, "n": 0}
