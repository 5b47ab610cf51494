"""Patches: how one value becomes another.

A patch is applied in place, and either whole or not at all: what it has done is undone if the rest
of it does not fit.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ..errors import ProtocolError
from .cbor import LARGEST
from .tree import ABSENT, NEVER, Array, Object, Path, Value, writable

Places = dict[Path, None]
"""A set of paths in the order in which they were found."""


def apply(value: Value, patch: Value, *, has_integers: bool = True) -> tuple[Value, Places]:
    """The value after a patch, and the places that it touched.

    What views show is not changed; everything else of `value` is edited in place. Raises
    `ProtocolError` if the patch does not fit, and then the value is what it was. Without
    `has_integers` the keys of objects are text. `patch` must not be used again: parts of it are
    parts of the value now.
    """
    edit = Edit(has_integers)
    try:
        return edit.apply(value, patch, (), NEVER), edit.places
    except ProtocolError:
        edit.undo()
        raise


class Edit:
    """The application of one patch."""

    def __init__(self, has_integers: bool) -> None:
        self.has_integers = has_integers
        self.places: Places = {}
        self.done: list[Callable[[], Any]] = []
        """How to undo what was done, oldest first."""

    def undo(self) -> None:
        """Put everything back."""
        for step in reversed(self.done):
            step()

    def apply(self, value: Value, patch: Value, path: Path, seen: int) -> Value:
        """What stands at the path afterwards."""
        if isinstance(patch, Object):
            if not isinstance(value, Object):
                raise ProtocolError("a patch of entries for what has none")
            return self.apply_entries(value, patch, path, seen)
        if isinstance(patch, Array):
            if len(patch) == 1:
                self.check(patch[0])
                self.places[path] = None
                return patch[0]
            if len(patch) != 2:
                raise ProtocolError(f"a patch of {len(patch)} items: it has one or two")
            if not isinstance(value, Array):
                raise ProtocolError("a patch of elements for what has none")
            return self.apply_elements(value, patch[0], patch[1], path, seen)
        self.places[path] = None
        return patch

    def apply_entries(self, value: Object, patch: Object, path: Path, seen: int) -> Object:
        value, seen = writable(value, seen)
        for key, inner in patch.items():
            if not self.has_integers and not isinstance(key, str):
                raise ProtocolError("the keys of an object are text")
            old = value.get(key, ABSENT)
            new = self.apply(old, inner, (*path, key), seen)
            if new is old:
                if new is ABSENT:
                    raise ProtocolError(f"there is no {key!r} to remove")
                continue
            self.done.append(partial(put, value, key, old))
            put(value, key, new)
        return value

    def apply_elements(
        self, value: Array, splices: Value, edits: Value, path: Path, seen: int
    ) -> Array:
        if not isinstance(splices, Array) or len(splices) % 3:
            raise ProtocolError("splices come in threes")
        if not isinstance(edits, Object):
            raise ProtocolError("edits of elements are a map")
        value, seen = writable(value, seen)
        for at in range(0, len(splices), 3):
            self.splice(value, splices[at], splices[at + 1], splices[at + 2])
            self.places[path] = None
        for index, inner in edits.items():
            if not isinstance(index, int) or not 0 <= index < len(value):
                raise ProtocolError(f"an array of {len(value)} elements has no element {index!r}")
            old = value[index]
            new = self.apply(old, inner, (*path, index), seen)
            if new is ABSENT:
                raise ProtocolError("an element cannot become absent")
            if new is not old:
                self.done.append(partial(put, value, index, old))
                value[index] = new
        return value

    def splice(self, value: Array, at: Any, removed: Any, inserted: Any) -> None:
        if not is_index(at) or not is_index(removed) or not isinstance(inserted, Array):
            raise ProtocolError("a splice is an index, a count and an array")
        if at + removed > len(value):
            raise ProtocolError(f"a splice beyond the end of {len(value)} elements")
        for element in inserted:
            self.check(element)
        old = value[at : at + removed]
        count = len(inserted)

        def put_back() -> None:
            value[at : at + count] = old

        self.done.append(put_back)
        value[at : at + removed] = inserted

    def check(self, value: Value) -> None:
        """What is inserted is a value. `undefined` stands only for absent fields of a case."""
        if value is ABSENT:
            raise ProtocolError("undefined is no value")
        if not self.has_integers:
            check_document(value)


def put(node: Any, key: Any, value: Value) -> None:
    """Set an entry or an element, or remove an entry."""
    if value is ABSENT:
        del node[key]
    else:
        node[key] = value


def check_document(value: Value) -> None:
    """Raise `ProtocolError` unless a value that was read is one of the document kind."""
    if isinstance(value, Object):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ProtocolError("the keys of an object are text")
            check_document(item)
    elif isinstance(value, Array):
        for item in value:
            check_document(item)
    elif value is ABSENT:
        raise ProtocolError("undefined is no value")


def is_index(item: Any) -> bool:
    """Whether an item is an unsigned integer."""
    return type(item) is int and 0 <= item <= LARGEST
