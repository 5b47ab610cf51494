"""Frames: a length of four bytes, least significant first, and one item of that many bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import GoodbyeCode, ProtocolError

DEFAULT_LIMIT = 16_777_216
"""The most bytes of a frame before the daemon has said its own limit."""


def frame(item: bytes) -> bytes:
    """An item as it travels."""
    return len(item).to_bytes(4, "little") + item


class FrameDecoder:
    """Cuts a stream into frames, however its bytes come.

    It holds what came of one frame that is not whole yet, never more than `limit` bytes and what
    one `feed` brought.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._buffer = bytearray()

    @property
    def is_inside(self) -> bool:
        """Whether the stream is inside a frame: to end here would be to lose it."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes of the stream, and give each item that is whole now.

        Take all that it gives before you feed more. Raises `ProtocolError` (`FRAME_TOO_LARGE`) as
        soon as a length is over the limit.
        """
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= 4:
                length = int.from_bytes(buffer[at : at + 4], "little")
                if length > self.limit:
                    raise ProtocolError(
                        f"a frame of {length} bytes: {self.limit} are allowed",
                        GoodbyeCode.FRAME_TOO_LARGE,
                    )
                if len(buffer) - at - 4 < length:
                    break
                item = bytes(buffer[at + 4 : at + 4 + length])
                at += 4 + length
                yield item
        finally:
            del buffer[:at]
