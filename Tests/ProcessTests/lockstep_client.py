"""A Lockstep client, written from Protocols/wire.md alone; needs nothing but cbor2.

    lockstep_client.py SOCKET POINTER...

mirrors the whole document, and what stands at each JSON Pointer, until the document has a member
"end". It loses its connection on the way a few times and comes back with its session, and sends
actions, too. Prints one JSON object a line; exits 0 only if every digest is the daemon's.
"""

import json
import socket
import struct
import sys

import cbor2

M64 = (1 << 64) - 1
ABSENT = cbor2.undefined

# Types of messages.
HELLO, SUBSCRIBE, UNSUBSCRIBE, ACTION, PING, DIGEST_REQUEST, QUERY, CLIENT_GOODBYE = range(1, 9)
WELCOME, SUBSCRIBED, SNAPSHOT, PATCH, ACKNOWLEDGEMENT, PONG, BOOKMARK, DIGEST = range(11, 19)
GOODBYE = 21
CURRENT, PATCHES, WHOLE, REFUSED = range(4)
REJECTED = 4


class Gone(Exception):
    """The connection has ended."""


def rotl(x, n):
    return (x << n | x >> 64 - n) & M64


def sip_round(v0, v1, v2, v3):
    v0, v2 = v0 + v1 & M64, v2 + v3 & M64
    v1, v3 = rotl(v1, 13) ^ v0, rotl(v3, 16) ^ v2
    v0, v2 = rotl(v0, 32) + v3 & M64, v2 + v1 & M64
    v3, v1 = rotl(v3, 21) ^ v0, rotl(v1, 17) ^ v2
    return v0, v1, rotl(v2, 32), v3


def sip(data, seed):
    """SipHash-1-3 with the key (seed, ~seed)."""
    v0, v1 = seed ^ 0x736F6D6570736575, ~seed & M64 ^ 0x646F72616E646F6D
    v2, v3 = seed ^ 0x6C7967656E657261, ~seed & M64 ^ 0x7465646279746573
    whole = len(data) // 8 * 8
    rest = data[whole:].ljust(7, b"\0") + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + rest):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(3):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def key_hash(key, seed):
    if isinstance(key, str):
        return sip(key.encode(), seed)
    return mix((key + mix(seed)) & M64)


def digest(value, seed):
    if isinstance(value, dict):
        s = sum(mix(key_hash(k, seed) + mix(digest(v, seed)) & M64) for k, v in value.items())
        return mix(((s & M64) ^ 0xA5A5A5A5A5A5A5A5) + len(value) & M64)
    if isinstance(value, list):
        p = 0
        for element in value:
            p = p * 0x9E3779B97F4A7C15 + digest(element, seed) & M64
        return mix((p ^ 0x5A5A5A5A5A5A5A5A) + len(value) & M64)
    # Canonical CBOR writes every head and every float in the fewest bytes.
    return sip(cbor2.dumps(value, canonical=True), seed)


def apply(value, patch):
    """The value that a patch makes of a value. Containers are changed in place."""
    if isinstance(patch, dict):
        assert isinstance(value, dict), f"an object's patch for {value!r}"
        for key, change in patch.items():
            new = apply(value.get(key, ABSENT), change)
            if new is ABSENT:
                del value[key]
            else:
                value[key] = new
        return value
    if isinstance(patch, list) and len(patch) == 1:
        return patch[0]
    if isinstance(patch, list):
        splices, edits = patch
        assert isinstance(value, list), f"an array's patch for {value!r}"
        for at, removed, inserted in zip(*[iter(splices)] * 3, strict=True):
            assert at + removed <= len(value), "a splice beyond the end"
            value[at:at + removed] = inserted
        for index, change in edits.items():
            value[index] = apply(value[index], change)
        return value
    return patch


class Mirror:
    def __init__(self, number, path):
        self.number, self.path = number, path
        self.value, self.position, self.scope = ABSENT, None, None
        self.current, self.parts = False, []
        self.snapshots = self.patches = self.resyncs = 0


