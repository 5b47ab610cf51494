"""Run the blocks of a README as they stand, and compare what they print with what it shows.

    check_readme.py README.md LIBRARY [--self-test]     (Scripts/check-readme calls it)

LIBRARY is the folder of liblockstep. $LOCKSTEP_PYTHON is the Python that has pip; $LOCKSTEP_SWIFT what
is called instead of `swift`.

- `sh`: the commands are run in the clone, and what they export holds for the blocks behind.
- `console`: what is behind "$ " is typed at a terminal, or at a second one where the line begins in the
  right half; the other lines are what comes then, and nothing else may; it ends with status 0. "…" stands for any lines. Times
  and ids are not compared. A block without a daemon of its own ("&") gets a new lockstepd.
- `swift`, `python`, `c`: the program is compiled and run beside a new lockstepd, and prints what its
  comments "prints …" say. Swift that begins with "// Sources/…" is a file that Scripts/new writes.
- Others are in NOT_RUN, with the reason and what is checked instead.

And what the text names exists: files, scripts, commands of `lockstep` and their options.
"""

import difflib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

from check_transcript import masked

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The first word of a block's first line: why it is not run, and a command that must succeed instead.
NOT_RUN = {
  "apt": ("needs root", ["Scripts/package", "--help"]),
  "sudo": ("needs root", ["Scripts/package", "--help"]),
  "Scripts/demo": ("takes minutes, and the second is what runs this", ["Scripts/demo", "--help"]),
  "Scripts/install": ("needs systemd: Scripts/systemd-box test does it", ["Scripts/systemd-box", "list"]),
  "bytes": ("is a picture", ["true"]),
}
# What Scripts/new is called with, so that a file of Swift can be found that it wrote.
PACKAGE = "groceries"
# The prompt of a shell, with the status of the last command.
PROMPT = re.compile(r"\x1e(\d+)\x1f$")
IDLE = "\x1e0\x1f"
# A line of a shell that starts a process in the background.
JOB = re.compile(r"^\[\d+\] \d+$")
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# How long a line may take to come, and a command to end, in seconds. Some build.
PATIENCE, LONG_PATIENCE = 60, 1800


class Falsehood(Exception):
  """The README says what is not so."""


class Block:
  def __init__(self, kind, number, lines):
    self.kind, self.number, self.lines = kind, number, lines
    self.text = "".join(line + "\n" for line in lines)

  def __str__(self):
    return f"line {self.number}: {self.kind or 'indented'}: {self.lines[0]}"

  @property
  def program(self):
    """The lines of a file without the comment that names it."""
    return self.text.split("\n", 1)[1]

  @property
  def path(self):
    """The file of the package that this is."""
    named = re.match(r"// (Sources/\S+)$", self.lines[0])
    return named[1] if named and self.kind == "swift" else None

  @property
  def prints(self):
    """What the program prints, by its comments."""
    return re.findall(r"(?://|#|/\*) prints (.*?)(?: \*/)?$", self.text, re.MULTILINE)


def blocks(text):
  """The fenced and the indented blocks."""
  lines, found, at = text.split("\n"), [], 0
  while at < len(lines):
    fence = re.match(r"```(\w*)$", lines[at])
    start = at
    if fence:
      at = lines.index("```", at + 1)
      found.append(Block(fence[1], start + 2, lines[start + 1:at]))
    elif lines[at].startswith("    ") and not (at and lines[at - 1].strip()):
      while at + 1 < len(lines) and lines[at + 1].startswith("    "):
        at += 1
      found.append(Block("", start + 1, [line[4:] for line in lines[start:at + 1]]))
    at += 1
  return found


