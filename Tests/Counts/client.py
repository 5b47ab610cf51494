"""A raw client of a daemon, after Protocols/wire.md: it writes fixed bytes, and understands of what
comes only what it waits for. It waits for every answer before it goes on, so that each turn of the
daemon's loop brings the same in every run.
"""

import socket
import struct

WELCOME, SUBSCRIBED, SNAPSHOT, PATCH, ACKNOWLEDGEMENT, GOODBYE = 11, 12, 13, 14, 15, 21
REJECTED = 4
DURABLE = 1

# The kernel queues a write of this size to a Unix socket in one piece, and a reader gets all of it.
LARGEST_WRITE = 32_768


class Failure(Exception):
    """Why nothing can be counted, in a sentence."""


def head(major, value):
    """The head of a CBOR item."""
    for information, form, limit in (24, ">B", 1 << 8), (25, ">H", 1 << 16), (26, ">I", 1 << 32):
        if value < 24:
            return bytes([major << 5 | value])
        if value < limit:
            return bytes([major << 5 | information]) + struct.pack(form, value)
    return bytes([major << 5 | 27]) + struct.pack(">Q", value)


def text(value):
    encoded = value.encode()
    return head(3, len(encoded)) + encoded


def path(*keys):
    return head(4, len(keys)) + b"".join(map(text, keys))


def frame(item):
    return struct.pack("<I", len(item)) + item


def unsubscription(number):
    return frame(b"\x82\x03" + head(0, number))


def increment(*keys):
    """The payload of the action that adds 1 to the number at a path."""
    return b"\x82\x03" + path(*keys)


def set_object(members, *keys):
    """The payload of the action that puts an object of numbers at a path."""
    pairs = b"".join(text(key) + head(0, value) for key, value in members.items())
    return b"\x83\x00" + path(*keys) + head(5, len(members)) + pairs


def set_value(value, *keys):
    """The payload of the action that puts a number at a path."""
    return b"\x83\x00" + path(*keys) + head(0, value)


def read_head(item, at):
    """The number in a head, and where the next item begins."""
    information = item[at] & 31
    if information < 24:
        return information, at + 1
    end = at + 1 + (1 << information - 24)
    return int.from_bytes(item[at + 1 : end], "big"), end


class Client:
    """A connection to the daemon."""

    def __init__(self, address, timeout):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.received = bytearray()
        self.number = 0
        self.is_durable = False
        # What has come so far.
        self.patches = self.acknowledged = 0
        self.is_ready = False
        self.socket.sendall(frame(b"\x86\x01\x82\x01\x01" + text("counts") + b"\xf6\xf6\xf6"))
        self.is_welcome = False
        self.read_until(lambda: self.is_welcome)

    def subscribe(self, *keys, number=1, position=b"\xf6", instead_of=None):
        """Mirror what stands at a path; returns when its snapshot has come, or it needs none. The
        subscription that it replaces ends in the same write, and so in the same turn."""
        self.is_ready = False
        former = b"" if instead_of is None else unsubscription(instead_of)
        self.socket.sendall(
            former + frame(b"\x84\x02" + head(0, number) + path(*keys) + position))
        self.read_until(lambda: self.is_ready)

    def send(self, payloads, is_durable=False):
        """Send actions in one write, and do not wait."""
        self.is_durable = is_durable
        frames = []
        for payload in payloads:
            self.number += 1
            mark = bytes([DURABLE if is_durable else 0])
            frames.append(frame(b"\x84\x04" + head(0, self.number) + mark + payload))
        written = b"".join(frames)
        if len(written) > LARGEST_WRITE:
            raise Failure(f"{len(written)} bytes of actions might come in more than one read")
        self.socket.sendall(written)

    def read_until(self, is_done):
        while not is_done():
            try:
                more = self.socket.recv(1 << 18)
            except TimeoutError:
                raise Failure("the daemon does not answer") from None
            if not more:
                raise Failure("the daemon ended the connection")
            self.received += more
            at = 0
            while len(self.received) - at >= 4:
                end = at + 4 + struct.unpack_from("<I", self.received, at)[0]
                if len(self.received) < end:
                    break
                self.understand(self.received[at + 4 : end])
                at = end
            del self.received[:at]

    def read_acknowledgement(self):
        """Wait until all that was sent is acknowledged."""
        self.read_until(lambda: self.acknowledged == self.number)

    def understand(self, item):
        count, at = read_head(item, 0)
        kind, at = read_head(item, at)
        if kind == WELCOME:
            self.is_welcome = True
            _, start = read_head(item, at)
            at = start
            for _ in range(4):
                _, at = read_head(item, at)
            # Where the state was when it connected.
            self.position = bytes(item[start:at])
        elif kind == SUBSCRIBED:
            for _ in range(2):
                _, at = read_head(item, at)
            self.is_ready |= item[at] == 0
        elif kind == SNAPSHOT:
            for _ in range(3):
                _, at = read_head(item, at)
            self.is_ready |= item[at] == 0xF5
        elif kind == PATCH:
            self.patches += (count - 3) // 2
        elif kind == ACKNOWLEDGEMENT:
            values = []
            for _ in range(5):
                value, at = read_head(item, at)
                values.append(value)
            _, last, _, mark, outcome = values
            if outcome == REJECTED:
                raise Failure("the daemon rejected an action")
            if self.is_durable and mark != DURABLE:
                raise Failure("the daemon could not keep an action")
            self.acknowledged = last
        elif kind == GOODBYE:
            raise Failure(f"the daemon said goodbye: {bytes(item)!r}")
