"""Has false_daemon.py play every transcript to a client that says what the transcript says.

The client numbers its subscriptions, queries and pings in its own way, so that these are bound.
"""

import contextlib
import io
import pathlib
import socket
import struct
import tempfile
import threading

import cbor2
from false_daemon import Difference, Play

# By the type of a message, what the client adds to the number that it may choose.
OWN = {2: 100, 3: 100, 6: 100, 12: 100, 18: 100, 7: 200, 20: 200, 5: 300, 16: 300}


class Client:
    def __init__(self, path):
        self.path, self.connection = path, None

    def connect(self):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(10)
        self.connection.connect(self.path)
        self.stream = self.connection.makefile("rb")

    def say(self, message):
        if not self.connection:
            self.connect()
        item = cbor2.dumps(self.shifted(message, 1))
        self.connection.sendall(struct.pack("<I", len(item)) + item)

    def hear(self):
        (length,) = struct.unpack("<I", self.stream.read(4))
        return self.shifted(cbor2.loads(self.stream.read(length)), -1)

    def shifted(self, message, sign):
        if message[0] in OWN:
            message[1] += sign * OWN[message[0]]
        return message

    def leave(self):
        self.stream.close()
        self.connection.close()
        self.connection = None


def check(tools):
    with tempfile.TemporaryDirectory() as folder:
        for number, transcript in enumerate(tools.load("sessions.json")["transcripts"]):
            path = str(pathlib.Path(folder) / str(number))
            wrong = play(transcript, path, lambda message, _: message)
            tools.check(wrong is None, transcript["name"], "cannot be played:", wrong)
            wrong = play(transcript, path + "w", spoilt(transcript))
            tools.check(wrong is not None, transcript["name"], "is passed by a wrong client")


def spoilt(transcript):
    """What changes the last message of the client that has contents of its own."""
    last = max(
        index for index, step in enumerate(transcript["steps"])
        if step.get("type") in ("subscribe", "action", "query") and "client" in step
    )  # fmt: skip
    return lambda message, index: [*message[:2], "wrong", *message[3:]] if index == last else message


def play(transcript, path, change):
    """What is wrong, if anything."""
    found = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        daemon = threading.Thread(target=serve, args=(transcript, listener, found))
        daemon.start()
        client = Client(path)
        try:
            converse(transcript, client, change)
        except (AssertionError, OSError, struct.error) as error:
            found.append(error)
        if client.connection:
            client.leave()
        daemon.join()
    return found[0] if found else None


def serve(transcript, listener, found):
    play = Play(transcript, listener, 5)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            play.run()
    except Difference as difference:
        found.append(difference)
    finally:
        if play.connection:
            play.connection.close()


def converse(transcript, client, change):
    for index, step in enumerate(transcript["steps"]):
        if "client" in step:
            client.say(change(cbor2.loads(bytes.fromhex(step["client"])), index))
        elif "daemon" in step:
            heard, said = client.hear(), cbor2.loads(bytes.fromhex(step["daemon"]))
            assert heard == said, f"step {index}: {heard}"
        elif "closed" in step:
            assert client.stream.read(1) == b"", f"step {index}: the connection goes on"
            client.leave()
