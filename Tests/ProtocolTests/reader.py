"""A reader, the first level of wire.md's "Levels of conformance", written from that section alone.

    reader.py SOCKET [KEY ...]      prints a line of JSON whenever what stands at the path changes
"""

import json, socket, struct, sys, time

import cbor2

ABSENT = cbor2.undefined


def apply(value, patch):
    if isinstance(patch, dict):
        value = dict(value.items())
        for key, inner in patch.items():
            value[key] = apply(value[key] if inner is ABSENT else value.get(key, ABSENT), inner)
        return {key: item for key, item in value.items() if item is not ABSENT}
    if not isinstance(patch, list) or len(patch) == 1:
        return patch[0] if isinstance(patch, list) else patch
    (splices, edits), value = patch, value[:]
    for at, removed, inserted in zip(*[iter(splices)] * 3):
        value[at : at + removed] = inserted
    for index, inner in edits.items():
        value[index] = apply(value[index], inner)
    return value


class Reader:
    def __init__(self, path):
        self.path, self.run, self.value = path, None, ABSENT
        self.detach()

    def detach(self):  # `draft` is what stands at `revision`: it shows once that is the target
        self.scope = self.parts = self.revision = None
        self.draft, self.target, self.current = ABSENT, 0, False

    def hear(self, kind, *fields):
        """Take in a message of the daemon. Returns what to say to it."""
        if kind == 11:  # welcome
            self.run = fields[1][:2]
            self.detach()
            return [[2, 1, self.path, None]]
        if kind == 12:  # subscribed
            _, self.scope, continuation, reason, self.target = fields[:5]
            if continuation == 3:
                sys.exit(f"refused: reason {reason}")
            if continuation == 2:
                self.parts, self.revision, self.current = [], None, False
            elif self.revision is not None:
                self.revision = max(self.revision, self.target)
        elif kind == 13 and fields[0] == self.scope:  # snapshot
            self.parts.append(fields[4])
            if fields[3]:
                self.draft, self.revision = cbor2.loads(b"".join(self.parts)), fields[1]
        elif kind == 14 and fields[0] == self.scope and self.revision is not None:  # patch
            base = fields[1]
            for span, patch in zip(fields[2::2], fields[3::2]):
                if base > self.revision:  # a gap: resync
                    self.detach()
                    return [[3, 1], [2, 1, self.path, None]]
                if base + span > self.revision:
                    self.draft, self.revision = apply(self.draft, patch), base + span
                base += span
        elif kind == 23:  # restarted
            self.run = fields[0][:2]
        if self.revision is not None and self.revision >= self.target:
            self.value, self.current = self.draft, True
        return []


def follow(reader, path, show):
    """One connection. Returns how many seconds to wait before the next."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        stream, outgoing = connection.makefile("rb"), [[1, [1, 2], "reader", None, None, None]]
        while True:
            for item in map(cbor2.dumps, outgoing):
                connection.sendall(struct.pack("<I", len(item)) + item)
            if len(head := stream.read(4)) < 4:
                return 0.1
            message = cbor2.loads(stream.read(struct.unpack("<I", head)[0]))
            if message[0] == 21:  # goodbye
                if message[1] not in (6, 8, 12) and message[6] is None:
                    sys.exit(f"goodbye: code {message[1]}, {message[2]}")
                return (message[6] or 100) / 1000
            outgoing = reader.hear(*message)
            show()


if __name__ == "__main__":
    reader, shown = Reader(sys.argv[2:]), []

    def show():
        global shown
        if reader.current and [reader.value] != shown:
            shown = [reader.value]
            print(json.dumps({"value": reader.value}, default=repr), flush=True)

    while True:
        try:
            wait = follow(reader, sys.argv[1], show)
        except OSError:
            wait = 0.1
        time.sleep(wait)
