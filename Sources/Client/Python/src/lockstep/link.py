"""The socket of a connection, on an asyncio loop.

asyncio's own transports close when a write fails. Here reading goes on then: the goodbye that says
why the daemon has closed may be still to come.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Callable, Optional

READ_BYTES = 1 << 18
FULL_WAIT = 0.01
"""How long to wait when more clients wait for the daemon than its socket lets wait."""


def standard_path() -> str:
    """The daemon's socket if none is named: `$LOCKSTEP_SOCKET`, else `lockstep.sock` in
    `$XDG_RUNTIME_DIR`, else `/run/lockstep/lockstep.sock`. Variables that are empty do not count.
    """
    path = os.environ.get("LOCKSTEP_SOCKET")
    if path:
        return path
    directory = os.environ.get("XDG_RUNTIME_DIR")
    if directory:
        return directory + "/lockstep.sock"
    return "/run/lockstep/lockstep.sock"


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
