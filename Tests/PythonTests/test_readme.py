"""The lines of the library's README, as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import lockstep
from conftest import ROOT, Daemon

README = (ROOT / "Sources/Client/Python/README.md").read_text()
BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def test_the_readme_s_programs_run(daemon: Daemon) -> None:
    daemon.start()
    live, script = BLOCKS
    environment = {**os.environ, "LOCKSTEP_SOCKET": daemon.socket}
    command = [sys.executable, "-u", "-c"]
    with subprocess.Popen(
        [*command, live], stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "45\n"
            with lockstep.connect_blocking(daemon.socket) as connection:
                connection.set("/lamp/level", 1)
                assert program.stdout.readline().startswith("3 ('/level',) {")
        finally:
            program.kill()
    said = subprocess.run([*command, script], stdout=subprocess.PIPE, text=True, env=environment)
    assert said.stdout == "True\n" and said.returncode == 0
