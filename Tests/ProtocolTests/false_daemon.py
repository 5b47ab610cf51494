"""A false daemon: plays a transcript of Protocols/vectors/sessions.json to any client.

    false_daemon.py --list                        names, levels, and what the client's user must do
    false_daemon.py SOCKET NAME [--timeout S]     play one; S is how long to wait for the client

It serves one client. It sends what the daemon of the transcript sent, once the client has said what
the client of the transcript said. What a client may choose freely is bound and not compared: its
label, and the numbers of its subscriptions, queries and pings. Clients may ask for more than the
transcript has: such pings, digest requests and queries are answered shortly.

It prints `played` when the client has heard everything, and `passed` once it has left and has said
nothing that it should not have. At the first `difference` it says so, and ends with status 1.
"""

import argparse, json, os, pathlib, select, socket, struct, sys

import cbor2

# Messages of one sort keep their order; those of different sorts need not.
SORTS = {1: 1, 2: 2, 3: 2, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}
VECTORS = pathlib.Path(__file__).resolve().parents[2] / "Protocols/vectors/sessions.json"
NAMES = {
    1: "hello", 2: "subscribe", 3: "unsubscribe", 4: "action", 5: "ping", 6: "digestRequest",
    7: "query", 8: "clientGoodbye",
}  # fmt: skip


class Difference(Exception):
    pass


class Gone(Exception):
    """The client has closed the connection."""


def told(message):
    if not isinstance(message, list) or not message:
        return f"{message!r}, which is no message"
    fields = ", ".join(
        "0x" + field.hex() if isinstance(field, bytes) else json.dumps(field, default=repr)
        for field in message[1:]
    )
    return f"{NAMES.get(message[0], message[0])} {fields}"


