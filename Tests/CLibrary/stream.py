#!/usr/bin/env python3
"""A false daemon that sends one client the same bytes each time: a snapshot of an object, and many
patches of it, one in a frame. For comparing what clients cost.

    stream.py SOCKET PATCHES

The last patch leads to the revision PATCHES. It ends with the client.
"""

import os, socket, struct, sys

MEMBERS = 1000


def head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for bits, (size, form) in enumerate([(1, "B"), (2, ">H"), (4, ">I"), (8, ">Q")]):
        if number < 1 << (8 * size):
            return bytes([major << 5 | 24 + bits]) + struct.pack(form, number)
    raise OverflowError(number)


def uint(number):
    return head(0, number)


def text(string):
    return head(3, len(string)) + string.encode()


def frame(item):
    return struct.pack("<I", len(item)) + item


def stream(patches):
    """What the client gets behind the welcome."""
    members = b"".join(text(f"member{index}") + uint(index) for index in range(MEMBERS))
    value = head(5, MEMBERS) + members
    first = frame(b"\x86\x0c\x01\x01\x02\x01" + uint(0))
    first += frame(b"\x86\x0d\x01" + uint(0) + b"\x00\xf5" + head(2, len(value)) + value)
    parts = [first]
    for revision in range(1, patches + 1):
        patch = b"\xa1" + text(f"member{revision * 7919 % MEMBERS}") + uint(revision)
        parts.append(frame(b"\x85\x0e\x01" + uint(revision - 1) + b"\x01" + patch))
    return b"".join(parts)


def main():
    path, patches = sys.argv[1], int(sys.argv[2])
    # First, because a client does not wait long for a daemon that is silent.
    everything = stream(patches)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("listening", flush=True)
    connection, _ = listener.accept()
    os.unlink(path)
    welcome = b"\x8c\x0b\x02\x83\x09\x01\x00\x07\x50" + b"0123456789abcdef"
    welcome += b"\xf4\x00\x10\xa1\x6aframeBytes\x1a\x01\x00\x00\x00\xf6\x83\x01\x02\x03\xf6"
    connection.sendall(frame(welcome))
    received = b""
    # The subscription's number, 1, to the root.
    while b"\x84\x02\x01\x80" not in received:
        received += connection.recv(1 << 16)
    connection.sendall(everything)
    while connection.recv(1 << 16):
        pass


if __name__ == "__main__":
    main()
