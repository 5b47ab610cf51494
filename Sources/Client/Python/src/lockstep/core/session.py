"""The client's end of a session, as a value: events in, commands and notices out.

A shell calls the methods that say what has happened (`connected`, `received`, `disconnected`,
`tick`) and what its user wants (`submit`, `subscribe`, …), and then does what `take` gives:

    idle -> connecting -> greeting -> live -> connecting -> … -> ended
                                        |
                                        +-> parting or left -> ended, or connecting

What the session keeps over connections: every action that was not acknowledged, the token by which
the daemon knows the session, and of each mirror the value and its position.

**Exactly once.** `_pending` are the unacknowledged actions, oldest first, and `_first` is the
number that the oldest of them has in this session. Those that were sent in this session, on
whatever connection, are the first `_sent_in_session` of them, and on this connection the first
`_sent_here`. After a reconnection all are sent again under their numbers. If the session is gone,
those that had been sent are `OutcomeUnknown`, and the others begin a new one.
"""

from __future__ import annotations

import enum
import logging
import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple, Optional, Union

from ..errors import (
    Disconnected,
    Goodbye,
    GoodbyeCode,
    LockstepError,
    OutcomeUnknown,
    ProtocolError,
    QueryFailed,
    Rejected,
    RejectionCode,
    UnknownName,
    known,
)  # fmt: skip
from . import messages
from .frames import DEFAULT_LIMIT, FrameDecoder, frame
from .outcome import Outcome, result
from .schema import VALUE, Schema, travelling
from .subscription import NeedsSnapshot, Phase, Subscription
from .tree import Path, Value

log = logging.getLogger("lockstep")

MOST_RESYNCS = 8
"""So often in a row may a mirror need another snapshot; then one of both sides has a bug."""


class Options(NamedTuple):
    """How a session behaves. Times are in seconds."""

    label: str = ""
    """What the daemon calls this client in its logs and reports."""
    reconnect: bool = True
    """Whether to come back when the connection is lost."""
    first_wait: float = 0.02
    """The longest wait before the first retry; it doubles with each failure."""
    longest_wait: float = 5.0
    greeting_timeout: float = 10.0
    """How long the daemon may take for its welcome."""
    max_snapshot_bytes: int = 1 << 30
    """The most bytes of one snapshot, or of one report."""


class State(enum.Enum):
    """Where a connection is."""

    CONNECTING = "connecting"
    """There is no connection; mirrors show what they showed. It is being made."""
    LIVE = "live"
    """Mirrors follow the daemon, and actions are performed."""
    CLOSED = "closed"
    """It has ended for good."""


class Stage(enum.Enum):
    IDLE = enum.auto()
    CONNECTING = enum.auto()
    GREETING = enum.auto()
    LIVE = enum.auto()
    PARTING = enum.auto()
    """We have said goodbye."""
    LEFT = enum.auto()
    """The daemon has said goodbye: what else comes does not count."""
    ENDED = enum.auto()


# Commands


class Write(NamedTuple):
    """Write these bytes behind all others."""

    data: bytes


class Connect(NamedTuple):
    """Connect in so many seconds; `connected` or `disconnected` follows."""

    after: float


class Disconnect(NamedTuple):
    """Close the connection, behind what was written; `disconnected` follows."""


# Notices


class StateChanged(NamedTuple):
    """The connection is in another state. Behind `CLOSED` nothing comes."""

    state: State
    reason: Optional[LockstepError]
    """Why it was lost, or has ended; None if that is not known."""


class Done(NamedTuple):
    """An action has its outcome, or the error that its sender is told."""

    action: int
    result: Union[Outcome, LockstepError]


class MirrorChanged(NamedTuple):
    """A mirror has another value, position, or phase."""

    subscription: Subscription


class Ponged(NamedTuple):
    value: int


class Reported(NamedTuple):
    """A report, or why there is none."""

    number: int
    report: Union[Value, QueryFailed]


class Digested(NamedTuple):
    """Whether a mirror has the daemon's digest; None if there was nothing to compare."""

    subscription: Subscription
    is_right: Optional[bool]


