"""A subscription: the mirror of one path, and how far it has come.

Implements "The mirror's rule" of wire.md. A mirror is *current* while it follows the daemon. Until
it is, it shows what it showed before: a snapshot shows once it has reached the revision that the
daemon has announced (the target), so a mirror never goes back.
"""

from __future__ import annotations

import enum
from typing import Optional, Union
from weakref import WeakSet

from ..errors import GoodbyeCode, ProtocolError, SubscriptionReason, known
from . import messages
from .cbor import Reader
from .changes import Watcher
from .digests import digest
from .messages import Position
from .patches import apply
from .schema import VALUE, Kind
from .tree import ABSENT, Path, Value


class Phase(enum.Enum):
    """What a subscription waits for."""

    DETACHED = enum.auto()
    """The daemon's answer."""
    GATHERING = enum.auto()
    """Parts of a snapshot."""
    DRAFTING = enum.auto()
    """Patches that bring the whole snapshot to its target."""
    CATCHING_UP = enum.auto()
    """Patches that bring the value to its target."""
    CURRENT = enum.auto()
    """Nothing: it follows the daemon."""
    REFUSED = enum.auto()
    """Nothing: the daemon does not show the path."""


class NeedsSnapshot(Exception):
    """What came does not fit what is there; its argument is why. Only a snapshot helps."""


