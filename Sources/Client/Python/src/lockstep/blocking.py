"""The blocking face, for scripts: an asyncio loop in a thread of its own does the work.

So mirrors are kept up to date, and the daemon's heartbeats answered, while the script does
something else.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Iterable, Iterator, Mapping  # fmt: skip
from types import TracebackType
from typing import (
    Any,
    Callable,
    NoReturn,
    Optional,
    TypeVar,
    Union,
)

from .connection import Connection, again, connect
from .core.changes import Change
from .core.outcome import Outcome
from .core.paths import PathLike
from .core.schema import Schema
from .core.session import State
from .errors import Goodbye, GoodbyeCode, LockstepError
from .mirror import Changes, Mirror

T = TypeVar("T")


def connect_blocking(
    path: Union[str, os.PathLike[str], None] = None,
    *,
    label: str = "",
    wait: bool = False,
    timeout: Optional[float] = 10.0,
    reconnect: bool = True,
    max_snapshot_bytes: int = 1 << 30,
) -> BlockingConnection:
    """Connect to the daemon on this machine, without asyncio.

        with lockstep.connect_blocking() as connection:
            connection.set("/lamp/on", True)
            print(connection.get("/lamp"))

    The arguments and errors are those of `connect`. Close it, or use `with`.
    """
    connection = BlockingConnection()
    connection._open(
        lambda: connect(
            path, label=label, wait=wait, timeout=timeout, reconnect=reconnect,
            max_snapshot_bytes=max_snapshot_bytes,
        )
    )  # fmt: skip
    return connection


class BlockingConnection:
    """A connection whose calls wait; `connect_blocking` makes one.

    Any thread may call. What a method means, and raises, is said at the method of `Connection` that
    has the same name.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="lockstep", daemon=True)
        self._connection: Connection
        self._failure: Optional[LockstepError] = None
        self._is_closed = False

    # Opening and closing

    def _open(self, make: Callable[[], Connection]) -> None:
        async def open_() -> None:
            self._connection = await make()

        self._thread.start()
        try:
            self._wait(open_)
        except BaseException:
            self._stop()
            raise

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _stop(self) -> None:
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def close(self) -> None:
        """Say goodbye, and wait until the daemon has answered what is due, at most 5 seconds."""
        if self._is_closed:
            return
        try:
            self._wait(self._connection.close)
            self._failure = self._connection._failure
        finally:
            self._stop()

    def __enter__(self) -> BlockingConnection:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    # What there is to know

    @property
    def path(self) -> str:
        """The daemon's socket."""
        return self._connection.path

    @property
    def state(self) -> State:
        """Whether it is live, is being made again, or has ended."""
        return self._connection.state

    @property
    def schema(self) -> Schema:
        """The types of the daemon's state and its actions."""
        return self._connection.schema

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the daemon's actions."""
        return self._connection.actions

    @property
    def limits(self) -> Mapping[str, int]:
        """The daemon's limits."""
        return self._connection.limits

    @property
    def peer(self) -> Optional[tuple[int, int, int]]:
        """This client as the kernel told the daemon: process, user and group."""
        return self._connection.peer

    @property
    def session(self) -> Optional[int]:
        """The number that names this client in states with presence."""
        return self._connection.session

    def wait_live(self, timeout: Optional[float] = None) -> None:
        """Wait until the daemon has said welcome."""
        self._wait(self._connection.wait_live, timeout)

    # Mirrors

    def mirror(self, path: PathLike = "") -> BlockingMirror:
        """A live copy of what stands at a path."""
        return BlockingMirror(self, self._wait(lambda: self._connection.mirror(path)))

    def get(self, path: PathLike = "", default: Any = None) -> Any:
        """The value at a path now, in dicts and lists; `default` if there is none."""
        return self._wait(lambda: self._connection.get(path, default))

    # Actions

    def send(self, action: Any, /, *values: Any, durable: bool = False, **fields: Any) -> Outcome:
        """Have an action performed, and wait until it is."""
        return self._wait(lambda: self._connection.send(action, *values, durable=durable, **fields))

    def set(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Put a value at a path, whose parent must be there."""
        return self.send("set", path, value, durable=durable)

    def merge(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Merge a value as RFC 7386: None removes, objects merge, all else replaces."""
        return self.send("merge", path, value, durable=durable)

    def remove(self, path: PathLike, *, durable: bool = False) -> Outcome:
        """Remove what stands at a path."""
        return self.send("remove", path, durable=durable)

    def increment(
        self, path: PathLike, by: Union[int, float, None] = None, *, durable: bool = False
    ) -> Outcome:
        """Add to a number, 1 if nothing else is said. What is absent counts as 0."""
        values = (path,) if by is None else (path, by)
        return self.send("increment", *values, durable=durable)

    def append(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Append one value to an array. What is absent counts as []."""
        return self.send("append", path, value, durable=durable)

    def insert(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Insert before an element of an array, or as a member."""
        return self.send("insert", path, value, durable=durable)

    def move(self, source: PathLike, to: PathLike, *, durable: bool = False) -> Outcome:
        """Move what stands at a path to another."""
        return self.send("move", source, to, durable=durable)

    def copy(self, source: PathLike, to: PathLike, *, durable: bool = False) -> Outcome:
        """Copy what stands at a path to another."""
        return self.send("copy", source, to, durable=durable)

    def test(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Do nothing if the value is there; else it is `Rejected` (`TEST_FAILED`)."""
        return self.send("test", path, value, durable=durable)

    def replace(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Put a value at a path where there is one already."""
        return self.send("replace", path, value, durable=durable)

    def transaction(self, actions: Iterable[Any], *, durable: bool = False) -> Outcome:
        """Perform all of these actions in order, or none."""
        return self.send("transaction", list(actions), durable=durable)

    # Requests

    def ping(self) -> float:
        """Ask for a sign of life. Returns the seconds that it took."""
        return self._wait(self._connection.ping)

    def query(self, name: str, *arguments: Union[str, int]) -> Any:
        """A report of the daemon, in dicts and lists."""
        return self._wait(lambda: self._connection.query(name, *arguments))

    # The other thread

    def _wait(self, begin: Callable[[], Awaitable[T]], timeout: Optional[float] = None) -> T:
        """Run on the loop, and wait for the result. `TimeoutError` if it takes longer."""
        if self._is_closed:
            raise again(self._failure or Goodbye(GoodbyeCode.DONE, "closed by this client"))

        async def run() -> T:
            if timeout is None:
                return await begin()
            try:
                return await asyncio.wait_for(begin(), timeout)
            except asyncio.TimeoutError:
                raise TimeoutError(f"it took longer than {timeout} seconds") from None

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _look(self, at: Callable[[], T]) -> T:
        """Look at something on the loop, between two writes of the daemon."""

        async def look() -> T:
            return at()

        return self._wait(look)


class BlockingMirror:
    """A mirror for threads: as `Mirror`, but to wait is to block.

    It goes on while you do something else. To read takes some 100 microseconds, so that no change
    comes in between: for several reads take `value` once.
    """

    def __init__(self, connection: BlockingConnection, mirror: Mirror) -> None:
        self._connection = connection
        self._mirror = mirror

    @property
    def path(self) -> str:
        """The path, as a JSON Pointer."""
        return self._mirror.path

    @property
    def value(self) -> Any:
        """What stands at the path: a scalar, a view, or `ABSENT`. It stays what it is now."""
        return self._connection._look(lambda: self._mirror.value)

    @property
    def revision(self) -> Optional[int]:
        """The revision of the whole state at which the value is right."""
        return self._mirror.revision

    @property
    def exists(self) -> bool:
        """Whether anything stands at the path."""
        return self._mirror.exists

    @property
    def is_current(self) -> bool:
        """Whether it follows the daemon."""
        return self._mirror.is_current

    def get(self, path: PathLike, default: Any = None) -> Any:
        """What stands at a path below the mirror's own."""
        return self._connection._look(lambda: self._mirror.get(path, default))

    def __getitem__(self, key: Any) -> Any:
        return self._connection._look(lambda: self._mirror[key])

    def __contains__(self, key: object) -> bool:
        return self._connection._look(lambda: key in self._mirror)

    def __iter__(self) -> Iterator[Any]:
        return self._connection._look(lambda: iter(self._mirror))

    def __len__(self) -> int:
        return self._connection._look(lambda: len(self._mirror))

    def __bool__(self) -> bool:
        return True

    def keys(self) -> Any:
        """The keys of an object."""
        return self._connection._look(self._mirror.keys)

    def __repr__(self) -> str:
        return f"<BlockingMirror of {self.path!r} at revision {self.revision}>"

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self._mirror._refuse()

    def __delitem__(self, key: object) -> NoReturn:
        self._mirror._refuse()

    def changes(self, path: PathLike = "", timeout: Optional[float] = None) -> BlockingChanges:
        """The changes from now on of what stands at a path below the mirror's own.

        With `timeout`, to wait longer for one raises `TimeoutError`.
        """
        changes = self._connection._look(lambda: self._mirror.changes(path))
        return BlockingChanges(self._connection, changes, timeout)

    def until(self, holds: Callable[[Mirror], bool], timeout: Optional[float] = None) -> None:
        """Wait until something holds of the mirror. It is asked in the connection's thread."""
        self._connection._wait(lambda: self._mirror.until(holds), timeout)

    def verify(self) -> Optional[bool]:
        """Compare with the daemon."""
        return self._connection._wait(self._mirror.verify)

    def close(self) -> None:
        """End the mirror; it shows its last value."""
        self._connection._wait(self._mirror.close)


class BlockingChanges:
    """The changes of a part of a mirror: an iterator that waits."""

    def __init__(
        self, connection: BlockingConnection, changes: Changes, timeout: Optional[float]
    ) -> None:
        self._connection = connection
        self._changes = changes
        self._timeout = timeout

    def __iter__(self) -> BlockingChanges:
        return self

    def __next__(self) -> Change:
        change = self._connection._wait(self._next, self._timeout)
        if change is None:
            raise StopIteration
        return change

    async def _next(self) -> Optional[Change]:
        # StopAsyncIteration cannot pass through a future.
        async for change in self._changes:
            return change
        return None
