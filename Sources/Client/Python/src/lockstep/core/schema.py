"""Schemas: what the numbers of a typed state are called.

A mirror holds a typed state as it travels, structs by the numbers of their fields and cases by
theirs. Names come in with a view (`views`), a path, or an action (`values`).
The document daemon's state is of the kind `value`: there everything has its name already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Optional

from ..errors import ProtocolError, UnknownName
from .cbor import Reader
from .paths import index, pointer
from .tree import ABSENT, Array, Key, Object, Path, Value, new_array, new_object

SCALARS: Final = ("bool", "int", "uint", "double", "text", "bytes", "value", "path")
STRUCT, ENUM = "struct", "enum"


class Field(NamedTuple):
    """A field of a struct or a case."""

    number: int
    name: str
    kind: Kind

    @property
    def is_unnamed(self) -> bool:
        """Whether the name only counts: `_0`."""
        return not self.name or (self.name[0] == "_" and self.name[1:].isdigit())


class Case(NamedTuple):
    """A case of an enumeration."""

    number: int
    name: str
    fields: tuple[Field, ...]


class Kind:
    """A type of values. Types that have names are the same object wherever they are used."""

    def __init__(self, form: str, name: str = "") -> None:
        self.form = form
        """One of `SCALARS`, or optional, array, map, struct, enum."""
        self.name = name
        """That of a struct or an enumeration."""
        self.inner: Optional[Kind] = None
        """What is optional, or the elements of an array, or the values of a map."""
        self.key: Optional[Kind] = None
        """The keys of a map."""
        self.fields: dict[int, Field] = {}
        self.cases: dict[int, Case] = {}

    def __repr__(self) -> str:
        if self.form == "optional":
            return f"{self.inner}?"
        if self.form == "array":
            return f"[{self.inner}]"
        if self.form == "map":
            return f"{{{self.key}: {self.inner}}}"
        return self.name or self.form

    @property
    def bare(self) -> Kind:
        """The kind without being optional."""
        kind = self
        while kind.form == "optional" and kind.inner is not None:
            kind = kind.inner
        return kind

    @cached_property
    def fields_by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields.values()}

    @cached_property
    def cases_by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.cases.values()}

    def below(self, key: Key) -> Kind:
        """The kind of what stands under a key, as it travels. `VALUE` if nothing is known of it."""
        if self.form == STRUCT and isinstance(key, int):
            field = self.fields.get(key)
            return field.kind if field else VALUE
        if self.form in ("array", "map") and self.inner is not None:
            return self.inner
        return VALUE

    def has_integer_keys(self) -> bool:
        """Whether this is a map from integers."""
        return self.key is not None and self.key.bare.form in ("int", "uint")


VALUE: Final = Kind("value")
"""The kind of a value of which nothing else is known."""


class Schema:
    """The types of a daemon's state, and its actions.

    `state` and `action` are kinds; `encoded` is what the daemon wrote. Raises `ProtocolError` for
    bytes that are no schema.
    """

    def __init__(self, encoded: bytes) -> None:
        self.encoded = encoded
        parts = self._parts(Reader(encoded))
        if not {"state", "types", "action"} <= parts.keys():
            raise ProtocolError("a schema has state, types and action")
        types = parts["types"]
        if not isinstance(types, Object):
            raise ProtocolError("the types of a schema are a map")
        self.types: dict[str, Kind] = {}
        for name in types:
            if not isinstance(name, str):
                raise ProtocolError("a type's name is text")
            self.types[name] = Kind("", name)
        for name, definition in types.items():
            self._define(self.types[str(name)], definition)
        self.state = self._kind(parts["state"])
        self.action = self._kind(parts["action"])

    @cached_property
    def fingerprint(self) -> int:
        """The hash by which a client says that it knows this schema."""
        from .digests import sip

        return sip(self.encoded, 0)

    @property
    def is_typed(self) -> bool:
        """Whether the state is another than a document."""
        return self.state.form != "value"

    # Reading

    @staticmethod
    def _parts(reader: Reader) -> dict[str, Value]:
        parts: dict[str, Value] = {}
        for _ in range(reader.count(5, "a schema, which is a map,")):
            name = reader.text()
            if name in ("state", "types", "action"):
                parts[name] = reader.item(level=2)
            else:
                reader.skip(level=2)
        reader.finish()
        return parts

    def _define(self, kind: Kind, definition: Value) -> None:
        form, members = shape(definition, 2, "a definition")
        if form not in (STRUCT, ENUM) or not isinstance(members, Array):
            raise ProtocolError("a type is a struct of fields or an enum of cases")
        kind.form = form
        for member in members:
            if form == STRUCT:
                field = self._field(member)
                kind.fields[field.number] = field
            else:
                number, name, fields = shape(member, 3, "a case")
                if not isinstance(fields, Array):
                    raise ProtocolError("a case has an array of fields")
                check_member(number, name)
                kind.cases[number] = Case(number, name, tuple(map(self._field, fields)))

    def _field(self, description: Value) -> Field:
        number, name, kind = shape(description, 3, "a field")
        check_member(number, name)
        return Field(number, name, self._kind(kind))

    def _kind(self, description: Value) -> Kind:
        if isinstance(description, str):
            if description not in SCALARS:
                raise ProtocolError(f"there is no kind {description!r}")
            return VALUE if description == "value" else Kind(description)
        if not isinstance(description, Array) or not description:
            raise ProtocolError("a kind is text or an array")
        form = description[0]
        if form == "type" and len(description) == 2:
            name = description[1]
            if not isinstance(name, str) or name not in self.types:
                raise ProtocolError(f"the schema has no type {name!r}")
            return self.types[name]
        if form not in ("optional", "array", "map") or len(description) != 3 - (form != "map"):
            raise ProtocolError(f"there is no kind {form!r}")
        kind = Kind(form)
        kind.inner = self._kind(description[-1])
        if form == "map":
            kind.key = self._kind(description[1])
        return kind

    # Paths

    def keys(self, path: Path) -> Path:
        """A path by names as it travels. Raises `UnknownName` for a field that is not there."""
        return travelling(self.state, path)[0]

    def split(self, path: Path) -> tuple[Path, Path]:
        """A path by names: the part that a subscription can follow, and the rest.

        Subscriptions follow fields and the keys of objects and maps, not the elements of arrays. In
        a document, digits may be either, so they end the first part.
        """
        kind = self.state
        for depth, key in enumerate(path):
            kind = kind.bare
            if kind.form == STRUCT:
                field = kind.fields_by_name.get(str(key))
                kind = field.kind if field else VALUE
            elif kind.form == "map":
                kind = kind.inner or VALUE
            elif kind.form != "value" or index(key) is not None or key == "-":
                return path[:depth], path[depth:]
        return path, ()


def shape(description: Value, count: int, what: str) -> Sequence[Any]:
    """The items of an array of just so many."""
    if not isinstance(description, Array) or len(description) != count:
        raise ProtocolError(f"{what} has {count} items")
    return description


def check_member(number: Any, name: Any) -> None:
    """Raise `ProtocolError` unless these are the number and the name of a field or case."""
    if type(number) is not int or number < 0 or not isinstance(name, str):
        raise ProtocolError("a field or case has a number and a name")


# From names, and to names


def travelling(kind: Kind, path: Path) -> tuple[Path, Kind]:
    """A path by names as it travels, and the kind of what it leads to.

    Raises `UnknownName` for a field that a struct does not have, and a key that a map cannot have.
    """
    keys: list[Key] = []
    for depth, key in enumerate(path):
        kind = kind.bare
        if kind.form == STRUCT:
            field = kind.fields_by_name.get(str(key))
            if field is None:
                names = tuple(sorted(kind.fields_by_name))
                place = pointer(path[:depth]) or "the state"
                raise UnknownName(
                    f"{place} is a {kind.name}, which has no field {str(key)!r}; it has "
                    + ", ".join(names),
                    names,
                )
            keys.append(field.number)
            kind = field.kind
            continue
        if kind.form == "map":
            keys.append(map_key(kind, key))
        elif kind.form == "array" and index(key) is not None:
            keys.append(index(key) or 0)
        else:
            keys.append(key)
        kind = kind.below(key)
    return tuple(keys), kind


def map_key(kind: Kind, key: Key) -> Key:
    """A key of a map from its form in a path. Raises `UnknownName` for what cannot be one."""
    if not kind.has_integer_keys():
        return str(key)
    try:
        return int(key)
    except ValueError:
        raise UnknownName(f"the keys of the map are integers, and {key!r} is none") from None


def names_of(kind: Kind, path: Path) -> Path:
    """A path as it travels, by names."""
    names: list[Key] = []
    for key in path:
        kind = kind.bare
        field = kind.fields.get(key) if kind.form == STRUCT and isinstance(key, int) else None
        names.append(field.name if field else key)
        kind = kind.below(key)
    return tuple(names)


def step(value: Value, kind: Kind, key: Key) -> tuple[Value, Kind]:
    """What stands under a key by its name, and its kind; `ABSENT` if nothing does."""
    kind = kind.bare
    if kind.form in (ENUM, "path"):
        value, kind = named(value, kind), VALUE
    if isinstance(value, Object):
        if kind.form == STRUCT:
            field = kind.fields_by_name.get(str(key))
            return (value.get(field.number, ABSENT), field.kind) if field else (ABSENT, VALUE)
        if kind.form == "map":
            try:
                key = map_key(kind, key)
            except UnknownName:
                return ABSENT, VALUE
        return value.get(key, ABSENT), kind.below(key)
    if isinstance(value, Array):
        place = index(key)
        if place is not None and place < len(value):
            return value[place], kind.below(place)
    return ABSENT, VALUE


def find(value: Value, kind: Kind, path: Path) -> tuple[Value, Kind]:
    """What stands at a path by names, and its kind; `ABSENT` if nothing does."""
    for key in path:
        value, kind = step(value, kind, key)
    return value, kind


def named(value: Value, kind: Kind) -> Value:
    """A copy of a value by names, as the daemon's log has them; keys of maps stay what they are.

    A case without fields is its name, one with fields `{name: …}`; a path is a JSON Pointer. What
    does not fit its kind stays as it is.
    """
    kind = kind.bare
    if kind.form == ENUM:
        return named_case(value, kind)
    if kind.form == "path" and isinstance(value, Array):
        return pointer(value)
    if isinstance(value, Object):
        entries = new_object()
        for key, item in value.items():
            field = kind.fields.get(key) if kind.form == STRUCT and isinstance(key, int) else None
            if item is not ABSENT:
                entries[field.name if field else key] = named(item, kind.below(key))
        return entries
    if isinstance(value, Array):
        elements = new_array()
        elements.extend(named(item, kind.below(at)) for at, item in enumerate(value))
        return elements
    return value


def named_case(value: Value, kind: Kind) -> Value:
    """A case of an enumeration by its name."""
    if type(value) is int:
        case = kind.cases.get(value)
        return case.name if case else value
    if not isinstance(value, Array) or not value or type(value[0]) is not int:
        return value
    case = kind.cases.get(value[0])
    if case is None or len(value) - 1 > len(case.fields):
        return value
    content = new_object()
    fields = case.fields
    items = [*value[1:], *[ABSENT] * (len(fields) + 1 - len(value))]
    if all(field.is_unnamed for field in fields):
        shown = [
            None if item is ABSENT else named(item, field.kind)
            for item, field in zip(items, fields)
        ]
        array = new_array()
        array.extend(shown)
        content[case.name] = shown[0] if len(shown) == 1 else array
        return content
    inner = new_object()
    for item, field in zip(items, fields):
        if item is not ABSENT:
            inner[field.name] = named(item, field.kind)
    content[case.name] = inner
    return content