class SchemaChanged(NamedTuple):
    schema: Schema


Command = Union[Write, Connect, Disconnect]
Notice = Union[StateChanged, Done, MirrorChanged, Ponged, Reported, Digested, SchemaChanged]


class Pending(NamedTuple):
    """An action without an outcome."""

    action: int
    durable: bool
    payload: bytes


class Session:
    """One client. `seed` is for the waits between retries."""

    def __init__(self, options: Options = Options(), seed: Optional[int] = None) -> None:
        self.options = options
        self.stage = Stage.IDLE
        self.welcome: Optional[messages.Welcome] = None
        """The last that came."""
        self.schema: Optional[Schema] = None
        self.subscriptions: dict[int, Subscription] = {}
        self.durable: Optional[int] = None
        """The newest revision that survives a crash, as far as the daemon has said."""
        self.lost_actions = 0
        """Actions that were acknowledged as applied, and that a crash of the daemon took back."""
        self._random = random.Random(seed)
        self._out: list[Union[Command, Notice]] = []
        self._frames = FrameDecoder()
        self._scopes: dict[int, Subscription] = {}
        self._reason: Optional[LockstepError] = None
        self._is_closing = False
        self._failures = 0
        self._heard = 0.0
        self._pinged = 0.0
        # The session, by the terms of the comment above.
        self._pending: deque[Pending] = deque()
        self._first = 1
        self._sent_in_session = 0
        self._sent_here = 0
        self._held: list[messages.Acknowledgement] = []
        self._next_action = 1
        self._next_subscription = 1
        self._next_query = 1
        self._next_ping = 1
        self._digests: deque[Subscription] = deque()
        """Those whose digests were asked for, oldest first: answers come in this order."""
        self._pages: dict[int, Value] = {}
        self._page_bytes: dict[int, int] = {}

    # What the shell does

    def take(self) -> list[Union[Command, Notice]]:
        """The commands and notices since the last call, in order."""
        out, self._out = self._out, []
        return out

    @property
    def is_live(self) -> bool:
        """Whether the daemon has said welcome on this connection, and none has said goodbye."""
        return self.stage is Stage.LIVE

    @property
    def has_ended(self) -> bool:
        return self.stage is Stage.ENDED

    @property
    def has_left(self) -> bool:
        """Whether the daemon has said goodbye on this connection."""
        return self.stage is Stage.LEFT

    @property
    def unacknowledged(self) -> int:
        """How many actions have no outcome."""
        return len(self._pending)

    def limit(self, name: str, default: int) -> int:
        """A limit of the daemon's, by the name that wire.md gives it."""
        return self.welcome.limits.get(name, default) if self.welcome else default

    # What the user wants

    def start(self) -> None:
        """Connect."""
        if self.stage is Stage.IDLE:
            self.stage = Stage.CONNECTING
            self._out.append(Connect(0.0))

    def submit(self, payload: bytes, durable: bool = False) -> int:
        """Perform an action, now or as soon as the connection allows; `Done` follows.

        `payload` is its encoding. Raises `ValueError` if it does not fit a frame.
        """
        most = self.limit("frameBytes", DEFAULT_LIMIT)
        if len(payload) + 16 > most:
            raise ValueError(f"the action has {len(payload)} bytes, and a frame at most {most}")
        action = self._next_action
        self._next_action += 1
        self._pending.append(Pending(action, durable, payload))
        self._send_pending()
        return action

    def subscribe(self, name: Path) -> Subscription:
        """Mirror a path, given by names. Raises `UnknownName` if the schema has no such path."""
        state = self.schema.state if self.schema else VALUE
        path, kind = travelling(state, name)
        subscription = Subscription(self._new_number(), name, path, kind)
        self.subscriptions[subscription.number] = subscription
        if self.is_live:
            self._ask_for(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Mirror it no longer."""
        if self.subscriptions.pop(subscription.number, None) is None:
            return
        self._leave(subscription)
        self._tell_held()

    def ping(self) -> int:
        """Ask for a sign of life; `Ponged` with this number follows, unless the connection ends."""
        value = self._next_ping
        self._next_ping += 1
        self._send(messages.ping(value))
        return value

    def query(self, name: str, arguments: Sequence[str] = ()) -> int:
        """Ask for a report; `Reported` with this number follows, unless the connection ends."""
        number = self._next_query
        self._next_query += 1
        self._send(messages.query(number, name, arguments))
        return number

    def request_digest(self, subscription: Subscription) -> None:
        """Compare a mirror with the daemon; `Digested` follows, unless the connection ends."""
        if self.is_live:
            self._digests.append(subscription)
            self._send(messages.digest_request(subscription.number))

    def close(self) -> None:
        """Say goodbye. The daemon answers all that is due, and then by its own goodbye.

        Actions that were not sent yet are `Rejected` (`NOT_SENT`).
        """
        if self.stage is Stage.LIVE:
            self._send(messages.client_goodbye(GoodbyeCode.DONE, "goodbye"))
            self.stage = Stage.PARTING
            self._is_closing = True
            return
        self._tell_held(even_unseen=True)
        if self.stage not in (Stage.PARTING, Stage.ENDED):
            self._end(Goodbye(GoodbyeCode.DONE, "closed by this client"))
            self._out.append(Disconnect())

    # What happens to the socket

    def connected(self, now: float) -> None:
        """There is a connection."""
        if self.stage is not Stage.CONNECTING:
            return
        self.stage = Stage.GREETING
        self._heard = self._pinged = now
        self._frames = FrameDecoder()
        positions = [one.position for one in self.subscriptions.values() if one.position]
        hello = messages.hello(
            self.options.label,
            self.schema.fingerprint if self.schema else None,
            self.welcome.token if self.welcome else None,
            min(positions, key=lambda position: position.revision, default=None),
        )
        self._out.append(Write(frame(hello)))

    def received(self, data: bytes, now: float) -> None:
        """Bytes have come. Whatever they are, this raises nothing."""
        self._heard = self._pinged = now
        if self.stage not in (Stage.GREETING, Stage.LIVE, Stage.PARTING):
            return
        try:
            for item in self._frames.feed(data):
                self._take(messages.read(item), len(item))
                self._tell_held()
                if self.has_left:
                    return
        except ProtocolError as error:
            log.error("the daemon does not keep to the protocol: %s", error)
            self._out.append(Write(frame(messages.client_goodbye(error.code, str(error)[:1000]))))
            self._end(error)
            self._out.append(Disconnect())

    def disconnected(self, now: float) -> None:
        """The connection is lost, or could not be made."""
        if self.stage in (Stage.IDLE, Stage.ENDED):
            return
        self._tell_held(even_unseen=True)
        for subscription in self.subscriptions.values():
            subscription.detach()
        self._scopes.clear()
        self._pages.clear()
        self._page_bytes.clear()
        self._digests.clear()
        reason, self._reason = self._reason, None
        if self._is_closing:
            return self._end(Goodbye(GoodbyeCode.DONE, "closed by this client"))
        if isinstance(reason, Goodbye) and reason.is_final:
            return self._end(reason)
        if not self.options.reconnect:
            return self._end(reason or Disconnected("the connection was lost"))
        self.stage = Stage.CONNECTING
        self._out.append(StateChanged(State.CONNECTING, reason))
        self._out.append(Connect(self._next_wait(reason)))

    def tick(self, now: float) -> None:
        """Time passes. Call it about once a second."""
        if self.stage is Stage.GREETING:
            if now > self._heard + self.options.greeting_timeout:
                self._out.append(Disconnect())
        elif self.stage is Stage.LIVE:
            quiet = min(self.limit("bookmarkIntervalMs", 5000), 3_600_000) / 1000
            if now > self._heard + 4 * quiet:
                self._out.append(Disconnect())
            elif now > self._pinged + 2 * quiet:
                self._pinged = now
                self._send(messages.ping(0))

    # Greeting

    def _take(self, message: messages.Message, size: int) -> None:
        if self.stage is Stage.GREETING:
            if isinstance(message, messages.Welcome):
                self._greet(message)
            elif isinstance(message, messages.GoodbyeMessage):
                self._goodbye(message)
            else:
                raise ProtocolError("the first message is no welcome", GoodbyeCode.OUT_OF_ORDER)
            return
        assert self.welcome is not None
        welcome = self.welcome
        if isinstance(message, messages.PatchMessage):
            self._of_scope(message.scope, lambda one: one.patch(message, welcome))
        elif isinstance(message, messages.Acknowledgement):
            self._hold(message)
        elif isinstance(message, messages.Bookmark):
            self.durable = message.durable
            self._advance(message.revision)
        elif isinstance(message, messages.Snapshot):
            most = self.options.max_snapshot_bytes
            self._of_scope(message.scope, lambda one: one.snapshot(message, welcome, most))
        elif isinstance(message, messages.Subscribed):
            self._subscribed(message)
        elif isinstance(message, messages.Pong):
            self._advance(message.revision)
            if message.value:
                self._out.append(Ponged(message.value))
        elif isinstance(message, messages.DigestMessage):
            self._compare(message)
        elif isinstance(message, messages.Report):
            self._report(message, size)
        elif isinstance(message, messages.SchemaMessage):
            self._adopt(message.schema)
        elif isinstance(message, messages.GoodbyeMessage):
            self._goodbye(message)
        elif isinstance(message, messages.Restarting):
            self._reason = Goodbye(
                GoodbyeCode.RESTARTING,
                "the daemon restarts",
                retry_after=message.retry_after / 1000,
            )
        elif isinstance(message, messages.Restarted):
            self._reason = None
            self.welcome = welcome._replace(position=message.position)
            for subscription in self.subscriptions.values():
                subscription.restarted(message.position)
        else:
            raise ProtocolError("a second welcome", GoodbyeCode.OUT_OF_ORDER)

    def _greet(self, welcome: messages.Welcome) -> None:
        if not messages.VERSIONS[0] <= welcome.version <= messages.VERSIONS[1]:
            raise ProtocolError(
                f"the daemon speaks version {welcome.version}, not "
                f"{messages.VERSIONS[0]} to {messages.VERSIONS[1]}",
                GoodbyeCode.VERSION,
            )
        if welcome.schema is None and self.schema is None:
            raise ProtocolError("a welcome without a schema", GoodbyeCode.SCHEMA)
        self.stage = Stage.LIVE
        self.welcome = welcome
        self.durable = welcome.durable
        self._failures = 0
        self._frames.limit = max(DEFAULT_LIMIT, welcome.limits.get("frameBytes", 0))
        if welcome.schema is not None:
            self._adopt(welcome.schema)
        self._number(welcome)
        self._out.append(StateChanged(State.LIVE, None))
        for subscription in self.subscriptions.values():
            self._ask_for(subscription)
        self._send_pending()

    def _number(self, welcome: messages.Welcome) -> None:
        """Give the pending actions their numbers in the session that the welcome begins."""
        if not welcome.is_resumed:
            for pending in self._forget(self._sent_in_session):
                self._out.append(Done(pending.action, OutcomeUnknown()))
            self._first, self._sent_in_session = 1, 0
        elif self._first - 1 > welcome.last_action:
            # A crash took back actions that had been acknowledged. None of ours was performed.
            lost = self._first - 1 - welcome.last_action
            self.lost_actions += lost
            log.warning("a crash of the daemon has taken back %d acknowledged actions", lost)
            self._first, self._sent_in_session = welcome.last_action + 1, 0
        self._sent_here = 0

    def _adopt(self, schema: Schema) -> None:
        """The daemon has this schema from now on."""
        former, self.schema = self.schema, schema
        if former is not None and former.fingerprint == schema.fingerprint:
            self.schema = former
            return
        self._out.append(SchemaChanged(schema))
        for subscription in list(self.subscriptions.values()):
            try:
                path, subscription.kind = travelling(schema.state, subscription.name)
            except UnknownName:
                path, subscription.kind = subscription.name, VALUE
            if path != subscription.path or former is None:
                subscription.path = path
                subscription.position = None
                if subscription.scope is not None:
                    self._resync(subscription)

    def _goodbye(self, message: messages.GoodbyeMessage) -> None:
        limit, allowed, observed = message.limit or (None, None, None)
        retry_after = message.retry_after
        self._reason = Goodbye(
            known(message.code, GoodbyeCode), message.message, limit, allowed, observed,
            None if retry_after is None else retry_after / 1000,
        )  # fmt: skip
        self.stage = Stage.LEFT
        self._out.append(Disconnect())

    # Mirrors

    def _new_number(self) -> int:
        number = self._next_subscription
        self._next_subscription += 1
        return number

    def _ask_for(self, subscription: Subscription) -> None:
        self._send(
            messages.subscribe(subscription.number, subscription.path, subscription.position)
        )

    def _leave(self, subscription: Subscription) -> None:
        if subscription.scope is not None and self._scopes.get(subscription.scope) is subscription:
            del self._scopes[subscription.scope]
        if self.is_live and subscription.phase is not Phase.REFUSED:
            self._send(messages.unsubscribe(subscription.number))

    def _subscribed(self, message: messages.Subscribed) -> None:
        subscription = self.subscriptions.get(message.subscription)
        assert self.welcome is not None
        if subscription is None:
            return
        if self._scopes.get(message.scope, subscription) is not subscription:
            if message.continuation != messages.REFUSED:
                raise ProtocolError(f"scope {message.scope} is that of another subscription")
        try:
            former = subscription.scope
            subscription.subscribed(message, self.welcome)
        except NeedsSnapshot as error:
            return self._resync(subscription, str(error))
        if former is not None:
            self._scopes.pop(former, None)
        if subscription.scope is not None:
            self._scopes[subscription.scope] = subscription
        self._out.append(MirrorChanged(subscription))

    def _of_scope(self, scope: int, apply: Callable[[Subscription], None]) -> None:
        """Apply a message to the mirror of a scope."""
        subscription = self._scopes.get(scope)
        if subscription is None:
            return
        was_current = subscription.is_current
        try:
            apply(subscription)
        except NeedsSnapshot as error:
            return self._resync(subscription, str(error))
        if subscription.is_current and not was_current:
            subscription.resyncs_in_a_row = 0
        self._out.append(MirrorChanged(subscription))

    def _resync(self, subscription: Subscription, why: Optional[str] = None) -> None:
        """Get a snapshot for a mirror that cannot go on."""
        if why is not None:
            log.warning("the mirror of %r begins again: %s", subscription.name, why)
            subscription.resyncs += 1
            subscription.resyncs_in_a_row += 1
            if subscription.resyncs_in_a_row > MOST_RESYNCS:
                raise ProtocolError(f"the mirror never comes to be: {why}")
        self._leave(subscription)
        del self.subscriptions[subscription.number]
        subscription.number = self._new_number()
        self.subscriptions[subscription.number] = subscription
        subscription.start_again()
        self._ask_for(subscription)
        self._out.append(MirrorChanged(subscription))

    def _advance(self, revision: int) -> None:
        for subscription in self.subscriptions.values():
            subscription.advance(revision)

    def _compare(self, message: messages.DigestMessage) -> None:
        assert self.welcome is not None
        if not self._digests:
            return
        subscription = self._digests.popleft()
        is_meant = subscription.number == message.subscription and subscription.is_current
        if message.digest is None or not is_meant:
            self._out.append(Digested(subscription, None))
            return
        subscription.advance(message.revision)
        ours = subscription.digest(self.welcome.seed)
        self._out.append(Digested(subscription, ours == message.digest))
        if ours != message.digest:
            self._resync(
                subscription,
                f"its digest is {ours:016x}, the daemon's {message.digest:016x}"
                f" at revision {message.revision}",
            )

    def _report(self, message: messages.Report, size: int) -> None:
        number, report = message.number, message.value
        if number in self._pages:
            report = messages.join(self._pages.pop(number), report)
        self._page_bytes[number] = self._page_bytes.pop(number, 0) + size
        if message.has_more:
            if self._page_bytes[number] > self.options.max_snapshot_bytes:
                raise ProtocolError("a report that does not end", GoodbyeCode.LIMIT)
            self._pages[number] = report
            return
        del self._page_bytes[number]
        failure = query_failure(report)
        self._out.append(Reported(number, report if failure is None else failure))

    # Actions

    def _send_pending(self) -> None:
        """Send the actions that the window still allows, in one write."""
        if not self.is_live or self.welcome is None:
            return
        end = min(len(self._pending), self.welcome.window)
        if end <= self._sent_here:
            return
        data = bytearray()
        for at in range(self._sent_here, end):
            _, durable, payload = self._pending[at]
            data += frame(messages.action(self._first + at, durable, payload))
        self._sent_here = end
        self._sent_in_session = max(self._sent_in_session, end)
        self._out.append(Write(bytes(data)))

    def _tell_held(self, even_unseen: bool = False) -> None:
        """Tell the outcomes that have come, unless a mirror does not show them yet.

        With `even_unseen` even then: the stream ends, and no more will come.
        """
        if not self._held:
            return
        if not even_unseen and any(one.is_healing for one in self.subscriptions.values()):
            return
        held, self._held = self._held, []
        for acknowledgement in held:
            self._acknowledge(acknowledgement)
        if not even_unseen:
            self._send_pending()

    def _hold(self, acknowledgement: messages.Acknowledgement) -> None:
        """Take an acknowledgement in. There are never more of them than actions that wait."""
        if acknowledgement.last - self._first + 1 > self._sent_here:
            raise ProtocolError(
                f"an outcome of action {acknowledgement.last}, which was not sent",
                GoodbyeCode.OUT_OF_ORDER,
            )
        told = self._held[-1].last if self._held else self._first - 1
        if acknowledgement.last > told:
            self._held.append(acknowledgement)

    def _acknowledge(self, acknowledgement: messages.Acknowledgement) -> None:
        self._advance(acknowledgement.revision)
        count = acknowledgement.last - self._first + 1
        number = self._first
        for pending in self._forget(count):
            self._out.append(Done(pending.action, result(acknowledgement, number, pending.durable)))
            number += 1
        self._first = number
        self._sent_here -= count
        self._sent_in_session -= count

    def _forget(self, count: int) -> Iterator[Pending]:
        for _ in range(count):
            yield self._pending.popleft()

    # Ends

    def _send(self, item: bytes) -> None:
        if self.is_live:
            self._out.append(Write(frame(item)))

    def _next_wait(self, reason: Optional[LockstepError]) -> float:
        """Half of the wait is fixed, and half random; never less than the daemon asks for."""
        factor = 1 << min(self._failures, 16)
        whole = min(self.options.first_wait * factor, self.options.longest_wait)
        self._failures += 1
        least = reason.retry_after if isinstance(reason, Goodbye) else None
        return max(whole / 2, min(least or 0.0, 60.0)) + self._random.random() * whole / 2

    def _end(self, reason: LockstepError) -> None:
        """The connection has ended for good. Every action gets its outcome now."""
        self.stage = Stage.ENDED
        for pending in self._forget(self._sent_in_session):
            self._out.append(Done(pending.action, OutcomeUnknown()))
        for pending in self._forget(len(self._pending)):
            rejected = Rejected(RejectionCode.NOT_SENT, f"it was not sent, because {reason}")
            self._out.append(Done(pending.action, rejected))
        self._sent_in_session = self._sent_here = 0
        for subscription in self.subscriptions.values():
            subscription.detach()
        self._out.append(StateChanged(State.CLOSED, reason))


def query_failure(report: Value) -> Optional[QueryFailed]:
    """The error that a report says, if it is one."""
    if not isinstance(report, dict) or not isinstance(report.get("error"), str):
        return None
    code = report.get("code", "refused")
    return QueryFailed(report["error"], code if isinstance(code, str) else "refused")
