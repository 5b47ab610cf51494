"""Values of users, and actions by their names, as they travel."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ..errors import UnknownName
from .cbor import DEPTH, LARGEST, LARGEST_KEY, SMALLEST, encode
from .paths import parse
from .schema import ENUM, STRUCT, Case, Field, Kind, Schema
from .tree import ABSENT, Array, Key, Value, new_array, new_object

MISSING = object()


def from_user(value: Any, *, level: int = 0) -> Value:
    """A value that a user gave, as one that travels: a copy.

    None, booleans, integers of 64 bits, floats, text, bytes, sequences, and mappings from text,
    also those of mirrors. Raises `TypeError` for anything else, `ValueError` for what is too large
    or nests too deep.
    """
    if value is None or isinstance(value, (bool, float, bytes)):
        return value
    if isinstance(value, int):
        if not SMALLEST <= value <= LARGEST:
            raise ValueError(f"an integer has 64 bits, from -2^63 to 2^64 - 1: {value}")
        return int(value)
    if isinstance(value, str):
        return text_of(value)
    if level >= DEPTH:
        raise ValueError(f"a value nests at most {DEPTH} levels")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        entries = new_object()
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the keys of an object are text, not {key!r}")
            entries[text_of(key)] = from_user(item, level=level + 1)
        return entries
    if isinstance(value, Sequence):
        elements = new_array()
        elements.extend(from_user(item, level=level + 1) for item in value)
        return elements
    raise TypeError(
        f"a {type(value).__name__} is no value: give None, bool, int, float, str, bytes, a sequence"
        " or a mapping"
    )


def text_of(text: str) -> str:
    """A text. Raises `ValueError` if it has half a surrogate pair, which UTF-8 cannot say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"text with a lone surrogate: {text!r}") from None
    return str(text)


# Actions


def payload(
    schema: Schema,
    action: Any,
    values: Sequence[Any] = (),
    fields: Optional[Mapping[str, Any]] = None,
) -> bytes:
    """The bytes of an action that is given by its name and what it carries.

    `"toggle", [1]` or `"resize", [], {"width": 640, "height": 480}`; names of cases inside cases
    are joined by dots, `"counter.increment"`. Or the whole at once, `{"toggle": 1}`, as the
    daemon's log shows actions, or `("toggle", 1)`; so are actions inside of others. Raises
    `UnknownName` for a name that the schema does not have, `TypeError` and `ValueError` for values
    that do not fit.
    """
    writer = Writer()
    if isinstance(action, str) and (values or fields or "." in action):
        return encode(
            writer.call(action.split("."), schema.action, list(values), dict(fields or {}))
        )
    if values or fields:
        raise TypeError("an action that is given as a whole has no values behind it")
    return encode(writer.write(action, schema.action))


