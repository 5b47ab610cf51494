"""Scripts/counts, once everything is built; see there."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

import baseline
import client
import daemon
import specialised
import works


def count_all(chosen, lockstepd, steady, typed=None, planted=0):
    """What one unit of each of these works costs, by the work's name."""

    def count(work):
        program = typed if work.is_typed else lockstepd
        profile = daemon.count(work, program, steady, folder / work.name, planted)
        return baseline.Count.of(work.unit, profile)

    # The longest first.
    order = sorted(chosen, key=lambda work: work.state is not works.many_entries)
    with tempfile.TemporaryDirectory(prefix="lockstep-counts-") as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = dict(zip((work.name for work in order), pool.map(count, order)))
    return {work.name: counts[work.name] for work in chosen}


# MARK: Faults


def complain(sentence):
    sys.stdout.flush()
    print(f"Scripts/counts: {sentence}", file=sys.stderr)


def generic_functions(counts):
    """A sentence if a work spends too much in what should be specialised, with what that is."""
    if most := above(specialised.LIMIT, counts, lambda count: count.generic):
        yield (
            f"more than {specialised.LIMIT} % is spent in functions of the core that are not"
            " specialised for the daemon's feature:\n" + most
        )
    if most := above(specialised.WITNESS_LIMIT, counts, lambda count: count.witnesses):
        yield (
            f"more than {specialised.WITNESS_LIMIT} % is spent in witnesses of protocols: what calls"
            " them is not specialised:\n" + most
        )


def above(limit, counts, part):
    """The most expensive functions among these parts of the works that spend more than so many percent
    on them, as lines; empty if none does."""
    most = {}
    for name, count in counts.items():
        if sum(part(count).values()) * 100 > count.total.instructions * limit:
            for function, cost in part(count).items():
                most[function] = max(most.get(function, (0, "")), (cost, name))
    rows = sorted(most.items(), key=lambda each: each[1], reverse=True)[:8]
    return "\n".join(f"    {cost:10.1f}  {f} ({name})" for f, (cost, name) in rows)


def slow_for_users(counts):
    """A sentence if an action costs more in a daemon that is built as users build theirs."""
    if {"action", "typed-action"} <= counts.keys():
        stock, typed = (counts[name].total.instructions for name in ("action", "typed-action"))
        if typed > stock:
            yield (f"an action of a typed counter costs {typed:,.0f} instructions in a user's own daemon,"
                   f" and the stock daemon's {stock:,.0f}: it should not be the more expensive one")


# MARK: Comparing


def compare(before, after, is_verbose):
    """Print what became of each work. Returns the names of those that cost too much, and of those
    that cost so much less that it should be kept."""
    too_much, won = [], []
    for name, count in after.items():
        changes = baseline.changes(before[name], count)
        apart = f", {count.in_sqlite:,.1f} instructions in SQLite" if count.in_sqlite else ""
        print(f"{name}: {', '.join(map(str, changes))}{apart}")
        for change in changes:
            if change.is_too_much or is_verbose and abs(change.percent) >= 0.1:
                print(change.explanation())
        if is_verbose:
            print("".join(baseline.row(cost, each) for each, cost in count.listed.items()), end="")
        if any(change.is_too_much for change in changes):
            too_much.append(name)
        elif any(change.is_won for change in changes):
            won.append(name)
    return too_much, won


def check_baseline(counts, is_verbose):
    """Returns whether nothing costs too much."""
    known, before = baseline.read()
    if missing := counts.keys() - before.keys():
        complain(f"not in Tests/Counts/baseline.txt: {', '.join(sorted(missing))}."
                 " Scripts/counts --update adds them")
        return False
    for key, value in baseline.environment().items():
        if known.get(key) != value:
            print(f"The baseline is of {key} {known.get(key)}; here is {value}. That may be why a count"
                  " differs.")
    too_much, won = compare(before, counts, is_verbose)
    allocating = allocates_too_much(counts)
    for sentence in allocating:
        complain(sentence)
    if won:
        print(f"More than {baseline.LIMIT} % less: {', '.join(won)}. Commit the new baseline, or it"
              " can be lost again unnoticed: Scripts/counts --update")
    if too_much:
        complain(f"more than {baseline.LIMIT} % over Tests/Counts/baseline.txt:"
                 f" {', '.join(too_much)}. Mend what grew (above); or, if the cost is meant, commit"
                 " the new baseline with the reason: Scripts/counts --update")
    return not too_much and not allocating


def allocates_too_much(counts):
    """What no baseline excuses, as sentences."""
    most = {work.name: work.most_allocations for work in works.ALL}
    return [f"{name}: {count.total.allocations:.4f} allocations each, and {most[name]} is the most"
            for name, count in counts.items() if count.total.allocations > most[name]]


def update(counts):
    known, before = baseline.read()
    for sentence in allocates_too_much(counts):
        complain(sentence)
    environment = baseline.environment()
    if known != environment and len(counts) < len(works.ALL):
        raise client.Failure("the baseline is of another compiler or other libraries: update all of"
                             " it, without names of works")
    counts = before | counts
    baseline.write(environment, {work.name: counts[work.name] for work in works.ALL
                                 if work.name in counts})
    print(f"Written: {baseline.PATH}")


