#!/usr/bin/env python3
"""Trains the same model on the raw and on the prepared text of the same pages, with three seeds, and evaluates both on
held-out clean text.

  raw        every text of a page outside its scripts and styles, as in Common Crawl's WET files
  whole      `extract.extractor: whole`, all but the page's frame; no other stage
  prepared   `extract.extractor: main`, the default rules, copies of paragraphs, near copies of documents

The pages are English documentation in Debian packages. Every fourth package is held out, so no held-out text has a
copy of itself among the pages of training. One tokenizer serves all, trained on the raw text, and all see the same
number of tokens. The held-out pages that the rules keep are evaluated twice: as `prepared` text, and as trafilatura
extracts them, so that one of the two texts owes nothing to our extractor. The measure is bits per byte.

usage: scripts/bench/raw_and_prepared.py --out FOLDER

Run it by a Python that has trafilatura (scripts/dev/install_python.sh text). It downloads the packages (60 MB) and
unpacks them in FOLDER; it installs nothing. The same command again only prints the table of what is there.
"""
import argparse
import gzip
import html.parser
import json
import os
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.pop(0)  # a file beside this one has the name of a module that trafilatura imports
ROOT = Path(__file__).resolve().parents[2]
TOKAMAK = os.path.abspath(os.environ.get("TOKAMAK", ROOT / "build" / "tokamak"))
PACKAGES = ["aptitude-doc-en", "cmake-doc", "debian-policy", "debian-reference-en", "developers-reference",
            "exim4-doc-html", "git-doc", "gnuplot-doc", "octave-doc", "postfix-doc", "postgresql-doc-15",
            "python-django-doc", "python-sqlalchemy-doc", "python3.11-doc", "r-doc-html", "sqlite3-doc", "valgrind"]
HELD_OUT = PACKAGES[3::4]
STAGES = """
  - rules
  - exact: {unit: paragraphs}
  - minhash"""
VOCABULARY, SEEDS, ARMS = 2048, (1, 2, 3), ("raw", "whole", "prepared")
MODEL = f"""
run: {{name: text, seed: SEED, output_dir: FOLDER}}
model: {{hidden_size: 128, intermediate_size: 352, num_hidden_layers: 4, num_attention_heads: 4,
  vocab_size: {VOCABULARY}, max_position_embeddings: 256, tie_word_embeddings: true}}
data: {{sequence_length: 256, sources: [{{path: SOURCE}}]}}
training: {{global_batch_tokens: 4096, max_steps: STEPS, micro_batch_size: 4}}
optimizer: {{lr: 4e-3, betas: [0.9, 0.95], weight_decay: 0.1}}
lr_scheduler: {{warmup: 5%, decay_type: cosine, min_lr_factor: 0.1}}
precision: {{compute: f32}}
checkpoint: {{interval: 200 steps}}
runtime: {{threads_per_rank: 1}}
"""


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], text=True, check=False, capture_output=True, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def unpacked(out, package):
    """The folder with the package's files; a new one is renamed in once it is whole"""
    folder = out / "packages" / package
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "-q", package, cwd=partial)
        run("dpkg-deb", "-x", next(partial.glob("*.deb")), partial)
        partial.rename(folder)
    return folder


class Texts(html.parser.HTMLParser):
    """Every text outside script and style; a new line at each element that HTML 5 lists as a block"""
    HIDDEN = {"script", "style", "noscript", "template"}
    INLINE = {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "samp", "small",
              "span", "strong", "sub", "sup", "tt", "u", "var"}

    def __init__(self):
        super().__init__()
        self.parts, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in self.HIDDEN
        self.parts.append("" if tag in self.INLINE else "\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in self.HIDDEN and self.hidden > 0
        self.parts.append("" if tag in self.INLINE else "\n")

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data if "\n" not in data else " ".join(("." + data + ".").split())[1:-1])


def raw_text(page):
    parser = Texts()
    parser.feed(page)
    return "\n".join(filter(None, (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))))


def pages(archive):
    """(address, HTML) of each page"""
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    with open(archive, "rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
            yield record.headers["WARC-Target-URI"], record.reader.read().decode("utf-8", "replace")


def addresses(folder):
    """The addresses of the documents that `tokamak data prepare` wrote"""
    for path in sorted((folder / "documents").iterdir()):
        for line in run("zstd", "-dc", path).splitlines():
            yield json.loads(line)["url"]


def write_texts(path, texts):
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts if text)


