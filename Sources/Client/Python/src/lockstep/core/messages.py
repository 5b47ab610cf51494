"""Messages: what the fields of an item mean, both ways.

A client's message is a function that gives its bytes; a daemon's is a tuple that `read` makes.
Fields of later versions are skipped, if they are well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple, Optional, Union

from ..errors import GoodbyeCode, ProtocolError
from .cbor import Raw, Reader, encode
from .schema import Schema
from .tree import Array, Object, Path, Value

VERSIONS = (2, 3)
"""The lowest and the highest version of the protocol that this package speaks."""

TOKEN_BYTES = 16


class Position(NamedTuple):
    """A point in the history of a state."""

    epoch: int
    run: int
    revision: int


# What the client says


def hello(
    label: str,
    fingerprint: Optional[int],
    token: Optional[bytes],
    position: Optional[Position],
    versions: tuple[int, int] = VERSIONS,
    decisions: bool = False,
) -> bytes:
    """The client introduces itself, and names the session to resume. With `decisions` it is told
    what is decided before it is told of the changes."""
    last = (True,) if decisions else ()
    return encode((1, versions, label, fingerprint, token, position, *last))


def subscribe(subscription: int, path: Path, position: Optional[Position]) -> bytes:
    """Show a path from now on, continuing from a position."""
    return encode((2, subscription, path, position))


def unsubscribe(subscription: int) -> bytes:
    """Show it no longer."""
    return encode((3, subscription))


def action(number: int, durable: bool, payload: bytes) -> bytes:
    """Perform an action, whose payload is encoded already."""
    return encode((4, number, int(durable), Raw(payload)))


def ping(value: int) -> bytes:
    """Answer this."""
    return encode((5, value))


def digest_request(subscription: int) -> bytes:
    """Say the digest of a subscription's value."""
    return encode((6, subscription))


def query(number: int, name: str, arguments: Sequence[str] = ()) -> bytes:
    """Make a report."""
    return encode((7, number, name, tuple(arguments)) if arguments else (7, number, name))


def client_goodbye(code: int, message: str) -> bytes:
    """The client is done, or gives up on the daemon."""
    return encode((8, code, message))


# What the daemon says


class Welcome(NamedTuple):
    version: int
    position: Position
    seed: int
    token: bytes
    is_resumed: bool
    last_action: int
    window: int
    limits: dict[str, int]
    schema: Optional[Schema]
    peer: tuple[int, int, int]
    durable: Optional[int]
    session: Optional[int]


class Subscribed(NamedTuple):
    subscription: int
    scope: int
    continuation: int
    reason: int
    revision: int


CURRENT, PATCH, SNAPSHOT, REFUSED = range(4)
"""How a subscription continues."""


class Snapshot(NamedTuple):
    scope: int
    revision: int
    part: int
    is_last: bool
    data: bytes


class PatchMessage(NamedTuple):
    scope: int
    base: int
    patches: Sequence[tuple[int, Value]]
    """Spans and patches."""


class Rejection(NamedTuple):
    code: int
    message: str
    path: Optional[Path]


class Acknowledgement(NamedTuple):
    first: int
    last: int
    revision: int
    mark: int
    outcome: int
    rejection: Optional[Rejection]
    not_durable: Optional[str]
    sequence: Optional[int]


REDUCED, UNCHANGED, SWALLOWED, ACCEPTED, REJECTED, OUTCOME_UNKNOWN = range(6)
"""What became of an action."""


class Pong(NamedTuple):
    value: int
    revision: int


class Bookmark(NamedTuple):
    revision: int
    durable: Optional[int]


class DigestMessage(NamedTuple):
    subscription: int
    revision: int
    digest: Optional[int]


class SchemaMessage(NamedTuple):
    schema: Schema


class Report(NamedTuple):
    number: int
    value: Value
    has_more: bool


class GoodbyeMessage(NamedTuple):
    code: int
    message: str
    limit: Optional[tuple[str, int, int]]
    """The name of the limit, what it allows, and what was observed."""
    retry_after: Optional[int]


class Restarting(NamedTuple):
    retry_after: int


class Restarted(NamedTuple):
    position: Position


class Decided(NamedTuple):
    last: int
    revision: int