class Subscription:
    """One mirror.

    `name` is the path by names and `path` as it travels; `kind` is that of its value. `snapshots`,
    `patches` and `resyncs` count.
    """

    def __init__(self, number: int, name: Path, path: Path, kind: Kind) -> None:
        self.number = number
        self.name = name
        self.path = path
        self.kind = kind
        self.phase = Phase.DETACHED
        self.value: Value = ABSENT
        self.position: Optional[Position] = None
        """Of the value; None before there is one."""
        self.scope: Optional[int] = None
        """The daemon's number for the path; None until it has answered."""
        self.refusal: Union[SubscriptionReason, int, None] = None
        self.is_healing = False
        """A snapshot will replace a wrong value: what is acknowledged does not show yet."""
        self.watchers: WeakSet[Watcher] = WeakSet()
        self.snapshots = self.patches = self.resyncs = 0
        self.resyncs_in_a_row = 0
        self._of_connection = False
        """Whether the position is one of this connection's run."""
        self._target = 0
        self._parts: list[bytes] = []
        self._gathered = 0
        self._draft: Value = ABSENT
        self._draft_revision = 0

    @property
    def is_current(self) -> bool:
        """Whether the mirror follows the daemon."""
        return self.phase is Phase.CURRENT

    @property
    def is_typed(self) -> bool:
        """Whether the value may have integers as keys."""
        return self.kind is not VALUE

    # What happens to the connection

    def detach(self) -> None:
        """The stream has ended; the value and its position stay."""
        self._forget_snapshot()
        self.scope = None
        self.is_healing = False
        self._of_connection = False
        self.phase = Phase.DETACHED

    def restarted(self, position: Position) -> None:
        """Another process of the daemon goes on with this connection."""
        if self.position is not None and self._of_connection:
            self.position = Position(position.epoch, position.run, self.position.revision)

    def start_again(self) -> None:
        """From nothing: the value stays until the snapshot has come."""
        self.detach()
        self.position = None
        self.is_healing = True

    # What the daemon says

    def subscribed(self, message: messages.Subscribed, welcome: messages.Welcome) -> None:
        """The daemon has said how the subscription goes on. Raises `NeedsSnapshot` if it cannot."""
        if message.continuation == messages.REFUSED:
            self.detach()
            self.phase = Phase.REFUSED
            self.refusal = known(message.reason, SubscriptionReason)
            self.position = None
            self._replace(ABSENT, message.revision)
            return
        self.scope = message.scope
        self.refusal = None
        if message.continuation == messages.SNAPSHOT:
            self._forget_snapshot()
            self._target = message.revision
            self.phase = Phase.GATHERING
        elif message.continuation == messages.PATCH:
            if self.position is None:
                raise NeedsSnapshot("patches for a mirror that has nothing")
            self._join_run(welcome)
            self._target = message.revision
            self._catch_up()
        elif self.phase is Phase.DRAFTING:
            self._draft_revision = max(self._draft_revision, message.revision)
            self._publish(welcome)
        elif self.phase is not Phase.GATHERING and self.position is not None:
            self._join_run(welcome)
            self.phase = Phase.CURRENT
            self.advance(message.revision)

    def snapshot(self, message: messages.Snapshot, welcome: messages.Welcome, most: int) -> None:
        """A part of a snapshot has come. Raises `NeedsSnapshot` if it is not the next one.

        Raises `ProtocolError` (`LIMIT`) for a snapshot of more than `most` bytes.
        """
        if self.phase is not Phase.GATHERING:
            raise NeedsSnapshot("a part of a snapshot that was not announced")
        if message.part != len(self._parts):
            raise NeedsSnapshot(f"part {message.part} of a snapshot, not {len(self._parts)}")
        self._gathered += len(message.data)
        if self._gathered > most:
            raise ProtocolError(
                f"a snapshot of more than {most} bytes: see max_snapshot_bytes", GoodbyeCode.LIMIT
            )
        self._parts.append(message.data)
        if not message.is_last:
            return
        data = b"".join(self._parts)
        self._forget_snapshot()
        try:
            self._draft = self._read(data)
        except ProtocolError as error:
            raise NeedsSnapshot(f"a snapshot that is no value: {error}") from None
        self.snapshots += 1
        self._draft_revision = message.revision
        self.phase = Phase.DRAFTING
        if self._draft_revision >= self._target:
            self._publish(welcome)

    def patch(self, message: messages.PatchMessage, welcome: messages.Welcome) -> None:
        """Patches have come. Raises `NeedsSnapshot` if one does not follow, or does not fit."""
        base = message.base
        for span, patch in message.patches:
            if base + span > (1 << 64) - 1:
                raise ProtocolError("a revision beyond 2^64 - 1")
            self._apply(patch, base, base + span, welcome)
            base += span

    def advance(self, revision: int) -> None:
        """The stream has come to this revision, and nothing changed here."""
        if self.is_current and self.position is not None and self.position.revision < revision:
            self.position = self.position._replace(revision=revision)

    def digest(self, seed: int) -> int:
        """The digest of the value, to compare with the daemon's."""
        return digest(self.value, seed, self.kind)

    # Steps

    def _apply(self, patch: Value, base: int, to: int, welcome: messages.Welcome) -> None:
        is_draft = self.phase is Phase.DRAFTING
        if is_draft:
            here = self._draft_revision
        elif self.phase in (Phase.CATCHING_UP, Phase.CURRENT) and self.position is not None:
            here = self.position.revision
        else:
            return
        if to <= here:
            return
        if base > here:
            raise NeedsSnapshot(f"a patch from {base} to {to} does not follow {here}")
        self.patches += 1
        try:
            value, places = apply(
                self._draft if is_draft else self.value, patch, has_integers=self.is_typed
            )
        except ProtocolError as error:
            raise NeedsSnapshot(f"a patch to {to} that does not fit: {error}") from None
        if is_draft:
            self._draft, self._draft_revision = value, to
            if to >= self._target:
                self._publish(welcome)
            return
        self.value = value
        self.position = Position(welcome.position.epoch, welcome.position.run, to)
        for watcher in list(self.watchers):
            watcher.changed(to, places, value, self.kind)
        self._catch_up()

    def _join_run(self, welcome: messages.Welcome) -> None:
        self._of_connection = True
        if self.position is not None:
            epoch, run, _ = welcome.position
            self.position = Position(epoch, run, self.position.revision)

    def _catch_up(self) -> None:
        """The mirror is current once it is at the target; then a further one changes nothing."""
        if self.phase is Phase.CURRENT or self.position is None:
            return
        is_there = self.position.revision >= self._target
        self.phase = Phase.CURRENT if is_there else Phase.CATCHING_UP

    def _publish(self, welcome: messages.Welcome) -> None:
        epoch, run, _ = welcome.position
        self.position = Position(epoch, run, self._draft_revision)
        self._of_connection = True
        self.is_healing = False
        self.phase = Phase.CURRENT
        draft, self._draft = self._draft, ABSENT
        self._replace(draft, self._draft_revision)

    def _replace(self, value: Value, revision: int) -> None:
        self.value = value
        for watcher in list(self.watchers):
            watcher.changed(revision, [()], value, self.kind)

    def _read(self, data: bytes) -> Value:
        reader = Reader(data)
        is_absent = data == b"\xf7"
        value = reader.item(
            level=0, has_integers=self.is_typed, has_absent=self.is_typed or is_absent
        )
        reader.finish()
        return value

    def _forget_snapshot(self) -> None:
        self._parts = []
        self._gathered = 0
        self._draft = ABSENT
