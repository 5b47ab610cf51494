"""The socket of a connection, on an asyncio loop.

asyncio's own transports close when a write fails. Here reading goes on then: the goodbye that says
why the daemon has closed may be still to come.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from typing import Callable, Optional

READ_BYTES = 1 << 18
MACHINE = "/run/lockstep/lockstep.sock"
"""Where the machine's own daemon listens."""
FULL_WAIT = 0.01
"""How long to wait when more clients wait for the daemon than its socket lets wait."""


def standard_path() -> str:
    """The daemon's socket if none is named: the first of `standard_paths` that has one, else the
    first; but none that somebody else could have put there.
    """
    paths = standard_paths()
    trusted = [path for path in paths if is_trusted(path)] or paths
    return next((path for path in trusted if is_socket(path)), trusted[0])


def standard_paths() -> list[str]:
    """Where a daemon of this user listens if it is told no path, and clients look, in order.

    `$LOCKSTEP_SOCKET` alone if it is set. Else `lockstep.sock` in `$XDG_RUNTIME_DIR`, or if that is
    not set in `/run/user/UID` (not for root), if this directory is the user's own;
    `/run/lockstep/lockstep.sock`, the machine's own daemon; `/tmp/lockstep-UID/lockstep.sock`, in a
    directory that is closed to others. The last two change places for a user who may not make a
    socket in `/run/lockstep`. Variables that are empty do not count.
    """
    path = os.environ.get("LOCKSTEP_SOCKET")
    if path:
        return [path]
    user = os.geteuid()
    own = own_path()
    paths = [MACHINE, own] if may_serve(os.path.dirname(MACHINE)) else [own, MACHINE]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or (f"/run/user/{user}" if user else None)
    status = status_of(runtime) if runtime else None
    if status and stat.S_ISDIR(status.st_mode) and status.st_uid == user:
        paths.insert(0, f"{runtime}/lockstep.sock")
    return paths


def own_path() -> str:
    return f"/tmp/lockstep-{os.geteuid()}/lockstep.sock"


def is_socket(path: str) -> bool:
    status = status_of(path)
    return status is not None and stat.S_ISSOCK(status.st_mode)


def is_trusted(path: str) -> bool:
    """False for the place that is this user's own if its directory is there and is another user's, or
    open to others: every user can make directories in `/tmp`.
    """
    if path != own_path():
        return True
    try:
        directory = os.lstat(os.path.dirname(path))
    except OSError:
        return True
    is_closed = stat.S_ISDIR(directory.st_mode) and not directory.st_mode & 0o077
    return is_closed and directory.st_uid == os.geteuid()


def may_serve(directory: str) -> bool:
    """Whether this user can make a socket there, after making the directory if it is root."""
    if os.path.exists(directory):
        return os.access(directory, os.W_OK | os.X_OK)
    return os.geteuid() == 0 and os.access(os.path.dirname(directory), os.W_OK | os.X_OK)


def status_of(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except OSError:
        return None


class Link:
    """One connection to a path. `received` gets bytes; `lost` is called once, at its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        received: Callable[[bytes], None],
        lost: Callable[[Optional[OSError]], None],
    ) -> None:
        self._loop = loop
        self._received = received
        self._lost = lost
        self._socket: Optional[socket.socket] = None
        self._out = bytearray()
        self._is_writing = False
        self._is_closing = False
        self._may_write = True

    def open(self, path: str, connected: Callable[[], None]) -> None:
        """Connect, and say so; or `lost`, with the error."""
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.setblocking(False)
            self._socket.connect(path)
        except BlockingIOError:
            self._loop.call_later(FULL_WAIT, self._open_again, path, connected)
            return
        except OSError as error:
            self._end(error)
            return
        self._loop.add_reader(self._socket, self._readable)
        connected()

    def _open_again(self, path: str, connected: Callable[[], None]) -> None:
        if not self._is_closing:
            self.open(path, connected)

    def write(self, data: bytes) -> None:
        """Write behind all that was written before."""
        if not self._may_write or self._socket is None:
            return
        self._out += data
        if not self._is_writing:
            self._writable()

    def close(self) -> None:
        """Close, behind what was written if the daemon reads it; `lost` follows."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._out:
            self._loop.call_later(1.0, self._end, None)
        else:
            self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        """Close now; `lost` is not called."""
        self._lost = lambda error: None
        self._end(None)

    def _readable(self) -> None:
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if data:
            self._received(data)
        else:
            self._end(None)

    def _writable(self) -> None:
        if self._socket is None:
            return
        try:
            del self._out[: self._socket.send(self._out)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            # The daemon reads no more. What it has said is still there to be read.
            self._out.clear()
            self._may_write = False
        if bool(self._out) == self._is_writing:
            return
        self._is_writing = bool(self._out)
        if self._is_writing:
            self._loop.add_writer(self._socket, self._writable)
            return
        self._loop.remove_writer(self._socket)
        if self._is_closing:
            self._loop.call_soon(self._end, None)

    def _end(self, error: Optional[OSError]) -> None:
        if self._socket is None:
            return
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
        self._socket = None
        self._may_write = False
        self._lost(error)
