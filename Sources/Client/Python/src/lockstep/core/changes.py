"""What changed in a mirror, as iterators over changes of a part of it see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional

from ..errors import UnknownName
from .paths import pointer
from .schema import Kind, find, names_of, travelling
from .tree import Path, Value
from .views import is_same, show

LARGEST_QUEUE = 1024
"""So many changes wait for a watcher; then the two newest become one."""

MOST_PLACES = 1024
"""So many places are told apart in one change; then it is the whole that changed."""


class Change(NamedTuple):
    """One change of a part of a mirror."""

    revision: int
    """The revision that the mirror was at behind it."""
    places: tuple[str, ...]
    """JSON Pointers to what was set, inserted or removed, as `mirror.get` takes them.

    Of an array whose elements moved it is the array's own. After a snapshot, and of a change that
    replaced the part together with more, it is the part that is watched.
    """
    old: Any
    """The part before it: a scalar, a view, or `ABSENT`."""
    new: Any
    """The part behind it."""


class Watcher:
    """The changes of one part that were not taken yet."""

    def __init__(self, path: Path, value: Value, kind: Kind) -> None:
        self.path = path
        self.waiting: deque[Change] = deque()
        self.wake: Optional[Callable[[], object]] = None
        """Called when there is something to take."""
        self.shown = self._look(value, kind)

    def changed(self, revision: int, places: Iterable[Path], value: Value, kind: Kind) -> None:
        """The mirror has changed in these places, which are as they travel."""
        inside, is_whole = self._touched(places, kind)
        if not inside and not is_whole:
            return
        new = self._look(value, kind)
        old, self.shown = self.shown, new
        if is_whole and is_same(old, new):
            return
        own = pointer(self.path)
        if is_whole or len(inside) > MOST_PLACES:
            inside = [own]
        self._add(Change(revision, tuple(dict.fromkeys(inside)), old, new))

    def _look(self, value: Value, kind: Kind) -> Any:
        return show(*find(value, kind, self.path))

    def _touched(self, places: Iterable[Path], kind: Kind) -> tuple[list[str], bool]:
        """The places inside of the part, by names; and whether it was replaced with more."""
        try:
            path = travelling(kind, self.path)[0]
        except UnknownName:
            return [], True
        # An element is named by a number in a patch, and perhaps by its digits in our path.
        own = [str(key) for key in path]
        inside, is_whole = [], False
        for place in places:
            shared = min(len(place), len(own))
            if [str(key) for key in place[:shared]] == own[:shared]:
                if len(place) > len(own):
                    inside.append(pointer(names_of(kind, place)))
                else:
                    is_whole = True
        return inside, is_whole

    def _add(self, change: Change) -> None:
        if len(self.waiting) >= LARGEST_QUEUE:
            last = self.waiting.pop()
            places = tuple(dict.fromkeys(last.places + change.places))
            if len(places) > MOST_PLACES:
                places = (pointer(self.path),)
            change = Change(change.revision, places, last.old, change.new)
        self.waiting.append(change)
        if self.wake is not None:
            self.wake()
