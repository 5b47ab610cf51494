"""Reads what callgrind writes."""

import collections
import pathlib
import re
import subprocess

ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}
# What allocates on behalf of another function, as a rule once: that one is told of.
WRAPPERS = re.compile(
    r"_?swift_(slowAlloc|allocObject)|operator new|\$ss.*(_consumeAndCreateNew|_createNewBuffer"
    r"|_copyCollectionToContiguousArray|_copyToContiguousArray|_allocateUninitialized)")


# What is spent in SQLite is what calls of its functions take, also in the C library. Our own log is
# written by functions of SQLite without a name, so it is not among that.
SQLITE = "libsqlite3."


class Profile:
    """Instructions and allocations, in all and of each function by itself; and the instructions in
    SQLite."""

    def __init__(self):
        self.total = collections.Counter()
        self.instructions = collections.Counter()
        self.allocations = collections.Counter()

    @property
    def functions(self):
        return self.instructions.keys() | self.allocations.keys()

    def minus(self, other):
        result = Profile()
        for counter in vars(result):
            difference = collections.Counter(getattr(self, counter))
            difference.subtract(getattr(other, counter))
            setattr(result, counter, difference)
        return result

    def divided(self, by):
        result = Profile()
        for counter in vars(result):
            for name, cost in getattr(self, counter).items():
                getattr(result, counter)[name] = cost / by
        return result

    def renamed(self, names):
        """Functions by other names; those that get the same one become one."""
        result = Profile()
        result.total = self.total
        for counter in "instructions", "allocations":
            for name, cost in getattr(self, counter).items():
                getattr(result, counter)[names[name]] += cost
        return result


def is_wrapper(function):
    return function in ALLOCATORS or WRAPPERS.match(function) is not None


NAMED = re.compile(r"\((\d+)\)(?: (.*))?$")
TRIGGER = "desc: Trigger: Client Request: "


def parse(dump):
    """The label that a dump was cut at, and its profile, with functions by their symbols.

    The form: https://valgrind.org/docs/manual/cl-format.html. A line of costs is the function's
    own, except the one behind `calls=`, which is of what was called.
    """
    label, profile = None, Profile()
    known = {"fn": {}, "ob": {}}
    function = library = callee = called_library = None
    is_call = False
    for line in dump.splitlines():
        key, _, value = line.partition("=")
        if key in ("fn", "cfn", "ob", "cob"):
            number, name = NAMED.match(value).groups()
            name = known[key[-2:]].setdefault(number, name)
            if key == "cfn":
                callee = name
            elif key == "cob":
                called_library = pathlib.Path(name).name
            elif key == "ob":
                library = pathlib.Path(name).name
            elif key == "fn":
                is_nameless = name.startswith("0x") or name == "???"
                function = f"{library}, functions without a name" if is_nameless else name
        elif key == "calls":
            is_call = True
            count = int(value.split()[0])
            if callee in ALLOCATORS and function not in ALLOCATORS:
                profile.total["allocations"] += count
            if is_wrapper(callee) and not is_wrapper(function):
                profile.allocations[function] += count
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            cost = int(line.split()[1])
            if not is_call:
                profile.total["instructions"] += cost
                profile.instructions[function] += cost
            elif callee.startswith("sqlite3_") and (called_library or "").startswith(SQLITE):
                # A library that is not named is the caller's own.
                profile.total["in SQLite"] += cost
            if is_call:
                called_library = None
            is_call = False
        elif line.startswith(TRIGGER):
            label = line.removeprefix(TRIGGER)
    return label, profile


def demangled(symbols, *options):
    """What people call each of these symbols."""
    symbols = sorted(symbols)
    answer = subprocess.run(
        ["swift", "demangle", "--compact", *options],
        input="\n".join(symbols), text=True, capture_output=True, check=True,
    ).stdout.splitlines()
    return {symbol: plain(name) for symbol, name in zip(symbols, answer, strict=True)}


TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")


def plain(name):
    """A name of C++ without its arguments, which are longer than all else."""
    if "::" not in name:
        return name
    name = name.replace("(anonymous namespace)::", "")
    while TEMPLATE_ARGUMENTS.search(name):
        name = TEMPLATE_ARGUMENTS.sub("", name)
    return re.sub(r"\(.*", "", name)
