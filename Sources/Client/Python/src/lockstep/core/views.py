"""What a user reads: parts of a mirror as mappings and sequences that cannot be written.

A view shows the value as it was when it was taken, for as long as you hold it; the mirror goes on.
To take one costs nothing that grows with the value. While it is held, the first change below it
copies the dicts and lists on the way to what changed, one level of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence  # fmt: skip
from typing import (
    Any,
    Generic,
    NoReturn,
    TypeVar,
    Union,
    overload,
)

from .schema import STRUCT, VALUE, Kind, named, step
from .tree import ABSENT, Array, Container, Key, Object, Value, same, seen

Shown = TypeVar("Shown", bound=Container)

SENTENCE = (
    "a mirror is read-only: send an action to change the state, such as"
    " connection.set('/lamp/on', True)"
)


def show(value: Value, kind: Kind = VALUE) -> Any:
    """A part of a mirror for a user: a scalar, a view, or `ABSENT`."""
    kind = kind.bare
    if kind.form in ("enum", "path"):
        value, kind = named(value, kind), VALUE
    if not isinstance(value, (Object, Array)):
        return value
    if value.guards:
        # A view that is alive shows what the node still is, or the node would have been copied.
        former = value.guards[-1][0]()
        if isinstance(former, View) and former._node is value and former._kind is kind:
            return former
    return ObjectView(value, kind) if isinstance(value, Object) else ArrayView(value, kind)


def plain(value: Any) -> Any:
    """A copy of a view in dicts and lists, which `json.dumps` and others understand.

    Scalars, and what is no view, are given back as they are.
    """
    if isinstance(value, View):
        return unframed(named(value._node, value._kind))
    return value


def unframed(value: Value) -> Any:
    """A value in dicts and lists of Python."""
    if isinstance(value, dict):
        return {key: unframed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unframed(item) for item in value]
    return value


class View(Generic[Shown]):
    """What both kinds of views have: a node, and no way to write it."""

    __slots__ = ("__weakref__", "_kind", "_node")
    _node: Shown
    _kind: Kind

    def __init__(self, node: Shown, kind: Kind) -> None:
        self._node = node
        self._kind = kind
        seen(node, self)

    def __len__(self) -> int:
        return len(self._node)

    def __repr__(self) -> str:
        return repr(plain(self))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(SENTENCE)

    __setitem__ = __delitem__ = __iadd__ = __ior__ = __imul__ = _refuse
    append = clear = extend = insert = pop = popitem = remove = reverse = setdefault = sort = (
        _refuse
    )
    update = _refuse


class ObjectView(View[Object], Mapping[Key, Any]):
    """An object or a map; or a struct, whose keys are the names of its fields."""

    __slots__ = ()

    def __getitem__(self, key: Key) -> Any:
        value, kind = self._find(key)
        if value is ABSENT:
            raise KeyError(key)
        return show(value, kind)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, int)) and self._find(key)[0] is not ABSENT

    def __iter__(self) -> Iterator[Key]:
        if self._kind.form != STRUCT:
            return iter(self._node)
        fields = sorted(self._kind.fields.values())
        return iter([field.name for field in fields if self._is_there(field.number)])

    def __len__(self) -> int:
        return sum(1 for _ in self) if self._kind.form == STRUCT else len(self._node)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ObjectView) and other._kind is self._kind:
            return bool(other._node == self._node)
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def _find(self, key: Key) -> tuple[Value, Kind]:
        if self._kind.form == STRUCT:
            return step(self._node, self._kind, key) if isinstance(key, str) else (ABSENT, VALUE)
        return self._node.get(key, ABSENT), self._kind.below(key)

    def _is_there(self, number: int) -> bool:
        return self._node.get(number, ABSENT) is not ABSENT


class ArrayView(View[Array], Sequence[Any]):
    """An array."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: Union[int, slice]) -> Any:
        kind = self._kind.below(0)
        if isinstance(index, slice):
            return [show(item, kind) for item in self._node[index]]
        return show(self._node[index], kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (ArrayView, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other))

    __hash__ = None  # type: ignore[assignment]


def is_same(one: Any, other: Any) -> bool:
    """Whether two shown values are the same, to the byte."""
    if isinstance(one, View) and isinstance(other, View):
        return same(one._node, other._node)
    return same(one, other)
