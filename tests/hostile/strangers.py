"""Connections from outside the run, or from a false rank. Frames, hellos and proofs follow src/comm/hello.h, in a
second implementation."""
import hashlib
import hmac
import os
import random
import socket
import struct
import threading
import time

MAGIC = b"TOKAMAK1"
VERSION = "4"
JOB = "run ''"
LANES = 3
GATHER, BARRIER = 1, 4  # purposes of messages in src/comm/tcp.cc
DISCONNECT, END, MESSAGE = 1, 2, 3  # words of src/comm/watch.cc
FORGED = "\x1b[2J\x1b]0;x\x07\u202e\r\n12:00:00 info [0] FORGED\n"


def as_bytes(word):
    return word if isinstance(word, bytes) else str(word).encode()


def frame(*words):
    text = b"\0".join(as_bytes(word) for word in words)
    return MAGIC + struct.pack("<I", len(text)) + text


def hello_words(rank=1, size=2, kind="control", job=JOB, version=VERSION, host="n9", port=4242, nonce=""):
    return [version, kind, size, rank, port, host, job, nonce]


def hello(**fields):
    return frame(*hello_words(**fields))


def proof(secret, nonce_of_listener, words, role="joins"):
    said = frame(role, nonce_of_listener, *words)
    return hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()


def noise(count, seed=1):
    return random.Random(seed).randbytes(count)


def connect(port, seconds=10, address="127.0.0.1"):
    return socket.create_connection((address, port), timeout=seconds)


def send(connection, *parts):
    """Sends as much as the other side takes, since it may close the connection."""
    try:
        for part in parts:
            connection.sendall(part)
    except OSError:
        pass
    return connection


def receive(connection, count):
    got = b""
    while len(got) < count:
        part = connection.recv(count - len(got))
        if not part:
            raise EOFError(f"{len(got)} of {count} bytes")
        got += part
    return got


def hear(connection):
    """The words of the next frame."""
    header = receive(connection, 12)
    assert header[:8] == MAGIC, header
    return receive(connection, struct.unpack("<I", header[8:])[0]).decode().split("\0")


# ---- strangers who say one thing: each takes a port and returns what it holds open ----------------------------------

def says(*parts, times=1):
    return lambda port: [send(connect(port), *parts) for _ in range(times)]


def silent(count):
    return says(times=count)


def leaves(count, reset=False):
    def act(port):
        for _ in range(count):
            with connect(port) as connection:
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return []
    return act


def drips(text, pause):
    """Sends a byte at a time until the other side closes the connection."""
    def act(port):
        connection = connect(port)

        def run():
            for byte in text:
                send(connection, bytes([byte]))
                time.sleep(pause)
        threading.Thread(target=run, daemon=True).start()
        return [connection]
    return act


def meanwhile(*parts):
    """Sends on a thread, because a rank that waits for something else does not read it yet."""
    def act(port):
        connection = connect(port, 60)
        threading.Thread(target=send, args=(connection, *parts), daemon=True).start()
        return [connection]
    return act


def closes_its_side(text):
    def act(port):
        connection = send(connect(port), text)
        try:
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return [connection]
    return act


def churns(threads, seconds):
    """Connects and goes away, again and again."""
    def act(port):
        def run(seed):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    with connect(port, 1) as connection:
                        send(connection, noise(seed * 7, seed))
                except OSError:
                    time.sleep(0.01)  # the rank closes its port when all ranks have met
        for seed in range(threads):
            threading.Thread(target=run, args=(seed,), daemon=True).start()
        return []
    return act


def answers_challenge(make):
    """Says hello with a nonce, and then what `make` makes of (the challenge, the words of the hello)."""
    def act(port):
        words = hello_words(nonce="0" * 32)
        connection = send(connect(port), frame(*words))
        challenge = hear(connection)
        assert challenge[0] == "challenge" and len(challenge[1]) == 32, challenge
        send(connection, make(challenge[1], words))
        return [connection]
    return act


# ---- a false rank 1 of 2, which has met rank 0 ----------------------------------------------------------------------

class FalseRank:
    def __init__(self, port, meets=True, **fields):
        self.port = port
        self.control = send(connect(port, 30), hello(**fields))
        assert hear(self.control)[0] == "expected"
        if not meets:
            return
        assert hear(self.control)[0] == "welcome"
        self.lanes = []

    def connect_lanes(self, count=LANES):
        for lane in range(count):
            connection = send(connect(self.port), hello(kind=f"data{lane}"))
            assert hear(connection)[0] == "expected"
            self.lanes.append(connection)
        return self

    def message(self, purpose, claimed, data=b""):
        send(self.lanes[0], struct.pack("<qq", purpose, claimed), data)
        return self

    def begin(self):
        """The barrier after which the ranks train."""
        return self.connect_lanes().message(BARRIER, 0)

    def control_word(self, word, value, data=b""):
        send(self.control, struct.pack("<ii", word, value), data)
        return self


# ---- a false rank 0 -------------------------------------------------------------------------------------------------

class FalseRankZero:
    """Listens, and plays `act` with each connection, on a thread."""

    def __init__(self, act):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        self.act, self.held = act, []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
                connection.settimeout(30)
                self.held.append(connection)
                self.act(connection)
            except (OSError, EOFError):
                if self.listener.fileno() < 0:
                    return

    def close(self):
        self.listener.close()
        for connection in self.held:
            connection.close()


def answers(*parts, hears=True, then_closes=False):
    def act(connection):
        if hears:
            hear(connection)
        send(connection, *parts)
        if then_closes:
            connection.close()
    return act


def listening_ports(pid):
    """{port: {addresses}} that a process listens on."""
    inodes = set()
    try:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        found = {}
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}") as file:
                for line in list(file)[1:]:
                    words = line.split()
                    if words[3] == "0A" and words[9] in inodes:
                        address, port = words[1].rsplit(":", 1)
                        found.setdefault(int(port, 16), set()).add(address)
        return found
    except OSError:
        return {}
