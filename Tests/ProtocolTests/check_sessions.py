"""Replays Protocols/vectors/sessions.json by "The mirror's rule" of wire.md, without our Swift.

`check_vectors.py` calls it with its own strict reading of bytes, patches and the grammar.
"""

import cbor2
import reader

ABSENT = cbor2.undefined


class Mirror:
    def __init__(self, number, path):
        self.number, self.path = number, path
        self.end()

    def end(self):
        self.value, self.position = ABSENT, None
        self.detach()

    def detach(self):
        """Nothing comes, or not yet. `draft`: a snapshot that does not show yet, its revision."""
        self.scope = self.parts = self.draft = None
        self.target, self.follows, self.current = 0, False, False

    @property
    def revision(self):
        return self.draft[1] if self.draft else self.position[2]

    def stand(self, run, value, revision):
        self.follows = True
        if self.draft and revision < self.target:
            self.draft = value, revision
        else:
            self.value, self.position, self.draft = value, [*run, revision], None
            self.current = self.current or revision >= self.target

    def advance(self, revision):
        if self.current:
            self.position[2] = max(self.position[2], revision)


class Mirrors:
    """Everything that a client sees, whatever its level."""

    def __init__(self, tools):
        self.tools, self.all, self.run = tools, {}, None

    def said(self, kind, *fields):
        """The client says something. Returns what is wrong with it."""
        if kind == 2:
            number, path, position = fields
            mirror = self.all.setdefault(number, Mirror(number, path))
            if position != mirror.position:
                return f"subscribes from {position}, and its mirror stands at {mirror.position}"
        if kind == 3:
            mirror = self.all[fields[0]]
            mirror.detach()
            mirror.position = None
        return None

    def lost(self):
        for mirror in self.all.values():
            mirror.detach()

    def heard(self, kind, *fields):
        mirrors = self.all.values()
        if kind == 11:
            self.run = fields[1][:2]
        elif kind == 12 and fields[0] in self.all:
            self.subscribed(self.all[fields[0]], *fields[1:5])
        elif kind in (13, 14):
            for mirror in mirrors:
                if mirror.scope == fields[0]:
                    (self.snapshot if kind == 13 else self.patch)(mirror, *fields[1:])
        elif kind in (15, 16, 17):
            for mirror in mirrors:
                mirror.advance(fields[{15: 2, 16: 1, 17: 0}[kind]])
        elif kind == 18 and fields[0] in self.all and fields[2] is not None:
            mirror = self.all[fields[0]]
            mirror.advance(fields[1])
            if mirror.current and self.tools.digest(mirror.value, self.seed) != fields[2]:
                mirror.detach()
                mirror.position = None
        elif kind == 23:
            self.run = fields[0][:2]
            for mirror in mirrors:
                mirror.position = mirror.position and [*self.run, mirror.position[2]]

    def subscribed(self, mirror, scope, continuation, _, revision):
        if continuation == 3:
            return mirror.end()
        if continuation == 2:
            mirror.detach()
            mirror.scope, mirror.parts, mirror.target = scope, [], revision
        elif continuation == 1:
            mirror.scope, mirror.target = scope, revision
            mirror.stand(self.run, mirror.value, mirror.position[2])
        elif mirror.parts is None and (mirror.draft or mirror.position):
            mirror.scope = scope
            value = mirror.draft[0] if mirror.draft else mirror.value
            mirror.stand(self.run, value, max(mirror.revision, revision))
            mirror.current = mirror.draft is None

    def snapshot(self, mirror, revision, index, is_last, data):
        self.tools.require(mirror.parts is not None and index == len(mirror.parts), "parts")
        mirror.parts.append(data)
        if is_last:
            whole = b"".join(mirror.parts)
            value = ABSENT if whole == b"\xf7" else self.tools.read_value(whole)
            mirror.draft, mirror.parts = (value, revision), None
            mirror.stand(self.run, value, revision)

    def patch(self, mirror, revision, *pairs):
        for span, patch in zip(pairs[::2], pairs[1::2]):
            base, revision = revision, revision + span
            if not mirror.follows or revision <= mirror.revision:
                continue
            if base > mirror.revision:  # a gap
                mirror.detach()
                mirror.position = None
                return
            value = mirror.draft[0] if mirror.draft else mirror.value
            mirror.stand(self.run, self.tools.apply(value, patch), revision)


def check(tools):
    levels = set()
    for transcript in tools.load("sessions.json")["transcripts"]:
        levels.add(transcript["level"])
        replay(tools, transcript)
        if transcript["level"] == "reader":
            read(tools, transcript)
    for vector in tools.load("patches.json")["vectors"]:
        patch = cbor2.loads(bytes.fromhex(vector["patch"]))
        after = reader.apply(tools.meaning(vector["before"]), patch)
        tools.check(tools.same(after, tools.meaning(vector["after"])), vector["name"], "reader.py")
    tools.check(levels == {"reader", "mirror", "writer", "exactly once", "digest"}, levels)


def replay(tools, transcript):
    mirrors = Mirrors(tools)
    for index, step in enumerate(transcript["steps"]):
        place = f"{transcript['name']}, step {index}:"
        if "closed" in step:
            mirrors.lost()
        for sender in ("client", "daemon"):
            if sender not in step:
                continue
            data = bytes.fromhex(step[sender])
            message = tools.read(data)
            tools.check(tools.TYPES[step["type"]] == message[0], place, "is no", step["type"])
            tools.check(tools.write(message) == data, place, "is not in shortest heads")
            tools.check(tools.fits(f"{sender}-message", data), place, "and the grammar")
            if sender == "client":
                wrong = mirrors.said(*message)
                tools.check(wrong is None, place, wrong)
            else:
                if message[0] == 11:
                    mirrors.seed = message[3]
                mirrors.heard(*message)
                compare(tools, place, mirrors, step["mirrors"])


def compare(tools, place, mirrors, expected):
    for shown in expected:
        mirror = mirrors.all.get(shown["subscription"])
        if not mirror:
            tools.check(shown["position"] is None, place, "no such mirror")
            continue
        tools.check(mirror.position == shown["position"], place, "position", mirror.position)
        tools.check(mirror.current == shown["isCurrent"], place, "is current:", mirror.current)
        tools.check(tools.same(mirror.value, tools.meaning(shown["value"])), place, mirror.value)


def read(tools, transcript):
    """Play a transcript of the first level to `reader.py`, and demand what it says and shows."""
    steps = transcript["steps"]
    paths = [tools.read(bytes.fromhex(step["client"]))[2] for step in steps
             if step.get("type") == "subscribe"]
    client, waiting = reader.Reader(paths[0]), []
    for index, step in enumerate(steps):
        place = f"{transcript['name']}, step {index}, reader.py:"
        if "client" in step and step["type"] != "hello":
            message = tools.read(bytes.fromhex(step["client"]))
            said = waiting.pop(0) if waiting else None
            tools.check(said == message, place, "says", said, "and not", message)
        if "daemon" in step:
            waiting += client.hear(*tools.read(bytes.fromhex(step["daemon"])))
            for shown in step["mirrors"]:
                value = tools.meaning(shown["value"])
                tools.check(tools.same(client.value, value), place, "shows", client.value)
                tools.check(client.current == shown["isCurrent"], place, "is current")
    tools.check(not waiting, transcript["name"], "reader.py says more:", waiting)
