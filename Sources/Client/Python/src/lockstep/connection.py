"""A connection on an asyncio loop: the shell around `core.session.Session`."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Mapping  # fmt: skip
from types import TracebackType
from typing import (
    Any,
    Callable,
    Optional,
    Union,
)

from .core import session as core
from .core.outcome import Outcome
from .core.paths import PathLike, parse
from .core.schema import Schema, find
from .core.session import Options, Session, State
from .core.subscription import Subscription
from .core.tree import ABSENT, Path
from .core.values import payload
from .core.views import plain, show
from .errors import (
    DaemonUnavailable,
    Disconnected,
    Goodbye,
    GoodbyeCode,
    LockstepError,
    QueryFailed,
)  # fmt: skip
from .link import Link, standard_path
from .mirror import Mirror

log = logging.getLogger("lockstep")

LONGEST_PATH = 107
CLOSE_SECONDS = 5.0
"""How long a daemon may take to answer a goodbye."""


def connect(
    path: Union[str, os.PathLike[str], None] = None,
    *,
    label: str = "",
    wait: bool = False,
    timeout: Optional[float] = 10.0,
    reconnect: bool = True,
    max_snapshot_bytes: int = 1 << 30,
) -> Connection:
    """Connect to the daemon on this machine.

        async with lockstep.connect() as connection:
            await connection.set("/lamp", {"on": True})

    `await lockstep.connect()` gives the connection without closing it for you.

    `path` is the daemon's socket; without it the standard one, `standard_path()`. The daemon learns from the kernel which
    process and user you are; `label` is what its reports call you. With `wait` it may start later
    than you. `timeout` is how many seconds it may take to be connected; None for any.

    Once connected, a connection that is lost comes back by itself, after waits that grow from 20
    milliseconds to 5 seconds, unless `reconnect` is false. Mirrors go on where they were, and
    actions that had no outcome are performed exactly once, or raise `OutcomeUnknown`.

    Raises `DaemonUnavailable` if there is no daemon, `Goodbye` if it does not let you in,
    `ProtocolError` if it is none, and `TimeoutError`.
    """
    options = Options(label=label, reconnect=reconnect, max_snapshot_bytes=max_snapshot_bytes)
    return Connection(os.fspath(path) if path is not None else None, options, wait, timeout)


class Connection:
    """A connection to a daemon: `connect` makes one.

    It belongs to the loop on which it was opened, and is used there only. For other threads there
    is `connect_blocking`. While it is open, let the loop run: what a daemon sends must be read.
    """

    def __init__(
        self, path: Optional[str], options: Options, wait: bool, timeout: Optional[float]
    ) -> None:
        self.path = path if path is not None else standard_path()
        """The daemon's socket. Until the first connection, one of the standard ones if no path was
        given."""
        self._is_fixed = path is not None
        self._session = Session(options)
        self._wait = wait
        self._timeout = timeout
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._link: Optional[Link] = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failure: Optional[LockstepError] = None
        """Why it has ended, or why the first connection could not be made."""
        self._was_live = False
        self._is_running = False
        self._changes: set[asyncio.Future[None]] = set()
        """Futures of those calls that wait for anything to change."""
        self._actions: dict[int, asyncio.Future[Outcome]] = {}
        self._pongs: dict[int, asyncio.Future[None]] = {}
        self._reports: dict[int, asyncio.Future[Any]] = {}
        self._digests: dict[Subscription, deque[asyncio.Future[Optional[bool]]]] = defaultdict(
            deque
        )
        self._mirrors: dict[Subscription, Mirror] = {}

    # Opening and closing

    async def _open(self) -> Connection:
        if self._loop is not None:
            raise RuntimeError("a connection is opened once: call lockstep.connect() again")
        self._loop = asyncio.get_running_loop()
        if not 0 < len(os.fsencode(self.path)) <= LONGEST_PATH:
            raise DaemonUnavailable(
                self.path, f"the path of a socket has 1 to {LONGEST_PATH} bytes: {self.path!r}"
            )
        self._session.start()
        self._run()
        self._tick()
        try:
            await asyncio.wait_for(self.wait_live(), self._timeout)
        except BaseException as error:
            self._abandon()
            if isinstance(error, asyncio.TimeoutError):
                raise TimeoutError(
                    f"the daemon at {self.path} has not said welcome in {self._timeout} seconds"
                ) from None
            raise
        return self

    async def __aenter__(self) -> Connection:
        return await self._open()

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._open().__await__()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Say goodbye, and wait until the daemon has answered all that is due, at most 5 seconds.

        Actions under way get their outcomes, those not sent yet are `Rejected` (`NOT_SENT`); to
        iterate over changes ends. To close twice does nothing.
        """
        if self._loop is None or self._session.has_ended:
            return
        self._session.close()
        self._run()
        try:
            await asyncio.wait_for(self.wait_closed(), CLOSE_SECONDS)
        except asyncio.TimeoutError:
            pass
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """End without waiting for anything."""
        for timer in self._timers.values():
            timer.cancel()
        if self._link is not None:
            self._link.abort()
            self._link = None
        if not self._session.has_ended:
            self._session.close()
            self._session.disconnected(self._now())
        self._run()

    # What there is to know

    @property
    def state(self) -> State:
        """Whether it is live, is being made (again), or has ended."""
        if self._session.has_ended:
            return State.CLOSED
        return State.LIVE if self._session.is_live else State.CONNECTING

    @property
    def schema(self) -> Schema:
        """The types of the daemon's state and its actions."""
        schema = self._session.schema
        if schema is None:
            raise RuntimeError("the connection is not open yet: use 'async with'")
        return schema

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the daemon's actions."""
        return tuple(self.schema.action.bare.cases_by_name)

    @property
    def limits(self) -> Mapping[str, int]:
        """The daemon's limits, by the names that wire.md gives them."""
        welcome = self._session.welcome
        return dict(welcome.limits) if welcome else {}

    @property
    def peer(self) -> Optional[tuple[int, int, int]]:
        """This client as the kernel told the daemon: process, user and group."""
        welcome = self._session.welcome
        return welcome.peer if welcome else None

    @property
    def session(self) -> Optional[int]:
        """The number that names this client in states with presence; None if it has none."""
        welcome = self._session.welcome
        return welcome.session if welcome else None

    @property
    def durable_revision(self) -> Optional[int]:
        """The newest revision that survives a crash, as far as the daemon has said."""
        return self._session.durable

    @property
    def lost_actions(self) -> int:
        """How many actions a crash of the daemon took back that it had acknowledged as applied.

        Only those sent with `durable` never are.
        """
        return self._session.lost_actions

    async def wait_live(self) -> None:
        """Wait until the daemon has said welcome. Raises the reason if the connection has ended."""
        await self._until(lambda: self._session.is_live)

    async def wait_closed(self) -> Optional[LockstepError]:
        """Wait until the connection has ended, and give the reason."""
        while not self._session.has_ended:
            await self._change()
        return self._failure

    # Mirrors

    async def mirror(self, path: PathLike = "") -> Mirror:
        """A live copy of what stands at a path: a JSON Pointer, or the keys; "" is the whole.

        A path leads through objects, maps and the fields of structs, not into arrays. There need
        not be anything at it yet. Mirrors of the same path are one; it ends when each was closed.

        Returns when the mirror is current. Raises `SubscriptionRefused`, `UnknownName` if the
        schema has no such field, and what ended the connection. Costs one copy of the value in
        memory.
        """
        name = parse(path)
        keys = self.schema.keys(name)
        for known, mirror in self._mirrors.items():
            if known.path == keys:
                mirror._uses += 1
                break
        else:
            subscription = self._session.subscribe(name)
            mirror = self._mirrors[subscription] = Mirror(self, subscription)
            self._run()
        try:
            await mirror.wait_current()
        except BaseException:
            await mirror.close()
            raise
        return mirror

    async def get(self, path: PathLike = "", default: Any = None) -> Any:
        """The value at a path now, in dicts and lists; `default` if there is none.

        Into arrays, too: "/lamps/0". Reads from a mirror that shows the place, if there is one.
        Else the daemon sends the value once: for more than now and then, hold a `mirror`.
        """
        name = parse(path)
        for subscription in self._mirrors:
            depth = len(subscription.name)
            if subscription.is_current and subscription.name == name[:depth]:
                return plain(read(subscription, name[depth:], default))
        followed, rest = self.schema.split(name)
        mirror = await self.mirror(followed)
        try:
            return plain(read(mirror._subscription, rest, default))
        finally:
            await mirror.close()

    def _forget(self, subscription: Subscription) -> None:
        """The last use of a mirror was closed."""
        if self._mirrors.pop(subscription, None) is not None:
            self._session.unsubscribe(subscription)
            self._run()

    # Actions

    async def send(
        self, action: Any, /, *values: Any, durable: bool = False, **fields: Any
    ) -> Outcome:
        """Have an action performed, and return once all your mirrors show what it did.

            await connection.send("increment", "/lamp/level", 5)
            await connection.send("resize", width=640, height=480)
            await connection.send("counter.increment")
            await connection.send({"increment": {"path": "/lamp/level", "by": 5}})

        The names, and what an action carries, are the daemon's: see `actions` and `schema`. Fields
        are given in order, or by name. With `durable`, return once it also survives a crash. (A
        field of that name is given in order.)

        Performed exactly once, also if the connection is lost meanwhile. To cancel the call does
        not take the action back. Raises `Rejected`, `OutcomeUnknown`, `NotDurable`; and before
        anything is sent `UnknownName`, `TypeError` and `ValueError` for what is no action of the
        daemon.
        """
        return await self.submit(action, *values, durable=durable, **fields)

    def submit(
        self, action: Any, /, *values: Any, durable: bool = False, **fields: Any
    ) -> asyncio.Future[Outcome]:
        """Like `send`, but the action is on its way when this returns; await the result later.

        Actions are performed in the order of these calls. The daemon says how many may be under way
        (16,384); further ones wait here.
        """
        self._check_open()
        number = self._session.submit(payload(self.schema, action, values, fields), durable)
        assert self._loop is not None
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._actions[number] = future
        self._run()
        return future

    # Actions of documents

    async def set(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Put a value at a path, whose parent must be there."""
        return await self.send("set", path, value, durable=durable)

    async def merge(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Merge a value as RFC 7386: None removes, objects merge, all else replaces."""
        return await self.send("merge", path, value, durable=durable)

    async def remove(self, path: PathLike, *, durable: bool = False) -> Outcome:
        """Remove what stands at a path."""
        return await self.send("remove", path, durable=durable)

    async def increment(
        self, path: PathLike, by: Union[int, float, None] = None, *, durable: bool = False
    ) -> Outcome:
        """Add to a number, 1 if nothing else is said. What is absent counts as 0."""
        values = (path,) if by is None else (path, by)
        return await self.send("increment", *values, durable=durable)

    async def append(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Append one value to an array. What is absent counts as []."""
        return await self.send("append", path, value, durable=durable)

    async def insert(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Insert before an element of an array, or as a member."""
        return await self.send("insert", path, value, durable=durable)

    async def move(self, source: PathLike, to: PathLike, *, durable: bool = False) -> Outcome:
        """Move what stands at a path to another."""
        return await self.send("move", source, to, durable=durable)

    async def copy(self, source: PathLike, to: PathLike, *, durable: bool = False) -> Outcome:
        """Copy what stands at a path to another."""
        return await self.send("copy", source, to, durable=durable)

    async def test(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Do nothing if the value is there; else it is `Rejected` (`TEST_FAILED`)."""
        return await self.send("test", path, value, durable=durable)

    async def replace(self, path: PathLike, value: Any, *, durable: bool = False) -> Outcome:
        """Put a value at a path where there is one already."""
        return await self.send("replace", path, value, durable=durable)

    async def transaction(self, actions: Iterable[Any], *, durable: bool = False) -> Outcome:
        """Perform all of these actions in order, or none.

        await connection.transaction([("test", "/n", 1), ("set", "/n", 2)])
        """
        return await self.send("transaction", list(actions), durable=durable)

    # Requests

    async def ping(self) -> float:
        """Ask for a sign of life. Returns the seconds that it took. Raises `Disconnected`."""
        self._check_live()
        start = self._now()
        await self._ask(self._pongs, self._session.ping())
        return self._now() - start

    async def query(self, name: str, *arguments: Union[str, int]) -> Any:
        """A report of the daemon, in dicts and lists: `status`, `limits`, `clients`, `log`, …

        Raises `QueryFailed` if there is none, or it is not for you, and `Disconnected`.
        """
        self._check_live()
        number = self._session.query(name, [str(argument) for argument in arguments])
        return await self._ask(self._reports, number)

    async def _digest(self, subscription: Subscription) -> Optional[bool]:
        """Compare a mirror with the daemon."""
        self._check_live()
        assert self._loop is not None
        future: asyncio.Future[Optional[bool]] = self._loop.create_future()
        self._digests[subscription].append(future)
        self._session.request_digest(subscription)
        self._run()
        return await future

    async def _ask(self, waiting: dict[int, asyncio.Future[Any]], number: int) -> Any:
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        waiting[number] = future
        self._run()
        try:
            return await future
        finally:
            waiting.pop(number, None)

    # Waiting

    def _check_open(self) -> None:
        if self._loop is None:
            raise RuntimeError("the connection is not open yet: use 'async with'")
        if self._session.has_ended and self._failure is not None:
            raise again(self._failure)

    def _check_live(self) -> None:
        self._check_open()
        if not self._session.is_live:
            raise Disconnected("there is no connection now; wait_live() waits for it")

    def _raise_unless_closed(self) -> None:
        """Raise what has ended the connection, unless `close` did."""
        error = self._failure
        if error is not None and not (
            isinstance(error, Goodbye) and error.code is GoodbyeCode.DONE
        ):
            raise again(error)

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Raises the reason if the connection ends before."""
        while not holds():
            self._check_open()
            if self._failure is not None:
                raise again(self._failure)
            await self._change()

    async def _change(self) -> None:
        """Wait until anything has changed."""
        assert self._loop is not None
        future = self._loop.create_future()
        self._changes.add(future)
        try:
            await future
        finally:
            self._changes.discard(future)

    # The shell around the session

    def _now(self) -> float:
        return self._loop.time() if self._loop else 0.0

    def _tick(self) -> None:
        self._session.tick(self._now())
        self._run()
        if not self._session.has_ended and self._loop is not None:
            self._timers["tick"] = self._loop.call_later(1.0, self._tick)

    def _run(self) -> None:
        """Do what the session says, until it says nothing more."""
        if self._is_running:
            return
        self._is_running = True
        try:
            has_changed = False
            while True:
                out = self._session.take()
                if not out:
                    break
                has_changed = True
                for one in out:
                    self._perform(one)
        finally:
            self._is_running = False
        if has_changed:
            for future in list(self._changes):
                if not future.done():
                    future.set_result(None)

    def _perform(self, one: Union[core.Command, core.Notice]) -> None:
        assert self._loop is not None
        if isinstance(one, core.Write):
            if self._link is not None:
                self._link.write(one.data)
        elif isinstance(one, core.Done):
            settle(self._actions.pop(one.action, None), one.result)
        elif isinstance(one, core.MirrorChanged):
            pass
        elif isinstance(one, core.Connect):
            self._timers["connect"] = self._loop.call_later(one.after, self._connect)
        elif isinstance(one, core.Disconnect):
            if self._link is not None:
                self._link.close()
        elif isinstance(one, core.Ponged):
            settle(self._pongs.get(one.value), None)
        elif isinstance(one, core.Reported):
            report = one.report
            settle(
                self._reports.get(one.number),
                report if isinstance(report, QueryFailed) else plain(show(report)),
            )
        elif isinstance(one, core.Digested):
            waiting = self._digests.get(one.subscription)
            if waiting:
                settle(waiting.popleft(), one.is_right)
            if not waiting:
                self._digests.pop(one.subscription, None)
        elif isinstance(one, core.StateChanged):
            self._state_changed(one)

    def _state_changed(self, change: core.StateChanged) -> None:
        if change.state is State.LIVE:
            self._was_live = True
            return
        if change.state is State.CLOSED:
            self._failure = change.reason
            for timer in self._timers.values():
                timer.cancel()
            for mirror in self._mirrors.values():
                mirror._wake()
        else:
            log.info("the connection to %s is lost: %s", self.path, change.reason or "no goodbye")
        asked: list[asyncio.Future[Any]] = [*self._pongs.values(), *self._reports.values()]
        for waiting in self._digests.values():
            asked += waiting
        for future in asked:
            settle(future, Disconnected("the connection was lost before the answer came"))
        self._digests.clear()

    def _connect(self) -> None:
        assert self._loop is not None
        if not self._is_fixed:
            # A daemon that is waited for may come to listen on another standard place.
            self.path = standard_path()
        self._link = Link(self._loop, self._received, self._lost)
        self._link.open(self.path, self._connected)

    def _connected(self) -> None:
        # From now on this daemon is meant, and no other.
        self._is_fixed = True
        self._session.connected(self._now())
        self._run()

    def _received(self, data: bytes) -> None:
        self._session.received(data, self._now())
        self._run()

    def _lost(self, error: Optional[OSError]) -> None:
        self._link = None
        if error is not None and not self._was_live and not self._wait:
            self._failure = DaemonUnavailable(self.path, advice(self.path, error))
        self._session.disconnected(self._now())
        self._run()


def settle(future: Optional[asyncio.Future[Any]], result: Any) -> None:
    """Give a future its result, or its error, unless it was cancelled."""
    if future is None or future.done():
        return
    if isinstance(result, LockstepError):
        future.set_exception(result)
    else:
        future.set_result(result)


def again(error: LockstepError) -> LockstepError:
    """The error that ended a connection, without the traceback of its last raise."""
    return error.with_traceback(None)


def read(subscription: Subscription, path: Path, default: Any) -> Any:
    """What a mirror shows at a path below its own."""
    value, kind = find(subscription.value, subscription.kind, path)
    return default if value is ABSENT else show(value, kind)


def advice(path: str, error: OSError) -> str:
    """Why there is no connection, and what helps."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return f"{path} is not a socket: name the daemon's"
    except OSError:
        pass
    if error.errno == errno.ENOENT:
        return f"no daemon serves at {path}: there is no such socket. Is lockstepd running?"
    if error.errno == errno.ECONNREFUSED:
        return f"no daemon serves at {path}: the socket is a leftover. Is lockstepd running?"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"may not connect to {path}: permission denied"
    return f"cannot connect to {path}: {error.strerror or error}"
