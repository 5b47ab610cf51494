"""What became of an action."""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional, Union

from ..errors import LockstepError, NotDurable, OutcomeUnknown, Rejected, RejectionCode, known
from .messages import ACCEPTED, OUTCOME_UNKNOWN, REDUCED, SWALLOWED, UNCHANGED, Acknowledgement
from .paths import pointer


class OutcomeKind(enum.Enum):
    """What an action that was not rejected has done."""

    REDUCED = REDUCED
    """The state changed."""
    UNCHANGED = UNCHANGED
    """Done, and nothing changed."""
    SWALLOWED = SWALLOWED
    """The daemon's configuration took the action."""
    ACCEPTED = ACCEPTED
    """Work that the action began goes on."""


class Outcome(NamedTuple):
    """What `send` returns: the action was performed."""

    kind: OutcomeKind
    revision: int
    """A mirror at this revision shows what the action did. Yours are at it."""
    is_durable: bool
    """Whether it would survive a crash of the machine."""
    sequence: Optional[int]
    """The action's number in the daemon's log, for `lockstep why`; None if it has none."""


def result(
    acknowledgement: Acknowledgement, number: int, durable: bool
) -> Union[Outcome, LockstepError]:
    """What the sender of one of the actions is told: an outcome, or an error to raise."""
    if acknowledgement.rejection is not None:
        code, message, path = acknowledgement.rejection
        return Rejected(
            known(code, RejectionCode), message, None if path is None else pointer(path)
        )
    if acknowledgement.outcome == OUTCOME_UNKNOWN:
        return OutcomeUnknown()
    sequence = acknowledgement.sequence
    if sequence is not None:
        sequence += max(number - acknowledgement.first, 0)
    outcome = Outcome(
        OutcomeKind(acknowledgement.outcome),
        acknowledgement.revision,
        bool(acknowledgement.mark),
        sequence,
    )
    if durable and not outcome.is_durable:
        reason = (
            acknowledgement.not_durable or "the daemon keeps nothing: it has no state directory"
        )
        return NotDurable(outcome, reason)
    return outcome
