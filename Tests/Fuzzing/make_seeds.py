#!/usr/bin/env python3
"""Write the inputs that fuzzing begins with: make_seeds.py VECTORS FOLDER.

They are the vectors of the protocol in the forms that the targets read (see their comments)."""

import hashlib
import json
import pathlib
import struct
import sys


def head(major, argument):
    for width, form, information in ((1, "", 0), (1, "B", 24), (2, "H", 25), (4, "I", 26)):
        if not form and argument < 24:
            return bytes([major << 5 | argument])
        if form and argument < 1 << 8 * width:
            return bytes([major << 5 | information]) + struct.pack(">" + form, argument)
    return bytes([major << 5 | 27]) + struct.pack(">Q", argument)


def encode(value):
    """The CBOR of a value in the notation of the vectors."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode()
        return head(3, len(text)) + text
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    if "$double" in value:
        return encode(float(value["$double"]))
    if "$bytes" in value:
        data = bytes.fromhex(value["$bytes"])
        return head(2, len(data)) + data
    if "$undefined" in value:
        return b"\xf7"
    pairs = value["$map"] if "$map" in value else value.items()
    return head(5, len(pairs)) + b"".join(encode(key) + encode(item) for key, item in pairs)


def chunks(kind, data):
    """Steps that hand on data in chunks, which are of up to 255 bytes."""
    return b"".join(
        bytes([kind, len(data[at : at + 255])]) + data[at : at + 255]
        for at in range(0, len(data), 255)
    )


def framed(data):
    return struct.pack("<I", len(data)) + data


DOCUMENT = {"a": {"b": [1, 2, {"c": None}]}, "lamp": {"on": True, "level": 80}, "n": 1.5}
ACTIONS = [
    {"set": {"path": "/a", "value": 1}},
    {"merge": {"path": "", "value": {"a": None, "b": {"c": 1}}}},
    {"remove": {"path": "/a/b/0"}},
    {"increment": {"path": "/n"}},
    {"increment": {"path": "/n", "by": -3}},
    {"append": {"path": "/a/b", "value": {"$bytes": "aGk="}}},
    {"insert": {"path": "/a/b/1", "value": "x"}},
    {"move": {"from": "/a", "path": "/b", "to": "/b"}},
    {"copy": {"from": "/a", "to": "/b"}},
    {"test": {"path": ["a", "b", 0], "value": 1}},
    {"transaction": {"actions": [{"remove": {"path": "/a"}}, {"increment": "/n"}]}},
    {"transaction": [{"replace": {"path": "/a", "value": {"$double": "NaN"}}}]},
]
PATCH = [
    {"op": "add", "path": "/a/-", "value": 1},
    {"op": "remove", "path": "/a"},
    {"op": "replace", "path": "/a~1b/~0", "value": {"b": [True]}},
    {"op": "move", "from": "/a", "path": "/b"},
    {"op": "copy", "from": "", "path": "/b"},
    {"op": "test", "path": "/a", "value": None},
]
SCHEMA = {
    "state": ["type", "S"],
    "types": {
        "S": ["struct", [[1, "name", "text"], [2, "lamps", ["map", "int", ["optional", "bool"]]]]],
        "A": ["enum", [[0, "reset", []], [1, "todo", [[1, "_0", ["type", "A"]]]],
                       [2, "size", [[1, "", "int"], [2, "", "double"]]],
                       [3, "put", [[1, "at", "path"], [2, "data", "bytes"],
                                   [3, "s", ["type", "S"]]]]]],
    },
    "action": ["type", "A"],
}
# Grant all, grant /a/*, deny /b, deny /*/c; what ends the list.
VIEW = b"\x00" + encode([]) + b"\x00" + encode(["a", "*"]) + b"\x01" + encode(["b"])
VIEW += b"\x01" + encode(["*", "c"]) + b"\x02"
TYPED = ["reset", {"todo": {"todo": "reset"}}, {"size": [1, 2.5]},
         {"put": {"at": "/a", "data": "aGk=", "s": {"name": "x", "lamps": {"1": True, "2": None}}}}]
# A state of each build that the target "translation" knows.
STATES = [
    {1: [{1: "milk", 2: True}], 2: "n", 3: [3, [1, "x"], 0], 4: {-7: {1: "t"}}, 5: {1: [{1: []}]},
     6: None, 7: 2},
    {1: [6, {"$undefined": 1}, 5, [0, "why"]], 2: {3: {1: 1.5, 2: "t"}}, 3: [{2: "x", 300: True}],
     8: "n", 9: {"a": 1}, 30: {2: [], 1: "leaf"}, 31: ["a", 7]},
    {1: [0, "x", ["a"]], 2: [{2: "milk"}], 3: {4: {2: "t"}}, 4: {1: [{"$undefined": 1}]}},
    [0, [1, 5], [2, ["a", 7], 9], [3, {"$bytes": "09"}, 0], [4, [True, {"$undefined": 1}]],
     [5, {"x": 1.5}]],
    DOCUMENT,
]
# The state, the history with one change, a session, and a connection that sees two scopes.
HAND_OVER = encode(DOCUMENT)
HAND_OVER += encode([7, 9, 1, [1, 0], 3, 3, 4, 1, [2, [3, {"$bytes": "8140"}, [2]]]])
HAND_OVER += encode([[1, 2, 1000, 1, []]]) + encode(1) + encode([[
    1, 10, 1000, 1000, [4, 5], 1, True, 1, 2, 1, 2, "label", 0, None,
    [1, 1, [], None, 3, True, 2, 2, ["a", "b"], None, 3, False],
    [{"$bytes": "05"}, {"$bytes": ""}]]])


def main(vectors, folder):
    seeds = {}

    def add(target, data):
        seeds.setdefault(target, set()).add(bytes(data))

    def read(name):
        file = vectors / name
        return json.loads(file.read_text())["vectors"] if file.exists() else []

    values = [DOCUMENT, [], {}, list(range(80)), {f"k{i}": i for i in range(60)}]
    values += [vector["value"] for vector in read("digests.json")]
    for value in values:
        add("value", encode(value))
        add("item", encode(value))
        add("difference", encode(DOCUMENT) + encode(value))
    for vector in read("bad-values.json"):
        add("value", bytes.fromhex(vector["hex"]))
        add("item", bytes.fromhex(vector["hex"]))
    for vector in read("patches.json"):
        before, patch = encode(vector["before"]), bytes.fromhex(vector["patch"])
        add("patch", before + patch)
        add("patch", b"\x03" + patch)
        add("difference", before + encode(vector["after"]))
        add("view", VIEW + before + patch)
        add("journal", b"\x03\x03\x05\x01\x00" + before
            + b"\x20\x01\x01" + bytes([len(patch) & 255]) + patch[:255] + b"\x33\x01\x01\x00")
    for vector in read("bad-patches.json"):
        add("patch", encode(vector["before"]) + bytes.fromhex(vector["patch"]))
    stream = b""
    answers = b"\x05\x00\x09\x01\x06"
    for vector in read("messages.json") + read("bad-messages.json"):
        data = bytes.fromhex(vector["hex"])
        add("item", data)
        add("frame", b"\x06\x03" + framed(data))
        if vector["sender"] == "client":
            add("client-message", data)
            if "error" not in vector:
                stream += chunks(2, data)
            add("server", b"\x06\x0f" + chunks(2, data) + b"\x0f\x07\x05\x0f")
        else:
            add("server-message", data)
            add("client", answers + chunks(1, data) + answers + b"\x0c" + answers)
            if vector.get("type") == "schema":
                add("schema", data[2:])
    add("server", b"\x06" + stream + b"\x0f")
    add("frame", b"\x06\x05" + framed(b"\x82\x05\x07") + framed(b"") + framed(b"\x82\x05\x18\x2a"))
    for vector in read("bad-frames.json"):
        add("frame", b"\x06\x02" + bytes.fromhex(vector["hex"]))
    for vector in read("actions.json"):
        before, action = encode(vector["before"]), bytes.fromhex(vector["hex"])
        add("action", before + action)
        add("action", encode(DOCUMENT) + action + action)
        add("action-json", b"\x01" + action)
        add("server", b"\x06\x0f" + chunks(5, action) + b"\x0f\x07\x03\x0f")
    # A slow good client, one that catches up, subscriptions to parts, a snapshot beside the loop.
    add("server", b"\x08\x00\x08\x01\x0f\x0b\x07\x00\x0f\x07\x02\x0f\x06\x0f\x0c\x0f\x8f\x0f")
    add("server", b"\x07\x28\x07\x28\x0f\x08\x01\x0f\x0b\x07\x2d\x0f\x8f\x0f\x0c\x0f\x0d\x0e")
    add("client", answers + chunks(6, b"\x82\x02\x80") + b"\x0d\x01\x00\x0a\x04"
        + bytes([len(encode(DOCUMENT))]) + encode(DOCUMENT) + b"\x0e\x01\x01\x04\xa1\x61n\x02")
    add("hand-over", b"\x02" + HAND_OVER)
    add("hand-over", b"\x01" + b"\x86" + encode(SCHEMA) + HAND_OVER)
    for action in ACTIONS:
        add("action-json", b"\x00" + json.dumps(action).encode())
    for action in TYPED:
        add("action-json", b"\x02" + encode(SCHEMA) + json.dumps(action).encode())
    add("action-json", b"\x03" + encode(SCHEMA) + encode([2, 1, 2.5]))
    add("action-json", b"\x03" + encode(SCHEMA) + encode([1, [1, 0]]))
    add("schema", encode(SCHEMA))
    for build, state in enumerate(STATES):
        for target in range(len(STATES) + 3):
            schema = encode(SCHEMA) if target == len(STATES) else b""
            for item in [state, [state], [[], {}], {1: state, 2: {0: [1]}}]:
                add("translation", bytes([build, target]) + schema + b"\x80" + encode(item))
    rows = {key: {"id": key, "n": [1]} for key in "abc"}
    some = encode({"$map": [[0, rows], [1, list("abc")]]})
    # Rows as they are, one that comes, one that goes, one that moves, one renamed in place; and
    # one that comes or goes in the rows or in the order alone, and one that is in the order twice.
    for patch in ["", "00a0", "00a200a1616481a162696461640182830300816164a0",
                  "00a200a16161f7018283000180a0", "00a10182860001800200816161a0",
                  "00a100a16161a1626964617a", "00a100a1616481a16269646164", "00a100a16161f7",
                  "00a10182830300816164a0", "00a1018283000180a0", "00a10182830300816161a0"]:
        add("rows", some + bytes.fromhex(patch))
        add("rows", b"\x03" + bytes.fromhex(patch))
    add("rows", b"\x20" + bytes([4, 40, 0, 12, 50, 9, 2, 28, 5, 1, 44, 2, 3, 3, 52, 0, 0, 20, 9, 0]))
    # Between the same two rows, until there is no label left.
    add("rows", b"\x02" + b"".join(bytes([12, 100 + n, 1]) for n in range(45)) + b"\x02")
    numbers = [1e300, 2**64 - 1, -(2**63), "é\n\u0001😀"]
    for value in ACTIONS + [PATCH, DOCUMENT, numbers, [[[{}]]]]:
        add("json", json.dumps(value).encode())
        add("json", json.dumps(value, ensure_ascii=False, indent=1).encode())

    for target, inputs in seeds.items():
        place = folder / target
        place.mkdir(parents=True, exist_ok=True)
        for data in inputs:
            (place / hashlib.sha1(data).hexdigest()).write_bytes(data)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