class Client:
    def __init__(self, path, label="python"):
        self.path, self.label = path, label
        self.token, self.pending, self.number = None, [], 0
        self.mirrors, self.digests = [], {}
        self.connections = self.resumed = self.unknown = self.rejected = 0

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.path)
        self.buffer, self.connections = b"", self.connections + 1
        self.send([HELLO, [1, 1], self.label, None, self.token, None])
        welcome = self.receive()
        if welcome[0] != WELCOME:
            raise Gone(welcome)
        _, _, position, self.seed, self.token, is_resumed, _, self.window = welcome[:8]
        self.epoch, self.run, _ = position
        self.schema = welcome[9]
        self.resumed += is_resumed
        if not is_resumed:
            # Nobody knows what became of what was sent in the session that is gone.
            self.unknown += len(self.pending)
            self.pending, self.number = [], 0
        for mirror in self.mirrors:
            self.ask(mirror, mirror.position)
        for message in self.pending:
            self.send(message)

    def send(self, message):
        item = cbor2.dumps(message)
        self.socket.sendall(struct.pack("<I", len(item)) + item)

    def receive(self):
        return cbor2.loads(self.take(*struct.unpack("<I", self.take(4))))

    def take(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise Gone("the daemon closed the connection")
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def ask(self, mirror, position):
        mirror.current, mirror.scope = False, None
        self.send([SUBSCRIBE, mirror.number, mirror.path, position])

    def mirror(self, path):
        mirror = Mirror(len(self.mirrors) + 1, path)
        self.mirrors.append(mirror)
        self.ask(mirror, None)
        return mirror

    def act(self, *payload):
        # An action may wait for the window to open, which opens by reading.
        while len(self.pending) >= self.window:
            self.step()
        self.number += 1
        message = [ACTION, self.number, 0, list(payload)]
        self.pending.append(message)
        self.send(message)

    def resync(self, mirror):
        mirror.resyncs += 1
        self.send([UNSUBSCRIBE, mirror.number])
        self.ask(mirror, None)

    def step(self):
        """Read one message and do what it says."""
        message = self.receive()
        kind = message[0]
        if kind == SUBSCRIBED:
            self.subscribed(*message[1:6])
        elif kind == SNAPSHOT:
            self.snapshot(*message[1:6])
        elif kind == PATCH:
            self.patch(message)
        elif kind == ACKNOWLEDGEMENT:
            self.acknowledged(*message[1:7])
        elif kind in (PONG, BOOKMARK):
            self.advance(self.mirrors, message[2] if kind == PONG else message[1])
        elif kind == DIGEST:
            _, number, revision, theirs = message[:4]
            mirror = self.mirrors[number - 1]
            self.advance([mirror], revision)
            self.digests[number] = (revision, digest(mirror.value, self.seed), theirs)
        elif kind == GOODBYE:
            raise Gone(message)
        return message

    def subscribed(self, number, scope, continuation, reason, revision):
        mirror = self.mirrors[number - 1]
        if continuation == REFUSED:
            raise Gone(f"{mirror.path} is refused, reason {reason}")
        mirror.scope, mirror.parts = scope, []
        mirror.current = continuation != WHOLE
        if continuation == CURRENT:
            mirror.position = [self.epoch, self.run, revision]

    def snapshot(self, scope, revision, index, is_last, data):
        for mirror in self.mirrors:
            if mirror.scope != scope:
                continue
            assert index == len(mirror.parts), "a part of a snapshot is missing"
            mirror.parts.append(data)
            if is_last:
                mirror.value = cbor2.loads(b"".join(mirror.parts))
                mirror.parts, mirror.current = [], True
                mirror.position = [self.epoch, self.run, revision]
                mirror.snapshots += 1

    def patch(self, message):
        _, scope, revision = message[:3]
        for mirror in self.mirrors:
            if mirror.scope != scope or not mirror.current:
                continue
            start = revision
            for span, patch in zip(message[3::2], message[4::2], strict=True):
                end = start + span
                if start > mirror.position[2]:
                    self.resync(mirror)
                    break
                if end > mirror.position[2]:
                    mirror.value = apply(mirror.value, patch)
                    mirror.position[2] = end
                    mirror.patches += 1
                start = end

    def acknowledged(self, first, last, revision, mark, outcome, rejection):
        self.advance(self.mirrors, revision)
        while self.pending and self.pending[0][1] <= last:
            self.pending.pop(0)
        if outcome == REJECTED:
            self.rejected += last - first + 1

    def advance(self, mirrors, revision):
        for mirror in mirrors:
            if mirror.current:
                mirror.position[2] = max(mirror.position[2], revision)


def main(path, *pointers):
    client = Client(path)
    client.connect()
    whole = client.mirror([])
    for pointer in pointers:
        tokens = pointer.split("/")[1:]
        client.mirror([token.replace("~1", "/").replace("~0", "~") for token in tokens])
    print('{"live": true}', flush=True)
    count = 0
    while client.pending or not all(mirror.current for mirror in client.mirrors) \
            or whole.value is ABSENT or "end" not in whole.value:
        message = client.step()
        if message[0] in (PATCH, SNAPSHOT):
            count += 1
            if count <= 20:
                client.act(3, ["python"])  # increment
                client.act(2, ["absent", "python"])  # remove: rejected
            if count in (5, 9, 14):
                # With actions under way, so that some are sent again.
                client.socket.close()
                client.connect()
    for mirror in client.mirrors:
        client.send([DIGEST_REQUEST, mirror.number])
    client.send([PING, 7])
    while client.step()[:2] != [PONG, 7]:
        pass
    for mirror in client.mirrors:
        revision, ours, theirs = client.digests[mirror.number]
        print(json.dumps({
            "path": mirror.path, "revision": revision, "equal": ours == theirs,
            "digest": f"{ours:016x}", "snapshots": mirror.snapshots, "patches": mirror.patches,
            "resyncs": mirror.resyncs}))
    print(json.dumps({
        "connections": client.connections, "resumed": client.resumed, "actions": client.number,
        "rejected": client.rejected, "unknown": client.unknown,
        "actionCases": len(client.schema["types"]["Action"][1])}))
    client.send([CLIENT_GOODBYE, 0, "goodbye"])
    return any(ours != theirs for _, ours, theirs in client.digests.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
