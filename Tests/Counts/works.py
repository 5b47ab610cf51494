"""What is counted. Numbers stay between 256 and 65,535, so that each step has as many bytes."""

import dataclasses
import itertools
import math
from collections.abc import Callable

import client

MIRRORS = 100
CROWD = 500
ENTRIES = 1_000_000
ROWS = 500
MEMBERS = 10_000
# So many actions fill the log: from then on each is decoded into the memory of one that it forgets.
LOGGED = 2_100


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    # One of what: the unit of the counts.
    unit: str
    # Makes the clients, and returns what does one step.
    prepare: Callable
    # How many units a step is.
    units: int
    # Steps before anything is counted, then two numbers of steps whose difference is the count.
    warm_up: int
    few: int
    many: int
    # What the daemon loads; None for a daemon of types of its own.
    state: Callable[[], object] = lambda: {"counter": 256}
    options: tuple[str, ...] = ()
    # Whether it is done by the daemon of Tests/TypedCounter.
    is_typed: bool = False
    # The most allocations of one unit, whatever the baseline says: 0.01 is none, but for what happens now
    # and then.
    most_allocations: float = math.inf


def pipelined(actions, count, is_durable=False):
    def prepare(connect):
        writer, payloads = connect(), actions()

        def step():
            writer.send([next(payloads) for _ in range(count)], is_durable)
            writer.read_acknowledgement()

        return step

    return prepare


def increments():
    while True:
        yield client.increment("counter")


def typed_increments():
    """An action without values is the number of its case."""
    return itertools.repeat(b"\x00")


def entry(number):
    return f"e{number:07}"


def increments_of_entries():
    """All over the map; the step shares no divisor with the number of entries, so each comes once.
    """
    number = 0
    while True:
        yield client.increment("entries", entry(number))
        number = (number + 618_033) % ENTRIES


def many_entries():
    return {"counter": 256, "entries": {entry(number): 256 for number in range(ENTRIES)}}


def round_trip(connect):
    writer = connect()
    writer.subscribe("counter")
    value = 256

    def step():
        nonlocal value
        value += 1
        patches = writer.patches + 1
        writer.send([client.set_value(value, "counter")])
        writer.read_until(lambda: writer.patches == patches)
        writer.read_acknowledgement()

    return step


def delivery(count):
    def prepare(connect):
        writer = connect()
        mirrors = [connect() for _ in range(MIRRORS)]
        for mirror in mirrors:
            mirror.subscribe("counter")

        def step():
            writer.send([client.increment("counter")] * count)
            writer.read_acknowledgement()
            for mirror in mirrors:
                mirror.read_until(lambda: mirror.patches == writer.number)

        return step

    return prepare


def subscription(connect):
    mirror, numbers = connect(), itertools.count(256)

    def step():
        number = next(numbers)
        mirror.subscribe(f"path {number:05}", number=number)

    return step


def row(number):
    return f"r{number:03}"


def rows(value):
    return {row(number): value for number in range(ROWS)}


def replacement(connect):
    writer, mirror = connect(), connect()
    for number in range(ROWS):
        mirror.subscribe("rows", row(number), number=number + 1)
    values = itertools.count(257)

    def step():
        patches = mirror.patches + ROWS
        writer.send([client.set_object(rows(next(values)), "rows")])
        writer.read_acknowledgement()
        mirror.read_until(lambda: mirror.patches == patches)

    return step


def resumption(connect):
    writer, mirror = connect(), connect()
    for _ in range(20):
        writer.send([client.increment("counter")] * 1000)
        writer.read_acknowledgement()
    numbers = itertools.count(257)
    mirror.subscribe("rows", row(256), number=256, position=mirror.position)

    def step():
        number = next(numbers)
        mirror.subscribe(
            "rows", row(number % ROWS), number=number, position=mirror.position,
            instead_of=number - 1)

    return step


def departure(connect):
    for _ in range(CROWD):
        connect().subscribe("counter")
    mirror, numbers = connect(), itertools.count(257)
    mirror.subscribe("counter", number=256)

    def step():
        number = next(numbers)
        mirror.subscribe("counter", number=number, instead_of=number - 1)

    return step


def snapshot(connect):
    writer, mirror, numbers = connect(), connect(), itertools.count(257)
    mirror.subscribe("entries", number=256)

    def step():
        # Another state, so that no snapshot is there already.
        writer.send([client.increment("entries", entry(0))])
        writer.read_acknowledgement()
        number = next(numbers)
        mirror.subscribe("entries", number=number, instead_of=number - 1)

    return step


KEEPING = ("--state-dir", "state", "--durability", "sync")

ALL = [
    Work(
        "action", "increment of a counter, 1,000 in one write",
        pipelined(increments, 1000), 1000, warm_up=20, few=1, many=11, most_allocations=0.01,
    ),
    Work(
        "typed-action", "increment of a counter in a user's own daemon, 1,000 in one write",
        pipelined(typed_increments, 1000), 1000, warm_up=20, few=1, many=11,
        state=lambda: None, is_typed=True,
    ),
    Work(
        "entry", f"increment of one of {ENTRIES:,} entries, 1,000 in one write",
        pipelined(increments_of_entries, 1000), 1000, warm_up=20, few=1, many=11,
        state=many_entries, most_allocations=0.01,
    ),
    Work(
        "round-trip", "set, patch and acknowledgement of one client",
        round_trip, 1, warm_up=LOGGED, few=100, many=2100,
    ),
    Work(
        "delivery", f"patch to one of {MIRRORS} mirrors, one change at a time",
        delivery(1), MIRRORS, warm_up=300, few=20, many=220, most_allocations=0.06,
    ),
    Work(
        "delivery-in-window", f"patch to one of {MIRRORS} mirrors, 256 changes in one write",
        delivery(256), MIRRORS * 256, warm_up=20, few=2, many=22, most_allocations=0.01,
    ),
    Work(
        "snapshot", f"an entry of a snapshot of {MEMBERS:,}",
        snapshot, MEMBERS, warm_up=20, few=2, many=42,
        state=lambda: {"entries": {entry(number): 256 for number in range(MEMBERS)}},
        # On the loop: beside it, the threads meet in another way each time.
        options=("--limit", "inlineSnapshotBytes=1000000"),
    ),
    Work(
        "subscription", "one more subscription of a connection that has 5,000",
        subscription, 1, warm_up=5000, few=100, many=1100,
    ),
    Work(
        "replacement", f"patch to one of {ROWS} subscriptions below an object that is replaced",
        replacement, ROWS, warm_up=20, few=2, many=22, state=lambda: {"rows": rows(256)},
    ),
    Work(
        "resumption", "a subscription resumed behind 20,000 changes of something else",
        resumption, 1, warm_up=500, few=100, many=1100,
        state=lambda: {"counter": 256, "rows": rows(256)},
    ),
    Work(
        "departure", f"the end of a subscription to what {CROWD} others see, and another",
        departure, 1, warm_up=500, few=100, many=1100,
    ),
    Work(
        "durable", "increment of a counter, durable, one at a time",
        pipelined(increments, 1, is_durable=True), 1, warm_up=LOGGED, few=100, many=1100,
        options=KEEPING,
    ),
    Work(
        "durable-in-window", "increment of a counter, durable, 1,000 in one write",
        pipelined(increments, 1000, is_durable=True), 1000, warm_up=5, few=1, many=6,
        options=KEEPING,
    ),
]
