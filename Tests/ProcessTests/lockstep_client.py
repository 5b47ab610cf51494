"""A Lockstep client, written from Protocols/wire.md alone by one who had seen nothing else."""
import io, json, random, select, socket, struct, sys, time
import cbor2

HELLO, SUBSCRIBE, UNSUBSCRIBE, ACTION, PING, DIGEST_REQUEST, _, CLIENT_GOODBYE = range(1, 9)
(WELCOME, SUBSCRIBED, SNAPSHOT, PATCH, ACKNOWLEDGEMENT, PONG, BOOKMARK, DIGEST, SCHEMA, REPORT,
 GOODBYE, RESTARTING, RESTARTED) = range(11, 24)
ABSENT, ALL = cbor2.undefined, (1 << 64) - 1
class Lost(Exception): pass  # its argument: how many seconds to wait at least
def require(condition, text):
    if not condition:
        raise ValueError(text)
rotl = lambda x, by: (x << by | x >> 64 - by) & ALL
def sip_round(v0, v1, v2, v3):
    v0 = v0 + v1 & ALL
    v1, v0 = rotl(v1, 13) ^ v0, rotl(v0, 32)
    v2 = v2 + v3 & ALL
    v3 = rotl(v3, 16) ^ v2
    v0 = v0 + v3 & ALL
    v3 = rotl(v3, 21) ^ v0
    v2 = v2 + v1 & ALL
    return v0, rotl(v1, 17) ^ v2, rotl(v2, 32), v3
def sip(data, seed):
    v0, v1 = seed ^ 0x736f6d6570736575, ~seed & ALL ^ 0x646f72616e646f6d
    v2, v3 = seed ^ 0x6c7967656e657261, ~seed & ALL ^ 0x7465646279746573
    end = len(data) & ~7
    last = int.from_bytes(data[end:], "little") | (len(data) & 255) << 56
    for word in (*struct.unpack_from(f"<{end // 8}Q", data), last):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
        v0 ^= word
    v0, v1, v2, v3 = sip_round(*sip_round(*sip_round(v0, v1, v2 ^ 0xff, v3)))
    return v0 ^ v1 ^ v2 ^ v3
def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & ALL
    z = (z ^ z >> 27) * 0x94d049bb133111eb & ALL
    return z ^ z >> 31
def digest(value, seed):
    if isinstance(value, dict):
        total = 0
        for key, item in value.items():
            hashed = sip(key.encode(), seed) if isinstance(key, str) else mix(key + mix(seed) & ALL)
            total += mix(hashed + mix(digest(item, seed)) & ALL)
        return mix((total & ALL ^ 0xa5a5a5a5a5a5a5a5) + len(value) & ALL)
    if isinstance(value, list):
        total = 0
        for item in value:
            total = total * 0x9e3779b97f4a7c15 + digest(item, seed) & ALL
        return mix((total ^ 0x5a5a5a5a5a5a5a5a) + len(value) & ALL)
    return sip(cbor2.dumps(value, canonical=True), seed)
def apply(value, patch):
    if patch is ABSENT:
        return ABSENT
    if isinstance(patch, dict):
        require(isinstance(value, dict), "entries of what is no map")
        for key, inner in patch.items():
            value[key] = apply(value[key] if inner is ABSENT else value.get(key, ABSENT), inner)
            if inner is ABSENT:
                del value[key]
        return value
    if not isinstance(patch, list) or len(patch) == 1:
        return patch[0] if isinstance(patch, list) else patch
    require(len(patch) == 2 and isinstance(value, list), "elements of what is no array")
    splices, edits = patch
    for at, removed, inserted in zip(*[iter(splices)] * 3):
        require(0 <= at <= at + removed <= len(value), "a splice beyond the end")
        value[at:at + removed] = inserted
    for index, inner in edits.items():
        require(0 <= index < len(value) and inner is not ABSENT, "no such element")
        value[index] = apply(value[index], inner)
    return value
class Mirror:
    def __init__(self, number, path):
        self.number, self.path, self.target = number, path, 0
        self.value = self.working = ABSENT  # what it shows; what stands at `position`
        self.position = self.parts = self.digest = None  # digest: revision, ours, the daemon's
        self.current = self.takes_patches = False
        self.snapshots = self.patches = self.resyncs = 0
    def stand_at(self, epoch_and_run, revision):
        self.position, self.takes_patches = [*epoch_and_run, revision], True
        if revision >= self.target:
            self.current, self.value = True, self.working
    def detach(self):
        self.current, self.takes_patches, self.parts, self.digest = False, False, None, None

