#!/usr/bin/env python3
"""Compares ids and decoded text with Hugging Face's `tokenizers` and with tiktoken, for published vocabularies (their
first pieces; all of them with --full) and for small ones trained here.

usage: oracle_test.py [--lines N] [--full] [CASE...]      N texts of each tokenizer (400)
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tokens_python import enter_tokens_python

enter_tokens_python()

import tokenizers  # noqa: E402

import oracle_styles as styles  # noqa: E402
from oracle_text import texts  # noqa: E402

PROGRAM = os.environ["TOKENIZE_TEXTS"]
PIECES = 20000  # of a published vocabulary, without --full


class Run:
    lines = 400
    most = PIECES
    failures = 0


def ours(path, records, policy="ids"):
    """[(ids, text)] of records that are texts or lists of ids."""
    data = bytearray()
    for record in records:
        if isinstance(record, str):
            text = record.encode()
            data += b"e" + struct.pack("<i", len(text)) + text
        else:
            data += b"d" + struct.pack(f"<i{len(record)}i", len(record), *record)
    done = subprocess.run([PROGRAM, str(path), policy], input=data, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    out, at, answers = done.stdout, 0, []
    for _ in records:
        (count,) = struct.unpack_from("<i", out, at)
        ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
        (length,) = struct.unpack_from("<i", out, at)
        answers.append((ids, out[at + 4: at + 4 + length].decode()))
        at += 4 + length
    assert at == len(out)
    return answers


def report(name, differences, count):
    print(f"{name:40s} {count:8d} texts, {len(differences)} differ", flush=True)
    for text, found, expected in differences[:3]:
        print(f"  {text!r}\n    ours     {found}\n    expected {expected}")
    Run.failures += bool(differences)


def compare(name, path, oracle, tokens=(), policy="ids"):
    """Ours of the file `path` against an `oracle` of type tokenizers.Tokenizer."""
    oracle.encode_special_tokens = policy == "text"
    lines = texts(Run.lines, 7, tokens)
    rng = random.Random(3)
    highest = max(oracle.get_vocab().values())
    sequences = [[rng.randint(0, highest) for _ in range(rng.randint(0, 12))] for _ in range(len(lines) // 4)]
    known = set(oracle.get_vocab().values())
    sequences = [[i for i in ids if i in known] for ids in sequences]
    answers = ours(path, lines + sequences, policy)
    expected = [e.ids for e in oracle.encode_batch_fast(lines, add_special_tokens=False)] + sequences
    decoded = oracle.decode_batch(expected, skip_special_tokens=True)
    differences = [(record, answer, (ids, text)) for record, answer, ids, text in zip(lines + sequences, answers, expected, decoded)
                   if answer != (ids, text)]
    report(name, differences, len(lines) + len(sequences))


def save(value, directory, name="tokenizer.json"):
    path = Path(directory) / name
    path.write_text(json.dumps(value, ensure_ascii=False))
    return path


def check_published():
    """Llama 3, Llama 4 and Qwen from their tiktoken files and as a tokenizer.json; Mistral's tekken. No package has
    Kimi's file: its preset reads a small one, trained with its pattern."""
    most = Run.most
    for name, source, pattern, nfc in (("llama3", styles.LLAMA3, styles.CL100K, False), ("llama4", styles.LLAMA4, styles.O200K, False),
                                       ("qwen", styles.QWEN, styles.QWEN2, True), ("kimi", None, styles.KIMI, False)):
        with tempfile.TemporaryDirectory() as directory:
            tiktoken = Path(directory) / "ranks"
            lines = source.read_bytes().splitlines()[:most] if source else styles.trained_ranks(pattern)
            tiktoken.write_bytes(b"\n".join(lines) + b"\n")
            specials = inspect_added(f"{tiktoken}#{name}")
            path = save(styles.from_ranks(styles.read_ranks(tiktoken), pattern, specials, nfc=nfc), directory)
            oracle = tokenizers.Tokenizer.from_file(str(path))
            compare(f"{name}, tokenizer.json", path, oracle, specials[:8])
            compare(f"{name}, tiktoken", f"{tiktoken}#{name}", oracle, specials[:8])
            compare(f"{name}, specials as text", path, oracle, specials[:8], "text")
    with tempfile.TemporaryDirectory() as directory:
        ranks = styles.tekken_ranks(most)
        tekken = json.loads(styles.TEKKEN.read_bytes())
        tekken["vocab"] = tekken["vocab"][: most or 150000]
        tekken["config"]["default_vocab_size"] = len(ranks) + 1000
        direct = save(tekken, directory, "tekken.json")
        specials = inspect_added(direct)
        path = save(styles.from_ranks(ranks, styles.TEKKEN_PATTERN, specials, offset=1000), directory)
        oracle = tokenizers.Tokenizer.from_file(str(path))
        compare("tekken, tokenizer.json", path, oracle, specials[:8])
        compare("tekken, tekken.json", direct, oracle, specials[:8], "text")


