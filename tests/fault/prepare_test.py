"""`tokamak data prepare` is killed, its disk is full, or its inputs are hostile: the same bits in the end, or one clear
error. Items that are no document are counted. Memory stays bounded."""
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from faulty_disk import Disk, work_in_memory  # noqa: E402
from harness import ENV, TOKAMAK, call, digest, main, tokamak  # noqa: E402

KILLS = 50
CONFIG = """\
inputs: [{place}/corpus.jsonl, {place}/pages.warc.gz]
output: {place}/{name}
part_bytes: 20Ki
threads: 2
keep_dropped: true
stages:
  - rules: {{sets: [gopher_repetition]}}
  - exact: {{unit: paragraphs, least_bytes: 200}}
  - minhash: {{bands: 4, rows: 2, words: 3}}
  - mask
tokens: {{tokenizer: {place}/tokenizer.model, validation: 10%, shard_tokens: 4K}}
"""


def record(kind, block, number=0):
    head = (f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Target-URI: http://a/{number}\r\n"
            f"Content-Length: {len(block)}\r\n\r\n")
    return head.encode() + block + b"\r\n\r\n"


def page(body, headers=""):
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{headers}\r\n".encode() + body


def write_corpus(place):
    texts = list(place.documents())
    with open(place.file("corpus.jsonl"), "w") as out:
        for number, text in enumerate(texts + texts[:20]):
            out.write(json.dumps({"id": str(number), "text": text + f"\nmail user{number}@corp.example.net"}) + "\n")
    with open(place.file("pages.warc.gz"), "wb") as out:
        for number, text in enumerate(texts[:60]):
            body = f"<html><body><nav><a href=/>menu</a></nav><p>{text}</p><p>{texts[-1 - number]}</p></body></html>"
            out.write(gzip.compress(record("response", page(body.encode()), number), mtime=0))


def config(place, name, text=CONFIG):
    with open(place.file(name + ".yaml"), "w") as out:
        out.write(text.format(place=place.path, name=name))
    return place.file(name + ".yaml")


def outputs(place, name):
    """A digest of everything but the config, which names the output; its report must account for every document."""
    directory = place.file(name)
    with open(directory + "/report.json") as file:
        counts = json.load(file)["counts"]
    total = {key: sum(tally[0] for tally in counts[key].values()) for key in ("read", "written")}
    dropped = sum(tally[0] for sources in counts["dropped"].values() for tally in sources.values())
    assert total["read"] == total["written"] + dropped == 230, (total, dropped)
    for part in ("train", "validation"):
        assert ": sound" in tokamak("data", "verify", f"{directory}/{part}")
    return {part: digest_of_shards(f"{directory}/{part}") for part in ("train", "validation")}, digest(directory + "/dropped"), counts


def digest_of_shards(directory):
    """Names, sums and sizes of the files; the manifest without its time"""
    result = []
    for name in sorted(os.listdir(directory)):
        with open(f"{directory}/{name}", "rb") as file:
            data = file.read()
        if name == "manifest.json":
            manifest = json.loads(data)
            assert manifest.pop("created")
            data = json.dumps(manifest).encode()
        result.append((name, zlib.crc32(data), len(data)))
    return result


