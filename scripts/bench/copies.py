#!/usr/bin/env python3
"""Deduplication against theory, and at size.

  theory   plants pairs of known similarity among unrelated documents, and compares the share of pairs that `tokamak data
           prepare` finds with what MinHash and SimHash promise; counts unrelated documents that it drops
  size     makes N documents, a tenth of them near copies, and prints time, memory and disk of exact and MinHash

usage: scripts/bench/copies.py theory [--pairs 1000]
       scripts/bench/copies.py size [--documents 10000000] [--memory 1Gi]

TOKAMAK names the program (build/tokamak). Standard library only. Files go to a temporary directory (TMPDIR).
"""
import argparse
import json
import math
import os
import random
import subprocess
import tempfile
import time
from multiprocessing import Pool

TOKAMAK = os.path.abspath(os.environ.get("TOKAMAK", "build/tokamak"))
WORDS, NGRAM = 204, 5
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def words(rng, count):
    """Random words of letters; numbers would count as equal"""
    return ["".join(rng.choices(LETTERS, k=6)) for _ in range(count)]


def write_config(folder, inputs, stages, more=""):
    with open(f"{folder}/c.yaml", "w") as out:
        out.write(f"inputs: {inputs}\noutput: {folder}/out\nkeep_dropped: true\n{more}stages: {json.dumps(stages)}\n")
    return f"{folder}/c.yaml"


def lines_of(folder):
    for name in sorted(os.listdir(folder)):
        done = subprocess.run(["zstd", "-dc", f"{folder}/{name}"], capture_output=True, check=True)
        yield from map(json.loads, done.stdout.splitlines())


def jaccard_of(changed, ngrams):
    return (ngrams - changed) / (ngrams + changed)


def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p)**(n - k)


def minhash_theory(changed, ngrams, bands=14, rows=8):
    return 1 - (1 - jaccard_of(changed, ngrams)**rows)**bands


def bit_differs(changed, ngrams):
    """The probability that a bit, the sign of a sum of random signs, differs: about angle / pi, less for few changes"""
    common = ngrams - changed
    total = 0
    for ups in range(common + 1):
        above = sum(math.comb(changed, own) for own in range(changed + 1)
                    if 2 * ups - common + 2 * own - changed > 0) / 2**changed
        total += math.comb(common, ups) / 2**common * 2 * above * (1 - above)
    return total


def simhash_theory(changed, ngrams, bits, distance, tables):
    """Bits differ independently. 64 bits: every pair within the distance is found. 128 bits: a table finds a pair if
    none of its 16 drawn bits differs."""
    differs = bit_differs(changed, ngrams)
    found = 0
    for d in range(distance + 1):
        by_a_table = 1 if bits == 64 else math.comb(bits - d, 16) / math.comb(bits, 16)
        found += binomial(bits, d, differs) * (1 - (1 - by_a_table)**tables)
    return found


METHODS = {
    "minhash 14 x 8": ({"minhash": {}}, NGRAM, minhash_theory),
    "simhash 64, 3": ({"simhash": {}}, 3, lambda c, n: simhash_theory(c, n, 64, 3, 20)),
    "simhash 128, 18": ({"simhash": {"bits": 128, "distance": 18}}, 3, lambda c, n: simhash_theory(c, n, 128, 18, 20)),
}


def theory(pairs):
    print(f"{pairs} pairs of each similarity, {WORDS} words a document\n")
    print(f"{'method':18}{'Jaccard':>9}{'expected':>10}{'found':>8}{'± 2 sigma':>11}")
    for method, (stage, ngram, expected_of) in METHODS.items():
        ngrams = WORDS - ngram + 1
        # The last words are replaced, so that as many n-grams differ as words do.
        changes = [round(ngrams * (1 - s) / (1 + s)) for s in (0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.5)]
        rng = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/c.jsonl", "w") as out:
                def put(name, text):
                    out.write(json.dumps({"id": name, "text": " ".join(text)}) + "\n")
                for changed in changes:
                    for pair in range(pairs):
                        text = words(rng, WORDS)
                        put(f"{changed}/{pair}/a", text)
                        put(f"{changed}/{pair}/b", text[:WORDS - changed] + words(rng, changed))
                for single in range(5 * pairs):
                    put(f"single/{single}", words(rng, WORDS))
            subprocess.run([TOKAMAK, "data", "prepare", write_config(folder, [f"{folder}/c.jsonl"], [stage])], check=True,
                           capture_output=True)
            dropped = {one["id"].rsplit("/", 1)[0] if one["id"][0] != "s" else one["id"] for one in lines_of(f"{folder}/out/dropped")}
        for changed in changes:
            found = sum(f"{changed}/{pair}" in dropped for pair in range(pairs)) / pairs
            expected = expected_of(changed, ngrams)
            sigma = math.sqrt(max(expected * (1 - expected), 1e-9) / pairs)
            print(f"{method:18}{jaccard_of(changed, ngrams):9.3f}{expected:10.4f}{found:8.4f}{2 * sigma:11.4f}")
        wrong = sum(name.startswith("single") for name in dropped)
        print(f"{method:18}unrelated documents dropped: {wrong} of {5 * pairs}\n", flush=True)


def write_part(job):
    path, first, count = job
    rng = random.Random(first)
    vocabulary = words(random.Random(7), 50_000)
    with open(path, "w") as out:
        for number in range(first, first + count):
            if number % 10 == 9:  # a near copy of the document before: its last word differs
                text = text[:-1] + [rng.choice(vocabulary)]
            else:
                text = rng.choices(vocabulary, k=40)
            out.write(f'{{"id": "{number}", "text": "{" ".join(text)}"}}\n')


def size(documents, memory):
    part = 250_000
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/in")
        with Pool() as pool:
            pool.map(write_part, [(f"{folder}/in/{first:09}.jsonl", first, min(part, documents - first))
                                  for first in range(0, documents, part)])
        total = sum(os.path.getsize(f"{folder}/in/{name}") for name in os.listdir(f"{folder}/in"))
        config = write_config(folder, [f"{folder}/in"], ["exact", "minhash"], f"memory: {memory}\n")
        start = time.monotonic()
        process = subprocess.Popen([TOKAMAK, "data", "prepare", config, "--json"], stdout=subprocess.PIPE,
                                   stderr=open(f"{folder}/log", "w"), text=True)
        report = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        assert os.waitstatus_to_exitcode(status) == 0, open(f"{folder}/log").read()
        counts = json.loads(report)["counts"]
        dropped = {reason: sum(tally[0] for tally in sources.values()) for reason, sources in counts["dropped"].items()}
        disk = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(f"{folder}/out.work") for name in names)
        print(open(f"{folder}/log").read())
        print(f"{documents} documents, {total / 1e9:.2f} GB of text: {seconds:.0f} s, peak memory {usage.ru_maxrss / 2**20:.2f} GiB "
              f"(memory: {memory}), {disk / 1e9:.1f} GB of intermediate files; dropped {dropped} of {documents // 10} copies")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["theory", "size"])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--memory", default="1Gi")
    options = parser.parse_args()
    if options.what == "theory":
        theory(options.pairs)
    else:
        size(options.documents, options.memory)


if __name__ == "__main__":
    main()