def inspect_added(path):
    """The control tokens of a tokenizer, in the order of their ids."""
    out = subprocess.run([os.environ["TOKAMAK"], "tokenizer", "inspect", str(path), "--pieces"], capture_output=True, check=True).stdout
    rows = [line.split("\t") for line in out.decode("utf-8", "replace").split("\n") if line.count("\t") == 3]
    return [piece for _, _, kind, piece in rows if kind == "control"]


def check_trained():
    for name, tokenizer in styles.trained_styles():
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "tokenizer.json"
            tokenizer.save(str(path))
            contents = [token.content for token in tokenizer.get_added_tokens_decoder().values() if not token.content.startswith("<0x")]
            compare(name, path, tokenizer, contents)


# Section 6 of the specification: inputs with known ids. l: Llama 3, 4: Llama 4, q: Qwen, t: tekken.
GOLDEN = [
    ("", {"l": []}), ("  ", {"l": [256], "t": [1256]}), ("\r\n\r\n", {"l": [881], "4": [57966], "t": [1013, 1010, 1013, 1010]}),
    (" \n \n  x", {"l": [33006, 220, 865], "q": [31906, 220, 856]}), ("a\n  ", {"l": [64, 198, 256]}), ("x   y", {"l": [87, 256, 379]}),
    ("\t\tif (x)\t", {"l": [197, 748, 320, 87, 8, 197]}), ("\u00a0\u3000x", {"l": [4194, 23249, 87]}),
    ("\x85\u2028y", {"l": [116360, 378, 101, 88], "q": [126, 227, 378, 101, 88]}), ("\x1c\x1d", {"l": [216, 217]}),
    ("don't DON'T", {"l": [15357, 956, 45373, 17773], "4": [127161, 93885, 59842]}), ("a'ſt", {"l": [64, 6, 129, 123, 83]}),
    ("'tis 'S'll", {"l": [956, 285, 364, 50, 3358], "4": [2050, 280, 481, 63, 8961]}), ("3'ts", {"l": [18, 956, 82], "4": [31, 19, 1420]}),
    ("12345678", {"l": [4513, 10961, 2495], "q": list(range(16, 24))}), ("1,234.5½", {"l": [16, 11, 11727, 13, 20, 27154]}),
    ("٣٤٥٦", {"l": [117413, 124079, 124043, 149, 99]}), ("ⅧⅨ", {"l": [71567, 100, 71567, 101]}),
    ("camelCaseHTTPServer", {"4": [199440, 7508, 19117, 7317], "l": [94421, 4301, 9412, 5592]}),
    ("ǅungla ǅUNGLA", {"4": [142, 227, 830, 1717, 102420, 227, 3092, 9455, 45]}), ("ªº", {"l": [65005, 29300]}),
    ("e\u0301 é", {"l": [68, 54939, 4046], "q": [963, 3958]}), ("a\u0301\u0316", {"q": [1953, 136, 244], "l": [64, 54939, 136, 244]}),
    ("a\u07fd\u0301", {"q": [64, 155, 121, 53839]}), ("\u0301x", {"l": [54939, 87]}),
    ("हिन्दी", {"l": [95048, 100556, 101102, 44747], "4": [2471, 9028, 98999]}), ("ไทยภาษา", {"l": [102938, 109086, 21437]}),
    ("中文，测试", {"l": [108891, 3922, 82805], "q": [104811, 3837, 81705]}), ("한국어 ㅎㅎ", {"q": [23573, 124785, 31079, 220, 144030, 144030]}),
    ("👨‍👩‍👧", {"l": [9468, 239, 101, 102470, 9468, 239, 102, 102470, 9468, 239, 100]}), ("\ufeffx", {"l": [3305, 87]}),
    ("\0\0", {"l": [188, 188], "t": [1000, 1000]}),
    ("<|endoftext|> <|im_start|>", {"q": [151643, 220, 151644], "t": [1060, 1124, 1474, 2935, 2149, 1124, 1062, 1534, 1124, 1329, 18993, 1124, 1062]}),
    ("a<|begin_of_text|>b", {"l": [64, 128000, 65]}), (" Việt", {"l": [101798]}),
    ("a" * 25, {"l": [70540, 70540, 70540, 64], "4": [173598, 84715, 77]}), ("://\n//", {"4": [1050, 7632], "l": [1129, 198, 322]}),
    ("\ue000\uf8ff", {"l": [170, 222, 222, 171, 96, 123]}), ("Ġ", {"l": [119741], "4": [139, 254]}),
    ("\U0001e6db+W", {"l": [172, 252, 249, 249, 10, 54]}), ("q\u1ae1\u05b4", {"q": [80, 157, 104, 94, 146, 112]})]


