#!/usr/bin/env python3
"""Mutated HTTP and JSON on `tokamak serve`, for some minutes: cut, repeated, spliced and flipped bytes, in pieces, on
several connections. Ends with an error if the server does, or answers with a 500, or keeps descriptors.

usage: serve_fuzz.py TOKAMAK CHECKPOINT [--minutes 10] [--seed 1]"""
import argparse
import collections
import os
import random
import socket
import sys
import threading
import time

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("tokamak")
PARSER.add_argument("checkpoint")
PARSER.add_argument("--minutes", type=float, default=10)
PARSER.add_argument("--seed", type=int, default=1)
ARGUMENTS = PARSER.parse_args()
os.environ["TOKAMAK"] = ARGUMENTS.tokamak
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "system"))
from server import Server  # noqa: E402

BODY = (b'{"prompt": ["a\\u00e9", [5, 6]], "max_tokens": 3, "n": 2, "temperature": 0.5, "top_p": 0.9, "stop": ["e"], '
        b'"logprobs": 2, "echo": true, "seed": 4, "stream": true, "stream_options": {"include_usage": true}}')
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SAMPLES = [
    HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
    b"GET /v1/models HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost\r\nRange: bytes=0-5\r\n\r\n",
    b"GET /v1/models/a%2fb?x=y#z HTTP/1.0\r\nHost: [::1]\r\nConnection: Keep-Alive\r\n\r\nHEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n",
]
TOKENS = [b"\r\n", b"\n", b"\0", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"9" * 40, b"[" * 300, b"{\"a\":" * 50, b"\xff\xfe", b"%00", b" ",
          b"ffffffffffffffff\r\n", b"-1", b"1e400", b"null", b"\"\\ud800\"", b"Host: x\r\n", b": " * 2000, b"Content-Type: multipart/form-data; boundary=b\r\n"]
STATUSES = collections.Counter()


def mutated(rng):
    data = bytearray(rng.choice(SAMPLES))
    for _ in range(rng.choice((0, 1, 1, 2, 4, 9))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 2:
            del data[at:at + rng.choice((1, 2, 10, 100))]
        elif kind == 3:
            data[at:at] = data[at:at + rng.randrange(80)]
        else:
            other = rng.choice(SAMPLES)
            data[at:] = other[rng.randrange(len(other)):]
    return bytes(data)


def client(server, rng):
    data = mutated(rng)
    with socket.create_connection((server.host, server.port), timeout=0.5) as connection:
        reply = b""
        try:
            for part in (data,) if rng.random() < 0.8 else (data[:len(data) // 2], data[len(data) // 2:]):
                connection.sendall(part)
            if rng.random() < 0.7:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                reply += part
                if rng.random() < 0.02:
                    break
        except (ConnectionError, TimeoutError):
            pass
    status = reply.split(b" ", 2)[1][:3].decode("ascii", "replace") if reply.startswith(b"HTTP/1.1 ") else "none"
    STATUSES[status] += 1
    assert status != "500", (data, reply)


def main():
    with Server("--checkpoint", ARGUMENTS.checkpoint, "--context", "64") as server:
        server.text(prompt="a")
        idle, problems, end = server.descriptors(), [], time.monotonic() + 60 * ARGUMENTS.minutes

        def clients(i):
            rng = random.Random(ARGUMENTS.seed * 1000 + i)
            while time.monotonic() < end and not problems:
                try:
                    client(server, rng)
                except Exception as error:  # noqa: BLE001: printed, and the run fails
                    problems.append(repr(error))

        threads = [threading.Thread(target=clients, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            print(f"{sum(STATUSES.values()):8} requests, {server.resident() / 1e6:.1f} MB, {server.descriptors()} descriptors", flush=True)
            time.sleep(min(30, 12 * ARGUMENTS.minutes))
        assert not problems, problems
        server.wait_until(lambda: server.descriptors() <= idle + 1, 70)
        assert server.text(prompt="a", max_tokens=3) is not None
        server.stop()
        assert server.code == 0, server.log()
        print(f"{sum(STATUSES.values())} requests: " + ", ".join(f"{status} {count}" for status, count in sorted(STATUSES.items())))


if __name__ == "__main__":
    main()
