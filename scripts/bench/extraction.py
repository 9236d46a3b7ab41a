#!/usr/bin/env python3
"""Scores the extractors of `tokamak data prepare`, and trafilatura, on labelled pages.

FOLDER has pages.tar.xz (pages/FILE) and labels.json: {address: {"file": FILE, "with": [segments of the main text],
"without": [segments that are not in it]}}, as in trafilatura's evaluation set (tests/evaldata.json). A `with` that the
text contains is a true positive, a `without` that it contains a false one. Prints precision, recall and F1 on all
pages and on each half, every other page by name: our rules were chosen on the even half only.

usage: scripts/bench/extraction.py FOLDER

Run it by a Python that has trafilatura (scripts/dev/install_python.sh text). TOKAMAK names the program (build/tokamak).
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.pop(0)  # a file beside this one has the name of a module that trafilatura imports
ROOT = Path(__file__).resolve().parents[2]
TOKAMAK = os.environ.get("TOKAMAK", str(ROOT / "build" / "tokamak"))


def by_trafilatura(pages):
    import trafilatura
    return {page.name: trafilatura.extract(page.read_bytes(), include_comments=False) or "" for page in pages.iterdir()}


def by_tokamak(archive, extractor, out):
    """{name of the page: its text}"""
    config = Path(f"{out}.yaml")
    config.write_text(f"inputs: [{archive}]\noutput: {out}\nextract: {{extractor: {extractor}}}\n")
    subprocess.run([TOKAMAK, "data", "prepare", config], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    texts = {}
    for part in sorted((out / "documents").iterdir()):
        lines = subprocess.run(["zstd", "-dc", part], check=True, capture_output=True).stdout.splitlines()
        for document in map(json.loads, lines):
            texts[document["url"].rsplit("/", 1)[1]] = document["text"]
    return texts


def scores(texts, labels):
    """Precision, recall and F1"""
    found = sum(segment in texts.get(label["file"], "") for label in labels for segment in label["with"])
    wrong = sum(segment in texts.get(label["file"], "") for label in labels for segment in label["without"])
    precision, recall = found / (found + wrong), found / sum(len(label["with"]) for label in labels)
    return precision, recall, 2 * precision * recall / (precision + recall)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    labels = sorted(json.loads((folder / "labels.json").read_text()).values(), key=lambda label: label["file"])
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        with tarfile.open(folder / "pages.tar.xz") as archive:
            archive.extractall(out, filter="data")
        subprocess.run([ROOT / "scripts" / "html_to_warc.py", out / "pages.warc.gz", out / "pages"], check=True)
        extracted = {f"`{one}`": by_tokamak(out / "pages.warc.gz", one, out / one) for one in ("main", "whole", "union")}
        extracted["trafilatura"] = by_trafilatura(out / "pages")
    print("| extractor | pages | precision | recall | F1 |\n|---|---|---:|---:|---:|")
    for which, some in (("all", labels), ("even half", labels[::2]), ("odd half", labels[1::2])):
        for name, texts in extracted.items():
            precision, recall, f1 = scores(texts, some)
            print(f"| {name} | {which}, {len(some)} | {precision:.4f} | {recall:.4f} | {f1:.4f} |")


if __name__ == "__main__":
    main()