class Writer:
    """Makes what travels of what a user gave, by the kinds of a schema."""

    def __init__(self) -> None:
        self.place: list[str] = []
        """Where in the action it is, for errors."""

    def error(self, text: str) -> str:
        return f"{'.'.join(self.place)}: {text}" if self.place else text

    def within(self, name: str, value: Any, kind: Kind) -> Value:
        if len(self.place) >= DEPTH:
            raise ValueError(f"an action nests at most {DEPTH} levels")
        self.place.append(name)
        result = self.write(value, kind)
        self.place.pop()
        return result

    # An action and its arguments

    def call(
        self, names: list[str], kind: Kind, values: list[Any], fields: Mapping[str, Any]
    ) -> Value:
        """The case of the first name, with what the other names and the arguments say."""
        case = self.find(names[0], kind)
        if len(names) > 1:
            if len(case.fields) != 1 or case.fields[0].kind.bare.form != ENUM:
                raise UnknownName(self.error(f"{case.name} does not carry one other action"))
            self.place.append(case.name)
            return self.array(
                case.number, self.call(names[1:], case.fields[0].kind, values, fields)
            )
        if not case.fields:
            if values or fields:
                raise TypeError(self.error(f"{case.name} carries nothing"))
            return case.number
        first = case.fields[0]
        if len(case.fields) == 1 and first.is_unnamed and fields and not values:
            return self.array(case.number, self.within(case.name, fields, first.kind))
        given = self.assign(case, values, fields)
        self.place.append(case.name)
        return self.case(case, given)

    def assign(self, case: Case, values: list[Any], fields: Mapping[str, Any]) -> list[Any]:
        """The value of each field of a case, `MISSING` if it was given none."""
        if len(values) > len(case.fields):
            raise TypeError(
                self.error(f"{case.name} takes {describe(case.fields)}; {len(values)} values given")
            )
        given = [*values, *[MISSING] * (len(case.fields) - len(values))]
        names = [field.name for field in case.fields]
        for name, value in fields.items():
            if name not in names:
                raise UnknownName(
                    self.error(
                        f"{case.name} has no field {name!r}; it has {describe(case.fields)}"
                    ),
                    tuple(names),
                )
            if given[names.index(name)] is not MISSING:
                raise TypeError(self.error(f"{case.name} has two values for {name!r}"))
            given[names.index(name)] = value
        return given

    # Values

    def write(self, value: Any, kind: Kind) -> Value:
        """A value as one of the kind."""
        form = kind.form
        if form == "optional" and kind.inner is not None:
            if value is None and kind.inner.form not in ("value", "optional"):
                return ABSENT
            return self.write(value, kind.inner)
        if form == "value":
            return from_user(value, level=len(self.place))
        if form == "path":
            return self.array(*parse(value))
        if form == "array" and kind.inner is not None:
            if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
                raise self.mismatch(value, kind)
            items = [self.within(str(at), item, kind.inner) for at, item in enumerate(value)]
            return self.array(*items)
        if form == "map":
            return self.map(value, kind)
        if form == STRUCT:
            return self.struct(value, kind)
        if form == ENUM:
            return self.enumeration(value, kind)
        return self.scalar(value, kind)

    def scalar(self, value: Any, kind: Kind) -> Value:
        form = kind.form
        if form == "bool" and isinstance(value, bool):
            return value
        if form in ("int", "uint") and isinstance(value, int) and not isinstance(value, bool):
            least, most = (SMALLEST, LARGEST_KEY) if form == "int" else (0, LARGEST)
            if least <= value <= most:
                return int(value)
            raise ValueError(self.error(f"{value} does not fit 64 bits"))
        if form == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if form == "text" and isinstance(value, str):
            return text_of(value)
        if form == "bytes" and isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if form == "bytes" and isinstance(value, str):
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                pass
        raise self.mismatch(value, kind)

    def map(self, value: Any, kind: Kind) -> Value:
        if not isinstance(value, Mapping) or kind.inner is None:
            raise self.mismatch(value, kind)
        entries = new_object()
        for key, item in value.items():
            entries[self.map_key(key, kind)] = self.within(str(key), item, kind.inner)
        return entries

    def map_key(self, key: Any, kind: Kind) -> Key:
        if not kind.has_integer_keys():
            if isinstance(key, str):
                return text_of(key)
        elif isinstance(key, (int, str)) and not isinstance(key, bool):
            try:
                return int(key)
            except ValueError:
                pass
        raise TypeError(self.error(f"{key!r} is no key of {kind!r}"))

    def struct(self, value: Any, kind: Kind) -> Value:
        if not isinstance(value, Mapping):
            raise self.mismatch(value, kind)
        self.check_names(value, [field.name for field in kind.fields.values()], kind.name)
        entries = new_object()
        for field in sorted(kind.fields.values()):
            given = value.get(field.name, MISSING)
            if given is not MISSING:
                item = self.within(field.name, given, field.kind)
                if item is not ABSENT:
                    entries[field.number] = item
            elif field.kind.form != "optional":
                raise TypeError(self.error(f"{kind.name} needs {describe([field])}"))
        return entries

    def enumeration(self, value: Any, kind: Kind) -> Value:
        if isinstance(value, str):
            case = self.find(value, kind)
            if any(field.kind.form != "optional" for field in case.fields):
                raise TypeError(self.error(f"{value} needs {describe(case.fields)}"))
            return self.case(case, [MISSING] * len(case.fields)) if case.fields else case.number
        if isinstance(value, tuple) and value and isinstance(value[0], str):
            depth = len(self.place)
            result = self.call(value[0].split("."), kind.bare, list(value[1:]), {})
            del self.place[depth:]
            return result
        if not isinstance(value, Mapping) or len(value) != 1:
            raise self.mismatch(value, kind)
        ((name, content),) = value.items()
        case = self.find(name, kind)
        self.place.append(case.name)
        result = self.case(case, self.contents(case, content))
        self.place.pop()
        return result

    def contents(self, case: Case, content: Any) -> list[Any]:
        """The value of each field of a case from what stands behind its name."""
        fields = case.fields
        if not fields:
            if content is None or content == {}:
                return []
            raise TypeError(self.error("carries nothing"))
        if len(fields) == 1 and fields[0].is_unnamed:
            return [content]
        if all(field.is_unnamed for field in fields):
            if not isinstance(content, Sequence) or len(content) != len(fields):
                raise TypeError(self.error(f"an array of {len(fields)} values is needed"))
            return list(content)
        if not isinstance(content, Mapping):
            raise TypeError(self.error(f"a mapping is needed, of {describe(fields)}"))
        self.check_names(content, [field.name for field in fields], case.name)
        return [content.get(field.name, MISSING) for field in fields]

    def case(self, case: Case, given: Sequence[Any]) -> Value:
        """A case with the values of its fields. Absent ones at the end are left out."""
        items: list[Value] = []
        for field, value in zip(case.fields, given):
            if value is not MISSING:
                items.append(self.within(field.name, value, field.kind))
            elif field.kind.form == "optional":
                items.append(ABSENT)
            else:
                raise TypeError(self.error(f"{describe([field])} is missing"))
        while items and items[-1] is ABSENT:
            items.pop()
        return self.array(case.number, *items) if case.fields else case.number

    def find(self, name: Any, kind: Kind) -> Case:
        kind = kind.bare
        case = kind.cases_by_name.get(name) if isinstance(name, str) else None
        if case is None:
            names = tuple(sorted(kind.cases_by_name))
            raise UnknownName(
                self.error(
                    f"there is no {kind.name or 'action'} {name!r}; there are: " + ", ".join(names)
                ),
                names,
            )
        return case

    def check_names(self, given: Mapping[Any, Any], names: Sequence[str], what: str) -> None:
        for name in given:
            if name not in names:
                raise UnknownName(
                    self.error(f"{what} has no field {name!r}; it has " + ", ".join(names)),
                    tuple(names),
                )

    def mismatch(self, value: Any, kind: Kind) -> TypeError:
        return TypeError(self.error(f"{value!r:.80} is no {kind!r}"))

    @staticmethod
    def array(*items: Value) -> Array:
        array = new_array()
        array.extend(items)
        return array


def describe(fields: Sequence[Field]) -> str:
    """Fields for people: `path: path, by: value?`."""
    return ", ".join(f"{field.name}: {field.kind!r}" for field in fields)