def prepare(out, name, source, extractor, stages, tokens):
    """Runs `tokamak data prepare` unless it has run; returns its output folder"""
    folder = out / name
    if not folder.exists():
        config = out / f"{name}.yaml"
        config.write_text(f"inputs: [{source}]\noutput: {folder}\nextract: {{extractor: {extractor}}}\n"
                          f"stages: {stages or '[]'}\ntokens: {tokens}\n")
        run(TOKAMAK, "data", "prepare", config)
    return folder


def make_texts(out):
    """The shards of each arm, and the held-out texts; returns their folders and files by name"""
    for name, packages in (("held-out", HELD_OUT), ("training", [one for one in PACKAGES if one not in HELD_OUT])):
        if not (out / f"{name}.warc.gz").exists():
            print(run(ROOT / "scripts" / "html_to_warc.py", out / f"{name}.warc.gz", *(unpacked(out, one) for one in packages)))
    training, held_out = out / "training.warc.gz", out / "held-out.warc.gz"
    if not (out / "raw.jsonl.gz").exists():
        write_texts(out / "raw.jsonl.gz", (raw_text(page) for _, page in pages(training)))
    raw = prepare(out, "raw", out / "raw.jsonl.gz", "whole", "", f"{{train_vocab_size: {VOCABULARY}}}")
    one_for_all = f"{{tokenizer: {raw / 'train' / 'tokenizer.model'}}}"
    shards = {"raw": raw, "whole": prepare(out, "whole", training, "whole", "", one_for_all),
              "prepared": prepare(out, "prepared", training, "main", STAGES, one_for_all)}
    ours = prepare(out, "held-out", held_out, "main", STAGES, "{}")
    public = out / "trafilatura.jsonl.gz"
    if not public.exists():
        import trafilatura
        kept = set(addresses(ours))
        write_texts(public, (trafilatura.extract(page, include_comments=False) for url, page in pages(held_out) if url in kept))
    plain = out / "held-out.jsonl"
    if not plain.exists():
        plain.write_text("".join(run("zstd", "-dc", path) for path in sorted((ours / "documents").iterdir())))
    return shards, {"as prepared": plain, "by trafilatura": public}


def bits_per_byte(out, arm, seed, shards, held_out, options):
    """Trains one model; returns its bits per byte on each held-out text"""
    folder = out / "runs" / f"{arm}-{seed}-{options.steps}"
    config = out / f"{arm}-{seed}.yaml"
    keys = {"FOLDER": folder, "SOURCE": shards / "train", "SEED": seed, "STEPS": options.steps}
    config.write_text(re.sub("|".join(keys), lambda key: str(keys[key[0]]), MODEL))
    results = folder / "held-out.json"
    if not results.exists():
        run(TOKAMAK, "train", config)
        tasks = [word for name, path in held_out.items() for word in ("--task", f"text/{name.split()[-1]}={path}")]
        run(TOKAMAK, "eval", "--checkpoint", folder / "checkpoints", *tasks, "--threads", 1, "--output", results)
    return json.loads(results.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder of packages, texts and runs")
    parser.add_argument("--steps", type=int, default=600, help="steps of 4,096 tokens (%(default)s)")
    options = parser.parse_args()
    out = Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    shards, held_out = make_texts(out)
    runs = [(arm, seed) for seed in SEEDS for arm in ARMS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(runs, pool.map(lambda one: bits_per_byte(out, *one, shards[one[0]], held_out, options), runs)))
    print(f"| training text | documents | tokens | {' | '.join(held_out)} |\n|---|---:|---:|{'---:|' * len(held_out)}")
    for arm in ARMS:
        manifest = json.loads((shards[arm] / "train" / "manifest.json").read_text())
        tokens = sum(shard["tokens"] for shard in manifest["shards"])
        cells = []
        for name in held_out:
            bits = [found[arm, seed]["results"][f"text/{name.split()[-1]}"]["bits_per_byte"] for seed in SEEDS]
            cells.append(f"{statistics.mean(bits):.4f} ({', '.join(f'{one:.4f}' for one in bits)})")
        print(f"| {arm} | {manifest['documents']:,} | {tokens:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