# MARK: The test of the test


def test_sentences():
    """Whether what is not specialised, and an expensive daemon of a user, are found and named."""

    def count(instructions, **parts):
        return baseline.Count("one", baseline.Cost(instructions, 0), {}, **parts)

    for most, part in ((specialised.LIMIT, "generic"), (specialised.WITNESS_LIMIT, "witnesses")):
        for cost, is_found in ((most, False), (most + 1, True)):
            found = list(generic_functions({"a work": count(100, **{part: {"a function": cost}})}))
            if bool(found) != is_found or is_found and "a function (a work)" not in found[0]:
                raise client.Failure(f"with {cost} % in {part}, this is found: {found}")
    for typed, is_found in ((100, False), (101, True)):
        found = list(slow_for_users({"action": count(100), "typed-action": count(typed)}))
        if bool(found) != is_found:
            raise client.Failure(f"with {typed} instructions against 100, this is found: {found}")


def test_itself(lockstepd, steady):
    """Whether nothing is found where nothing changed, and a planted fault is, and is named."""
    names = specialised.functions(lockstepd)
    if found := list(specialised.missing(names)):
        raise client.Failure(f"where all is specialised, this is found: {found}")
    for required in specialised.REQUIRED:
        function = ".".join(required)
        without = [name for name in names if specialised.special(name) != required]
        found = list(specialised.missing(without))
        if len(found) != 1 or not re.search(rf"\b{re.escape(function)}\b", found[0]):
            raise client.Failure(f"without a specialised {function}, this is found: {found}")
    print(f"without a specialised {function}: {found[0]}")
    planting = "DaemonCore.Server.plant(DaemonCore.Faults) -> ()"
    if not list(specialised.plantable([*names, planting])):
        raise client.Failure(f"a daemon with {planting} passes")
    encoding = specialised.encoding(lockstepd)
    if found := list(specialised.waiting(encoding)):
        raise client.Failure(f"where all is read ahead, this is found: {found}")
    waits = {name: re.sub("prefetch|prfm", "nop", text) for name, text in encoding.items()}
    if not list(specialised.waiting(waits)) or not list(specialised.waiting({})):
        raise client.Failure("a daemon that does not read ahead passes")
    test_sentences()
    chosen = [work for work in works.ALL if work.name in ("round-trip", "durable")]
    first, second = (count_all(chosen, lockstepd, steady) for _ in range(2))
    for name in first:
        for change in baseline.changes(first[name], second[name]):
            print(f"{name}, counted again: {change}")
            if abs(change.percent) > 0.5:
                raise client.Failure(f"the counts of {name} differ:\n{change.explanation()}")
    if not first["durable"].in_sqlite:
        raise client.Failure("a durable action takes no instructions in SQLite: are its calls seen?")
    planted = count_all(chosen[:1], lockstepd, steady, planted=2000)
    for name in planted:
        for change in baseline.changes(first[name], planted[name]):
            print(f"{name}, with a planted fault: {change}\n{change.explanation()}")
            grown, _ = change.functions()
            if not change.is_too_much or grown[0][0] != "planted_slowness":
                raise client.Failure(f"the fault planted in {name} is not found, or not named")


# MARK: The command line


def arguments():
    parser = argparse.ArgumentParser(
        prog="Scripts/counts", usage="see Scripts/counts --help", add_help=False)
    parser.add_argument("works", nargs="*", metavar="WORK")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--lockstepd", type=pathlib.Path, required=True)
    parser.add_argument("--typed", type=pathlib.Path, required=True)
    parser.add_argument("--steady", type=pathlib.Path, required=True)
    parser.add_argument("--before", type=pathlib.Path)
    options = parser.parse_args()
    names = [work.name for work in works.ALL]
    for work in options.works:
        if work not in names:
            parser.error(f"there is no work {work}; there are: {' '.join(names)}")
    return options


def main():
    options = arguments()
    lockstepd, steady = options.lockstepd.resolve(), options.steady.resolve()
    if options.self_test:
        test_itself(lockstepd, steady)
        return True
    chosen = [work for work in works.ALL if not options.works or work.name in options.works]
    if options.before:
        # There is no typed daemon to compare with.
        chosen = [work for work in chosen if not work.is_typed]
    names = specialised.functions(lockstepd)
    faults = [*specialised.missing(names), *specialised.plantable(names),
              *specialised.waiting(specialised.encoding(lockstepd))]
    counts = count_all(chosen, lockstepd, steady, options.typed.resolve())
    faults += [*generic_functions(counts), *slow_for_users(counts)]
    is_fine = not faults
    if options.before:
        before = count_all(chosen, options.before.resolve(), steady)
        is_fine &= not compare(before, counts, options.verbose)[0]
    elif not options.update:
        is_fine &= check_baseline(counts, options.verbose)
    elif is_fine:
        update(counts)
    for fault in faults:
        complain(fault)
    return is_fine


if __name__ == "__main__":
    try:
        sys.exit(0 if main() else 1)
    except client.Failure as failure:
        complain(failure)
        sys.exit(1)
