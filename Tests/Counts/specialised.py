"""Whether the optimiser has specialised the core for the feature of lockstepd.

The core is generic over the feature. One copy for all features asks the runtime for types at every
action, and costs 2.4 times as much; a `package import` in a library is enough to get it.

And whether it has left out the faults that tests plant, and reads ahead where memory would be waited
for, which no count of instructions shows: to encode 1,000,000 texts took twice as long without.
"""

import re
import subprocess

import callgrind
import client

# The types that are generic over the feature.
CORE = "Server|StoreCore|Daemon"
# What reads, performs and answers actions. What it calls is inlined here, or specialised as well:
# `generic` tells where it is neither.
REQUIRED = [
    ("Server", "receive"), ("Server", "perform"), ("Server", "endTurn"), ("Server", "compose"),
    ("Daemon", "receive"), ("Daemon", "endTurn"),
]
# How much of a work, in percent, may be spent in generic functions of the core.
LIMIT = 1
# And in witnesses of protocols: by these, what is not specialised calls what a type does for a protocol.
# What is specialised has it inlined, or calls one where the type has no other function for it.
WITNESS_LIMIT = 2

# The function that encodes the entries of a document's object.
ENCODING = re.compile(r"^\$s6Values7TrieRefV5visit.*5ValueO.*MapV6encode4into")
# What reads ahead, by the processor's manuals, or calls what does.
READS_AHEAD = re.compile(r"\bprefetch(t0|t1|t2|nta)\b|\bprfm\b|\bcall.*prefetch")

SPECIALISED = re.compile(
    rf"generic specialization <[\w.]*DocumentFeature> of \w+\.({CORE})\.\(?(\w+)")
WITNESS = re.compile("protocol witness for ")
FUNCTION = re.compile(rf"(?:[^<]* in )?\w+\.({CORE})\.\(?(\w+)")


def symbols(lockstepd):
    """The symbols of the functions of Swift in a program."""
    listed = subprocess.run(["nm", lockstepd], text=True, capture_output=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    found = {name for name in names if name.startswith("$s")}
    if not found:
        reason = listed.stderr.strip() or "it has been stripped"
        raise client.Failure(f"there are no functions of Swift to be seen in {lockstepd}: {reason}")
    return found


def functions(lockstepd):
    """The names of the functions of Swift in a program."""
    return callgrind.demangled(symbols(lockstepd)).values()


def encoding(lockstepd):
    """The instructions of the functions that encode the entries of an object, as text."""
    return {
        symbol: subprocess.run(
            ["objdump", "--no-show-raw-insn", f"--disassemble={symbol}", lockstepd], text=True,
            capture_output=True, check=True).stdout
        for symbol in symbols(lockstepd) if ENCODING.match(symbol)}


def special(name):
    """The type and the function of the core that a name says is specialised, or None."""
    match = SPECIALISED.match(name)
    return match and match.groups()


def missing(names):
    """A sentence for each function that a daemon should have specialised and has not, by the names
    of its functions."""
    present = {match.groups() for match in map(FUNCTION.match, names) if match}
    specialised = set(map(special, names))
    for required in REQUIRED:
        function = ".".join(required)
        if required not in specialised and required in present:
            yield (f"{function} is not specialised for DocumentFeature. Look in the last changes"
                   " for what keeps the optimiser from it: a `package import`, or a closure or an"
                   " existential around the core.")
        elif required not in specialised:
            yield (f"lockstepd has no {function}: name what does its work now in"
                   " Tests/Counts/specialised.py.")


def plantable(names):
    """A sentence if a daemon has code that plants faults, by the names of its functions."""
    for name in names:
        if re.search(r"\bServer\.plant\(|\bFaults\.dropsPatch\(", name):
            yield f"lockstepd can be made to fail on purpose, by {name}: compile it without FAULTS."
            return


def waiting(encoding):
    """A sentence if the entries of an object are encoded without reading ahead."""
    if not encoding:
        yield ("lockstepd has no function that encodes the entries of an object: name the one that does"
               " in Tests/Counts/specialised.py.")
    for symbol, instructions in encoding.items():
        if not READS_AHEAD.search(instructions):
            yield f"{symbol} waits for each text that it encodes: it does not read ahead."


def generic(profile):
    """The instructions of each function of the core that ran though it is not specialised."""
    return of_those(profile, FUNCTION)


def witnesses(profile):
    """The instructions of each witness of a protocol that ran."""
    return of_those(profile, WITNESS)


def of_those(profile, pattern):
    names = callgrind.demangled(profile.instructions)
    symbols = [symbol for symbol, name in names.items() if pattern.match(name)]
    short = callgrind.demangled(symbols, "--simplified")
    return {short[symbol]: profile.instructions[symbol] for symbol in symbols}