def check_golden():
    files = {"l": f"{styles.LLAMA3}#llama3", "4": f"{styles.LLAMA4}#llama4", "q": f"{styles.QWEN}#qwen", "t": styles.TEKKEN}
    for key, path in files.items():
        rows = [(text, ids[key]) for text, ids in GOLDEN if key in ids]
        answers = ours(path, [text for text, _ in rows])
        differences = [(text, ids, expected) for (text, expected), (ids, _) in zip(rows, answers) if ids != expected]
        report(f"golden, {Path(str(path)).parent.name}", differences, len(rows))


def small(vocab, merges=(), pre_tokenizer=None, added=(), normalizer=None, decoder=None, post_processor=None, **model):
    vocab = {piece: number for number, piece in enumerate(vocab)} if isinstance(vocab, list) else vocab
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added), "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder,
            "model": {"type": "BPE", "vocab": vocab, "merges": list(merges), **model}}


def check_small():
    """Rules that published files seldom use. Hugging Face's library says what each text becomes."""
    token = styles.added
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    letters = list("abcxyz-123 ")
    bytes_but = [f"<0x{b:02X}>" for b in range(256) if b != 0xC3]
    def splits(behavior, invert, kind):
        return {"type": "Split", "pattern": {kind: "-"}, "behavior": behavior, "invert": invert}
    # name, file, texts, the expected ids where the specification says them
    cases = [("later rank of a pair", small(["a", "b", "c", "ab", "bc"], ["a b", "b c", "a b"]), ["abc"], [[0, 4]]),
             ("pairs as lists", small(["a", "b", " ", "a ", "a b"], [["a", " "], ["a ", "b"]]), ["a b"], [[4]]),
             ("a rejected word hides a shorter token", small(letters, added=[token("ab", 11, single_word=True), token("a", 0)]), ["abc", "ab c", "xab"], None),
             ("unknown after bytes", small(["<unk>", *bytes_but], byte_fallback=True, unk_token="<unk>"), ["éж", "éé", "жé"], None),
             ("a character vanishes", small(["a"]), ["xax", "x", "éa"], [[0], [], [0]]),
             ("unknown, one by one", small(["<unk>", "a"], unk_token="<unk>"), ["xxaxx"], [[0, 0, 1, 0, 0]]),
             ("unknown, fused", small(["<unk>", "a"], unk_token="<unk>", fuse_unk=True), ["xxaxx"], [[0, 1, 0]]),
             ("whole pieces", small(["a", "b", "ab", "abb"], ["a b"], ignore_merges=True), ["abb", "ab", "abbab"], None),
             ("no whole pieces", small(["a", "b", "ab", "abb"], ["a b"]), ["abb"], [[2, 1]]),
             ("a token of printable bytes", small(sorted(styles.CHARACTERS.values()), added=[token("ilÖveyou", 256, special=False)], pre_tokenizer=level,
                                                  decoder=level), ["ilÖveyou", "xÖ", "ilÖveyouÖ"], None),
             ("rstrip and a token in the space", small(letters, added=[token("x", 3, rstrip=True, special=False), token("  ", 11, special=False)]),
              ["x  a", "x   a", "x  "], None),
             ("lstrip behind rstrip", small(letters, added=[token("x", 3, rstrip=True), token("y", 4, lstrip=True)]), ["x  y", "  y x  y "], None),
             ("decoder strips", small(letters, decoder={"type": "Sequence", "decoders": [
                 {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 2, "stop": 1}]}), ["   a ", "a   ", " a b  "], None),
             ("no decoder", small(letters), ["a b"], None),
             ("special, normalized, decoded", small(letters, added=[token("q", 11, normalized=True), token("w", 12, special=False, normalized=True)],
                                                    normalizer={"type": "Prepend", "prepend": "x"}), ["q", "w", "aqa"], None)]
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            for kind in ("String", "Regex"):
                cases.append((f"Split {behavior} {invert} {kind}", small(["a", "b", "-", "--", "a-", "-a", "b-", "-b", "a--", "--b"],
                              ["- -", "a -", "- a", "b -", "- b"], splits(behavior, invert, kind)), ["-a--b-", "--", "a", "a-b---"], None))
    for name, value, inputs, known in cases:
        with tempfile.TemporaryDirectory() as directory:
            path = save(value, directory)
            oracle = tokenizers.Tokenizer.from_file(str(path))
            expected = [oracle.encode(text, add_special_tokens=False).ids for text in inputs]
            assert known is None or expected == known, (name, expected)
            wanted = [(ids, oracle.decode(ids)) for ids in expected]
            answers = ours(path, inputs)
            report(name, [(t, a, w) for t, a, w in zip(inputs, answers, wanted) if a != w], len(inputs))


