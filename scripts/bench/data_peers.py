#!/usr/bin/env python3
"""Data preparation and the public pipelines, on one core, in turn in the same minutes. trafilatura and resiliparse
extract pages. datatrove applies Gopher's and FineWeb's rules and hashes MinHash signatures. Python reads lines.

usage: scripts/bench/data_peers.py PAGES.warc.gz [--pages 300] [--rounds 3]

Run it by a Python that has datatrove, trafilatura, resiliparse and fastwarc (scripts/dev/install_python.sh text).
TOKAMAK names the program (build/tokamak), which measures the same pages by `tokamak bench data`. The peers get the
texts that our extractor finds. Prints the best round of each, and our rate over theirs.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.pop(0)  # a file beside this one has the name of a module that datatrove imports
TOKAMAK = os.path.abspath(os.environ.get("TOKAMAK", "build/tokamak"))


def first_members(path, pages, out):
    """The first records of the archive, so that all measure the same"""
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    count = 0
    with open(path, "rb") as stream, gzip.open(out, "wb") as file:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=False):
            record.write(file)
            count += 1
            if count == pages:
                break
    return count


def html_of(path):
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
            yield record.reader.read()


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def extract_trafilatura(path):
    import trafilatura
    for html in html_of(path):
        trafilatura.extract(html, include_comments=False, include_tables=True)


def extract_resiliparse(path):
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding
    for html in html_of(path):
        extract_plain_text(bytes_to_str(html, detect_encoding(html)), main_content=True)


def datatrove_filters():
    from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    return [GopherRepetitionFilter(), GopherQualityFilter(), FineWebQualityFilter()]


def run_rules(texts, filters):
    from datatrove.data import Document
    for text in texts:
        document = Document(text=text, id="")
        for one in filters:  # each, as ours measures all values, whatever the first verdict is
            one.filter(document)


def run_signatures(texts, hasher):
    from datatrove.data import Document
    for text in texts:
        hasher.get_signature(hasher.get_shingles(text))


def minhash():
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    return MinhashDedupSignature(output_folder=tempfile.mkdtemp(), config=MinhashConfig())


def read_lines(path):
    for line in subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE).stdout:
        json.loads(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages")
    parser.add_argument("--pages", dest="count", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = f"{folder}/pages.warc.gz"
        count = first_members(options.pages, options.count, archive)
        with open(f"{folder}/c.yaml", "w") as out:
            out.write(f"inputs: [{archive}]\noutput: {folder}/texts\n")
        subprocess.run([TOKAMAK, "data", "prepare", f"{folder}/c.yaml"], check=True, capture_output=True)
        lines = f"{folder}/texts/documents/part-00000.jsonl.zst"
        texts = [json.loads(line)["text"] for line in
                 subprocess.run(["zstd", "-dc", lines], capture_output=True, check=True).stdout.splitlines()]
        filters, hasher = datatrove_filters(), minhash()
        peers = [("trafilatura", "read, HTML, extract: main", lambda: extract_trafilatura(archive)),
                 ("resiliparse", "read, HTML, extract: whole", lambda: extract_resiliparse(archive)),
                 ("datatrove, 3 sets of rules", "rules: the default sets", lambda: run_rules(texts, filters)),
                 ("datatrove, MinHash signatures", "minhash: keys", lambda: run_signatures(texts, hasher)),
                 ("Python json, zstd", "read .jsonl.zst", lambda: read_lines(lines))]
        ours, theirs = {}, {}
        for _ in range(options.rounds):
            subprocess.run([TOKAMAK, "bench", "data", "--input", archive, "--seconds", "1", "--json", f"{folder}/ours.json",
                            "--scratch", f"{folder}/scratch"], check=True, capture_output=True)
            with open(f"{folder}/ours.json") as file:
                for name, one in json.load(file).items():
                    if "seconds" in one:
                        ours[name] = min(ours.get(name, 1e9), one["seconds"])
            for name, _, work in peers:
                theirs[name] = min(theirs.get(name, 1e9), seconds_of(work))
        size = sum(len(text.encode()) for text in texts)
        print(f"{count} pages, {size / 1e6:.1f} MB of text; documents/s on one core, the best of {options.rounds} rounds\n")
        print(f"{'the same work by':32}{'theirs':>10}{'ours':>10}{'ratio':>8}")
        for name, our_name, _ in peers:
            print(f"{name:32}{count / theirs[name]:10.1f}{count / ours[our_name]:10.1f}{theirs[name] / ours[our_name]:8.1f}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
