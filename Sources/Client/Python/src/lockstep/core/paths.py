"""Paths: keys from the root on the wire, JSON Pointers (RFC 6901) for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from .cbor import LARGEST_KEY, SMALLEST
from .tree import Key, Path

PathLike = Union[str, Sequence[Key]]
"""A JSON Pointer, or the keys themselves: `"/rooms/kitchen"` is `["rooms", "kitchen"]`."""


def parse(path: PathLike) -> Path:
    """The keys of a path. Raises `ValueError` or `TypeError` for what is none."""
    if isinstance(path, str):
        if path and not path.startswith("/"):
            raise ValueError(f"a path is empty or begins with '/': write {'/' + path!r}")
        return tuple(unescape(key) for key in path.split("/")[1:])
    if isinstance(path, (bytes, bytearray)):
        raise TypeError("a path is text or a sequence of keys, not bytes")
    for key in path:
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise TypeError(f"a key of a path is text or an integer, not {key!r}")
        if isinstance(key, int) and not SMALLEST <= key <= LARGEST_KEY:
            raise ValueError(f"an integer key has 64 bits and a sign: {key}")
    return tuple(path)


def unescape(key: str) -> str:
    """A key from its form in a pointer."""
    return key.replace("~1", "/").replace("~0", "~")


def pointer(path: Sequence[Key]) -> str:
    """A path as a JSON Pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def index(key: Key) -> Union[int, None]:
    """The index of an array's element that a key names: an integer, or its digits."""
    if isinstance(key, int):
        return key if key >= 0 else None
    if key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and len(key) <= 18:
        return int(key)
    return None
