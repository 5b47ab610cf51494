"""Daemons and inspectors in a temporary folder, and the commands that are run beside them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
from typing import Any, Optional, Sequence

BINARIES = os.environ.get("LOCKSTEP_BINARIES", "")
EXAMPLES = os.environ.get("LOCKSTEP_EXAMPLES", BINARIES)
STRANGER = 4242
"""A user that needs no entry in the password file."""


def program(name: str) -> str:
    path = os.path.join(BINARIES, name)
    return path if os.path.exists(path) else os.path.join(EXAMPLES, name)


class Daemon:
    """A `lockstepd`, or a daemon like it."""

    def __init__(self, folder: str, name: str = "lockstepd") -> None:
        self.folder, self.name = folder, name
        self.socket = os.path.join(folder, "socket")
        self.arguments: Sequence[str] = ()
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.inspectors: list[Inspector] = []
        self.others: list[subprocess.Popen[Any]] = []

    def start(self, *arguments: str) -> Daemon:
        """Start it, and wait until it serves."""
        self.arguments = arguments
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [program(self.name), "--socket", self.socket, "--log-level", "notice", *arguments],
                stdout=log, stderr=log,
                env={**os.environ, "XDG_STATE_HOME": "", "STATE_DIRECTORY": ""},
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.serves():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self.name} does not serve: {self.log()}")
            time.sleep(0.01)
        return self

    def start_with(self, document: Any, *arguments: str) -> Daemon:
        """Start it with a document."""
        file = pathlib.Path(self.folder, "document.json")
        file.write_text(json.dumps(document))
        return self.start("--load", str(file), *arguments)

    def restart(self) -> None:
        self.start(*self.arguments)

    def serves(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def kill(self) -> None:
        """As a crash would."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As its administrator would."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.log()

    def log(self) -> str:
        return pathlib.Path(self.folder, "log").read_text(errors="replace")

    def lockstep(self, *arguments: str, status: int = 0, user: Optional[int] = None) -> str:
        """What a command writes."""
        done = subprocess.run(
            [program("lockstep"), "--socket", self.socket, "--json", *arguments],
            capture_output=True, text=True, timeout=120, user=user, group=user, extra_groups=None if user is None else [],
        )  # fmt: skip
        assert done.returncode == status, (
            f"lockstep {arguments}: {done.returncode}, {done.stdout}{done.stderr}"
        )
        return done.stdout

    def set(self, path: str, value: Any) -> int:
        """The revision in which a value is at a path."""
        found: int = json.loads(self.lockstep("set", path, json.dumps(value)))["revision"]
        return found

    def get(self, path: str) -> Any:
        return json.loads(self.lockstep("get", path))

    def status(self) -> Any:
        return json.loads(self.lockstep("status"))

    def beside(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        process = subprocess.Popen(
            [program("lockstep"), "--socket", self.socket, "--json", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.others.append(process)
        return process

    def inspector(self, user: Optional[int] = None) -> Inspector:
        found = Inspector(self.socket, user)
        self.inspectors.append(found)
        return found

    def end(self) -> None:
        for inspector in self.inspectors:
            inspector.end()
        for process in [*self.others, self.process]:
            if process and process.poll() is None:
                process.kill()
                process.wait()


class Inspector:
    """A `lockstep-inspect`, whose first line is the address of the page."""

    def __init__(self, socket: str, user: Optional[int] = None) -> None:
        self.process = subprocess.Popen(
            [program("lockstep-inspect"), "--socket", socket, "--no-open"],
            stdout=subprocess.PIPE, text=True, user=user, group=user, extra_groups=None if user is None else [],
        )  # fmt: skip
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.address

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
