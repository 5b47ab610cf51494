"""What the works cost: in a file that reads well in a diff, and compared with what they cost now.
"""

import dataclasses
import pathlib
import re
import subprocess

import callgrind
import specialised

PATH = pathlib.Path(__file__).parent / "baseline.txt"
# How much more, in percent, fails; how much less asks for a new baseline.
LIMIT = 3
# The functions that are listed, in percent of the whole.
LISTED = 0.5

PREAMBLE = f"""\
# What one unit of each work costs in lockstepd. Scripts/counts compares with this and fails at
# {LIMIT} % more; Scripts/counts --update writes it. Below each total are the functions with at
# least {LISTED} % of it: instructions and allocations of the function by itself, and its name.
#
# The counts hold for the compiler and the libraries named here. With others they may differ:
# Scripts/counts then says so, and fails all the same. Commit a baseline of theirs by itself.
"""


@dataclasses.dataclass(frozen=True)
class Cost:
    instructions: float
    allocations: float

    @classmethod
    def of(cls, function, profile):
        return cls(profile.instructions.get(function, 0), profile.allocations.get(function, 0))


@dataclasses.dataclass
class Count:
    """What one unit of a work costs."""

    unit: str
    total: Cost
    functions: dict[str, Cost]
    # Whether functions that cost little are missing.
    is_cut: bool = False
    # What was spent in generic functions of the core.
    generic: dict[str, float] = dataclasses.field(default_factory=dict)
    # And in witnesses of protocols.
    witnesses: dict[str, float] = dataclasses.field(default_factory=dict)
    # Instructions in SQLite.
    in_sqlite: float = 0

    @classmethod
    def of(cls, unit, profile):
        generic, witnesses = specialised.generic(profile), specialised.witnesses(profile)
        profile = profile.renamed(callgrind.demangled(profile.functions, "--simplified"))
        total = Cost(profile.total["instructions"], profile.total["allocations"])
        functions = {name: Cost.of(name, profile) for name in profile.functions}
        return cls(unit, total, functions, generic=generic, witnesses=witnesses,
                   in_sqlite=profile.total["in SQLite"])

    @property
    def listed(self):
        """Functions that cost something worth mentioning, the most expensive first."""
        least = self.least
        listed = {
            name: cost for name, cost in self.functions.items()
            if cost.instructions >= least.instructions
            or cost.allocations >= max(least.allocations, 0.0001)
        }
        order = lambda each: (-round(each[1].instructions, 1), each[0])
        return dict(sorted(listed.items(), key=order))

    @property
    def least(self):
        """What a function costs at most that is not listed."""
        share = LISTED / 100
        return Cost(self.total.instructions * share, self.total.allocations * share)

    def function(self, name):
        return self.functions.get(name, self.least if self.is_cut else Cost(0, 0))


def said(*command):
    """The first line that a command prints."""
    answer = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    return answer.splitlines()[0].strip()


def environment():
    """What the counts depend on, besides the source."""
    return {
        "compiler": said("swift", "--version"),
        "valgrind": said("valgrind", "--version").removeprefix("valgrind-"),
        "glibc": said("getconf", "GNU_LIBC_VERSION").removeprefix("glibc "),
        "libuv": said("pkg-config", "--modversion", "libuv"),
        "sqlite": said("pkg-config", "--modversion", "sqlite3"),
        "jemalloc": said("pkg-config", "--modversion", "jemalloc"),
    }


# MARK: The file


def row(cost, name):
    allocations = f"{cost.allocations:.4f}" if cost.allocations >= 0.00005 else "-"
    return f"  {cost.instructions:12.1f} {allocations:>9}  {name}\n"


def write(environment, counts):
    text = PREAMBLE + "\n"
    text += "".join(f"{key}: {value}\n" for key, value in environment.items())
    for name, count in counts.items():
        text += f"\n[{name}]  {count.unit}\n" + row(count.total, "total")
        text += "".join(row(cost, function) for function, cost in count.listed.items())
    PATH.write_text(text)


SECTION = re.compile(r"\[(\S+)\]  (.*)")
ROW = re.compile(r" +([\d.]+) +([\d.]+|-)  (.*)")


def read():
    """The environment and the counts of the file."""
    environment, counts, count = {}, {}, None
    for line in PATH.read_text().splitlines() if PATH.exists() else []:
        if line.startswith("#") or not line:
            continue
        if section := SECTION.fullmatch(line):
            count = counts[section[1]] = Count(section[2], None, {}, is_cut=True)
        elif cost := ROW.fullmatch(line):
            instructions, allocations, function = cost.groups()
            cost = Cost(float(instructions), float(allocations.replace("-", "0")))
            if count.total is None:
                count.total = cost
            else:
                count.functions[function] = cost
        else:
            key, _, value = line.partition(": ")
            environment[key] = value
    return environment, counts


# MARK: Comparing


@dataclasses.dataclass
class Change:
    """What became of one figure of a work."""

    kind: str
    before: Count
    after: Count

    def cost(self, cost):
        return getattr(cost, self.kind)

    @property
    def percent(self):
        before, after = self.cost(self.before.total), self.cost(self.after.total)
        if before == after:
            return 0.0
        return (after / before - 1) * 100 if before else float("inf")

    @property
    def is_too_much(self):
        return self.percent > LIMIT

    @property
    def is_won(self):
        return self.percent < -LIMIT

    def __str__(self):
        percent = f"{self.percent:+.1f}" if abs(self.percent) >= 0.05 else "0.0"
        return f"{self.cost(self.after.total):,.{self.digits}f} {self.kind} ({percent} %)"

    @property
    def digits(self):
        return 1 if self.kind == "instructions" else 4

    def functions(self):
        """The functions that cost more, and those that cost less, the largest change first: name,
        before, after."""
        rows = []
        for name in self.before.functions.keys() | self.after.functions.keys():
            before, after = self.before.function(name), self.after.functions.get(name, Cost(0, 0))
            rows.append((name, self.cost(before), self.cost(after)))
        least = self.cost(self.before.total) / 1000
        more = [each for each in rows if each[2] - each[1] > least]
        less = [each for each in rows if each[1] - each[2] > least
                and each[0] in self.before.functions]
        difference = lambda each: -abs(each[2] - each[1])
        return sorted(more, key=difference), sorted(less, key=difference)

    def explanation(self):
        """A table of the functions that cost more, and of those that cost less."""
        more, less = self.functions()
        rows = more[:12] + less[:5]
        text = f"    {'more':>10} {'before':>10} {'after':>10}  {self.kind} of a function by itself"
        for name, before, after in rows:
            is_bound = self.before.is_cut and name not in self.before.functions
            shown = f"{'<' if is_bound else ''}{before:.{self.digits}f}"
            text += f"\n    {after - before:+10.{self.digits}f} {shown:>10}"
            text += f" {after:10.{self.digits}f}  {name}"
        rest = self.cost(self.after.total) - self.cost(self.before.total)
        rest -= sum(after - before for _, before, after in rows)
        return f"{text}\n    {rest:+10.{self.digits}f} {'':21}  elsewhere"


def changes(before, after):
    return [Change(kind, before, after) for kind in ("instructions", "allocations")]