class Terminal:
  """A shell at a terminal."""

  def __init__(self, environment):
    self.pid, self.file = pty.fork()
    if self.pid == 0:
      modes = termios.tcgetattr(0)
      modes[3] &= ~termios.ECHO
      modes[1] &= ~termios.ONLCR
      termios.tcsetattr(0, termios.TCSANOW, modes)
      termios.tcsetwinsize(0, (50, 100))
      os.chdir(ROOT)
      shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
      os.execvpe("bash", shell, {**environment, "PS1": "\x1e$?\x1f", "PS2": "", "TERM": "xterm"})
    # What has come and was not looked at yet, and the lines that were.
    self.said, self.seen = "", []
    self.ran = "bash"
    self.wait_for_prompt()

  def read(self, patience):
    """Take what comes within a moment. False if nothing did."""
    if not select.select([self.file], [], [], patience)[0]:
      return False
    try:
      more = os.read(self.file, 65536)
    except OSError:
      more = b""
    if not more:
      raise Falsehood(f"the shell has ended after: {self.ran}")
    self.said += STYLE.sub("", more.decode(errors="replace").replace("\r", ""))
    return True

  def line(self):
    """The next line of output; None if the command has ended, which must be with status 0."""
    patience = time.monotonic() + self.patience
    while True:
      line, end, rest = self.said.partition("\n")
      if end:
        self.said = rest
        if JOB.match(line):
          continue
        self.seen.append(line)
        return line
      if prompt := PROMPT.search(self.said):
        if prompt[1] != "0":
          last = "\n".join([*self.seen[-30:], self.said[:prompt.start()]])
          raise Falsehood(f"status {prompt[1]} from: {self.ran}\n{last}")
        # The last line may be without its end.
        line, self.said = self.said[:prompt.start()], IDLE
        return line or None
      if not self.read(max(0, patience - time.monotonic())):
        raise Falsehood(f"no more comes, after {self.patience} seconds, from: {self.ran}")

  @property
  def patience(self):
    return LONG_PATIENCE if re.search(r"\bswift\b|Scripts/", self.ran) else PATIENCE

  def wait_for_prompt(self, skip=False):
    """Until the command has ended. What it still says is too much, unless it is to be skipped."""
    while (line := self.line()) is not None:
      if not skip:
        raise Falsehood(f"not shown: {line!r}, from: {self.ran}")
    self.said = ""

  def type(self, command):
    self.ran, self.seen = command, []
    os.write(self.file, (command + "\n").encode())

  def end(self):
    """Kill everything that runs in it: its processes have the shell's session."""
    for process in os.listdir("/proc"):
      if process.isdigit():
        try:
          if os.getsid(int(process)) == self.pid:
            os.kill(int(process), signal.SIGKILL)
        except ProcessLookupError:
          pass
    os.waitpid(self.pid, 0)
    os.close(self.file)


class Runner:
  def __init__(self, library):
    self.library = library
    self.work = tempfile.mkdtemp()
    self.home = os.path.join(self.work, "home")
    self.python = os.path.join(self.work, "python")
    self.shims = os.path.join(self.work, "shims")
    for folder in [self.home, self.python, self.shims]:
      os.mkdir(folder)
    swift = os.path.join(self.shims, "swift")
    with open(swift, "w") as file:
      # For the package, with the options of our tests, so that nothing is built again; and for all with
      # the caches that there are.
      file.write(f"""#!/bin/sh
case $PWD in
  "{self.home}"/*) swift='{os.environ["LOCKSTEP_SWIFT"]}' ;;
  *) swift='{shutil.which("swift")}' ;;
esac
HOME='{os.environ["HOME"]}' exec "$swift" "$@"
""")
    os.chmod(swift, 0o755)
    # Not to be in the way of those of the block.
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
    self.environment = {
      **kept, "HOME": self.home, "PYTHONPATH": self.python, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1",
      "PATH": os.pathsep.join(
        [self.shims, os.path.dirname(os.environ["LOCKSTEP_PYTHON"]), os.environ["PATH"]]),
      # pip takes what is there, and installs it in the folder of this run.
      "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_TARGET": self.python, "PIP_QUIET": "1",
      "PIP_UPGRADE": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

  def close(self):
    shutil.rmtree(self.work)

  def run(self, block):
    first = block.lines[0].split()[0]
    if first in NOT_RUN:
      self.check_instead(block, NOT_RUN[first][1])
    elif block.path:
      self.compare(block)
    elif hasattr(self, "run_" + block.kind):
      getattr(self, "run_" + block.kind)(block)
    else:
      raise Falsehood("nothing here runs such a block; NOT_RUN does not have it")

  def check_instead(self, block, command):
    self.checked(command)
    for script in re.findall(r"\bScripts/[\w-]+", block.text):
      self.checked(["bash", "-n", script])

  def checked(self, command, **options):
    done = subprocess.run(
      command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
      **{"cwd": ROOT, "env": self.environment, **options})
    if done.returncode != 0:
      raise Falsehood(f"status {done.returncode} from {' '.join(command)}\n{done.stdout}")
    return done.stdout

  # MARK: Commands

  def run_sh(self, block):
    """What they export holds for what comes behind, as in a terminal."""
    # pip builds in the folder that it is given.
    prelude = f"""
      pip() (mkdir --parents "{self.work}/copy/Sources/Client"
             cp --recursive Sources/Client/Python "{self.work}/copy/Sources/Client"
             cd "{self.work}/copy"; command pip "$@")
    """
    path = os.path.join(self.work, "path")
    self.checked(
      ["bash", "-euo", "pipefail", "-c", f'{prelude}\n{block.text}\nprintf %s "$PATH" >"{path}"'])
    with open(path) as file:
      found = file.read()
    # `export` hides that the command inside has failed.
    former = self.environment["PATH"].split(os.pathsep)
    for folder in found.split(os.pathsep):
      if folder not in former and not os.path.isdir(folder):
        raise Falsehood(f"it puts {folder!r} into $PATH")
    self.environment["PATH"] = found

  def run_console(self, block):
    # A former one, of another README, may be there.
    if "Scripts/new" in block.text:
      shutil.rmtree(os.path.join(self.home, PACKAGE), ignore_errors=True)
    own = any(re.search(r"&\s*(#|$)", line) for line in block.lines)
    with Session(self, own) as session:
      for line in block.lines:
        session.take(line)
      session.finish()

  # MARK: Programs

  def program(self, block, command, **options):
    """Its output, and nothing else, is what the comments say."""
    if not block.prints:
      raise Falsehood("the program has no comment that says what it prints")
    with Session(self, False) as session:
      said = self.checked(command, env=session.environment, **options)
    if said.split("\n") != [*block.prints, ""]:
      raise Falsehood(f"it prints {said!r}, not {block.prints}")

  def run_python(self, block):
    self.program(block, ["python", "-c", block.text])

  def run_c(self, block):
    program = os.path.join(self.work, "program")
    with open(program + ".c", "w") as file:
      file.write(block.text)
    self.checked(
      ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", program, program + ".c",
       "-I", self.library, "-L", self.library, "-llockstep", f"-Wl,-rpath,{self.library}"])
    self.program(block, [program])

  def run_swift(self, block):
    """In the place of the package's client."""
    package = self.package()
    sources = os.path.join(package, "Sources", PACKAGE)
    shutil.rmtree(sources)
    os.mkdir(sources)
    with open(os.path.join(sources, "main.swift"), "w") as file:
      file.write(block.text)
    self.checked(["swift", "build", "--product", PACKAGE], cwd=package)
    folder = self.checked(["swift", "build", "--show-bin-path"], cwd=package).strip()
    self.program(block, [os.path.join(folder, PACKAGE)])

  def compare(self, block):
    """A file of the package is shown as Scripts/new writes it; it is compiled with the package."""
    with open(os.path.join(self.package(fresh=True), block.path)) as file:
      written = file.read()
    if written != block.program:
      difference = difflib.unified_diff(
        block.program.split("\n"), written.split("\n"), "the README", f"Scripts/new: {block.path}",
        lineterm="")
      raise Falsehood("\n".join(difference))

  def package(self, fresh=False):
    """A package as Scripts/new writes it: the one of the README, if there is one, or a fresh one."""
    package = os.path.join(self.work if fresh else self.home, PACKAGE)
    if not os.path.exists(package):
      self.checked(["Scripts/new", PACKAGE.capitalize(), package])
    return package


