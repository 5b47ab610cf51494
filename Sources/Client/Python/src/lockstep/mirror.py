"""Mirrors: live copies of parts of a daemon's state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from .core.changes import Change, Watcher
from .core.paths import PathLike, parse, pointer
from .core.schema import find
from .core.subscription import Phase, Subscription
from .core.tree import ABSENT
from .core.views import ArrayView, ObjectView, View, show
from .errors import SubscriptionRefused

if TYPE_CHECKING:
    from .connection import Connection


class Mirror:
    """A live copy of what stands at a path; `connection.mirror` makes one.

        lamp = await connection.mirror("/lamp")
        lamp["level"], lamp.get("/colour/hue"), "on" in lamp, lamp.value

    It reads like the dict or list that it shows, and always shows the present one. What you take
    out of it (`value`, `lamp["colour"]`) stays as it was when you took it, without a copy. Nothing
    can be written: to change the state, send an action.

    It changes only while your program awaits something. While the connection is away, it shows what
    it showed.
    """

    def __init__(self, connection: Connection, subscription: Subscription) -> None:
        self._connection = connection
        self._subscription = subscription
        self._uses = 1
        self._is_closed = False

    # Reading

    @property
    def path(self) -> str:
        """The path, as a JSON Pointer."""
        return pointer(self._subscription.name)

    @property
    def value(self) -> Any:
        """What stands at the path: a scalar, a view (`ObjectView`, `ArrayView`), or `ABSENT`."""
        return show(self._subscription.value, self._subscription.kind)

    @value.setter
    def value(self, value: object) -> NoReturn:
        View._refuse(self)  # type: ignore[arg-type]

    @property
    def revision(self) -> Optional[int]:
        """The revision of the whole state at which the value is right; None before the first."""
        position = self._subscription.position
        return position.revision if position else None

    @property
    def exists(self) -> bool:
        """Whether anything stands at the path."""
        return self._subscription.value is not ABSENT

    @property
    def is_current(self) -> bool:
        """Whether it follows the daemon: not while the connection is away, or a snapshot comes."""
        return self._subscription.is_current

    def get(self, path: PathLike, default: Any = None) -> Any:
        """What stands at a path below the mirror's own: `mirror.get("/lamps/0/on")`."""
        value, kind = find(self._subscription.value, self._subscription.kind, parse(path))
        return default if value is ABSENT else show(value, kind)

    def __getitem__(self, key: Any) -> Any:
        return self._container()[key]

    def __contains__(self, key: object) -> bool:
        value = self.value
        return isinstance(value, (ObjectView, ArrayView)) and key in value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._container())

    def __len__(self) -> int:
        return len(self._container())

    def __bool__(self) -> bool:
        return True

    def keys(self) -> Any:
        """The keys of an object."""
        return self._object().keys()

    def values(self) -> Any:
        """The values of an object."""
        return self._object().values()

    def items(self) -> Any:
        """The keys and values of an object."""
        return self._object().items()

    def __repr__(self) -> str:
        return f"<Mirror of {self.path!r} at revision {self.revision}: {self.value!r:.200}>"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        View._refuse(self)  # type: ignore[arg-type]

    __setitem__ = __delitem__ = __iadd__ = __ior__ = _refuse
    append = clear = extend = insert = pop = popitem = remove = setdefault = update = _refuse

    def _container(self) -> Any:
        value = self.value
        if not isinstance(value, (ObjectView, ArrayView)):
            raise TypeError(f"there is no object or array at {self.path or 'the whole'}: {value!r}")
        return value

    def _object(self) -> ObjectView:
        value = self.value
        if not isinstance(value, ObjectView):
            raise TypeError(f"there is no object at {self.path or 'the whole'}: {value!r:.80}")
        return value

    # Waiting

    def changes(self, path: PathLike = "") -> Changes:
        """The changes from now on of what stands at a path below the mirror's own.

            async for change in mirror.changes("/lamp"):
                print(change.revision, change.places, change.old, change.new)

        Every revision that the daemon sends is one change. A loop that is slow gets all of them
        later; only of more than 1,024 that wait, the newest are joined. Ends when the mirror is
        closed; raises what has ended the connection.

        Costs, at each change, a copy of the containers that lead to it from `path`, one level of
        each: watch the part that you need, rather than a map of a million entries.
        """
        return Changes(self, parse(path))

    async def until(self, holds: Callable[[Mirror], bool]) -> None:
        """Wait until something holds of the mirror, which may be now already.

            await mirror.until(lambda lamp: lamp["on"])

        Sees the mirror behind each write of the daemon, not at each revision. Raises what ends the
        connection.
        """
        await self._connection._until(lambda: holds(self))

    async def wait_current(self) -> None:
        """Wait until the mirror follows the daemon. Raises `SubscriptionRefused`, and what ends the
        connection.
        """
        await self._connection._until(
            lambda: self.is_current or self._subscription.phase is Phase.REFUSED
        )
        if self._subscription.refusal is not None:
            raise SubscriptionRefused(self.path, self._subscription.refusal)

    async def verify(self) -> Optional[bool]:
        """Compare with the daemon, by a digest of the value at the same revision.

        None if there was nothing to compare: the mirror is not current, or you may see a part of
        the value only. If it is wrong (there is a bug), a snapshot replaces it. Costs 25
        microseconds for each scalar, during which your loop stands still. Raises `Disconnected`.
        """
        return await self._connection._digest(self._subscription)

    async def close(self) -> None:
        """End the mirror; it shows its last value. If it was asked for twice, it ends the second
        time.
        """
        self._uses -= 1
        if self._uses <= 0 and not self._is_closed:
            self._is_closed = True
            self._connection._forget(self._subscription)
            self._wake()

    def _wake(self) -> None:
        """Let each iterator over changes check whether there can be another."""
        for watcher in list(self._subscription.watchers):
            if watcher.wake is not None:
                watcher.wake()


class Changes:
    """The changes of a part of a mirror: an asynchronous iterator."""

    def __init__(self, mirror: Mirror, path: tuple[Any, ...]) -> None:
        subscription = mirror._subscription
        self._mirror = mirror
        self._event = asyncio.Event()
        self._watcher = Watcher(path, subscription.value, subscription.kind)
        self._watcher.wake = self._event.set
        subscription.watchers.add(self._watcher)

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while not self._watcher.waiting:
            if self._mirror._is_closed:
                raise StopAsyncIteration
            connection = self._mirror._connection
            if connection._session.has_ended:
                connection._raise_unless_closed()
                raise StopAsyncIteration
            self._event.clear()
            await self._event.wait()
        return self._watcher.waiting.popleft()

    def close(self) -> None:
        """Watch no longer. To drop the iterator does the same."""
        self._mirror._subscription.watchers.discard(self._watcher)
