#!/usr/bin/env python3
"""JSONL to shards: `tokamak data tokenize` beside the work of Megatron-LM's tools/preprocess_data.py, in turn.

usage: scripts/bench/text_to_shards.py TEXT.jsonl TOKENIZER [--workers 1 2] [--rounds 5]

TOKENIZER is a SentencePiece model or a tokenizer.json. Run it by a Python that has megatron-core, torch, numpy and
tokenizers or sentencepiece (scripts/dev/install_python.sh shards). The tool is not part of the package megatron-core.
So megatron_worker() and megatron() repeat what it does. W workers parse and encode the lines, in chunks of 32. One
IndexedDatasetBuilder appends the documents with their EOS. Both programs get the same
W cores. Rates are bytes of JSONL a second of wall time, the best of the rounds.
"""
import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.pop(0)  # the name of this file is that of a standard module
ROOT = Path(__file__).resolve().parents[2]
encode = None
eos = None


def load(tokenizer):
    global encode, eos
    if tokenizer.endswith(".json"):
        from tokenizers import Tokenizer
        model = Tokenizer.from_file(tokenizer)
        encode = lambda text: model.encode(text, add_special_tokens=False).ids
        eos = next(i for i in map(model.token_to_id, ("<|end_of_text|>", "<|endoftext|>", "</s>")) if i is not None)
        return model.get_vocab_size()
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
    encode, eos = model.encode, model.eos_id()
    return model.get_piece_size()


def megatron_worker(line):
    ids = encode(json.loads(line)["text"])
    ids.append(eos)
    return ids, len(line)


def megatron(text, tokenizer, workers, output):
    import torch
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
    vocab = load(tokenizer)
    builder = IndexedDatasetBuilder(output + ".bin", dtype=DType.optimal_dtype(vocab))
    tokens = 0
    with open(text, encoding="utf-8") as lines, multiprocessing.Pool(workers, load, (tokenizer,)) as pool:
        for ids, _ in pool.imap(megatron_worker, lines, 32):
            builder.add_document(torch.IntTensor(ids), [len(ids)])
            tokens += len(ids)
    builder.finalize(output + ".idx")
    return tokens


def tokamak(text, tokenizer, workers, output):
    program = os.environ.get("TOKAMAK", str(ROOT / "build/tokamak"))
    subprocess.run([program, "data", "tokenize", "--input", text, "--tokenizer", tokenizer, "--output", output,
                    "--threads", str(workers)], check=True, capture_output=True)
    return json.loads((Path(output) / "manifest.json").read_text())["shards"]


def timed(run, *arguments):
    begin = time.monotonic()
    run(*arguments)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("tokenizer")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    size = os.path.getsize(args.text)
    cores = sorted(os.sched_getaffinity(0))
    for workers in args.workers:
        os.sched_setaffinity(0, cores[:workers])
        best = {}
        with tempfile.TemporaryDirectory(prefix="tokamak-bench-") as directory:
            for r in range(args.rounds):
                for run in (tokamak, megatron):
                    output = f"{directory}/{run.__name__}-{r}"
                    best[run] = min(best.get(run, float("inf")), timed(run, args.text, args.tokenizer, workers, output))
            ours = Path(f"{directory}/tokamak-0/part-00000.bin").read_bytes()
            theirs = Path(f"{directory}/megatron-0.bin").read_bytes()
        os.sched_setaffinity(0, cores)
        rates = {run.__name__: f"{size / seconds / 1e6:.1f} MB/s" for run, seconds in best.items()}
        print(f"{workers} core(s): {rates}, ratio {best[megatron] / best[tokamak]:.2f}, "
              f"tokens {'equal' if ours == theirs else 'DIFFER'}", flush=True)


if __name__ == "__main__":
    main()