Message = Union[
    Welcome, Subscribed, Snapshot, PatchMessage, Acknowledgement, Pong, Bookmark, DigestMessage,
    SchemaMessage, Report, GoodbyeMessage, Restarting, Restarted, Decided,
]  # fmt: skip


def read(item: bytes) -> Message:
    """The message of a frame. Raises `ProtocolError` if it is none, or none of a daemon."""
    reader = Reader(item)
    count = reader.count(4, "a message, which is an array,")
    kind = reader.unsigned() if count else 0
    if kind not in READERS:
        if kind in CLIENT_TYPES:
            raise ProtocolError(f"message {kind} comes from clients only")
        raise ProtocolError(f"there is no message {kind}", GoodbyeCode.UNKNOWN_MESSAGE)
    name, fields, parse = READERS[kind]
    if count - 1 < fields:
        raise ProtocolError(f"{name} has {fields} fields, not {count - 1}")
    fields_left = Fields(reader, count - 1)
    try:
        message = parse(fields_left)
        while fields_left.left:
            fields_left.next()
            reader.skip(level=1)
        reader.finish()
    except ProtocolError as error:
        raise ProtocolError(f"{name}: {error}", error.code) from None
    return message


class Fields:
    """The fields of a message that are not read yet."""

    def __init__(self, reader: Reader, left: int) -> None:
        self.reader = reader
        self.left = left

    def next(self) -> Reader:
        """The reader, at the next field."""
        self.left -= 1
        return self.reader

    def unsigned(self) -> int:
        return self.next().unsigned()

    def boolean(self) -> bool:
        return self.next().boolean()

    def text(self) -> str:
        return self.next().text()

    def optional_unsigned(self) -> Optional[int]:
        """An integer or null; null, too, if there is no such field."""
        if not self.left or self.next().null():
            return None
        return self.reader.unsigned()

    def optional_text(self) -> Optional[str]:
        if not self.left or self.next().null():
            return None
        return self.reader.text()


def exactly(reader: Reader, count: int, what: str) -> None:
    """The head of an array that has just this many items."""
    if reader.count(4, what) != count:
        raise ProtocolError(f"{what} has {count} items")


def read_position(reader: Reader) -> Position:
    exactly(reader, 3, "a position")
    return Position(reader.unsigned(), reader.unsigned(), reader.unsigned())


def read_token(reader: Reader) -> bytes:
    token = reader.octets()
    if len(token) != TOKEN_BYTES:
        raise ProtocolError(f"a token has {TOKEN_BYTES} bytes")
    return token


def read_limits(reader: Reader) -> dict[str, int]:
    limits: dict[str, int] = {}
    for _ in range(reader.count(5, "limits, which are a map,")):
        name = reader.text()
        if name in limits:
            raise ProtocolError(f"the limit {name!r} comes twice")
        limits[name] = reader.unsigned()
    return limits


def read_schema(reader: Reader) -> Schema:
    start = reader.at
    reader.skip(level=1)
    return Schema(reader.data[start : reader.at])


def read_path(reader: Reader) -> Path:
    return tuple([reader.key() for _ in range(reader.count(4, "a path"))])


def read_mark(fields: Fields) -> int:
    mark = fields.unsigned()
    if mark > 1:
        raise ProtocolError("a mark is 0 or 1")
    return mark


def read_welcome(fields: Fields) -> Welcome:
    version = fields.unsigned()
    position = read_position(fields.next())
    seed = fields.unsigned()
    token = read_token(fields.next())
    is_resumed = fields.boolean()
    last_action = fields.unsigned()
    window = fields.unsigned()
    limits = read_limits(fields.next())
    reader = fields.next()
    schema = None if reader.null() else read_schema(reader)
    exactly(fields.next(), 3, "a peer")
    peer = reader.unsigned(), reader.unsigned(), reader.unsigned()
    return Welcome(
        version, position, seed, token, is_resumed, last_action, window, limits, schema, peer,
        fields.optional_unsigned(), fields.optional_unsigned(),
    )  # fmt: skip


def read_subscribed(fields: Fields) -> Subscribed:
    message = Subscribed(*[fields.unsigned() for _ in range(5)])
    if message.continuation > REFUSED:
        raise ProtocolError(f"there is no continuation {message.continuation}")
    return message


def read_snapshot(fields: Fields) -> Snapshot:
    return Snapshot(
        fields.unsigned(), fields.unsigned(), fields.unsigned(), fields.boolean(),
        fields.next().octets(),
    )  # fmt: skip


