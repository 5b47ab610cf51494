"""States with types of their own, by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import lockstep
import pytest
from conftest import BINARIES, EXAMPLES, Daemon, eventually, load, serving
from lockstep.core.cbor import Reader, encode
from lockstep.core.changes import Watcher
from lockstep.core.patches import apply
from lockstep.core.schema import Schema, find
from lockstep.core.values import payload
from lockstep.core.views import show

TYPED = load("digests-typed")
HOUSE = Schema(bytes.fromhex(TYPED["schema"]))
FULL = next(one for one in TYPED["vectors"] if one["name"] == "a struct of everything")
ACTIONS = Schema(
    encode(
        {
            "state": ["type", "State"],
            "types": {
                "State": ["struct", [[0, "count", "int"], [4, "note", ["optional", "text"]]]],
                "Size": ["struct", [[1, "width", "uint"], [2, "height", "double"],
                                    [3, "unit", ["optional", "text"]]]],
                "Inner": ["enum", [[0, "reset", []], [2, "add", [[1, "_0", "int"]]]]],
                "Action": ["enum", [
                    [0, "toggle", [[1, "_0", "int"]]],
                    [1, "resize", [[1, "width", "uint"], [2, "height", "double"]]],
                    [2, "size", [[1, "_0", ["type", "Size"]]]],
                    [3, "inner", [[1, "_0", ["type", "Inner"]]]],
                    [4, "pair", [[1, "_0", "int"], [2, "_1", ["optional", "text"]]]],
                    [5, "stop", []],
                    [6, "all", [[1, "_0", ["array", ["type", "Inner"]]]]],
                    [7, "names", [[1, "_0", ["map", "int", "text"]]]],
                    [8, "place", [[1, "_0", "path"], [2, "_1", "bytes"], [3, "_2", "bool"]]],
                ]],
            },
            "action": ["type", "Action"],
            "later": 1,
        }
    )
)  # fmt: skip


def node(value: Any) -> Any:
    return Reader(encode(value)).item(level=0)


def house() -> Any:
    return Reader(bytes.fromhex(FULL["hex"])).item(level=0)


# Actions


@pytest.mark.parametrize(
    "action, values, fields, wanted",
    [
        ("toggle", [1], {}, [0, 1]),
        ("resize", [640, 480], {}, [1, 640, 480.0]),
        ("resize", [], {"height": 480, "width": 640}, [1, 640, 480.0]),
        ("resize", [640], {"height": 480}, [1, 640, 480.0]),
        ("size", [], {"width": 1, "height": 2}, [2, {1: 1, 2: 2.0}]),
        ("size", [{"width": 1, "height": 2, "unit": "m"}], {}, [2, {1: 1, 2: 2.0, 3: "m"}]),
        ("inner.add", [5], {}, [3, [2, 5]]),
        ("inner.reset", [], {}, [3, 0]),
        ({"inner": {"add": 5}}, [], {}, [3, [2, 5]]),
        ({"inner": "reset"}, [], {}, [3, 0]),
        ("pair", [1], {}, [4, 1]),
        ("pair", [1, None], {}, [4, 1]),
        ({"pair": [1, "a"]}, [], {}, [4, 1, "a"]),
        ("stop", [], {}, 5),
        ({"stop": None}, [], {}, 5),
        ("all", [["reset", ("add", 1), {"add": 2}]], {}, [6, [0, [2, 1], [2, 2]]]),
        ("names", [{1: "a", "2": "b"}], {}, [7, {1: "a", 2: "b"}]),
        ("place", ["/a/0", b"\x00", True], {}, [8, ["a", "0"], b"\x00", True]),
        ("place", [["a", 0], "AA==", False], {}, [8, ["a", 0], b"\x00", False]),
    ],
)
def test_actions_are_written_by_their_names(
    action: Any, values: Any, fields: Any, wanted: Any
) -> None:
    assert payload(ACTIONS, action, values, fields) == encode(wanted)


@pytest.mark.parametrize(
    "action, values, fields, error, says",
    [
        ("tog", [], {}, lockstep.UnknownName, "there are: all, inner"),
        ("inner.no", [], {}, lockstep.UnknownName, "inner: there is no Inner 'no'"),
        ("toggle.no", [], {}, lockstep.UnknownName, "does not carry"),
        ("toggle", [], {}, TypeError, "toggle needs _0: int"),
        ("toggle", ["a"], {}, TypeError, "toggle._0: 'a' is no int"),
        ("toggle", [True], {}, TypeError, "True is no int"),
        ("toggle", [1 << 63], {}, ValueError, "64 bits"),
        ("toggle", [1, 2], {}, TypeError, "2 values"),
        ("resize", [1], {"width": 2}, TypeError, "two values"),
        ("resize", [1], {"wide": 2}, lockstep.UnknownName, "it has width"),
        ("size", [{"width": 1}], {}, TypeError, "needs height: double"),
        ("size", [{"wide": 1}], {}, lockstep.UnknownName, "it has width, height, unit"),
        ("stop", [1], {}, TypeError, "carries nothing"),
        ({"stop": 1}, [], {}, TypeError, "carries nothing"),
        ({"stop": 1, "toggle": 1}, [], {}, TypeError, "is no Action"),
        ("names", [{"x": "a"}], {}, TypeError, "is no key"),
        ({"stop": None}, [1], {}, TypeError, "as a whole"),
    ],
)
def test_what_is_no_action_says_why(
    action: Any, values: Any, fields: Any, error: Any, says: str
) -> None:
    with pytest.raises(error) as caught:
        payload(ACTIONS, action, values, fields)
    assert says in str(caught.value)


# Reading


def test_a_typed_state_reads_by_names() -> None:
    view = show(house(), HOUSE.state)
    assert view["note"] == "fragile"
    assert view["lamps"][1]["name"] == "hall" and view["lamps"][-7]["name"] == "é"
    assert set(view["lamps"]) == {1, 42, -7}
    assert view["mode"] == {"scene": "evening"}
    assert "nothing" not in view and list(view)[:2] == ["note", "lamps"]
    assert view["modes"][2] == {"labelled": ["a", None]} and view["image"] == b"\x00\xff"
    with pytest.raises(KeyError):
        view["nothing"]
    assert lockstep.plain(view)["modes"] == list(view["modes"])
    assert len(view) == len(list(view)) == len(lockstep.plain(view))


def test_paths_go_by_names() -> None:
    assert HOUSE.keys(("lamps", "42", "name"))[1] == 42
    with pytest.raises(lockstep.UnknownName, match="it has .*lamps"):
        HOUSE.keys(("lamp",))
    with pytest.raises(lockstep.UnknownName, match="integers"):
        HOUSE.keys(("lamps", "hall"))
    assert find(house(), HOUSE.state, ("lamps", "1", "name"))[0] == "hall"
    assert find(house(), HOUSE.state, ("mode", "scene"))[0] == "evening"
    assert find(house(), HOUSE.state, ("lamps", "hall"))[0] is lockstep.ABSENT
    assert HOUSE.split(("lamps", "42", "name")) == (("lamps", "42", "name"), ())
    assert HOUSE.split(("order", "0")) == (("order",), ("0",))


def test_changes_go_by_names() -> None:
    value = house()
    lamps, hall = Watcher(("lamps", "1"), value, HOUSE.state), Watcher((), value, HOUSE.state)
    keys = HOUSE.keys(("lamps", 1, "name"))
    patch = node({keys[0]: {keys[1]: {keys[2]: "kitchen"}}})
    value, places = apply(value, patch)
    for watcher in (lamps, hall):
        watcher.changed(7, places, value, HOUSE.state)
        (change,) = watcher.waiting
        assert change.places == ("/lamps/1/name",)
    assert lamps.waiting[0].old["name"] == "hall" and lamps.waiting[0].new["name"] == "kitchen"


def test_bad_schemas_are_refused() -> None:
    for wrong in (
        {"state": "value"}, {"state": "value", "types": [], "action": "value"},
        {"state": ["type", "No"], "types": {}, "action": "value"},
        {"state": ["optional"], "types": {}, "action": "value"},
        {"state": "value", "types": {"A": ["struct", [["a", 0, "int"]]]}, "action": "value"},
        {"state": "value", "types": {"A": ["enum", [[0, "a", 1]]]}, "action": "value"},
    ):  # fmt: skip
        with pytest.raises(lockstep.ProtocolError):
            Schema(encode(wrong))


# Live


@pytest.fixture
def counter(folder: str) -> Iterator[Daemon]:
    """`TypedCounter`, which Scripts/test builds beside lockstepd."""
    program = os.path.join(BINARIES or "", "TypedCounter")
    if not BINARIES or not os.access(program, os.X_OK):
        pytest.skip("LOCKSTEP_BINARIES has no TypedCounter")
    yield from serving(folder, program)


@pytest.fixture
def todos(folder: str) -> Iterator[Daemon]:
    """`todosd`, of the examples."""
    program = os.path.join(EXAMPLES or "", "todosd")
    if not EXAMPLES or not os.access(program, os.X_OK):
        pytest.skip("LOCKSTEP_EXAMPLES has no todosd")
    yield from serving(folder, program)


async def test_a_field_may_have_the_name_of_a_parameter(daemon: Daemon) -> None:
    daemon.start()
    async with lockstep.connect(daemon.socket) as connection:
        with pytest.raises(lockstep.UnknownName, match="no field 'action'"):
            await connection.send("set", "/n", action=1)
        await connection.send("set", value=1, path="/n")
        assert await connection.get("/n") == 1


async def test_a_typed_counter(counter: Daemon) -> None:
    counter.start()
    async with lockstep.connect(counter.socket) as connection:
        assert connection.actions == ("increment",) and connection.schema.is_typed
        mirror, count = await connection.mirror(), await connection.mirror("/count")
        assert mirror.value == {"count": 0} and count.value == 0
        changes = mirror.changes("/count")
        for _ in range(3):
            await connection.send("increment")
        assert mirror["count"] == count.value == 3 == await connection.get("/count")
        change = await changes.__anext__()
        assert (change.places, change.old, change.new) == (("/count",), 0, 1)
        assert await mirror.verify() is True and await count.verify() is True
        with pytest.raises(lockstep.UnknownName, match="no field 'number'; it has count"):
            await connection.mirror("/number")
        with pytest.raises(lockstep.UnknownName, match="there are: increment"):
            await connection.set("/count", 1)
        counter.kill()
        await eventually("it is noticed", lambda: not mirror.is_current)
        counter.restart()
        await mirror.wait_current()
        assert mirror.value == {"count": 0}


async def test_todos_and_who_is_present(todos: Daemon) -> None:
    backend = os.path.join(todos.folder, "titles")
    with open(backend, "w") as file:
        file.write("milk\neggs\n")
    todos.start("--backend", backend)
    async with lockstep.connect(todos.socket) as connection:
        mirror = await connection.mirror()
        await connection.send("loadTodos")
        await mirror.until(lambda state: len(state["todos"]) == 2)
        one = await connection.mirror("/todos/1")
        assert one["title"] == mirror["todos"][1]["title"] == "milk"
        changes = mirror.changes("/todos/1")
        await connection.send("toggleTodo", 1)
        assert one["isCompleted"] is True and (await changes.__anext__()).places == (
            "/todos/1/isCompleted",
        )
        await connection.send("addTodo", "bread")
        await mirror.until(lambda state: len(state["todos"]) == 3 and not state["drafts"])
        async with lockstep.connect(todos.socket) as other:
            await other.send("readers.enter", "Ann", "")
            session = other.session
            await mirror.until(lambda state: session in readers(state))
        await mirror.until(lambda state: session not in readers(state))
        assert await mirror.verify() is True and await one.verify() is True
        assert (await connection.query("log", 5))["records"]


def readers(state: Any) -> Any:
    """The sessions that are present."""
    return state["readers"]