class Play:
    def __init__(self, transcript, listener, timeout):
        self.steps = transcript["steps"]
        # A client of the lower levels need not know of sessions.
        self.needs_token = transcript["level"] in ("writer", "exactly once")
        self.listener, self.timeout = listener, timeout
        self.subscriptions, self.queries, self.pings = {}, {}, {}
        self.schema, self.revision = None, 0
        self.connection = None

    # MARK: The client's bytes

    def accept(self):
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(self.timeout)
        self.inbox = b""
        self.names_schema = self.names_token = False

    def bytes(self, count):
        while len(self.inbox) < count:
            data = self.connection.recv(1 << 16)
            if not data:
                raise Gone
            self.inbox += data
        taken, self.inbox = self.inbox[:count], self.inbox[count:]
        return taken

    def message(self):
        (length,) = struct.unpack("<I", self.bytes(4))
        if length > 1 << 24:
            raise Difference(f"a frame of {length} bytes is longer than frameBytes")
        try:
            message = cbor2.loads(self.bytes(length))
        except cbor2.CBORDecodeError as error:
            raise Difference(f"a frame holds no CBOR: {error}") from None
        if not isinstance(message, list) or not message or message[0] not in NAMES:
            raise Difference(f"the client says {told(message)}")
        return message

    def send(self, message):
        item = message if isinstance(message, bytes) else cbor2.dumps(message)
        self.connection.sendall(struct.pack("<I", len(item)) + item)

    # MARK: Steps

    def run(self):
        index = 0
        while index < len(self.steps):
            group = []
            while index < len(self.steps) and "client" in self.steps[index]:
                group.append(cbor2.loads(bytes.fromhex(self.steps[index]["client"])))
                index += 1
            if group:
                self.expect(group)
                continue
            step = self.steps[index]
            index += 1
            if "daemon" in step:
                self.say(cbor2.loads(bytes.fromhex(step["daemon"])), bytes.fromhex(step["daemon"]))
            elif "closed" in step:
                print("closes:", step["closed"], flush=True)
                self.close()
            else:
                print("happens:", step["happens"], flush=True)
        self.leave()

    def close(self):
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The client was faster.
        self.connection.close()
        self.connection = None

    def leave(self):
        """The client has heard everything. Let it go in its own way."""
        print("played", flush=True)
        while self.connection:
            try:
                message = self.message()
                if message[0] == 8:
                    self.send([21, 0, "goodbye", None, None, None, None])
                elif message[0] != 3 and not self.answer(message):
                    raise Difference(f"behind the transcript, the client says {told(message)}")
            except (Gone, ConnectionError):
                return
            except TimeoutError:
                return

    def expect(self, group):
        """Take the messages of a group in, in whatever order, but of each sort in the right one."""
        while group:
            try:
                if not self.connection:
                    self.listener.settimeout(self.timeout)
                    self.accept()
                message = self.message()
            except TimeoutError:
                raise Difference(f"the client does not say {told(group[0])}") from None
            except (Gone, ConnectionError):
                raise Difference(
                    f"the client closes the connection, and does not say {told(group[0])}"
                ) from None
            sort = SORTS[message[0]]
            wanted = next((item for item in group if SORTS[item[0]] == sort), None)
            is_same = wanted and wanted[0] == message[0]
            if is_same and (wrong := self.differs(wanted, message)) is None:
                group.remove(wanted)
                print("the client says", told(message), flush=True)
            elif is_same or not self.answer(message):
                wrong = f": {wrong}" if is_same else ""
                raise Difference(
                    f"the client says {told(message)}, and not {told(wanted or group[0])}{wrong}"
                )

    def answer(self, message):
        """Answer what any client may ask. Returns whether it is that."""
        kind, number = message[:2]
        if kind == 5:
            self.send([16, number, self.revision])
        elif kind == 6:
            self.send([18, number, self.revision, None])
        elif kind == 7:
            self.send([20, number, {"error": "the false daemon has no reports of its own"}])
        else:
            return False
        return True

    # MARK: Comparing

    def differs(self, wanted, message):
        """What is wrong with a message; nothing if it is the one that is wanted."""
        if len(message) < len(wanted):
            return f"it has {len(message) - 1} fields, of {len(wanted) - 1}"
        return getattr(self, NAMES[wanted[0]])(wanted, message)

    def hello(self, wanted, message):
        _, versions, label, fingerprint, token, _ = message[:6]
        if not isinstance(label, str):
            return "the label is no text"
        if not (isinstance(versions, list) and len(versions) == 2 and versions[0] <= 2 <= versions[1]):
            return "its versions do not include 2, which the transcripts speak"
        if token != wanted[4] and (token is not None or self.needs_token):
            return "the token is not that of the last welcome"
        self.names_schema, self.names_token = fingerprint is not None, token is not None

    def subscribe(self, wanted, message):
        if message[1] in self.subscriptions.values() and self.subscriptions.get(wanted[1]) != message[1]:
            return "another subscription has the number"
        if message[2] != wanted[2]:
            return "the path is another"
        if message[3] != wanted[3]:
            return "the position is another"
        self.subscriptions[wanted[1]] = message[1]

    def unsubscribe(self, wanted, message):
        if message[1] != self.subscriptions.get(wanted[1]):
            return "no such subscription is meant"
        del self.subscriptions[wanted[1]]

    def action(self, wanted, message):
        for index, name in ((1, "number"), (2, "mark"), (3, "payload")):
            if message[index] != wanted[index]:
                return f"the {name} is another"

    def ping(self, wanted, message):
        self.pings[wanted[1]] = message[1]

    def digestRequest(self, wanted, message):
        if message[1] != self.subscriptions.setdefault(wanted[1], message[1]):
            return "the subscription is another"

    def query(self, wanted, message):
        if message[2] != wanted[2] or (message[3:] or [[]])[0] != (wanted[3:] or [[]])[0]:
            return "the name or the arguments are others"
        self.queries[wanted[1]] = message[1]

    def clientGoodbye(self, wanted, message):
        if message[1] != wanted[1]:
            return "the code is another"

    # MARK: What the daemon says

    def say(self, message, item):
        kind = message[0]
        bound = {12: self.subscriptions, 18: self.subscriptions, 16: self.pings, 20: self.queries}
        if kind in bound and message[1] in bound[kind]:
            message[1] = bound[kind][message[1]]
            item = message
        if kind == 11:
            self.require_patience()
            self.schema = message[9] or self.schema
            if not self.names_schema and not message[9]:
                message[9] = self.schema
                item = message
            self.revision = message[2][2]
        if kind in (16, 18):
            self.revision = message[2]
        try:
            self.send(item)
        except ConnectionError:
            raise Difference("the client has closed the connection before it has heard all") from None


    def require_patience(self):
        """A client that names a token must hear the welcome before it sends actions."""
        if not self.names_token or not select.select([self.connection], [], [], 0.2)[0]:
            return
        self.inbox += self.connection.recv(1 << 16)
        rest = self.inbox
        while len(rest) >= 4 and len(rest) >= 4 + (length := struct.unpack_from("<I", rest)[0]):
            if length > 1 and rest[5] == 4:
                raise Difference("the client sends an action before the welcome, though it names a token")
            rest = rest[4 + length :]


def user_does(transcript):
    """What the user of a client has to do, so that it can say what the transcript says."""
    sent, comes_back = [], False
    for step in transcript["steps"]:
        if "client" in step:
            message = cbor2.loads(bytes.fromhex(step["client"]))
            sends_again = comes_back and message[0] == 4 and message[3] in sent
            if message[0] == 4:
                sent.append(message[3])
            if message[0] not in (1, 3) and not (message[0] == 2 and message[3]) and not sends_again:
                yield told(message)
        elif "daemon" in step:
            comes_back = step["type"] == "welcome"
        elif "closed" in step or "happens" in step:
            yield "(" + (step.get("closed") or step["happens"]) + ")"


def main():
    parser = argparse.ArgumentParser(description="Plays a transcript to a client.")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("socket", nargs="?")
    parser.add_argument("name", nargs="?")
    parser.add_argument("--timeout", type=float, default=10)
    options = parser.parse_args()
    transcripts = {item["name"]: item for item in json.loads(VECTORS.read_text())["transcripts"]}
    if options.list:
        for transcript in transcripts.values():
            print(f"{transcript['name']}  [{transcript['level']}]\n    {transcript['sentence']}")
            for line in user_does(transcript):
                print("    -", line)
        return 0
    if not options.socket or options.name not in transcripts:
        parser.error("give a socket, and the name of a transcript: see --list")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(options.socket)
        listener.listen()
        print("listening", flush=True)
        Play(transcripts[options.name], listener, options.timeout).run()
    except Difference as difference:
        print("difference:", difference, flush=True)
        return 1
    finally:
        listener.close()
        if os.path.exists(options.socket):
            os.unlink(options.socket)
    print("passed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
