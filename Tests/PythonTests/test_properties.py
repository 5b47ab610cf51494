"""Properties, by hypothesis: patches, views, bytes, and sessions that get bad bytes."""

from __future__ import annotations

import copy
import math
from typing import Any

import cbor2
import pytest
from conftest import load
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep import ABSENT, ProtocolError, plain
from lockstep.core import messages
from lockstep.core.cbor import Reader, encode
from lockstep.core.changes import Watcher
from lockstep.core.frames import FrameDecoder, frame
from lockstep.core.patches import apply
from lockstep.core.schema import VALUE, find
from lockstep.core.session import Session, State, StateChanged
from lockstep.core.tree import same
from lockstep.core.values import from_user
from lockstep.core.views import show, unframed

integers = st.integers(-(1 << 63), (1 << 64) - 1)
scalars = (
    st.none() | st.booleans() | integers | st.integers(-3, 3) | st.floats() | st.text(max_size=5)
    | st.binary(max_size=5)
)  # fmt: skip
keys = st.sampled_from("abcd") | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def node(value: Any) -> Any:
    reader = Reader(encode(from_user(value)))
    return reader.item(level=0)


def decode(data: bytes) -> Any:
    reader = Reader(data)
    item = reader.item(level=0)
    reader.finish()
    return item


# Patches between two values, made in some way that is right


def difference(draw: Any, old: Any, new: Any) -> Any:
    """A patch that makes `new` of `old`."""
    if new is ABSENT:
        return ABSENT
    if isinstance(old, dict) and isinstance(new, dict) and draw(st.integers(0, 3)):
        patch = {}
        for key in [*old, *(key for key in new if key not in old)]:
            before, after = old.get(key, ABSENT), new.get(key, ABSENT)
            if before is ABSENT or after is ABSENT or not same(node(before), node(after)):
                patch[key] = difference(draw, before, after)
        return patch
    if isinstance(old, list) and isinstance(new, list) and draw(st.integers(0, 3)):
        kept = draw(st.integers(0, min(len(old), len(new))))
        splices = [] if len(old) == len(new) == kept else [kept, len(old) - kept, new[kept:]]
        edits = {
            at: difference(draw, old[at], new[at])
            for at in range(kept)
            if not same(node(old[at]), node(new[at]))
        }
        return [splices, edits]
    if isinstance(new, (list, dict)) or draw(st.booleans()):
        return [new]
    return new


@st.composite
def histories(draw: Any) -> Any:
    """A value, and patches with what they make of it."""
    first = draw(values)
    steps, value = [], first
    for _ in range(draw(st.integers(1, 5))):
        new = draw(values | st.just(value))
        if isinstance(value, dict) and draw(st.booleans()):
            new = {**value, **draw(st.dictionaries(keys, values, max_size=3))}
            for key in draw(st.lists(st.sampled_from([*new, "a"]), max_size=2)):
                new.pop(key, None)
        elif isinstance(value, list) and draw(st.booleans()):
            at = draw(st.integers(0, len(value)))
            new = value[:at] + draw(st.lists(values, max_size=2)) + value[at:]
        steps.append((difference(draw, value, new), new))
        value = new
    return first, steps


@given(histories(), st.lists(st.booleans(), min_size=5, max_size=5))
@settings(max_examples=300)
def test_apply_makes_the_value_after(history: Any, looks: list[bool]) -> None:
    first, steps = history
    value, held = node(first), []
    for (patch, after), does_look in zip(steps, looks):
        if does_look:
            held.append((show(value), copy.deepcopy(unframed(value))))
        value, _ = apply(value, decode(encode(patch)))
        assert same(value, node(after))
    for view, then in held:
        assert same(node(plain(view)), node(then)), "what is looked at does not change"


@given(histories(), st.sampled_from([(), ("a",), ("a", "b"), ("0",), ("a", "0")]))
@settings(max_examples=300)
def test_changes_tell_the_old_and_the_new_at_a_path(history: Any, path: Any) -> None:
    first, steps = history
    value = node(first)
    watcher = Watcher(path, value, VALUE)
    told, wanted = [plain(watcher.shown)], [find(node(first), VALUE, path)[0]]
    for number, (patch, after) in enumerate(steps, 1):
        value, places = apply(value, decode(encode(patch)))
        watcher.changed(number, places, value, VALUE)
        now = find(node(after), VALUE, path)[0]
        for change in watcher.waiting:
            assert change.revision == number
            assert same(node_or_absent(change.old), node_or_absent(wanted[-1]))
            assert same(node_or_absent(change.new), node_or_absent(now))
            told.append(plain(change.new))
        if not same(wanted[-1], now):
            assert watcher.waiting, "a change is told"
        watcher.waiting.clear()
        wanted.append(now)


def node_or_absent(value: Any) -> Any:
    return ABSENT if value is ABSENT else node(plain(value))


@given(values, values)
def test_a_patch_that_does_not_fit_changes_nothing(value: Any, patch: Any) -> None:
    before = node(value)
    try:
        apply(before, decode(encode(from_user(patch))))
    except ProtocolError:
        assert same(before, node(value))


# CBOR, beside an independent implementation


@given(values)
@settings(max_examples=300)
def test_what_we_write_cbor2_reads_and_the_other_way_round(value: Any) -> None:
    item = node(value)
    assert same(node(cbor2.loads(encode(item))), item)
    assert same(decode(cbor2.dumps(value, canonical=True)), item)
    assert len(encode(item)) <= len(cbor2.dumps(value, canonical=True)), "the shortest form"


