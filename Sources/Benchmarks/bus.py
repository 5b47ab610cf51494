"""Starts dbus-broker without systemd: the least of a launcher.

The broker gets its listening socket and its policy from the process that started it, over a socket that
it inherits, in D-Bus itself (org.bus1.DBus.Broker). Its own launcher needs a running
systemd for its log and for the services that it starts; these works need neither.
"""

import socket
import struct
import subprocess
import sys

# What one user may have: all connections of a work are of one user.
LIMITS = ["--max-bytes", "4000000000", "--max-fds", "100000",
          "--max-matches", "100000", "--max-objects", "1000000"]
# Rules for connecting, owning names, sending and receiving.
RULES = "bta(btbs)a(btssssuutt)a(btssssuutt)"
POLICY = f"(a(u({RULES}))a(buu({RULES}))a(ss)bs)"


class Message:
  """A method call with one file descriptor, marshalled as the D-Bus specification says: everything
  little endian, and aligned from the beginning of its part of the message."""

  def __init__(self):
    self.bytes = bytearray()

  def align(self, size):
    self.bytes += bytes(-len(self.bytes) % size)
    return self

  def integer(self, value, size=4):
    self.align(size)
    self.bytes += value.to_bytes(size, "little")
    return self

  def text(self, value):
    self.integer(len(value))
    self.bytes += value.encode() + b"\0"
    return self

  def signature(self, value):
    self.bytes += bytes([len(value)]) + value.encode() + b"\0"
    return self

  def array(self, fill=lambda: None):
    """An array of the structs that a function appends."""
    self.integer(0)
    place = len(self.bytes) - 4
    self.align(8)
    start = len(self.bytes)
    fill()
    struct.pack_into("<I", self.bytes, place, len(self.bytes) - start)
    return self


def everything_is_allowed(body):
  """A policy for all users, without which nobody may connect."""

  def own():
    body.align(8).integer(1).integer(1, 8).integer(1).text("")

  def transmit():
    body.align(8).integer(1).integer(1, 8)
    for _ in range(4):
      body.text("")
    # The type, whether it is broadcast, and between how many descriptors it has.
    body.integer(0).integer(0).integer(0, 8).integer(2 ** 64 - 1, 8)

  def rules():
    body.align(8).integer(2 ** 32 - 1).align(8).integer(1).integer(1, 8)
    body.array(own).array(transmit).array(transmit)

  body.signature(POLICY).align(8).array(rules).array().array().integer(0).text("session")


def add_listener():
  body = Message().text("/org/bus1/DBus/Listener/0").integer(0)
  everything_is_allowed(body)
  head = Message()

  def field(code, kind, value):
    head.align(8)
    head.bytes.append(code)
    head.signature(kind)
    if kind == "g":
      head.signature(value)
    elif kind == "u":
      head.integer(value)
    else:
      head.text(value)

  def fields():
    field(1, "o", "/org/bus1/DBus/Broker")
    field(2, "s", "org.bus1.DBus.Broker")
    field(3, "s", "AddListener")
    field(8, "g", "ohv")
    field(9, "u", 1)

  # A method call, version 1, serial 1.
  head.bytes += b"l\x01\x00\x01"
  head.integer(len(body.bytes)).integer(1).array(fields).align(8)
  return bytes(head.bytes + body.bytes)


def start(program, path, prepare):
  """Start the broker on a path. Returns it and the socket that keeps it alive."""
  listener = socket.socket(socket.AF_UNIX)
  listener.bind(path)
  listener.listen(1024)
  ours, its = socket.socketpair()
  listener.setblocking(False)
  its.setblocking(False)
  process = subprocess.Popen(
    [program, "--controller", str(its.fileno()), "--machine-id", "0" * 31 + "1", *LIMITS],
    pass_fds=[its.fileno()], stdout=subprocess.DEVNULL, preexec_fn=prepare)
  its.close()
  ours.settimeout(10)
  ours.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n")
  answer = b""
  while b"AGREE_UNIX_FD\r\n" not in answer:
    answer += more_of(ours)
  socket.send_fds(ours, [add_listener()], [listener.fileno()])
  answer = more_of(ours)
  # The type of a method's return.
  if answer[1] != 2:
    sys.exit(f"dbus-broker refused its listener: {answer}")
  listener.close()
  return process, ours


def more_of(controller):
  answer = controller.recv(4096)
  if not answer:
    sys.exit("dbus-broker ended")
  return answer