class Client:
    def __init__(self, path):
        self.path, self.socket, self.token, self.fingerprint, self.schema = path, *[None] * 4
        self.limits, self.delay, self.mirrors, self.subscriptions = {}, 0.02, [], 0
        self.pending = {}  # every action without an outcome: number -> payload
        self.number = self.sent = self.ever_sent = 0  # newest; on this connection; in the session
        self.connections = self.resumed = self.rejected = self.unknown = 0
    def send(self, message):
        self.out += struct.pack("<I", len(item := cbor2.dumps(message))) + item
        self.flush()
    def flush(self):
        try:
            del self.out[:self.socket.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:  # there may be a goodbye to read
            self.out.clear()
    def receive(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            count = struct.unpack_from("<I", self.inbox)[0] if len(self.inbox) >= 4 else ALL
            if ALL > count > self.limits.get("frameBytes", 1 << 24):
                self.give_up(2, "frame too large")
            if len(self.inbox) >= 4 + count:
                message = cbor2.loads(bytes(self.inbox[4:4 + count]))
                del self.inbox[:4 + count]
                return message
            if (left := deadline - time.monotonic()) <= 0:
                return None
            writing = [self.socket] if self.out else []
            readable, _, _ = select.select([self.socket], writing, [], left)
            self.flush()
            if readable:
                self.inbox += (data := self.socket.recv(1 << 18))
                if not data:
                    raise Lost(0)
    def give_up(self, code, text):
        self.send([CLIENT_GOODBYE, code, text])
        sys.exit(f"lockstep: {text}")
    def connect(self, error=None):
        while True:
            if error:
                least = error.args[0] if isinstance(error, Lost) else 0
                time.sleep(max(random.uniform(0.5, 1) * self.delay, least))
                self.delay = min(self.delay * 2, 5)
            try:
                return self.greet()
            except (OSError, Lost) as failure:
                error = failure
    def greet(self):
        self.socket and self.socket.close()
        self.inbox, self.out, self.scopes = bytearray(), bytearray(), {}
        for mirror in self.mirrors:
            mirror.detach()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.path)
        self.socket.setblocking(False)
        self.send([HELLO, [1, 1], "python", self.fingerprint, self.token, None])
        message = self.receive(10) or [GOODBYE, 6, "no welcome", None, None, None, None]
        if message[0] == GOODBYE:
            self.leave(message)
        require(message[0] == WELCOME, "no welcome")
        _, _, position, self.seed, self.token, resumed, decided, self.window, self.limits = message[:9]
        self.run, self.delay = position[:2], 0.02
        self.learn(message[9] or self.schema)
        self.connections, self.resumed = self.connections + 1, self.resumed + resumed
        if not resumed:
            rest = [item for number, item in self.pending.items() if number > self.ever_sent]
            self.unknown += len(self.pending) - len(rest)
            self.pending, self.number, self.ever_sent = dict(enumerate(rest, 1)), len(rest), 0
        elif min(self.pending, default=self.number + 1) > decided + 1:  # acknowledged, and lost
            self.pending = dict(enumerate(self.pending.values(), decided + 1))
            self.number, self.ever_sent = decided + len(self.pending), 0
        for mirror in self.mirrors:
            self.send([SUBSCRIBE, mirror.number, mirror.path, mirror.position])
        self.sent = 0
        self.send_actions()
        return message
    def learn(self, schema):  # a dict keeps the daemon's order, so these are its bytes
        self.schema, self.fingerprint = schema, sip(cbor2.dumps(schema), 0)
    def leave(self, goodbye):
        code, text, retry_after = goodbye[1], goodbye[2], goodbye[6]
        if code in (6, 8, 12) or (code == 9 or code > 12) and retry_after is not None:
            raise Lost(min((retry_after or 0) / 1000, 60))
        sys.exit(f"lockstep: the daemon says goodbye: {code} {text}")
    def step(self):
        try:
            interval = self.limits.get("bookmarkIntervalMs", 5000) / 500
            if (message := self.receive(interval)) is None:
                self.send([PING, 0])
                message = self.receive(interval)
            self.obey(*message or [GOODBYE, 6, "silence", None, None, None, None])
            return message
        except (OSError, Lost) as error:
            return self.connect(error)
    def mirror(self, path, mirror=None):
        if not mirror:
            self.mirrors.append(mirror := Mirror(0, path))
        self.subscriptions += 1
        mirror.number, mirror.position = self.subscriptions, None
        self.send([SUBSCRIBE, mirror.number, path, None])
        return mirror
    def resync(self, mirror, digest=None):
        mirror.resyncs += 1
        self.send([UNSUBSCRIBE, mirror.number])
        self.scopes = {scope: other for scope, other in self.scopes.items() if other != mirror}
        mirror.detach()
        mirror.digest = digest
        self.mirror(mirror.path, mirror)
    def act(self, *payload):
        self.number += 1
        self.pending[self.number] = payload
        self.send_actions()
    def send_actions(self):
        for number in list(self.pending)[:self.window]:
            if number > self.sent:
                self.send([ACTION, number, 0, self.pending[number]])
                self.sent, self.ever_sent = number, max(number, self.ever_sent)
    def obey(self, kind, *fields):
        named = {mirror.number: mirror for mirror in self.mirrors}.get(fields[0])
        if kind == SUBSCRIBED and named:
            self.subscribed(named, *fields[1:5])
        elif kind in (SNAPSHOT, PATCH) and fields[0] in self.scopes:
            follow = self.snapshot if kind == SNAPSHOT else self.patch
            follow(self.scopes[fields[0]], *fields[1:])
        elif kind == ACKNOWLEDGEMENT:
            first, last, revision, _, outcome = fields[:5]
            for number in [number for number in self.pending if number <= last]:
                del self.pending[number]
                self.rejected += outcome == 4 and number >= first
                self.unknown += outcome == 5 and number >= first
            self.come_to(revision, self.mirrors)
            self.send_actions()
        elif kind in (PONG, BOOKMARK):
            self.come_to(fields[1] if kind == PONG else fields[0], self.mirrors)
        elif kind == DIGEST and named and named.current:
            self.come_to(fields[1], [named])
            named.digest = fields[1], digest(named.value, self.seed), fields[2]
            if named.digest[1] != fields[2]:
                self.resync(named, named.digest)
        elif kind == SCHEMA:
            self.learn(fields[0])
        elif kind == GOODBYE:
            self.leave([kind, *fields])
        elif kind == RESTARTED:
            self.run = fields[0][:2]
            for mirror in self.mirrors:
                if mirror.position:
                    mirror.position[:2] = self.run
        elif not WELCOME < kind <= RESTARTING:
            self.give_up(5, f"unknown message {kind}")
    def come_to(self, revision, mirrors):
        for mirror in (mirror for mirror in mirrors if mirror.current):
            mirror.position[2] = max(mirror.position[2], revision)
    def subscribed(self, mirror, scope, continuation, reason, revision):
        if continuation == 3:
            sys.exit(f"lockstep: the subscription to {mirror.path} is refused: {reason}")
        self.scopes[scope], mirror.target = mirror, revision
        if continuation == 2:
            mirror.detach()
            mirror.parts = []
        elif mirror.position and mirror.parts is None:
            here = mirror.position[2]
            mirror.stand_at(self.run, max(here, revision) if continuation == 0 else here)
    def snapshot(self, mirror, revision, index, is_last, data, *_):
        if mirror.parts is None or index != len(mirror.parts):
            return self.resync(mirror)
        mirror.parts.append(data)
        if is_last:
            mirror.working = cbor2.loads(b"".join(mirror.parts))
            mirror.parts, mirror.snapshots = None, mirror.snapshots + 1
            mirror.stand_at(self.run, revision)
    def patch(self, mirror, revision, *pairs):
        for span, patch in zip(pairs[::2], pairs[1::2]):
            start, revision = revision, revision + span
            if mirror.takes_patches and revision > mirror.position[2]:
                try:
                    require(start <= mirror.position[2], "a gap")
                    mirror.working = apply(mirror.working, patch)
                except (ValueError, KeyError, TypeError):
                    return self.resync(mirror)
                mirror.patches += 1
                mirror.stand_at(self.run, revision)

def main(path, *pointers):
    client = Client(path)
    client.connect()
    whole = client.mirror([])
    for pointer in pointers:
        client.mirror([token.replace("~1", "/").replace("~0", "~")
                       for token in pointer.split("/")[1:]])
    print('{"live": true}', flush=True)
    count = 0
    while client.pending or not all(mirror.current for mirror in client.mirrors) \
            or not isinstance(whole.value, dict) or "end" not in whole.value:
        message = client.step()
        if message[0] in (PATCH, SNAPSHOT):
            count += 1
            if count <= 20:
                client.act(3, ["python"])  # increment
                client.act(2, ["absent", "python"])  # remove: rejected
            if count in (5, 9, 14):  # with actions under way, so that some are sent again
                client.connect()  # closes the old one
    while not all(mirror.digest for mirror in client.mirrors):
        for mirror in client.mirrors:
            client.send([DIGEST_REQUEST, mirror.number])
        client.send([PING, 7])
        while (message := client.step())[:2] != [PONG, 7] and message[0] != WELCOME:
            pass
    for mirror in client.mirrors:
        revision, ours, theirs = mirror.digest
        print(json.dumps({
            "path": mirror.path, "revision": revision, "equal": ours == theirs,
            "digest": f"{ours:016x}", "snapshots": mirror.snapshots, "patches": mirror.patches,
            "resyncs": mirror.resyncs}))
    print(json.dumps({
        "connections": client.connections, "resumed": client.resumed, "actions": client.number,
        "rejected": client.rejected, "unknown": client.unknown,
        "actionCases": len(client.schema["types"]["Action"][1])}))
    client.send([CLIENT_GOODBYE, 0, "goodbye"])
    client.receive(5)  # its goodbye
    return any(mirror.digest[1] != mirror.digest[2] for mirror in client.mirrors)
if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
