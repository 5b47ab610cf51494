"""CBOR (RFC 8949) as the protocol uses it, strictly.

There are good CBOR libraries, but they read more than the protocol allows: tags (which can make a
reader compile patterns, or build values that contain themselves), indefinite lengths, keys that
come twice. Whatever comes from a socket is refused here before it means anything, and what is read
is the mirror's own kind of value already.
"""

from __future__ import annotations

import struct
from typing import Any, Callable

from ..errors import ProtocolError
from .tree import ABSENT, Array, Key, Object, Value, now

DEPTH = 128
"""The most levels of arrays and maps, one in the other."""

SMALLEST = -(1 << 63)
LARGEST = (1 << 64) - 1
LARGEST_KEY = (1 << 63) - 1

FLOATS: dict[int, tuple[Callable[..., tuple[Any, ...]], int]] = {
    0xF9: (struct.Struct(">e").unpack_from, 2),
    0xFA: (struct.Struct(">f").unpack_from, 4),
    0xFB: (struct.Struct(">d").unpack_from, 8),
}


class Reader:
    """Reads one item after the other.

    Every method raises `ProtocolError` for bytes that are not what it reads. What is built takes
    memory in proportion to the bytes that are there, never to a length that they claim.
    """

    def __init__(self, data: bytes, depth: int = DEPTH) -> None:
        self.data = data
        self.at = 0
        self.depth = depth

    # Heads

    def head(self) -> tuple[int, int]:
        """The major type and the argument of the next head. A float's is its bits."""
        data, at = self.data, self.at
        if at >= len(data):
            raise ProtocolError("the input ends where an item should begin")
        byte = data[at]
        major, argument = byte >> 5, byte & 31
        at += 1
        if argument >= 24:
            if argument > 27:
                raise ProtocolError(f"an indefinite or reserved head (0x{byte:02x})")
            width = 1 << argument - 24
            if at + width > len(data):
                raise ProtocolError("the input ends inside a head")
            argument = int.from_bytes(data[at : at + width], "big")
            at += width
        self.at = at
        return major, argument

    def count(self, major: int, what: str) -> int:
        """The count of an array (major 4) or map (5), which fits what is left of the input."""
        found, count = self.head()
        if found != major:
            raise ProtocolError(f"{what} expected")
        if count * (major - 3) > len(self.data) - self.at:
            raise ProtocolError(f"{what} that claims more items than there are bytes")
        return count

    def string(self, major: int, what: str) -> bytes:
        """The bytes of a byte string (major 2) or text (3)."""
        found, count = self.head()
        if found != major:
            raise ProtocolError(f"{what} expected")
        end = self.at + count
        if end > len(self.data):
            raise ProtocolError(f"the input ends inside {what}")
        bytes_ = self.data[self.at : end]
        self.at = end
        return bytes_

    # Fields of messages

    def unsigned(self) -> int:
        """An integer from 0 to 2^64 - 1."""
        major, argument = self.head()
        if major != 0:
            raise ProtocolError("an unsigned integer expected")
        return argument

    def boolean(self) -> bool:
        """True or false."""
        byte = self.peek()
        if byte not in (0xF4, 0xF5):
            raise ProtocolError("a boolean expected")
        self.at += 1
        return byte == 0xF5

    def text(self) -> str:
        """Text."""
        return utf8(self.string(3, "text"))

    def octets(self) -> bytes:
        """A byte string."""
        return self.string(2, "bytes")

    def null(self) -> bool:
        """Whether the next item is null; then it is read."""
        if self.peek() != 0xF6:
            return False
        self.at += 1
        return True

    def key(self) -> Key:
        """Text, or an integer of 64 bits with a sign."""
        major, argument = self.head()
        if major == 0 and argument <= LARGEST_KEY:
            return argument
        if major == 1 and argument <= LARGEST_KEY:
            return ~argument
        if major == 3:
            end = self.at + argument
            if end > len(self.data):
                raise ProtocolError("the input ends inside a key")
            key = utf8(self.data[self.at : end])
            self.at = end
            return key
        raise ProtocolError("a key is text or an integer of 64 bits with a sign")

    def peek(self) -> int:
        """The next byte."""
        if self.at >= len(self.data):
            raise ProtocolError("the input ends where an item should begin")
        return self.data[self.at]

    def finish(self) -> None:
        """Nothing is left."""
        if self.at != len(self.data):
            raise ProtocolError(f"{len(self.data) - self.at} bytes behind the item")

    # Whole items

    def item(self, *, level: int, has_integers: bool = True, has_absent: bool = True) -> Value:
        """Any value, or patch: `undefined` is `ABSENT`.

        `level` is how many arrays and maps it is in. Without `has_integers` keys are text, and
        without `has_absent` there is no `undefined`.
        """
        try:
            value, self.at = read_item(
                self.data, self.at, self.depth - level, has_integers, has_absent
            )
        except IndexError:
            raise ProtocolError("the input ends inside an item") from None
        return value

    def skip(self, *, level: int) -> None:
        """Skip any item that is well formed, also one that no value may be."""
        self.at = skip_item(self.data, self.at, self.depth - level)


