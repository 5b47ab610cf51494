"""Makes a screenshot small: at most 256 colours, each pixel the nearest of them."""

from __future__ import annotations

import collections
import struct
import zlib


def shrink(png: bytes) -> bytes:
    """The picture with a palette; it must be as a browser writes it, 8 bits each of RGB or RGBA."""
    width, height, depth, form = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and form in (2, 6), "not a picture of a browser"
    pixels = _pixels(png, width, height, 3 if form == 2 else 4)
    counts = collections.Counter(pixels)
    # Texts are drawn in many shades between two colours: shades that differ little become one.
    palette = [colour for colour, _ in counts.most_common(96)]
    for colour, _ in counts.most_common():
        if len(palette) == 256:
            break
        if all(_distance(colour, other) > 500 for other in palette):
            palette.append(colour)
    nearest = {
        colour: min(range(len(palette)), key=lambda at: _distance(colour, palette[at]))
        for colour in counts
    }
    rows = (
        b"\0" + bytes(nearest[colour] for colour in pixels[y * width : (y + 1) * width])
        for y in range(height)
    )
    return b"".join([
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", b"".join(bytes(colour) for colour in palette)),
        _chunk(b"IDAT", zlib.compress(b"".join(rows), 9)),
        _chunk(b"IEND", b""),
    ])  # fmt: skip


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum((x - y) ** 2 for x, y in zip(a, b))


def _pixels(png: bytes, width: int, height: int, size: int) -> list[tuple[int, ...]]:
    data, at = b"", 8
    while at < len(png):
        (length,), name = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        if name == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    data = zlib.decompress(data)
    stride = width * size
    above = bytearray(stride)
    pixels: list[tuple[int, ...]] = []
    for y in range(height):
        start = y * (stride + 1)
        line = _unfilter(data[start], bytearray(data[start + 1 : start + 1 + stride]), above, size)
        pixels += zip(line[0::size], line[1::size], line[2::size])
        above = line
    return pixels


def _unfilter(kind: int, line: bytearray, above: bytearray, size: int) -> bytearray:
    for at in range(len(line) if kind else 0):
        left = line[at - size] if at >= size else 0
        up = above[at]
        corner = above[at - size] if at >= size else 0
        line[at] = (
            line[at] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        ) & 255
    return line


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))
