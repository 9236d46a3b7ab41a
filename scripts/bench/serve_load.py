#!/usr/bin/env python3
"""Load on `tokamak serve`: throughput of one stream and of several, then minutes of clients that finish, leave, are
killed or read slowly. Prints memory and descriptors over time. Compares each finished text with `tokamak generate`'s.

usage: serve_load.py TOKAMAK CHECKPOINT [--minutes 5] [--streams 16] [--tokens 96] [--threads 2]"""
import argparse
import collections
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("tokamak")
PARSER.add_argument("checkpoint")
PARSER.add_argument("--minutes", type=float, default=5)
PARSER.add_argument("--streams", type=int, default=16)
PARSER.add_argument("--tokens", type=int, default=96)
PARSER.add_argument("--threads", type=int, default=2)
ARGUMENTS = PARSER.parse_args()
os.environ["TOKAMAK"] = ARGUMENTS.tokamak
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "system"))
from server import Server  # noqa: E402

PROMPTS = ["".join(random.Random(i).choice("abdegiklmnoprstu ") for _ in range(4 + i)) for i in range(40)]
FATES = collections.Counter()


def fields(rng):
    return {"prompt": rng.choice(PROMPTS), "seed": rng.randrange(4), "max_tokens": ARGUMENTS.tokens // rng.choice((1, 3)),
            "temperature": 1, "ignore_eos": True}


def throughput(server, streams, seconds=20):
    """New tokens a second of so many streams. The clients do not look into what they read: they share the machine."""
    texts, end = [0] * streams, time.monotonic() + seconds

    def client(i):
        rng = random.Random(i)
        while time.monotonic() < end:
            body = json.dumps({**fields(rng), "max_tokens": ARGUMENTS.tokens, "stream": True}).encode()
            with socket.create_connection((server.host, server.port)) as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                last = b""
                while b"data: [DONE]" not in last:
                    part = connection.recv(65536)
                    assert part, last
                    last = last[-20:] + part
            texts[i] += 1

    threads = [threading.Thread(target=client, args=(i,)) for i in range(streams)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ARGUMENTS.tokens * sum(texts) / (time.monotonic() - start)


def one_client(server, rng, texts):
    """Sends a request; its fate is random."""
    request = fields(rng)
    fate = rng.choices(["finished", "left", "killed", "slow"], [70, 14, 8, 8])[0]
    FATES[fate] += 1
    if fate in ("finished", "slow"):
        text = ""
        for event in server.stream(**request):
            text += event["choices"][0]["text"]
            if fate == "slow":
                time.sleep(0.05 * rng.random())
        texts.append((request, text))
        return
    body = json.dumps({**request, "stream": rng.random() < 0.7}).encode()
    client = socket.create_connection((server.host, server.port))
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    time.sleep(0.3 * rng.random())
    if fate == "killed":  # the kernel resets the connection
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def chaos(server, minutes):
    """The texts of clients that finish."""
    texts, problems, end = [], [], time.monotonic() + 60 * minutes

    def clients(i):
        rng = random.Random(100 + i)
        while time.monotonic() < end and not problems:
            try:
                one_client(server, rng, texts)
            except Exception as error:  # noqa: BLE001: printed, and the run fails
                problems.append(repr(error))

    threads = [threading.Thread(target=clients, args=(i,)) for i in range(ARGUMENTS.streams)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    print("seconds  resident MB  descriptors  finished", flush=True)
    while any(thread.is_alive() for thread in threads):
        print(f"{time.monotonic() - start:7.0f}  {server.resident() / 1e6:11.1f}  {server.descriptors():11}  {len(texts):8}", flush=True)
        time.sleep(min(15, 6 * minutes))
    assert not problems, problems
    return texts


def compare(texts):
    groups = collections.defaultdict(set)
    for request, _ in texts:
        groups[request["seed"], request["max_tokens"]].add(request["prompt"])
    expected = {}
    for (seed, tokens), prompts in groups.items():
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps({"prompt": prompt}) + "\n" for prompt in sorted(prompts))
            file.flush()
            done = subprocess.run([ARGUMENTS.tokamak, "generate", "--checkpoint", ARGUMENTS.checkpoint, "--jsonl", "--ignore-eos", "--threads",
                                   str(ARGUMENTS.threads), "--seed", str(seed), "--max-tokens", str(tokens), "--temperature", "1", "--top-p", "1",
                                   "--prompts", file.name], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            one = json.loads(line)
            expected[one["prompt"], seed, tokens] = one["text"]
    different = [request for request, text in texts if text != expected[request["prompt"], request["seed"], request["max_tokens"]]]
    print(f"{len(texts)} texts, {len(expected)} different requests: {len(different)} differ from `tokamak generate`")
    return different


def main():
    with Server("--checkpoint", ARGUMENTS.checkpoint, "--sequences", str(ARGUMENTS.streams), threads=ARGUMENTS.threads) as server:
        throughput(server, 1, 3)
        idle = server.descriptors()
        one, many = throughput(server, 1), throughput(server, ARGUMENTS.streams)
        print(f"1 stream: {one:.0f} tokens/s; {ARGUMENTS.streams} streams: {many:.0f} tokens/s, {many / one:.2f} times as many", flush=True)
        texts = chaos(server, ARGUMENTS.minutes)
        server.wait_until(lambda: server.descriptors() <= idle, 10)
        print(f"clients: {dict(FATES)}; descriptors idle: {idle} before, {server.descriptors()} after")
        server.stop()
        assert server.code == 0, server.log()
    return 1 if compare(texts) else 0


if __name__ == "__main__":
    sys.exit(main())
