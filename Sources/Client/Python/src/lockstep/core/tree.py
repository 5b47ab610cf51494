"""The value of a mirror: dicts and lists that are edited in place, and can still be kept.

A view shows a part of the state as it was at one moment, for as long as the view is held, and
without a copy (copy on write). So an edit must not change what a view shows:

- Each view (`views`) marks the node that it shows with a weak reference to itself and the time.
- Before a node is edited, those marks are looked at, of the node and of the nodes above it. If a
  view is alive that is younger than the node, the node is replaced by a shallow copy first.
- The copy is younger than that view. So it is edited in place until there is a younger view.

While no view is alive, nothing is copied. "Time" is a counter.

Invariant: `born` and `seen` never are the same number.
"""

from __future__ import annotations

import enum
import itertools
import weakref
from typing import Any, Final, Optional, TypeVar, Union

now = itertools.count(1).__next__
"""The next moment."""


class Absent(enum.Enum):
    """The type of `ABSENT`."""

    ABSENT = "ABSENT"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT
"""What stands at a path at which there is no value. It is not None, which is a value."""

Key = Union[str, int]
Path = tuple[Key, ...]
Guard = tuple["weakref.ref[Any]", int]

NEVER: Final = 0


class Object(dict[Key, Any]):
    """An object, a map or a struct."""

    __slots__ = ("born", "guards")
    born: int
    guards: Optional[list[Guard]]


class Array(list[Any]):
    """An array."""

    __slots__ = ("born", "guards")
    born: int
    guards: Optional[list[Guard]]


Container = Union[Object, Array]
Node = TypeVar("Node", Object, Array)
Value = Any
"""A scalar, an `Object`, an `Array`, or `ABSENT`. (mypy is slow with recursive types.)"""


def new_object() -> Object:
    """An empty object."""
    node = Object()
    node.born = now()
    node.guards = None
    return node


def new_array() -> Array:
    """An empty array."""
    node = Array()
    node.born = now()
    node.guards = None
    return node


def seen(node: Container, view: object) -> None:
    """Note that a view shows this node from now on."""
    guards = living(node)
    guards.append((weakref.ref(view), now()))
    node.guards = guards


def last_seen(node: Container) -> int:
    """When the youngest living view of this node, or of one that it was copied from, was made."""
    guards = node.guards
    while guards:
        view, time = guards[-1]
        if view() is not None:
            return time
        guards.pop()
    return NEVER


def writable(node: Node, seen_above: int) -> tuple[Node, int]:
    """The node, or a copy if a view may show it; and when what is below it was seen.

    `seen_above` is that number of the node above, `NEVER` at the root.
    """
    time = max(seen_above, last_seen(node))
    if node.born > time:
        return node, time
    copy = type(node)(node)
    copy.born = now()
    copy.guards = living(node)
    return copy, time


def living(node: Container) -> list[Guard]:
    """The marks of views that are alive."""
    return [guard for guard in node.guards or () if guard[0]() is not None]


def same(one: Value, other: Value) -> bool:
    """Whether two values have the same bytes: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        if len(one) != len(other):
            return False
        return all(key in other and same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one.hex() == float(other).hex()
    return bool(one == other)