def check_digits_of_phi():
    """`\\p{N}{1,3}+` takes any number of digits in Hugging Face's engine."""
    with tempfile.TemporaryDirectory() as directory:
        pattern = styles.CL100K.replace("{1,3}", "{1,3}+")
        path = save(styles.from_ranks(styles.read_ranks(styles.LLAMA3, PIECES), pattern, []), directory)
        answer = ours(path, ["1234567"])[0][0]
        report("digits of phi-4", [] if answer == [4513, 1774, 3080] else [("1234567", answer, [4513, 1774, 3080])], 1)


def refused():
    """field that the message names, file"""
    token, good = styles.added, lambda **changes: {**small(["a", "b", "ab"], ["a b"]), **changes}
    def model(**changes):
        value = small(["a", "b", "ab"], ["a b"])
        value["model"] = {**value["model"], **changes}
        return value
    yield "version", good(version="2.0")
    yield "extra", good(extra=1)
    for kind in ("Unigram", "WordPiece", "WordLevel"):
        yield kind, model(type=kind)
    yield "dropout", model(dropout=0.1)
    yield "model.shrinks", model(shrinks=True)
    yield "'x' is not in model.vocab", model(merges=["a x"])
    yield "'ba' is not in model.vocab", model(merges=["b a"])
    yield "'a b c' is not two parts", model(merges=["a b c"])
    yield "is there twice", model(vocab={"a": 0, "b": 0, "ab": 1})
    yield "unk_token", model(unk_token="<none>")
    for name in ("Lowercase", "NFD", "NFKD", "StripAccents", "Precompiled", "Nmt", "BertNormalizer", "ByteLevel"):
        yield name, good(normalizer={"type": "Sequence", "normalizers": [{"type": name}]})
    for name in ("WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit", "UnicodeScripts", "FixedLength"):
        yield name, good(pre_tokenizer={"type": name})
    yield "pre_tokenizer.pretokenizers[1].type", good(pre_tokenizer={"type": "Sequence", "pretokenizers": [
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}, {"type": "Digits", "individual_digits": True}]})
    yield "behavior", good(pre_tokenizer={"type": "Split", "pattern": {"String": "a"}, "behavior": "Shuffled", "invert": False})
    yield "pre_tokenizer.flavour", good(pre_tokenizer={"type": "Whitespace", "flavour": 1})
    yield "add_prefix_space", good(pre_tokenizer={"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": False})
    for name in ("WordPiece", "CTC"):
        yield name, good(decoder={"type": name})
    yield "decoder.pattern", good(decoder={"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})
    yield "post_processor.type", good(post_processor={"type": "Strange"})
    yield "post_processor", good(post_processor={"type": "RobertaProcessing", "sep": ["x", 9], "cls": ["y", 0]})
    yield "added_tokens[0].id", good(added_tokens=[token("x", 7)])
    yield "added_tokens[0].hue", good(added_tokens=[{**token("x", 3), "hue": 1}])
    yield "added_tokens[1]", good(added_tokens=[token("x", 3), token("x", 3)])
    yield "normalizer", good(normalizer={"type": "Replace", "pattern": {"Regex": "a*"}, "content": "x"})


def check_refusals():
    count = 0
    for field, value in refused():
        with tempfile.TemporaryDirectory() as directory:
            path = save(value, directory)
            done = subprocess.run([PROGRAM, str(path), "ids"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            count += 1
            if done.returncode != 3 or field not in done.stderr or str(path) not in done.stderr:
                report(f"refusal of {field}", [(field, done.returncode, done.stderr)], 1)
    report("refusals", [], count)


CASES = {"published": check_published, "trained": check_trained, "golden": check_golden, "small": check_small,
         "phi": check_digits_of_phi, "refusals": check_refusals}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=Run.lines)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    options = parser.parse_args()
    Run.lines, Run.most = options.lines, None if options.full else PIECES
    for case in options.cases or CASES:
        CASES[case]()
    sys.exit("FAILED" if Run.failures else 0)
