"""Lockstep: exact, live copies of a daemon's state.

    import asyncio, lockstep

    async def main():
        async with lockstep.connect() as connection:
            mirror = await connection.mirror("/lamp")
            await connection.set("/lamp", {"on": False, "level": 40})
            await connection.increment("/lamp/level", 5)
            print(mirror["level"])                        # 45: you see what you did
            async for change in mirror.changes():         # and what others do
                print(change.revision, change.places, change.new)

    asyncio.run(main())

In a script:

    with lockstep.connect_blocking() as connection:
        connection.set("/lamp/on", True)
        print(connection.get("/lamp"))
"""

from __future__ import annotations

from .blocking import BlockingConnection, BlockingMirror, connect_blocking
from .connection import Connection, connect
from .core.changes import Change
from .core.outcome import Outcome, OutcomeKind
from .core.paths import PathLike
from .core.schema import Schema
from .core.session import State
from .core.tree import ABSENT, Absent
from .core.views import ArrayView, ObjectView, plain
from .errors import (
    DaemonUnavailable,
    Disconnected,
    Goodbye,
    GoodbyeCode,
    LockstepError,
    NotDurable,
    OutcomeUnknown,
    ProtocolError,
    QueryFailed,
    Rejected,
    RejectionCode,
    SubscriptionReason,
    SubscriptionRefused,
    UnknownName,
)
from .link import standard_path, standard_paths
from .mirror import Changes, Mirror

__version__ = "0.1.0"

__all__ = [
    "ABSENT",
    "Absent",
    "ArrayView",
    "BlockingConnection",
    "BlockingMirror",
    "Change",
    "Changes",
    "Connection",
    "DaemonUnavailable",
    "Disconnected",
    "Goodbye",
    "GoodbyeCode",
    "LockstepError",
    "Mirror",
    "NotDurable",
    "ObjectView",
    "Outcome",
    "OutcomeKind",
    "OutcomeUnknown",
    "PathLike",
    "ProtocolError",
    "QueryFailed",
    "Rejected",
    "RejectionCode",
    "Schema",
    "State",
    "SubscriptionReason",
    "SubscriptionRefused",
    "UnknownName",
    "connect",
    "connect_blocking",
    "plain",
    "standard_path",
    "standard_paths",
]