@given(st.binary(max_size=60))
@settings(max_examples=500)
def test_bytes_are_an_item_or_a_protocol_error(data: bytes) -> None:
    reader = Reader(data)
    try:
        item = reader.item(level=0)
    except ProtocolError:
        return
    again = Reader(encode(item))
    assert same(again.item(level=0), item)
    skipper = Reader(data)
    skipper.skip(level=0)
    assert skipper.at == reader.at


@given(st.binary(max_size=60))
@settings(max_examples=500)
def test_to_skip_ends_or_is_a_protocol_error(data: bytes) -> None:
    reader = Reader(data)
    try:
        reader.skip(level=0)
    except ProtocolError:
        return
    assert 0 < reader.at <= len(data)


def test_floats_are_written_in_the_fewest_bytes() -> None:
    for number, shortest in (
        (0.0, "f90000"), (-0.0, "f98000"), (1.5, "f93e00"), (65504.0, "f97bff"),
        (65536.0, "fa47800000"), (5.960464477539063e-08, "f90001"), (1e-40, None),
        (0.1, "fb3fb999999999999a"), (math.inf, "f97c00"), (-math.inf, "f9fc00"),
        (math.nan, "f97e00"), (3.4028234663852886e38, "fa7f7fffff"), (1e300, None),
    ):  # fmt: skip
        data = encode(number)
        assert len(data) == 9 if shortest is None else data.hex() == shortest
        assert same(cbor2.loads(data), number)


# Frames


@given(st.lists(st.binary(max_size=20), max_size=5), st.lists(st.integers(1, 30), min_size=1))
def test_frames_come_whole_however_they_are_cut(items: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(map(frame, items))
    for plan in ([1], [len(stream) or 1], sizes):
        decoder, at, turn = FrameDecoder(), 0, 0
        found: list[bytes] = []
        while at < len(stream):
            size = plan[turn % len(plan)]
            found += decoder.feed(stream[at : at + size])
            at, turn = at + size, turn + 1
        assert found == items and not decoder.is_inside


# Sessions that get bad bytes

GOOD = [
    bytes.fromhex(one["hex"]) for one in load("messages")["vectors"] if one["sender"] == "daemon"
]
WELCOME = next(
    bytes.fromhex(step["daemon"])
    for step in load("sessions")["transcripts"][0]["steps"]
    if step.get("type") == "welcome"
)


def live_session() -> Session:
    session = Session(seed=1)
    session.start()
    session.connected(0)
    session.received(frame(WELCOME), 0)
    assert session.is_live
    session.subscribe(())
    session.subscribe(("a",))
    for _ in range(3):
        session.submit(b"\x00")
    return session


@st.composite
def broken(draw: Any) -> bytes:
    """A good message, with something wrong about it."""
    data = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        how = draw(st.integers(0, 2))
        if how == 0:
            data[at] = draw(st.integers(0, 255))
        elif how == 1:
            del data[at:]
            data += draw(st.binary(max_size=3))
        else:
            data[at:at] = draw(st.binary(max_size=3))
        if not data:
            break
    return bytes(data)


@given(broken())
@settings(max_examples=1000)
def test_a_broken_message_is_read_or_a_protocol_error(item: bytes) -> None:
    try:
        messages.read(item)
    except ProtocolError as error:
        assert str(error)


@given(st.lists(broken() | st.sampled_from(GOOD) | st.binary(max_size=20), max_size=8))
@settings(max_examples=500)
def test_a_session_survives_whatever_comes(items: list[bytes]) -> None:
    session = live_session()
    for item in items:
        session.received(frame(item), 1)
        session.tick(1)
    session.disconnected(2)
    for one in session.take():
        if isinstance(one, StateChanged) and one.state is State.CLOSED:
            assert one.reason is not None and str(one.reason)
    assert session.unacknowledged == 0 or not session.has_ended


@given(st.lists(st.binary(max_size=40), max_size=8), st.booleans())
@settings(max_examples=300)
def test_a_stream_of_anything_is_survived(chunks: list[bytes], is_live: bool) -> None:
    session = live_session() if is_live else Session(seed=1)
    if not is_live:
        session.start()
        session.connected(0)
    for chunk in chunks:
        session.received(chunk, 1)
    session.disconnected(2)


def test_a_claimed_length_takes_no_memory() -> None:
    for head in ("9b7fffffffffffffff", "bb7fffffffffffffff", "5b7fffffffffffffff", "9a00ffffff"):
        with pytest.raises(ProtocolError):
            Reader(bytes.fromhex(head)).item(level=0)
        with pytest.raises(ProtocolError):
            Reader(bytes.fromhex(head)).skip(level=0)


def test_depth_has_a_limit_for_items_and_for_what_is_skipped() -> None:
    assert Reader(b"\x81" * 128 + b"\x00").item(level=0)
    for read in (Reader(b"\x81" * 129 + b"\x00"), Reader(b"\x81" * 100_000)):
        with pytest.raises(ProtocolError):
            read.item(level=0)
    for data in (b"\x81" * 129 + b"\x00", b"\xc1" * 100_000, b"\x9f" * 100_000):
        with pytest.raises(ProtocolError):
            Reader(data).skip(level=0)