def read_patches(fields: Fields) -> PatchMessage:
    scope, base = fields.unsigned(), fields.unsigned()
    if fields.left % 2:
        raise ProtocolError("spans and patches come in pairs")
    patches = []
    while fields.left:
        patches.append((fields.unsigned(), fields.next().item(level=1)))
    return PatchMessage(scope, base, patches)


def read_acknowledgement(fields: Fields) -> Acknowledgement:
    first, last, revision = fields.unsigned(), fields.unsigned(), fields.unsigned()
    mark, outcome = read_mark(fields), fields.unsigned()
    if first > last:
        raise ProtocolError(f"actions {first} to {last} are none")
    if outcome > OUTCOME_UNKNOWN:
        raise ProtocolError(f"there is no outcome {outcome}")
    reader = fields.next()
    rejection = None
    if outcome == REJECTED:
        exactly(reader, 3, "a rejection")
        code, message = reader.unsigned(), reader.text()
        rejection = Rejection(code, message, None if reader.null() else read_path(reader))
    elif not reader.null():
        raise ProtocolError("a rejection of an action that was not rejected")
    return Acknowledgement(
        first, last, revision, mark, outcome, rejection, fields.optional_text(),
        fields.optional_unsigned(),
    )  # fmt: skip


def read_pong(fields: Fields) -> Pong:
    return Pong(fields.unsigned(), fields.unsigned())


def read_bookmark(fields: Fields) -> Bookmark:
    return Bookmark(fields.unsigned(), fields.optional_unsigned())


def read_digest(fields: Fields) -> DigestMessage:
    return DigestMessage(fields.unsigned(), fields.unsigned(), fields.optional_unsigned())


def read_schema_message(fields: Fields) -> SchemaMessage:
    return SchemaMessage(read_schema(fields.next()))


def read_report(fields: Fields) -> Report:
    number = fields.unsigned()
    value = fields.next().item(level=1, has_integers=False, has_absent=False)
    has_more = False
    if fields.left and not fields.next().null():
        has_more = fields.reader.boolean()
    return Report(number, value, has_more)


def read_goodbye(fields: Fields) -> GoodbyeMessage:
    code, message = fields.unsigned(), fields.text()
    limit, allowed, observed = (
        fields.optional_text(),
        fields.optional_unsigned(),
        fields.optional_unsigned(),
    )
    whole = None
    if limit is not None and allowed is not None and observed is not None:
        whole = limit, allowed, observed
    elif not (limit is None and allowed is None and observed is None):
        raise ProtocolError("a limit has a name, what it allows and what was observed")
    return GoodbyeMessage(code, message, whole, fields.optional_unsigned())


def read_restarting(fields: Fields) -> Restarting:
    return Restarting(fields.unsigned())


def read_restarted(fields: Fields) -> Restarted:
    return Restarted(read_position(fields.next()))


def read_decided(fields: Fields) -> Decided:
    return Decided(fields.unsigned(), fields.unsigned())


CLIENT_TYPES = range(1, 9)

READERS: dict[int, tuple[str, int, Callable[[Fields], Message]]] = {
    11: ("welcome", 11, read_welcome),
    12: ("subscribed", 5, read_subscribed),
    13: ("snapshot", 5, read_snapshot),
    14: ("patch", 4, read_patches),
    15: ("acknowledgement", 6, read_acknowledgement),
    16: ("pong", 2, read_pong),
    17: ("bookmark", 2, read_bookmark),
    18: ("digest", 3, read_digest),
    19: ("schema", 1, read_schema_message),
    20: ("report", 2, read_report),
    21: ("goodbye", 6, read_goodbye),
    22: ("restarting", 1, read_restarting),
    23: ("restarted", 1, read_restarted),
    24: ("decided", 2, read_decided),
}
"""By its type, each message's name, how many fields it has at least, and its reader."""


def join(report: Value, page: Value) -> Value:
    """A report and its next page, joined: arrays one behind the other, objects by their names."""
    if isinstance(report, Array) and isinstance(page, Array):
        report.extend(page)
        return report
    if isinstance(report, Object) and isinstance(page, Object):
        for name, value in page.items():
            report[name] = join(report[name], value) if name in report else value
        return report
    return page
