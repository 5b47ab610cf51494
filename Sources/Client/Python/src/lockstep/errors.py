"""Everything that can go wrong, by whose doing it is.

LockstepError
  ProtocolError          the daemon sent bytes that are no message, or at the wrong time
  DaemonUnavailable      there is no daemon at the path (also a ConnectionError)
  Disconnected           a request was cut off (also a ConnectionError); the connection goes on
  Goodbye                the connection has ended, and why
  Rejected               an action was not performed, and why
  OutcomeUnknown         whether an action was performed can no longer be known
  NotDurable             an action was performed, and does not survive a crash
  SubscriptionRefused    the daemon does not show a path
  QueryFailed            a report could not be made
  UnknownName            the daemon's schema has no such field, case or type
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Optional, TypeVar, Union

if TYPE_CHECKING:
    from .core.outcome import Outcome

__all__ = [
    "DaemonUnavailable",
    "Disconnected",
    "Goodbye",
    "GoodbyeCode",
    "LockstepError",
    "NotDurable",
    "OutcomeUnknown",
    "ProtocolError",
    "QueryFailed",
    "Rejected",
    "RejectionCode",
    "SubscriptionRefused",
    "SubscriptionReason",
    "UnknownName",
]

Code = TypeVar("Code", bound=enum.IntEnum)


def known(number: int, codes: type[Code]) -> Union[Code, int]:
    """The code of a number; the number itself if a later version of the protocol has added it."""
    try:
        return codes(number)
    except ValueError:
        return number


def code_name(code: int) -> str:
    """A code for people: `testFailed`, or `code 99`."""
    if isinstance(code, enum.IntEnum):
        first, *rest = code.name.lower().split("_")
        return first + "".join(word.capitalize() for word in rest)
    return f"code {code}"


class GoodbyeCode(enum.IntEnum):
    """Why a connection ends. Later versions may have more."""

    DONE = 0
    MALFORMED = 1
    FRAME_TOO_LARGE = 2
    VERSION = 3
    OUT_OF_ORDER = 4
    UNKNOWN_MESSAGE = 5
    STOPPING = 6
    REPLACED = 7
    STALLED = 8
    LIMIT = 9
    DENIED = 10
    SCHEMA = 11
    RESTARTING = 12


class RejectionCode(enum.IntEnum):
    """Why an action was not performed. Later versions may have more."""

    NOT_SENT = 0
    MALFORMED = 1
    UNKNOWN_ACTION = 2
    BAD_PATH = 3
    WRONG_TYPE = 4
    TEST_FAILED = 5
    NUMBER_OUT_OF_RANGE = 6
    LIMIT = 7
    REFUSED = 8
    DENIED = 9
    NOT_DURABLE = 10
    POISONED = 11
    PAUSED = 12


class SubscriptionReason(enum.IntEnum):
    """Why a subscription got a snapshot, or was refused. Later versions may have more."""

    NONE = 0
    NO_POSITION = 1
    EPOCH = 2
    AHEAD = 3
    HISTORY = 4
    LAGGED = 5
    TOO_LARGE = 6
    DUPLICATE = 7
    LIMIT = 8
    DENIED = 9
    VIEW = 10
    MEMORY = 11


class LockstepError(Exception):
    """The base of every error of this package."""


class ProtocolError(LockstepError):
    """The daemon sent something that is no message, or that it must not send now.

    The connection is closed with `code`, and does not come back by itself: the same daemon would
    say the same again.
    """

    def __init__(self, message: str, code: GoodbyeCode = GoodbyeCode.MALFORMED) -> None:
        super().__init__(message)
        self.code = code


class DaemonUnavailable(LockstepError, ConnectionError):
    """No daemon answers at the path, or it may not be connected to. The message says what to do."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class Disconnected(LockstepError, ConnectionError):
    """The connection is down, so a ping, query or digest has no answer.

    The connection comes back by itself: ask again then. Actions are not affected: they wait. Of a
    connection that was told not to come back, it is the end.
    """


class Goodbye(LockstepError):
    """The connection has ended for good, and why.

    `limit`, `allowed` and `observed` are there if a limit was passed, `retry_after` (seconds) if
    the daemon named a time after which to come back.
    """

    def __init__(
        self,
        code: Union[GoodbyeCode, int],
        message: str,
        limit: Optional[str] = None,
        allowed: Optional[int] = None,
        observed: Optional[int] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.limit = limit
        self.allowed = allowed
        self.observed = observed
        self.retry_after = retry_after

    def __str__(self) -> str:
        text = f"the connection has ended ({code_name(self.code)}): {self.message}"
        if self.limit is not None:
            text += f" ({self.limit} allows {self.allowed}, observed {self.observed})"
        return text

    @property
    def is_final(self) -> bool:
        """Whether to come back would only lead to the same goodbye."""
        if self.code in (GoodbyeCode.STOPPING, GoodbyeCode.STALLED, GoodbyeCode.RESTARTING):
            return False
        if self.code == GoodbyeCode.LIMIT or not isinstance(self.code, GoodbyeCode):
            return self.retry_after is None
        return True


class Rejected(LockstepError):
    """The action was not performed, and no part of it was. The connection goes on.

    `path` is the place that was at fault, as a JSON Pointer, if it was one. Code `NOT_SENT`: the
    connection ended before the action was sent.
    """

    def __init__(
        self, code: Union[RejectionCode, int], message: str, path: Optional[str] = None
    ) -> None:
        super().__init__(code, message, path)
        self.code = code
        self.message = message
        self.path = path

    def __str__(self) -> str:
        place = f" at {self.path or 'the whole'}" if self.path is not None else ""
        return f"rejected ({code_name(self.code)}): {self.message}{place}"


class OutcomeUnknown(LockstepError):
    """Whether the action was performed can no longer be known, because its session is gone.

    It is not sent again by itself: only you can tell whether doing it twice would be worse than not
    doing it. The mirror shows what the state is now.
    """

    def __init__(self) -> None:
        super().__init__("whether the action was performed cannot be known: its session is gone")


class NotDurable(LockstepError):
    """The action was performed, but would not survive a crash; `reason` says why.

    Do not send it again for that: it is in the state. `outcome` is what `send` would have returned.
    """

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(outcome, reason)
        self.outcome = outcome
        self.reason = reason

    def __str__(self) -> str:
        return f"performed, but not durable: {self.reason}"


class SubscriptionRefused(LockstepError):
    """The daemon does not show this path to this client; `reason` says why."""

    def __init__(self, path: str, reason: Union[SubscriptionReason, int]) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"the daemon does not show {self.path or 'the whole'}: {code_name(self.reason)}"


class QueryFailed(LockstepError):
    """The daemon could not make a report. `code` is a word for programs: `denied`, `unknown`, …"""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class UnknownName(LockstepError, LookupError):
    """The daemon's schema has no such field, case or action; the message lists those it has."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names