class Session:
  """A daemon, its folder, and two terminals."""

  def __init__(self, runner, own_daemon):
    self.folder = tempfile.mkdtemp()
    self.environment = {**runner.environment, "XDG_RUNTIME_DIR": self.folder}
    self.terminals, self.last, self.skips = {}, {}, {}
    self.daemon = None
    if not own_daemon:
      self.daemon = subprocess.Popen(["lockstepd", "--log-level", "warning"], env=self.environment)
      self.wait_for_daemon()

  def wait_for_daemon(self):
    patience = time.monotonic() + LONG_PATIENCE
    while subprocess.run(
        ["lockstep", "ping", "--count", "1"], env=self.environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode != 0:
      if time.monotonic() > patience or self.daemon and self.daemon.poll() is not None:
        raise Falsehood("the daemon does not serve")
      time.sleep(0.05)

  def __enter__(self):
    return self

  def __exit__(self, *_):
    for terminal in self.terminals.values():
      terminal.end()
    if self.daemon:
      self.daemon.terminate()
      self.daemon.wait()
    shutil.rmtree(self.folder)

  def take(self, line):
    """A command, or a line of output, at the terminal of its side."""
    text = line.lstrip(" ")
    side = len(line) - len(text) >= 30
    if not text.startswith("$ "):
      if side not in self.terminals:
        raise Falsehood(f"no command says: {text}")
      return self.expect(self.terminals[side], side, text)
    if side in self.terminals:
      self.terminals[side].wait_for_prompt(self.skips.get(side))
    else:
      self.terminals[side] = Terminal(self.environment)
    self.skips[side] = False
    self.terminals[side].type(text[2:])
    if re.search(r"&\s*(#|$)", text):
      self.terminals[side].wait_for_prompt()
      self.wait_for_daemon()
      self.terminals[side].said = IDLE

  def expect(self, terminal, side, text):
    if text == "…":
      self.skips[side] = True
      return
    while (said := terminal.line()) is not None:
      if masked(said) == masked(text):
        self.skips[side] = False
        return
      if not self.skips[side]:
        raise Falsehood(f"{terminal.ran}\n  shown: {text}\n  said:  {said}")
    raise Falsehood(f"{terminal.ran}\n  does not say: {text}")

  def finish(self):
    """Nothing else is said; a command that goes on is stopped."""
    for side, terminal in self.terminals.items():
      while not self.skips[side] and (terminal.said or terminal.read(0.3)):
        if terminal.said == IDLE:
          break
        if ("\n" in terminal.said or PROMPT.search(terminal.said)) and (line := terminal.line()) is not None:
          raise Falsehood(f"not shown: {line!r}, from: {terminal.ran}")
        if not terminal.read(0.3):
          break
      if self.skips[side]:
        terminal.wait_for_prompt(True)


# MARK: The text


def faults_in_names(text):
  """Sentences on what the text names that does not exist."""
  for target in re.findall(r"\]\(((?!https?:|#)[^)#]+)", text):
    if not os.path.exists(os.path.join(ROOT, target)):
      yield f"there is no {target}"
  for script in set(re.findall(r"\bScripts/[\w-]+", text)):
    if not os.access(os.path.join(ROOT, script), os.X_OK):
      yield f"there is no {script}"


def faults_in_commands(text, runner):
  prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
  for command in set(re.findall(r"`(lockstepd?(?:\s[^`]+)?)`", prose)):
    words = command.split()
    name = [words[0]]
    if words[0] == "lockstep" and len(words) > 1 and not words[1].startswith("-"):
      name.append(words[1])
    said = subprocess.run(
      [*name, "--help"], text=True, capture_output=True, env=runner.environment)
    if said.returncode != 0:
      yield f"there is no command: {' '.join(name)}"
    for option in re.findall(r"--[\w-]+", command):
      if option != "--help" and option not in said.stdout:
        yield f"{' '.join(name)} has no {option}"


# Sentences and lines of the README, and what is false instead: each must be found.
FALSEHOODS = [
  ("Scripts/build-c ", "Scripts/build-d "),
  ('{"level": 45, "on": true}', '{"level": 46, "on": true}'),
  ("revision 2\nrevision", "revision"),
  ("lockstep increment /lamp/level 5\n", "lockstep raise /lamp/level 5\n"),
  ("# prints 45", "# prints 46"),
  ('lamp["level"]', 'lamp["levels"]'),
  ("/* prints 45 */", "/* prints 44 */"),
  ("lockstep_next_event(", "lockstep_take_event("),
  ("// prints 45", "// prints 4"),
  ('.increment(["lamp", "level"]', '.raise(["lamp", "level"]'),
  ("[x] milk", "[ ] milk"),
  ("$ swift test", "$ swift test --nothing"),
  ("case .toggle(let id):", "case .toggle(let it):"),
  ("](Sources/Examples", "](Sources/Samples"),
  ("`lockstep fsck`", "`lockstep check`"),
  ("`lockstep set --durable`", "`lockstep set --lasting`"),
]


def check(text, runner, only=lambda block: True):
  """Run the blocks, programs in Swift last: they take the place of the package's client."""
  failures = []
  found = [block for block in blocks(text) if only(block)]
  for block in sorted(found, key=lambda block: block.kind == "swift" and not block.path):
    start = time.monotonic()
    try:
      runner.run(block)
    except (Falsehood, OSError) as error:
      failures.append(f"README.md, {block}\n{error}")
    reason = NOT_RUN.get(block.lines[0].split()[0], ("",))[0]
    print(f"{time.monotonic() - start:6.1f} s  {block}{reason and ': not run: ' + reason}", flush=True)
  failures += faults_in_names(text)
  failures += faults_in_commands(text, runner)
  return failures


def self_test(text, runner):
  """Each falsehood must be found; only the blocks that it changes are run."""
  true = {block.text for block in blocks(text)}
  for old, new in FALSEHOODS:
    if old not in text:
      yield f"the README does not have what is to be falsified: {old!r}"
      continue
    if not check(text.replace(old, new, 1), runner, lambda block: block.text not in true):
      yield f"not found: {new!r} instead of {old!r}"


def main():
  readme, library = sys.argv[1:3]
  with open(readme) as file:
    text = file.read()
  runner = Runner(library)
  try:
    faults = check(text, runner)
    if not faults and sys.argv[3:] == ["--self-test"]:
      print("-- changed, each must fail")
      faults = list(self_test(text, runner))
  finally:
    runner.close()
  if faults:
    sys.exit("\n".join(faults))


if __name__ == "__main__":
  main()
