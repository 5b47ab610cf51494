"""Checks Protocols/ without a line of our Swift.

Bytes go through cbor2, the grammar through cddl-verifier and cddl.py, and hashes, digests, patches
and document actions through the few lines below, which were written from wire.md alone. Prints what is
wrong; exits with 1 if anything is.
"""

import functools
import json
import pathlib
import re
import struct
import sys

import cbor2
import cddl
import check_false_daemon
import check_sessions
import cddl_verifier

PROTOCOLS = pathlib.Path(__file__).resolve().parents[2] / "Protocols"
M = (1 << 64) - 1
failures = []
checks = 0


def check(condition, *what):
    global checks
    checks += 1
    if not condition:
        failures.append(" ".join(str(part) for part in what))


def load(name):
    return json.loads((PROTOCOLS / "vectors" / name).read_text())


# MARK: CBOR, strictly: cbor2 reads, and what it read must be written as the same bytes


def read(data):
    """One definite-length item and nothing behind it."""
    scan(data, 0, 128, one=True)
    return cbor2.loads(data)


def scan(data, at, depth, one=False):
    """Walk over one item. cbor2 takes more than the protocol allows, so this says no for it."""
    if at >= len(data):
        raise ValueError("the input ends")
    major, information = data[at] >> 5, data[at] & 31
    at += 1
    argument = information
    if 24 <= information <= 27:
        width = 1 << information - 24
        if at + width > len(data):
            raise ValueError("the input ends inside a head")
        argument = int.from_bytes(data[at : at + width], "big")
        at += width
    elif information >= 28:
        raise ValueError("indefinite or reserved")
    if major in (2, 3):
        if at + argument > len(data):
            raise ValueError("the input ends inside a string")
        if major == 3:
            data[at : at + argument].decode("utf-8")
        at += argument
    elif major == 6:
        raise ValueError("a tag")
    elif major in (4, 5):
        if depth == 0:
            raise ValueError("nested too deep")
        count = argument if major == 4 else 2 * argument
        if count > len(data) - at:
            raise ValueError("more items than bytes")
        for _ in range(count):
            at = scan(data, at, depth - 1)
    elif major == 7 and information == 24 and argument < 32:
        raise ValueError("a two-byte simple value below 32")
    if one and at != len(data):
        raise ValueError("bytes behind the item")
    return at


def head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for code, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * width:
            return bytes([major << 5 | code]) + argument.to_bytes(width, "big")
    raise ValueError(argument)


def write_float(number):
    if number != number:
        return bytes.fromhex("f97e00")
    exact = struct.pack(">d", number)
    for code, form in (("f9", ">e"), ("fa", ">f")):
        try:
            short = struct.pack(form, number)
        except OverflowError:
            continue
        if struct.pack(">d", *struct.unpack(form, short)) == exact:
            return bytes.fromhex(code) + short
    return b"\xfb" + exact


def write(value, order=None):
    """The shortest encoding; map entries in the order that they have, or sorted by `order`."""
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(write(item, order) for item in value)
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda pair: order(pair[0])) if order else value.items()
        return head(5, len(value)) + b"".join(
            write(key, order) + write(item, order) for key, item in items
        )
    if isinstance(value, float):
        return write_float(value)
    return cbor2.dumps(value)


# MARK: Hashes and digests