def kills(place):
    """kill -9 at 50 random moments, each in the run that the one before left: the same bits, documents and counts"""
    write_corpus(place)
    start = time.monotonic()
    tokamak("data", "prepare", config(place, "whole"))
    seconds = time.monotonic() - start
    expected = outputs(place, "whole")
    rng = random.Random(11)
    killed, runs = 0, 0
    while killed < KILLS:
        path = config(place, f"killed{runs}")
        runs += 1
        while not os.path.exists(place.file(f"killed{runs - 1}")):
            process = subprocess.Popen([TOKAMAK, "data", "prepare", path], env=ENV, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                code = process.wait(timeout=rng.uniform(0, seconds))
                assert code == 0, code
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
        tokamak("data", "prepare", path)
        assert outputs(place, f"killed{runs - 1}") == expected
    print(f"    {killed} kills in {runs} runs of {seconds:.2f} s")


def full_disk(place):
    """no space at any of many writes: exit code 3 and the path, nothing half made; then the same bits"""
    write_corpus(place)
    tokamak("data", "prepare", config(place, "whole"))
    expected = outputs(place, "whole")
    disk = Disk(place, "trace", under=place.file("traced"))
    assert call([TOKAMAK, "data", "prepare", config(place, "traced"), "threads=1"], disk.env).returncode == 0
    operations = len(disk.operations())
    assert operations > 300, operations
    rng = random.Random(3)
    for case, at in enumerate(sorted(rng.sample(range(1, operations + 1), 12))):
        name = f"full{case}"
        disk = Disk(place, name, at=at, fault=28, under=place.file(name))  # ENOSPC
        done = call([TOKAMAK, "data", "prepare", config(place, name), "threads=1"], disk.env)
        assert done.returncode == 3 and place.file(name) in done.stdout, (at, done.returncode, done.stdout)
        assert "No space left" in done.stdout and not os.path.exists(place.file(name)), done.stdout
        tokamak("data", "prepare", place.file(name + ".yaml"))
        assert outputs(place, name) == expected, at


def peak_of(arguments, expect=0):
    """(output, peak memory in MiB) of a run"""
    process = subprocess.Popen([TOKAMAK, *arguments], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == expect, (arguments, process.returncode, said)
    return said, usage.ru_maxrss / 1024


def hostile(place):
    """lines of 1 GB, bombs, deep and broken pages, bytes that are no UTF-8: counted, in bounded memory"""
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b"".join(bomb.compress(b"<p>" * (1 << 20)) for _ in range(100)) + bomb.flush()  # 300 MiB
    with open(place.file("a.warc"), "wb") as out:
        out.write(record("response", page(b"<div>" * 100_000 + b"text"), 1))
        out.write(record("response", page(zeros, "Content-Encoding: gzip\r\n"), 2))
        out.write(record("response", page(b"\xff\xfe\x00<p>\x80\x81" * 1000), 3))
        out.write(record("response", page(b"<table>" * 30_000 + b"<!--" * 30_000), 4))
        out.write(record("response", b"\x00" * 1000, 5))
        out.write(record("response", page(b"<b><i>" * 200_000), 6))
    with open(place.file("b.jsonl"), "wb") as out:
        out.write(b'{"text": "good"}\n{"text": "cut\n[1]\n{"text": "\xff\xc0"}\n' + b"[" * 1_000_000 + b"\n")
        out.write(b'{"text": "x", "m": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
        out.seek(1 << 30, os.SEEK_CUR)  # a line of NULs
        out.write(b'\n{"text": "after"}\n')
    with gzip.open(place.file("c.jsonl.gz"), "wb") as out:
        for _ in range(300):
            out.write(b" " * (1 << 20))
        out.write(b'\n{"text": "behind 300 MiB"}\n')
    with open(place.file("hostile.yaml"), "w") as out:
        out.write(f"inputs: [{place.path}/a.warc, {place.path}/b.jsonl, {place.path}/c.jsonl.gz]\n"
                  f"output: {place.path}/hostile\nthreads: 1\nkeep_dropped: true\nstages: [rules: {{drop: false}}, exact]\n")
    said, peak = peak_of(["data", "prepare", place.file("hostile.yaml"), "--json"])
    counts = json.loads(said[said.index("\n{") + 1:])["counts"]
    dropped = {reason: sum(tally[0] for tally in sources.values()) for reason, sources in counts["dropped"].items()}
    written = sum(tally[0] for tally in counts["written"].values())
    print(f"    {written} written, dropped {dropped}, peak {peak:.0f} MiB")
    # Too long are the bomb and the NULs. 300 MiB of spaces are a blank line.
    assert dropped == {"input.too_long": 2, "extract.too_deep": 3, "input.no_http": 1, "input.no_json": 4,
                       "input.too_deep": 1}, dropped
    texts = [json.loads(line)["text"] for part in sorted(os.listdir(place.file("hostile/documents")))
             for line in subprocess.run(["zstd", "-dc", place.file("hostile/documents/" + part)], capture_output=True,
                                        check=True).stdout.splitlines()]
    assert texts[-3:] == ["good", "after", "behind 300 MiB"], [text[:50] for text in texts]
    assert peak < 300, peak

    # Files that are cut.
    for name, data in {"cut.jsonl.gz": gzip.compress(b'{"text": "a"}\n' * 5000)[:-20], "cut.warc": b"WARC/1.0\r\nWARC-Ty",
                       "none.warc.gz": b"not gzip at all"}.items():
        with open(place.file(name), "wb") as out:
            out.write(data)
        text = f"inputs: [{{place}}/corpus.jsonl, {{place}}/{name}]\noutput: {{place}}/{{name}}\n"
        write_corpus(place)
        path = config(place, "of-" + name.replace(".", "-"), text)
        done = call([TOKAMAK, "data", "prepare", path])
        assert done.returncode == 3 and name in done.stdout and "Traceback" not in done.stdout, done.stdout
        done = call([TOKAMAK, "data", "prepare", path, "damaged=skip"])
        assert done.returncode == 0 and "damaged: " in done.stdout, done.stdout


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work_in_memory()
    main([kills, full_disk, hostile])
