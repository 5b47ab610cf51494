"""Digests: a 64-bit hash of a value, to find out whether a mirror is right.

Pure Python takes some 25 microseconds for each entry and its scalar.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from .cbor import encode
from .schema import VALUE, Kind
from .tree import Array, Key, Object, Value

MASK = (1 << 64) - 1


def sip(data: bytes, seed: int) -> int:
    """SipHash-1-3 with the keys `seed` and `~seed`. Its round is written out, for speed."""
    m = MASK
    other = ~seed & m
    v0, v1 = seed ^ 0x736F6D6570736575, other ^ 0x646F72616E646F6D
    v2, v3 = seed ^ 0x6C7967656E657261, other ^ 0x7465646279746573
    padded = data + bytes(7 - len(data) % 8) + bytes((len(data) % 256,))
    words = struct.unpack(f"<{len(padded) // 8}Q", padded)
    last = len(words)
    for number, word in enumerate((*words, 0, 0, 0)):
        if number == last:
            v2 ^= 0xFF
        v3 ^= word
        v0 = v0 + v1 & m
        v1 = ((v1 << 13 | v1 >> 51) & m) ^ v0
        v0 = (v0 << 32 | v0 >> 32) & m
        v2 = v2 + v3 & m
        v3 = ((v3 << 16 | v3 >> 48) & m) ^ v2
        v0 = v0 + v3 & m
        v3 = ((v3 << 21 | v3 >> 43) & m) ^ v0
        v2 = v2 + v1 & m
        v1 = ((v1 << 17 | v1 >> 47) & m) ^ v2
        v2 = (v2 << 32 | v2 >> 32) & m
        v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3


def mix(z: int) -> int:
    """A number, well mixed."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


@lru_cache(maxsize=4096)
def key_hash(key: Key, seed: int) -> int:
    """The hash of a key. Kept, for most objects have the same few."""
    if isinstance(key, str):
        return sip(key.encode(), seed)
    return mix((key & MASK) + mix(seed) & MASK)


def digest(value: Value, seed: int, kind: Kind = VALUE) -> int:
    """The digest of a value of a kind, under the seed of the welcome."""
    kind = kind.bare
    # What a case carries is hashed as bytes, and so is a path.
    if kind.form not in ("enum", "path"):
        if isinstance(value, Object):
            total = 0
            for key, item in value.items():
                inner = mix(digest(item, seed, kind.below(key)))
                total += mix(key_hash(key, seed) + inner & MASK)
            return mix((total & MASK ^ 0xA5A5A5A5A5A5A5A5) + len(value) & MASK)
        if isinstance(value, Array):
            polynomial = 0
            for index, item in enumerate(value):
                inner = digest(item, seed, kind.below(index))
                polynomial = polynomial * 0x9E3779B97F4A7C15 + inner & MASK
            return mix((polynomial ^ 0x5A5A5A5A5A5A5A5A) + len(value) & MASK)
    return sip(encode(value), seed)