def utf8(data: bytes) -> str:
    """Text from its bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"text that is not UTF-8: {error.reason}") from None


def read_item(
    data: bytes, at: int, depth: int, has_integers: bool, has_absent: bool
) -> tuple[Value, int]:
    """An item, and the offset behind it. The one hot loop of a client that only reads.

    Raises `IndexError` where the input ends.
    """
    end = len(data)
    moment = now()

    def argument(head: int) -> int:
        nonlocal at
        short = head & 31
        if short < 24:
            return short
        if short == 24:
            value = data[at]
            at += 1
            return value
        if short > 27:
            raise ProtocolError(f"an indefinite or reserved head (0x{head:02x})")
        start = at
        at += 1 << short - 24
        if at > end:
            raise IndexError
        return int.from_bytes(data[start:at], "big")

    def string(count: int) -> bytes:
        nonlocal at
        start = at
        at += count
        if at > end:
            raise IndexError
        return data[start:at]

    def key() -> Key:
        nonlocal at
        head = data[at]
        at += 1
        if 0x60 <= head < 0x80:
            return utf8(string(argument(head)))
        if not has_integers:
            raise ProtocolError("the keys of an object are text")
        if head < 0x40:
            number = argument(head)
            if number <= LARGEST_KEY:
                return number if head < 0x20 else ~number
        raise ProtocolError("a key is text or an integer of 64 bits with a sign")

    def item(depth: int) -> Value:
        nonlocal at
        head = data[at]
        at += 1
        if head < 0x18:
            return head
        major = head >> 5
        if major == 3:
            return utf8(string(argument(head)))
        if major == 5:
            count = argument(head)
            if depth == 0:
                raise ProtocolError(f"nested deeper than {DEPTH} levels")
            if 2 * count > end - at:
                raise ProtocolError("a map that claims more entries than there are bytes")
            entries = Object()
            entries.born = moment
            entries.guards = None
            for _ in range(count):
                name = key()
                if name in entries:
                    raise ProtocolError(f"the key {name!r} comes twice")
                entries[name] = item(depth - 1)
            return entries
        if major == 4:
            count = argument(head)
            if depth == 0:
                raise ProtocolError(f"nested deeper than {DEPTH} levels")
            if count > end - at:
                raise ProtocolError("an array that claims more elements than there are bytes")
            elements = Array([item(depth - 1) for _ in range(count)])
            elements.born = moment
            elements.guards = None
            return elements
        if major == 7:
            if head == 0xF4:
                return False
            if head == 0xF5:
                return True
            if head == 0xF6:
                return None
            if head == 0xF7 and has_absent:
                return ABSENT
            if head in FLOATS:
                unpack, width = FLOATS[head]
                if at + width > end:
                    raise IndexError
                at += width
                return unpack(data, at - width)[0]
            raise ProtocolError(f"a simple value that is no value (0x{head:02x})")
        if major == 0:
            return argument(head)
        if major == 1:
            number = ~argument(head)
            if number < SMALLEST:
                raise ProtocolError("an integer below -2^63")
            return number
        if major == 2:
            return string(argument(head))
        raise ProtocolError("a tag: no value is tagged")

    return item(depth), at


def skip_item(data: bytes, at: int, depth: int) -> int:
    """The offset behind an item that is well formed (RFC 8949, appendix C)."""
    reader = Reader(data)
    reader.at = at

    def skip(depth: int, may_break: bool = False) -> bool:
        """Skip an item; whether it was the break that ends an indefinite one."""
        head = reader.peek()
        if head == 0xFF and may_break:
            reader.at += 1
            return True
        major = head >> 5
        if major in (4, 5, 6) and depth == 0:
            raise ProtocolError(f"nested deeper than {DEPTH} levels")
        if head in (0x5F, 0x7F):
            reader.at += 1
            while reader.peek() != 0xFF:
                utf8_or_octets(reader, major)
            reader.at += 1
        elif head in (0x9F, 0xBF):
            reader.at += 1
            count = 0
            while not skip(depth - 1, may_break=major == 4 or count % 2 == 0):
                count += 1
        elif major in (2, 3):
            utf8_or_octets(reader, major)
        elif major in (4, 5):
            for _ in range(reader.count(major, "an item") * (major - 3)):
                skip(depth - 1)
        else:
            _, argument = reader.head()
            if head == 0xF8 and argument < 32:
                raise ProtocolError("a simple value below 32 in two bytes")
            if major == 6:
                skip(depth - 1)
        return False

    skip(depth)
    return reader.at


def utf8_or_octets(reader: Reader, major: int) -> None:
    """Skip one string of definite length."""
    data = reader.string(major, "a string")
    if major == 3:
        utf8(data)


# Writing


def head(major: int, argument: int) -> bytes:
    """The shortest head."""
    if argument < 24:
        return bytes((major << 5 | argument,))
    if argument < 0x100:
        return bytes((major << 5 | 24, argument))
    if argument < 0x10000:
        return bytes((major << 5 | 25,)) + argument.to_bytes(2, "big")
    if argument < 0x100000000:
        return bytes((major << 5 | 26,)) + argument.to_bytes(4, "big")
    return bytes((major << 5 | 27,)) + argument.to_bytes(8, "big")


def write_float(number: float) -> bytes:
    """A float in the fewest bytes that keep it; there is one NaN."""
    if number != number:
        return b"\xf9\x7e\x00"
    exact = struct.pack(">d", number)
    try:
        single = struct.pack(">f", number)
    except OverflowError:
        return b"\xfb" + exact
    if struct.pack(">d", *struct.unpack(">f", single)) != exact:
        return b"\xfb" + exact
    try:
        half = struct.pack(">e", number)
    except OverflowError:
        return b"\xfa" + single
    if struct.pack(">d", *struct.unpack(">e", half)) != exact:
        return b"\xfa" + single
    return b"\xf9" + half


def encode(value: Value) -> bytes:
    """A value, patch or message in shortest form, entries of maps in the order that they have.

    Takes what this package makes, and what `tree` calls a value: for values of users there is
    `values.from_user`.
    """
    parts: list[bytes] = []
    write(value, parts.append)
    return b"".join(parts)


class Raw(bytes):
    """Bytes that are an item already: `encode` writes them as they are."""


def write(value: Value, append: Callable[[bytes], None]) -> None:
    """Append the pieces of a value."""
    kind = type(value)
    if kind is int:
        append(head(0, value) if value >= 0 else head(1, ~value))
    elif kind is str:
        data = value.encode()
        append(head(3, len(data)))
        append(data)
    elif value is None:
        append(b"\xf6")
    elif value is True:
        append(b"\xf5")
    elif value is False:
        append(b"\xf4")
    elif value is ABSENT:
        append(b"\xf7")
    elif kind is float:
        append(write_float(value))
    elif kind is Raw:
        append(value)
    elif kind is bytes:
        append(head(2, len(value)))
        append(value)
    elif isinstance(value, dict):
        append(head(5, len(value)))
        for key, item in value.items():
            write(key, append)
            write(item, append)
    elif isinstance(value, (list, tuple)):
        append(head(4, len(value)))
        for item in value:
            write(item, append)
    else:
        write(int(value), append)
