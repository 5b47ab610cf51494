"""A daemon under callgrind."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import callgrind
import client

# Valgrind makes a request take some fifty times as long, and the machine may be busy.
TIMEOUT = 300

# All of the daemon's environment. Without the newer instructions, the C library chooses the same
# memcpy on every x86-64 processor.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LD_PRELOAD": "./steady.so",
    "LD_BIND_NOW": "1",
    "SWIFT_DETERMINISTIC_HASHING": "1",
    "SWIFT_BACKTRACE": "enable=no",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-BMI2,-ERMS,-FSRM,"
                      "-SSE4_2,-SSSE3",
}

OPTIONS = ["--tool=callgrind", "--vgdb=no", "--instr-atstart=no", "--dump-line=no",
           "--callgrind-out-file=profile", "--log-file=valgrind.log"]


class Daemon:
    """Runs in a folder of its own, and calls its files by names that are the same everywhere."""

    def __init__(self, folder, program, steady, state, options, planted=0):
        self.folder, self.clients = folder, []
        (folder / "lockstepd").symlink_to(program)
        (folder / "steady.so").symlink_to(steady)
        if state is not None:
            (folder / "state.json").write_text(json.dumps(state))
            options = ("--load", "state.json", *options)
        # Of one length in all runs; one address for each daemon on the machine.
        self.mark_address = f"\0lockstep-counts/{os.getpid():08}{id(self):016x}/"
        environment = ENVIRONMENT | ({"LOCKSTEP_COUNTS_PLANT": str(planted)} if planted else {})
        self.log = folder / "lockstepd.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["valgrind", *OPTIONS, "./lockstepd", "--socket", "socket", *options],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for each in self.clients:
            each.socket.close()

    def failure(self, reason):
        said = "".join(
            path.read_text() for path in (self.log, self.folder / "valgrind.log") if path.exists())
        return client.Failure(f"{reason}. The daemon said:\n{said}")

    def wait_until_it_serves(self):
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.mark("serves")
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None:
                    raise client.Failure("it ended at once") from None
                if time.monotonic() > deadline:
                    raise client.Failure(f"it does not serve after {TIMEOUT} s") from None
                time.sleep(0.05)

    def connect(self):
        connection = client.Client(str(self.folder / "socket"), TIMEOUT)
        self.clients.append(connection)
        return connection

    def mark(self, label):
        """Cut the profile here; returns once that is done, with the daemon idle."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mark:
            mark.settimeout(TIMEOUT)
            mark.bind(self.mark_address + label)
            mark.connect(str(self.folder / "socket"))
            mark.recv(1)

    def profiles(self):
        """What was counted before each mark."""
        dumps = (path.read_text() for path in self.folder.glob("profile.*"))
        return dict(map(callgrind.parse, dumps))


def count(work, program, steady, folder, planted=0):
    """The profile of one unit of a work, done by a daemon."""
    folder.mkdir(parents=True)
    with Daemon(folder, program, steady, work.state(), work.options, planted) as daemon:
        try:
            daemon.wait_until_it_serves()
            step = work.prepare(daemon.connect)
            for steps, label in (work.warm_up, "begin"), (work.few, "few"), (work.many, "many"):
                for _ in range(steps):
                    step()
                daemon.mark(label)
        except (OSError, client.Failure) as error:
            raise daemon.failure(f"{work.name}: {error}") from error
        profiles = daemon.profiles()
    return profiles["many"].minus(profiles["few"]).divided((work.many - work.few) * work.units)