def sip(data, k0, k1, compressions=1, finalisations=3):
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotated(value, bits):
        return (value << bits | value >> 64 - bits) & M

    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = v0 + v1 & M
            v1 = rotated(v1, 13) ^ v0
            v0 = rotated(v0, 32)
            v2 = v2 + v3 & M
            v3 = rotated(v3, 16) ^ v2
            v0 = v0 + v3 & M
            v3 = rotated(v3, 21) ^ v0
            v2 = v2 + v1 & M
            v1 = rotated(v1, 17) ^ v2
            v2 = rotated(v2, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        rounds(compressions)
        v0 ^= word
    v2 ^= 0xFF
    rounds(finalisations)
    return v0 ^ v1 ^ v2 ^ v3


def seeded(data, seed):
    return sip(data, seed, ~seed & M)


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def key_hash(key, seed):
    if isinstance(key, str):
        return seeded(key.encode(), seed)
    return mix((key & M) + mix(seed) & M)


def trie_order(seed):
    return lambda key: (key_hash(key, seed), key.encode() if isinstance(key, str) else key)


def digest(value, seed):
    if isinstance(value, dict):
        total = sum(
            mix(key_hash(key, seed) + mix(digest(item, seed)) & M) for key, item in value.items()
        )
        return mix((total & M ^ 0xA5A5A5A5A5A5A5A5) + len(value) & M)
    if isinstance(value, (list, tuple)):
        polynomial = 0
        for item in value:
            polynomial = polynomial * 0x9E3779B97F4A7C15 + digest(item, seed) & M
        return mix((polynomial ^ 0x5A5A5A5A5A5A5A5A) + len(value) & M)
    return seeded(write(value), seed)


# MARK: Values in the notation of the vectors


def meaning(plain):
    if isinstance(plain, list):
        return [meaning(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        (form, content), = plain.items()
        if form == "$undefined":
            return cbor2.undefined
        if form == "$double":
            return float(content)
        if form == "$bytes":
            return bytes.fromhex(content)
        if form == "$map":
            return {key: meaning(item) for key, item in content}
    return {key: meaning(item) for key, item in plain.items()}


def same(first, second):
    """Whether two values have the same bytes, in whatever order."""
    order = lambda key: write(key)
    return write(first, order) == write(second, order)


class Refused(Exception):
    pass


def is_value(item, keys=(str,)):
    if item is cbor2.undefined or isinstance(item, (cbor2.CBORTag, cbor2.CBORSimpleValue)):
        return False
    if isinstance(item, (list, tuple)):
        return all(is_value(element, keys) for element in item)
    if isinstance(item, dict):
        return all(isinstance(key, keys) and is_value(entry, keys) for key, entry in item.items())
    if isinstance(item, int) and not isinstance(item, bool):
        return -(1 << 63) <= item < 1 << 64
    return item is None or isinstance(item, (bool, float, str, bytes))


def has_duplicates(data):
    """Whether any map of an item has a key twice; cbor2 would keep the last."""
    found = False

    def walk(at):
        nonlocal found
        major, information = data[at] >> 5, data[at] & 31
        width = 1 << information - 24 if information >= 24 else 0
        argument = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else information
        at += 1 + width
        if major in (2, 3):
            return at + argument
        if major == 4:
            for _ in range(argument):
                at = walk(at)
        if major == 5:
            seen = set()
            for _ in range(argument):
                end = walk(at)
                key = write(cbor2.loads(data[at:end]))
                found = found or key in seen
                seen.add(key)
                at = walk(end)
        return at

    walk(0)
    return found


def read_value(data):
    item = read(data)
    if not is_value(item):
        raise Refused("no value")
    if has_duplicates(data):
        raise Refused("a duplicate key")
    return item


# MARK: Patches


def require(condition, why):
    if not condition:
        raise Refused(why)


def is_index(item):
    return isinstance(item, int) and not isinstance(item, bool) and item >= 0


def apply(value, patch):
    absent = cbor2.undefined
    if patch is absent:
        return absent
    if isinstance(patch, dict):
        require(isinstance(value, dict), "an edit of no map")
        result = dict(value)
        for key, change in patch.items():
            require(isinstance(key, str), "a key that is no text")
            new = apply(result.get(key, absent), change)
            if new is not absent:
                result[key] = new
            else:
                require(key in result, "removal of an absent key")
                del result[key]
        return result
    if isinstance(patch, (list, tuple)):
        if len(patch) == 1:
            require(is_value(patch[0]), "no value")
            return patch[0]
        require(len(patch) == 2 and isinstance(value, (list, tuple)), "an edit of no array")
        return apply_array(list(value), *patch)
    require(is_value(patch), "no value")
    return patch


def apply_array(result, splices, edits):
    require(isinstance(splices, (list, tuple)) and len(splices) % 3 == 0, "no triples")
    require(isinstance(edits, dict), "edits are a map")
    for at, removed, inserted in zip(*[iter(splices)] * 3):
        require(is_index(at) and is_index(removed), "an index is unsigned")
        require(isinstance(inserted, (list, tuple)) and is_value(inserted), "no values")
        require(at + removed <= len(result), "beyond the end")
        result[at : at + removed] = inserted
    for index, change in edits.items():
        require(is_index(index) and index < len(result), "no such element")
        result[index] = apply(result[index], change)
        require(result[index] is not cbor2.undefined, "an element cannot be absent")
    return result


# MARK: The grammar

TEXT = (PROTOCOLS / "lockstep.cddl").read_text()
GRAMMAR = cddl.Grammar(TEXT)
VERIFIER = cddl_verifier.Validator(TEXT)


@functools.cache
def fits(rule, data):
    """Whether an item is of a rule; that two tools agree on it is a check."""
    first = GRAMMAR.matches(rule, cbor2.loads(data))
    second = VERIFIER.validate(data, rule)
    # A bool says no for what the tool could not decode, too: that would be a fault of ours.
    check(bool(second) == first, data.hex(), "is", rule, first, "and", second.errors)
    return first


# MARK: Messages

TYPES = {
    "hello": 1, "subscribe": 2, "unsubscribe": 3, "action": 4, "ping": 5, "digestRequest": 6,
    "query": 7, "clientGoodbye": 8, "welcome": 11, "subscribed": 12, "snapshot": 13, "patch": 14,
    "acknowledgement": 15, "pong": 16, "bookmark": 17, "digest": 18, "schema": 19, "report": 20,
    "goodbye": 21, "restarting": 22, "restarted": 23, "decided": 24,
}  # fmt: skip


def word(text):
    return None if text is None else int(text, 16)


def raw(text):
    return None if text is None else bytes.fromhex(text)


def item(text):
    return None if text is None else cbor2.loads(bytes.fromhex(text))


def message_fields(kind, f):
    """The fields of a message as its array has them, from what the vector says that it means."""
    if kind == "hello":
        return [
            f["versions"], f["label"], word(f["fingerprint"]), raw(f["token"]), f["position"],
            *([f["decisions"]] if "decisions" in f else []),
        ]  # fmt: skip
    if kind == "action":
        return [f["number"], f["mark"], item(f["payload"])]
    if kind == "welcome":
        return [
            f["version"], f["position"], word(f["seed"]), raw(f["token"]), f["isResumed"],
            f["lastAction"], f["window"], dict(f["limits"]), item(f["schema"]), f["peer"],
            f["durable"], *([f["session"]] if "session" in f else []),
        ]  # fmt: skip
    if kind == "snapshot":
        return [f["scope"], f["revision"], f["index"], f["isLast"], raw(f["bytes"])]
    if kind == "patch":
        pairs = [part for span, patch in f["patches"] for part in (span, item(patch))]
        return [f["scope"], f["from"], *pairs]
    if kind == "digest":
        return [f["subscription"], f["revision"], word(f["digest"])]
    if kind == "schema":
        return [item(f["schema"])]
    if kind == "report":
        return [f["number"], meaning(f["value"]), *([f["hasMore"]] if "hasMore" in f else [])]
    if kind == "goodbye":
        return [f["code"], f["message"], *(f["limit"] or [None] * 3), f["retryAfter"]]
    return list(f.values())


def check_grammar():
    for diagnostic in cddl_verifier.schema_diagnostics(TEXT):
        check(False, "lockstep.cddl:", diagnostic)


def check_messages():
    seen = set()
    for vector in load("messages.json")["vectors"]:
        name, data = vector["name"], bytes.fromhex(vector["hex"])
        message = read(data)
        number = TYPES[vector["type"]]
        seen.add(vector["type"])
        check(same(message, [number, *message_fields(vector["type"], vector["fields"])]), name)
        check(write(message) == data, name, "is not written in shortest heads")
        check(fits(f"{vector['sender']}-message", data), name, "does not fit the grammar")
        if vector["type"] == "schema":
            fingerprint = seeded(raw(vector["fields"]["schema"]), 0)
            check(fingerprint == word(vector["fields"]["fingerprint"]), name, "fingerprint")
    check(seen == set(TYPES), "types without a vector:", set(TYPES) - seen)


def check_bad_messages():
    for vector in load("bad-messages.json")["vectors"]:
        name, data = vector["name"], bytes.fromhex(vector["hex"])
        check(vector["error"] in ("malformed", "unknownMessage"), name, vector["error"])
        try:
            read(data)
        except ValueError:
            continue
        rule = "message" if vector.get("cddl") else f"{vector['sender']}-message"
        if name == "a path key beyond 64 bits signed":
            continue  # CDDL's int has more numbers than ours.
        check(fits(rule, data) == (vector.get("cddl") == "valid"), name, "and the grammar")


def check_bad_frames():
    for vector in load("bad-frames.json")["vectors"]:
        stream, items, error = bytes.fromhex(vector["hex"]), [], None
        while stream and error is None:
            length = int.from_bytes(stream[:4], "little")
            if len(stream) >= 4 and length > vector["limit"]:
                error = "frameTooLarge"
            elif len(stream) < 4 + length or len(stream) < 4:
                error = "incomplete"
            else:
                items.append(stream[4 : 4 + length].hex())
                try:
                    read(stream[4 : 4 + length])
                except ValueError:
                    error = "malformed"
                stream = stream[4 + length :]
        check(items == vector["items"], vector["name"], items)
        check(error == vector["error"], vector["name"], error)


# MARK: Values and hashes


def check_hashes():
    # The vector of the SipHash paper, appendix A, is for 2-4 rounds: the same code makes it.
    key = [int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8)]
    check(sip(bytes(range(15)), *key, 2, 4) == 0xA129CA6149BE45E5, "SipHash-2-4")
    for vector in load("siphash.json")["vectors"]:
        seed = word(vector.get("seed"))
        if vector["kind"] == "sip":
            result = seeded(raw(vector["input"]), seed)
        elif vector["kind"] == "mix":
            result = mix(word(vector["input"]))
        else:
            result = key_hash(vector["key"], seed)
        check(result == word(vector["hash"]), vector)


def check_digests():
    for vector in load("digests.json")["vectors"]:
        seed, value, data = word(vector["seed"]), meaning(vector["value"]), raw(vector["hex"])
        check(same(read(data), value), vector["name"], "means another value")
        check(write(value, trie_order(seed)) == data, vector["name"], "is in another order")
        check(digest(value, seed) == word(vector["digest"]), vector["name"], "digest")
        check(fits("scope-value", data), vector["name"], "does not fit the grammar")


class Typed:
    """Digests of typed values, by their schema, on bytes: those of a case are hashed as they are."""

    def __init__(self, types, seed):
        self.types, self.seed = types, seed

    def digest(self, kind, data, at=0):
        """The digest of the item at an offset, and where it ends."""
        end = scan(data, at, 128)
        form, *of = kind if isinstance(kind, list) else [kind]
        if data[at] == 0xF7:
            return seeded(b"\xf7", self.seed), end
        if form == "optional":
            return self.digest(of[0], data, at)
        if form == "type":
            form, members = self.types[of[0]]
            if form == "struct":
                kinds = {number: kind for number, _, kind in members}
                return self.entries(lambda key: kinds[key], data, at), end
        if form == "map":
            return self.entries(lambda key: of[1], data, at), end
        if form == "array":
            polynomial, count, inner = 0, *opened(data, at)
            for _ in range(count):
                part, inner = self.digest(of[0], data, inner)
                polynomial = polynomial * 0x9E3779B97F4A7C15 + part & M
            return mix((polynomial ^ 0x5A5A5A5A5A5A5A5A) + count & M), end
        if form == "value":
            return digest(cbor2.loads(data[at:end]), self.seed), end
        return seeded(data[at:end], self.seed), end

    def entries(self, kind, data, at):
        total, (count, inner) = 0, opened(data, at)
        for _ in range(count):
            end = scan(data, inner, 128)
            key = cbor2.loads(data[inner:end])
            part, inner = self.digest(kind(key), data, end)
            total += mix(key_hash(key, self.seed) + mix(part) & M)
        return mix((total & M ^ 0xA5A5A5A5A5A5A5A5) + count & M)


def named(types, kind, value):
    """A value of a kind by the names of its schema, as payloads in the log have it."""
    form, *of = kind if isinstance(kind, list) else [kind]
    if form == "optional":
        return None if value is cbor2.undefined else named(types, of[0], value)
    if form == "array":
        return [named(types, of[0], item) for item in value]
    if form == "map":
        return {str(key): named(types, of[1], item) for key, item in value.items()}
    if form != "type":
        return value
    form, members = types[of[0]]
    if form == "struct":
        fields = {number: (name, kind) for number, name, kind in members}
        return {
            fields[number][0]: named(types, fields[number][1], item)
            for number, item in value.items()
        }
    number, *items = value if isinstance(value, (list, tuple)) else [value]
    (name, fields), = [(name, fields) for case, name, fields in members if case == number]
    if not fields:
        return name
    shown = [named(types, kind, item) for (_, _, kind), item in zip(fields, items)]
    if all(re.fullmatch(r"_\d+", field) for _, field, _ in fields):
        return {name: shown[0] if len(fields) == 1 else shown}
    labels = [field for _, field, _ in fields]
    return {name: {k: v for k, v in zip(labels, shown) if v is not None}}


def opened(data, at):
    """How many items the array or map at an offset has, and where they begin."""
    information = data[at] & 31
    width = 1 << information - 24 if information >= 24 else 0
    count = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else information
    return count, at + 1 + width


def check_typed_digests():
    file = load("digests-typed.json")
    schema, seed = cbor2.loads(raw(file["schema"])), word(file["seed"])
    check(fits("schema", raw(file["schema"])), "the schema of typed values and the grammar")
    typed = Typed(schema["types"], seed)
    for vector in file["vectors"]:
        name, data = vector["name"], raw(vector["hex"])
        check(scan(data, 0, 128) == len(data), name, "is no item")
        check(typed.digest(vector["kind"], data)[0] == word(vector["digest"]), name, "digest")
        names = named(schema["types"], vector["kind"], cbor2.loads(data))
        check(same(names, read(raw(vector["named"]))), name, "has the names", names)


def check_bad_values():
    for vector in load("bad-values.json")["vectors"]:
        try:
            read_value(raw(vector["hex"]))
        except (ValueError, Refused):
            check(True)
        else:
            check(False, vector["hex"], "is a value, but", vector["reason"])


def check_patches():
    for vector in load("patches.json")["vectors"]:
        name, data = vector["name"], raw(vector["patch"])
        after = apply(meaning(vector["before"]), read(data))
        check(same(after, meaning(vector["after"])), name, after)
        check(fits("patch", data), name, "does not fit the grammar")
        if vector["made"]:
            check(write(read(data)) == data, name, "is not written in shortest heads")


def check_bad_patches():
    for vector in load("bad-patches.json")["vectors"]:
        data = raw(vector["patch"])
        try:
            patch = read(data)
            require(not has_duplicates(data), "a duplicate key")
            apply(meaning(vector["before"]), patch)
        except (ValueError, Refused):
            check(True)
        else:
            check(False, vector["name"], "applies")


# MARK: Actions

ACTIONS = "set merge remove increment append insert move copy test transaction replace".split()


def action_payload(action):
    name, *fields = action
    if name == "transaction":
        return [9, [action_payload(inner) for inner in fields[0]]]
    if name == "increment" and fields[1] == 1 and not isinstance(fields[1], dict):
        fields = fields[:1]
    return [ACTIONS.index(name), *(meaning(field) for field in fields)]


def check_actions():
    for vector in load("actions.json")["vectors"]:
        name, data = vector["name"], raw(vector["hex"])
        if vector["made"]:
            check(same(read(data), action_payload(vector["action"])), name, "means another action")
            check(fits("document-action", data), name, "does not fit the grammar")
        elif "action" not in vector:
            try:
                read(data)
            except ValueError:
                continue
            check(not fits("document-action", data), name, "fits the grammar")
        check(("after" in vector) != ("rejected" in vector), name)


# MARK: The document

EXAMPLE = re.compile(r"^((?:[0-9a-f]{2})+)$")


def check_examples():
    """Each example in hex below a message's heading is one of its vectors."""
    text = (PROTOCOLS / "wire.md").read_text()
    vectors = {}
    for vector in load("messages.json")["vectors"]:
        vectors.setdefault(TYPES[vector["type"]], []).append(raw(vector["hex"]))
    sections = re.findall(r"^### (\d+) (\w+)\n(.*?)(?=^##)", text, re.M | re.S)
    check({name: int(number) for number, name, _ in sections} == TYPES, "headings of wire.md")
    for number, name, body in sections:
        blocks = re.findall(r"```text\n(.*?)```", body, re.S)
        check(blocks, name, "has no example")
        for block in blocks:
            data, is_whole = hex_of(block)
            while data:
                end = scan(data, 0, 128) if is_whole else len(data)
                example, data = data[:end], data[end:]
                known = vectors[int(number)]
                check(
                    example in known if is_whole else any(v.startswith(example) for v in known),
                    name, "has an example that is no vector:", example.hex(),
                )  # fmt: skip


def hex_of(block):
    digits, is_whole = "", True
    for line in block.splitlines():
        for token in line.split():
            if not EXAMPLE.match(token):
                is_whole = is_whole and token != "…"
                break
            digits += token
    return bytes.fromhex(digits), is_whole


def check_tables():
    """The tables of wire.md say what the vectors say."""
    text = (PROTOCOLS / "wire.md").read_text()
    seed = 0x0123456789ABCDEF
    for source, expected in re.findall(r"^\| digest of `(.*?)` \| `(\w{16})` \|", text, re.M):
        check(digest(json.loads(source), seed) == word(expected), "digest of", source)
    row = r"^\| (`.*?`|absent) \| (`.*?`|absent) \| `.*?` \| `([0-9a-f ]+)` \|"
    rows = re.findall(row, text, re.M)
    check(len(rows) > 12, "the table of patches")
    for before, after, patch in rows:
        if "{1:" in before:
            continue
        value = [cbor2.undefined if x == "absent" else json.loads(x[1:-1]) for x in (before, after)]
        check(same(apply(value[0], read(bytes.fromhex(patch))), value[1]), before, "to", after)


def main():
    check_grammar()
    check_messages()
    check_bad_messages()
    check_bad_frames()
    check_hashes()
    check_digests()
    check_typed_digests()
    check_bad_values()
    check_patches()
    check_bad_patches()
    check_actions()
    check_examples()
    check_tables()
    check_sessions.check(sys.modules[__name__])
    check_false_daemon.check(sys.modules[__name__])
    for failure in failures:
        print(failure)
    print(f"{checks} checks, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
