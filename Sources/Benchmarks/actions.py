"""Works on actions and messages: W1 round trips, W2 pipelined actions, W3 fan-out, W4 durable actions,
W5 bytes. Each takes the run, and notes its figures there."""

from run import ANYWHERE, APART, KEEPERS, TOGETHER
from servers import CLIENT_CORE, CORES, HELLO, SERVER_CORE, receive, send


def w1(run, servers):
  for _ in range(run.rounds):
    for place, core, placement in [
      ("one core", SERVER_CORE, TOGETHER), ("two cores", CLIENT_CORE, APART),
    ]:
      for server in servers:
        result = run.load.run("roundtrip", server, {core}, count=run.count(50_000, 3_000))
        for name in ["p50", "p90", "p99", "p999"]:
          run.note("W1", f"round trip, {place}, {name}", "µs", server, result[f"us_{name}"],
                   placement=placement)


def w2(run, servers):
  servers = [server for server in servers if server.peer in KEEPERS]
  for turn in range(run.rounds):
    for window in [100, 1_000, 10_000]:
      for server in servers:
        run.pipeline("W2", f"W = {window:,}", server, window)
    if turn == 0 or not run.quick:
      beside_idle(run, servers)


def beside_idle(run, servers):
  """Nothing may cost more because many others are connected."""
  for server in servers:
    if server.peer != "lockstep":
      continue
    crowd = run.load.begin("idle", server, connections=1_000)
    run.load.line(crowd)
    run.pipeline("W2", "W = 10,000 beside 1,000 idle mirrors", server, 10_000)
    run.load.end(crowd)


def w2_entries(run, servers, entries):
  for _ in range(run.rounds):
    for window in [100, 1_000, 10_000]:
      for server in servers:
        run.pipeline("W2", f"one of {entries:,} entries, W = {window:,}", server, window, entries)
    for server in servers:
      run.pipeline("W2", f"one of {entries:,} entries is set, W = 1,000", server, 1_000, entries, set=1)


def w3(run, servers):
  for _ in range(run.rounds):
    for subscribers in [1, 10, 100, 1_000]:
      for server in servers:
        fan_out(run, server, subscribers)


def fan_out(run, server, subscribers):
  # These are ten times slower, and their figures as good with a tenth of the changes.
  fewer = 10 if server.peer in ["dbus", "ovsdb"] else 1
  result = run.load.run(
    "fanout", server, subscribers=subscribers,
    singles=run.count(10_000, 2_000) // max(10, subscribers),
    count=run.count(2_000_000, 400_000) // max(20, subscribers) // fewer, server=server.process.pid)
  row = f"N = {subscribers:,}"
  run.note("W3", f"{row}, one change, to the last p50", "µs", server, result["last_p50"])
  run.note("W3", f"{row}, one change", "server µs a delivery", server, result["single_cpu_us"])
  run.note_rate("W3", f"{row}, window 256", "M deliveries/s", server, result, 1e6)
  run.note("W3", f"{row}, window 256", "server µs a delivery", server, result["cpu_us"])
  if server.peer == "lockstep":
    assert result["coalesced"] == 0, "the subscribers were too slow to count"


def w4(run):
  """Actions that are acknowledged once they are on the disk: the limit appends to a file, Redis has
  its append-only file, and each synchronises before it answers. On every core, because writing is
  not the loop's work."""
  with run.servers(run.keepers, is_durable=True) as servers:
    for server in servers:
      server.pin(set(CORES))
    for _ in range(run.rounds):
      for writers in [1, 50]:
        for server in servers:
          durable_crowd(run, server, writers)
      for window in run.count([1_000, 10_000], [10_000]):
        for server in servers:
          durable_pipeline(run, server, window)


def durable_crowd(run, server, writers):
  result = run.load.run(
    "crowd", server, set(CORES), clients=writers, view=0, durable=1, server=server.process.pid,
    count=run.count(20_000, 1_000) if writers == 1 else run.count(200_000, 40_000))
  row = f"durable, {writers} writer{'s' if writers > 1 else ''}"
  for name in ["p50", "p99"]:
    run.note("W4", f"{row}, {name}", "µs", server, result[f"us_{name}"], placement=ANYWHERE)
  run.note_rate("W4", row, "actions/s", server, result, placement=ANYWHERE)


def durable_pipeline(run, server, window):
  result = run.load.run(
    "pipeline", server, set(CORES), window=window, count=run.count(1_000_000, 200_000),
    server=server.process.pid, durable=1)
  row = f"durable, W = {window:,}"
  run.note_rate("W4", row, "actions/s", server, result, placement=ANYWHERE)
  run.note("W4", row, "server µs an action", server, result["cpu_us"], placement=ANYWHERE)


def w5(run, servers):
  counts = {"limit": lambda server: 8, "lockstep": bytes_to_mirror, "redis": redis_bytes}
  for server in servers:
    if server.peer in counts:
      run.note("W5", "todos[42].done of 1,000", "bytes to a mirror", server,
               counts[server.peer](server))


def bytes_to_mirror(server):
  """The bytes that a mirror of the whole gets when one todo of 1,000 is done."""
  with server.connect() as mirror, server.connect() as writer:
    send(mirror, HELLO)
    send(mirror, bytes.fromhex("84020180f6"))
    message = b""
    while message[1:2] != b"\x0d" or b"\xf5" not in message[2:12]:
      message = receive(mirror)
    send(writer, HELLO)
    send(writer, b"\x84\x04\x01\x00\x83\x00\x83\x65todos\x18\x2a\x64done\xf5")
    message = receive(mirror)
    assert message[1] == 14 and b"done\xf5" in message, message.hex()
    return 4 + len(message)


def redis_bytes(server):
  """The same change as a JSON Patch, published."""
  with server.connect() as mirror, server.connect() as writer:
    mirror.sendall(b"SUBSCRIBE todos\r\n")
    mirror.recv(4096)
    patch = b'[{"op":"replace","path":"/todos/42/done","value":true}]'
    writer.sendall(b"*3\r\n$7\r\nPUBLISH\r\n$5\r\ntodos\r\n$%d\r\n%s\r\n" % (len(patch), patch))
    return len(mirror.recv(4096))
