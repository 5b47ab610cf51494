"""Every vector of Protocols/vectors."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from conftest import bytes_of, load, meaning, number_of, vectors
from lockstep import ProtocolError
from lockstep.core import digests, messages
from lockstep.core.cbor import Reader, encode
from lockstep.core.frames import FrameDecoder, frame
from lockstep.core.patches import apply
from lockstep.core.schema import Schema, named
from lockstep.core.tree import ABSENT, Array, Object, same
from lockstep.core.values import payload
from lockstep.core.views import show, unframed


def decode(data: bytes, *, is_document: bool = False) -> Any:
    reader = Reader(data)
    value = reader.item(level=0, has_integers=not is_document, has_absent=not is_document)
    reader.finish()
    return value


def node(value: Any) -> Any:
    """A value as a mirror has it."""
    return decode(encode(value))


# Frames and messages


@vectors("bad-frames")
@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_bad_frames_hand_on_what_came_before_the_error(vector: Any, size: int) -> None:
    decoder = FrameDecoder(vector["limit"])
    stream, items, error = bytes.fromhex(vector["hex"]), [], None
    try:
        for at in range(0, len(stream), size):
            for item in decoder.feed(stream[at : at + size]):
                items.append(item.hex())
                decode(item)
    except ProtocolError as caught:
        error = caught.code.name
    if error is None and decoder.is_inside:
        error = "INCOMPLETE"
    assert items == vector["items"]
    wanted = {"frameTooLarge": "FRAME_TOO_LARGE", "malformed": "MALFORMED"}
    assert error == wanted.get(vector["error"], "INCOMPLETE")


def said(kind: str, f: Any) -> bytes:
    """A message of the client, made from what the vector says that it means."""
    if kind == "hello":
        position = f["position"] and messages.Position(*f["position"])
        return messages.hello(
            f["label"], number_of(f["fingerprint"]), bytes_of(f["token"]), position,
            tuple(f["versions"]), f.get("decisions", False),
        )  # fmt: skip
    if kind == "subscribe":
        position = f["position"] and messages.Position(*f["position"])
        return messages.subscribe(f["subscription"], tuple(f["path"]), position)
    if kind == "unsubscribe":
        return messages.unsubscribe(f["subscription"])
    if kind == "action":
        return messages.action(f["number"], bool(f["mark"]), bytes.fromhex(f["payload"]))
    if kind == "ping":
        return messages.ping(f["value"])
    if kind == "digestRequest":
        return messages.digest_request(f["subscription"])
    if kind == "query":
        return messages.query(f["number"], f["name"], f.get("arguments") or ())
    return messages.client_goodbye(f["code"], f["message"])


def heard(kind: str, f: Any) -> Any:
    """A message of the daemon, as it should be read."""
    if kind == "welcome":
        schema: Any = bytes_of(f["schema"])
        return messages.Welcome(
            f["version"], messages.Position(*f["position"]), int(f["seed"], 16),
            bytes.fromhex(f["token"]), f["isResumed"], f["lastAction"], f["window"],
            dict(f["limits"]), schema, tuple(f["peer"]), f["durable"],
            f.get("session"),
        )  # fmt: skip
    if kind == "snapshot":
        return messages.Snapshot(
            f["scope"], f["revision"], f["index"], f["isLast"], bytes.fromhex(f["bytes"])
        )
    if kind == "patch":
        pairs = [(span, decode(bytes.fromhex(patch))) for span, patch in f["patches"]]
        return messages.PatchMessage(f["scope"], f["from"], pairs)
    if kind == "acknowledgement":
        rejection = f["rejection"] and messages.Rejection(
            f["rejection"][0],
            f["rejection"][1],
            None if f["rejection"][2] is None else tuple(f["rejection"][2]),
        )
        return messages.Acknowledgement(
            f["first"], f["last"], f["revision"], f["mark"], f["outcome"], rejection,
            f.get("notDurable"), f.get("sequence"),
        )  # fmt: skip
    if kind == "digest":
        return messages.DigestMessage(f["subscription"], f["revision"], number_of(f["digest"]))
    if kind == "schema":
        return messages.SchemaMessage(bytes.fromhex(f["schema"]))  # type: ignore[arg-type]
    if kind == "report":
        return messages.Report(f["number"], node(meaning(f["value"])), bool(f.get("hasMore")))
    if kind == "goodbye":
        limit = f["limit"] and tuple(f["limit"])
        return messages.GoodbyeMessage(f["code"], f["message"], limit, f["retryAfter"])
    if kind == "restarted":
        return messages.Restarted(messages.Position(*f["position"]))
    if kind == "decided":
        return messages.Decided(f["last"], f["revision"])
    name = {"subscribed": "Subscribed", "pong": "Pong", "bookmark": "Bookmark",
            "restarting": "Restarting"}[kind]  # fmt: skip
    return getattr(messages, name)(*f.values())


@vectors("messages")
def test_messages_are_written_and_read(vector: Any) -> None:
    data, kind, fields = bytes.fromhex(vector["hex"]), vector["type"], vector["fields"]
    if vector["sender"] == "client":
        assert same(decode(said(kind, fields)), decode(data))
        return
    message: Any = messages.read(data)
    wanted = heard(kind, fields)
    if isinstance(message, (messages.Welcome, messages.SchemaMessage)) and message.schema:
        assert message.schema.encoded == wanted.schema
        if "fingerprint" in fields:
            assert message.schema.fingerprint == int(fields["fingerprint"], 16)
        message = message._replace(schema=wanted.schema)
    assert type(message) is type(wanted)
    if isinstance(message, messages.Report):
        assert same(message.value, wanted.value)
        message = message._replace(value=wanted.value)
    assert repr(message) == repr(wanted)


@vectors("messages")
def test_fields_of_later_versions_are_skipped(vector: Any) -> None:
    if vector["sender"] == "client" or vector["type"] == "patch":
        return
    data = bytes.fromhex(vector["hex"])
    fields = Reader(data).count(4, "a message")
    if fields >= 22:
        return
    wanted = messages.read(data)
    missing = {"welcome": 12, "acknowledgement": 8, "report": 3}.get(vector["type"], 0) - (
        fields - 1
    )
    # Later fields come behind those that may be left out.
    nulls = max(missing, 0)
    later = data[:0] + bytes((0x80 + fields + nulls + 1,)) + data[1:] + b"\xf6" * nulls
    later += bytes.fromhex("9f01c2410102ff")
    assert repr(messages.read(later))[:40] == repr(wanted)[:40]


@vectors("bad-messages")
def test_bad_messages_are_refused(vector: Any) -> None:
    if vector["name"] == "a message of the daemon from a client":
        return  # For us it is a good one.
    if vector["sender"] == "client":
        with pytest.raises(ProtocolError):
            messages.read(bytes.fromhex(vector["hex"]))
        return
    with pytest.raises(ProtocolError) as caught:
        messages.read(bytes.fromhex(vector["hex"]))
    assert caught.value.code.name == vector["error"].upper().replace("UNKNOWNM", "UNKNOWN_M")
    assert str(caught.value)


# Values


@vectors("bad-values")
def test_bad_values_are_refused(vector: Any) -> None:
    with pytest.raises(ProtocolError):
        decode(bytes.fromhex(vector["hex"]), is_document=True)


@vectors("siphash")
def test_hashes(vector: Any) -> None:
    seed = number_of(vector.get("seed")) or 0
    if vector["kind"] == "sip":
        result = digests.sip(bytes.fromhex(vector["input"]), seed)
    elif vector["kind"] == "mix":
        result = digests.mix(int(vector["input"], 16))
    else:
        result = digests.key_hash(vector["key"], seed)
    assert result == int(vector["hash"], 16)


@vectors("digests")
def test_digests(vector: Any) -> None:
    value = decode(bytes.fromhex(vector["hex"]))
    assert same(value, node(meaning(vector["value"])))
    assert encode(value).hex() == vector["hex"], "maps keep their order, heads are shortest"
    assert digests.digest(value, int(vector["seed"], 16)) == int(vector["digest"], 16)


TYPED = load("digests-typed")
HOUSE = Schema(bytes.fromhex(TYPED["schema"]))


def kind_of(description: Any) -> Any:
    return HOUSE._kind(node(description))


@vectors("digests-typed")
def test_typed_digests_and_names(vector: Any) -> None:
    value, kind = decode(bytes.fromhex(vector["hex"])), kind_of(vector["kind"])
    assert digests.digest(value, int(TYPED["seed"], 16), kind) == int(vector["digest"], 16)
    wanted = cbor2.loads(bytes.fromhex(vector["named"]))

    def with_text(item: Any) -> Any:
        """Keys of maps as the log has them: as text."""
        if isinstance(item, dict):
            return {str(key): with_text(entry) for key, entry in item.items()}
        return [with_text(entry) for entry in item] if isinstance(item, list) else item

    assert with_text(unframed(named(value, kind))) == wanted
    shown = show(value, kind)
    if isinstance(wanted, dict):
        assert sorted(map(str, shown)) == sorted(wanted)


# Patches


@vectors("patches")
def test_patches(vector: Any) -> None:
    before, patch = node(meaning(vector["before"])), decode(bytes.fromhex(vector["patch"]))
    after, _ = apply(before, patch)
    assert same(after, node(meaning(vector["after"])))


@vectors("patches")
def test_a_value_that_is_looked_at_does_not_change(vector: Any) -> None:
    before = node(meaning(vector["before"]))
    view = show(before)
    apply(before, decode(bytes.fromhex(vector["patch"])))
    assert same(getattr(view, "_node", view), node(meaning(vector["before"])))


@vectors("bad-patches")
def test_bad_patches_are_refused_and_change_nothing(vector: Any) -> None:
    before = node(meaning(vector["before"]))
    with pytest.raises(ProtocolError):
        apply(before, decode(bytes.fromhex(vector["patch"])), has_integers=False)
    assert same(before, node(meaning(vector["before"])))


# Actions


def document_schema() -> Schema:
    for vector in load("messages")["vectors"]:
        if vector["type"] == "schema" and vector["fields"]["fingerprint"] == "98c7382bff0b8b6f":
            return Schema(bytes.fromhex(vector["fields"]["schema"]))
    raise AssertionError("no schema of documents")


DOCUMENTS = document_schema()


def call(action: Any) -> Any:
    """An action of a vector as a user says it."""
    name, *fields = action
    if name == "transaction":
        return (name, [call(inner) for inner in fields[0]])
    if name == "increment" and fields[-1] == 1:
        del fields[-1]
    return (name, *map(meaning, fields))


@vectors("actions")
def test_actions_that_we_write(vector: Any) -> None:
    if not vector.get("made"):
        return
    name, *values = call(vector["action"])
    values = [value for value in values if value is not ABSENT]
    assert payload(DOCUMENTS, name, values).hex() == vector["hex"]
    assert payload(DOCUMENTS, (name, *values)).hex() == vector["hex"]


def test_containers_are_our_own() -> None:
    assert type(node({"a": [1]})) is Object
    assert type(node({"a": [1]})["a"]) is Array
    assert frame(b"\x82\x05\x07").hex() == "03000000820507"
