#!/usr/bin/env python3
"""Checks liblockstep against its header, and its client against the transcripts of the protocol.

    check.py header HEADER LIBRARY    every function that is declared is exported, and nothing else is;
                                      the library needs nothing but the system's own libraries
    check.py transcripts PROGRAM      PROGRAM (mirror.c) sends what each transcript of
                                      Protocols/vectors/sessions.json says, and shows its final state
    check.py cpu RECEIVE TESTCLIENT   receiving patches costs RECEIVE (receive.c) no more
                                      processor time than TESTCLIENT, which is in Swift
"""

import json, os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Transcripts in which a client mirrors the root and sends nothing, and one with an action.
NAMES = [
    "snapshot and patches", "snapshot and target", "snapshot in parts", "a client that lags",
    "gap and resync", "restarted", "resume, continuation 1",
    "resume, continuation 1, cut before the patch", "resume, continuation 2, history",
    "resume, continuation 2, epoch", "resume, continuation 2, ahead", "restarted, then cut",
    "stopping", "an action that was lost",
]  # fmt: skip
# [3, ["n"]], an increment, as it travels.
ACTIONS = {"an action that was lost": ["820381616e"]}
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}  # fmt: skip


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def check_header(header, library):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(lockstep_\w+)\(", text))
    exported = {
        line.split()[-1].split("@")[0]
        for line in output("nm", "--dynamic", "--defined-only", library).splitlines()
    } - {"LOCKSTEP_1"}
    for name in sorted(declared - exported):
        yield f"{name} is declared, and not exported"
    for name in sorted(exported - declared):
        yield f"{name} is exported, and not declared"
    dynamic = output("readelf", "--dynamic", "--wide", library)
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if name not in NEEDED:
            yield f"the library needs {name}"
    if "[liblockstep.so.1]" not in dynamic:
        yield "the library's name is not liblockstep.so.1"
    print(f"{len(declared)} functions")


def play(program, transcript):
    """What is wrong when a false daemon plays a transcript to the program; nothing if all is right."""
    with tempfile.TemporaryDirectory() as folder:
        socket = folder + "/socket"
        false_daemon = ROOT / "Tests/ProtocolTests/false_daemon.py"
        daemon = subprocess.Popen(
            [sys.executable, "-B", false_daemon, socket, transcript["name"], "--timeout", "30"],
            text=True, stdout=subprocess.PIPE)  # fmt: skip
        said = [daemon.stdout.readline()]
        client = subprocess.Popen(
            [*program, socket, *ACTIONS.get(transcript["name"], [])], text=True,
            stdout=subprocess.PIPE)  # fmt: skip
        for line in daemon.stdout:
            said.append(line)
            if line.startswith(("played", "difference")):
                break
        final = [step["mirrors"][0] for step in transcript["steps"] if step.get("mirrors")][-1]
        shown = []
        if "played\n" in said:
            for line in client.stdout:
                _, revision, value = line.split(" ", 2)
                shown.append((int(revision), json.loads(value)))
                if shown[-1] == (final["position"][2], final["value"]):
                    break
        client.kill()
        client.wait()
        said += daemon.stdout.readlines()
        if daemon.wait() != 0:
            return "".join(said)
        if not shown or shown[-1] != (final["position"][2], final["value"]):
            return f"it shows {shown}, and not {final}"


def check_transcripts(*program):
    everything = json.loads((ROOT / "Protocols/vectors/sessions.json").read_text())["transcripts"]
    for transcript in everything:
        if transcript["name"] in NAMES:
            if wrong := play(program, transcript):
                yield f"{transcript['name']}: {wrong}"
    print(f"{len(NAMES)} transcripts")


def receive(command, patches, text):
    """The processor time of a client that mirrors so many patches, of the same bytes each time."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/socket"
        stream = subprocess.Popen(
            [sys.executable, "-B", ROOT / "Tests/CLibrary/stream.py", path, str(patches)], text=True,
            stdout=subprocess.PIPE)  # fmt: skip
        stream.stdout.readline()
        client = subprocess.Popen(
            [part.format(socket=path, patches=patches) for part in command], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)  # fmt: skip
        client.stdin.write(text.format(patches=patches))
        client.stdin.close()
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = status
        stream.kill()
        stream.wait()
        assert status == 0, (command, status)
        return usage.ru_utime + usage.ru_stime


def check_cpu(ours, swift):
    clients = {
        "C": ([ours, "{socket}", "{patches}"], ""),
        "Swift": ([swift, "{socket}", "test"], "reached {patches}\n"),
    }
    few, many = 100_000, 600_000
    # The least of three: whatever else runs can only add.
    times = {
        name: min(receive(command, many, text) for _ in range(3))
        - min(receive(command, few, text) for _ in range(3))
        for name, (command, text) in clients.items()
    }
    ratio = times["C"] / times["Swift"]
    for name, seconds in times.items():
        print(f"{name}: {seconds * 1e6 / (many - few):.2f} µs of the processor a patch")
    print(f"ratio {ratio:.2f}")
    if ratio > 1.1:
        yield "the client in C costs more"


def main():
    checks = {"header": check_header, "transcripts": check_transcripts, "cpu": check_cpu}
    faults = list(checks[sys.argv[1]](*sys.argv[2:]))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
