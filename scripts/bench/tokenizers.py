#!/usr/bin/env python3
"""The speed of tokenizers on one core: tokamak, gigatoken and, if asked, Hugging Face's tokenizers.

    scripts/bench/tokenizer_texts.py /tmp/texts
    $(scripts/dev/install_python.sh tokens) scripts/bench/tokenizers.py /tmp/texts --tokamak build/tokamak

Prints MB/s of processor time of one pinned thread, the best of --rounds, and ratios. The programs take turns, so that
a slow minute of a shared machine hits all. Each round starts with new caches: "cold" is the first half of a text,
"fresh" the second half, "warm" the second half again. Loading is not counted, nor is the first call of gigatoken,
which fills its cache. The counts of ids must agree before a time is shown. Vocabularies: Llama 3 and Qwen from their
packages, and "gpt2", a vocabulary of 50,257 entries trained here with GPT-2's pattern.
"""
import argparse
import base64
import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.pop(0)  # the folder of this file, which has the name of a package
PASSES = ["cold", "fresh", "warm"]
PR_SET_THP_DISABLE = 41
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def package_file(package, *parts):
    return pathlib.Path(importlib.util.find_spec(package).origin).parent.joinpath(*parts)


def byte_characters():
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


def pre_tokenizer(pattern):
    def byte_level(use_regex):
        return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    if pattern is None:
        return byte_level(True)
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level(False)]}


def write_json(path, vocab, merges, pattern, ignore_merges, normalizer):
    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges,
             "vocab": vocab, "merges": merges}
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer(pattern), "post_processor": None, "decoder": decoder, "model": model}))


def from_tiktoken(source, path, **settings):
    """Every way to cut a token into two tokens is a merge, in the order of transformers' TikTokenConverter."""
    ranks = {}
    for line in source.read_bytes().splitlines():
        if line:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    characters = byte_characters()

    def text(token):
        return "".join(characters[b] for b in token)
    merges = sorted((rank, ranks[token[:i]], ranks[token[i:]], text(token[:i]), text(token[i:]))
                    for token, rank in ranks.items() for i in range(1, len(token))
                    if token[:i] in ranks and token[i:] in ranks)
    write_json(path, {text(token): rank for token, rank in ranks.items()}, [f"{m[3]} {m[4]}" for m in merges], **settings)


def train_gpt2_style(texts, path):
    import tokenizers
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=50257, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    # A part of the first halves: a published vocabulary has not seen most of a text either.
    samples = [documents(texts, language, "first")[::8] for language in ("english", "code")]
    trained.train_from_iterator([d.decode() for sample in samples for d in sample], trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    write_json(path, model["vocab"], merges, pattern=None, ignore_merges=False, normalizer=None)


def documents(folder, language, half):
    return [d for d in (folder / f"{language}.{half}").read_bytes().split(b"\0") if d]


def set_up(options):
    """Runs in each measured process before its work."""
    os.sched_setaffinity(0, {options.core})
    if options.no_huge_pages:
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def encoder_of(program, path):
    if program == "gigatoken":
        import awkward
        import gigatoken
        tokenizer = gigatoken.Tokenizer(str(path))
        tokenizer.encode_batch([b"a"], parallel=False)
        return (lambda texts: tokenizer.encode_batch(texts, parallel=False),
                lambda batch: int(awkward.num(batch, axis=1).to_numpy().sum()))
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return (lambda texts: [tokenizer.encode(t.decode(), add_special_tokens=False).ids for t in texts],
            lambda batch: sum(map(len, batch)))


def measure_here(options):
    """One round of a Python package, as this process's output."""
    halves = [documents(options.texts, options.language, half) for half in ("first", "second", "second")]
    encode, count = encoder_of(options.measure, options.vocabulary)
    results = {}
    for name, texts in zip(PASSES, halves):
        start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        ids = encode(texts)
        seconds = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - start
        results[name] = {"bytes": sum(map(len, texts)), "ids": count(ids), "seconds": seconds}
    print(json.dumps(results))


def run_round(options, program, vocabulary, language):
    if program.startswith("tokamak"):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            halves = [options.texts / f"{language}.{half}" for half in ("first", "second")]
            subprocess.run([options.tokamak, "bench", "tokenizer", "--tokenizer", vocabulary, "--first", halves[0],
                            "--second", halves[1], "--rounds", "1", "--json", out.name], check=True,
                           stdout=subprocess.DEVNULL, preexec_fn=lambda: set_up(options))
            return json.load(open(out.name, encoding="utf-8"))
    command = [sys.executable, __file__, options.texts, "--measure", program, "--vocabulary", vocabulary,
               "--language", language]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, preexec_fn=lambda: set_up(options))
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=pathlib.Path, help="folder of tokenizer_texts.py")
    parser.add_argument("--tokamak", default="build/tokamak")
    parser.add_argument("--programs", default="tokamak,gigatoken", help="list from tokamak, gigatoken, tokenizers")
    parser.add_argument("--vocabularies", default="gpt2,llama3,qwen2")
    parser.add_argument("--languages", default="english,code,russian,chinese")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0, help="the processor that runs everything")
    parser.add_argument("--no-huge-pages", action="store_true", help="as on a system without them")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--vocabulary", help=argparse.SUPPRESS)
    parser.add_argument("--language", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure_here(options)
        return
    programs = options.programs.split(",")
    for name in options.vocabularies.split(","):
        path = options.texts / f"{name}.tokenizer.json"
        if not path.exists():
            if name == "gpt2":
                train_gpt2_style(options.texts, path)
            elif name == "llama3":
                from_tiktoken(package_file("llama_models", "llama3", "tokenizer.model"), path, pattern=LLAMA3,
                              ignore_merges=True, normalizer=None)
            else:
                from_tiktoken(package_file("dashscope", "resources", "qwen.tiktoken"), path, pattern=QWEN2,
                              ignore_merges=False, normalizer={"type": "NFC"})
        for language in options.languages.split(","):
            best = {}
            for _ in range(options.rounds):
                for program in programs:
                    result = run_round(options, program, path, language)
                    for one in PASSES:
                        known = best.setdefault((program, one), result[one])
                        if known["ids"] != result[one]["ids"] or known["ids"] != best[(programs[0], one)]["ids"]:
                            sys.exit(f"{name}, {language}, {one}: {program} makes {result[one]['ids']} ids, "
                                     f"{programs[0]} {best[(programs[0], one)]['ids']}")
                        known["seconds"] = min(known["seconds"], result[one]["seconds"])
            for one in PASSES:
                rates = {p: best[(p, one)]["bytes"] / best[(p, one)]["seconds"] / 1e6 for p in programs}
                others = " ".join(f"{p} {rates[p]:7.1f} ({rates[programs[0]] / rates[p]:5.2f} x)" for p in programs[1:])
                print(f"{name:7} {language:8} {one:6} {programs[0]} {rates[programs[0]]:7.1f} MB/s  {others}", flush=True)


if __name__ == "__main__":
    main()
