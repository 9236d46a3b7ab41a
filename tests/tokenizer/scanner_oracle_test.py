#!/usr/bin/env python3
"""Compares the scanners and the patterns that PCRE2 runs with Hugging Face's `Split`, the scanners with tiktoken, and
the normal forms with Hugging Face's, on generated texts.

usage: scanner_oracle_test.py [--texts N] [--all-characters]      N texts of each family and path (1000)
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

from tokens_python import enter_tokens_python

enter_tokens_python()

import tiktoken  # noqa: E402
from tokenizers import Regex, normalizers  # noqa: E402
from tokenizers.pre_tokenizers import Digits, Sequence, Split  # noqa: E402

import oracle_styles as styles  # noqa: E402

TEST = os.environ["TEST_TOKENIZER"]
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
SYMBOLS = r"| ?[^\s\p{L}\p{N}]+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT = r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]"
# As the tokenizer.json files have them.
FAMILIES = {
    "gpt2": [GPT2],
    "llama3": [CONTRACTION + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}" + SYMBOLS + r"[\r\n]*" + WHITE],
    "cl100k": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|"
               r"\s*[\r\n]|\s+(?!\S)|\s"],
    "phi4": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
             r"\s*[\r\n]|\s+(?!\S)|\s"],
    "qwen2": [CONTRACTION + "|" + PREFIX + r"\p{L}+|\p{N}" + SYMBOLS + r"[\r\n]*" + WHITE],
    "qwen35": [CONTRACTION + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + WHITE],
    "o200k": [PREFIX + UPPER + "*" + LOWER + "+" + CONTRACTION + "?|" + PREFIX + UPPER + "+" + LOWER + "*" + CONTRACTION +
              r"?|\p{N}{1,3}" + SYMBOLS + r"[\r\n/]*" + WHITE],
    "tekken": [PREFIX + UPPER + "*" + LOWER + "+|" + PREFIX + UPPER + "+" + LOWER + r"*|\p{N}" + SYMBOLS + r"[\r\n/]*" + WHITE],
    "smollm": [DIGIT, GPT2],
    "deepseek3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
                  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                  " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"],
}
PATTERNS = {  # run by PCRE2
    "kimi": styles.KIMI, "letters with case": styles.DEEPSEEK_LLM[1], "full-width": styles.DEEPSEEK_LLM[2],
    "words": r"\w+|\W+", "digits": r"\d+|\D+", "not letters": r"\P{L}+", "neither": r"\p{^L}+",
    "scripts": r"\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+|\p{Latin}+|\p{Greek}+|\p{Cyrillic}+|\p{Arabic}+|\p{Hebrew}+|"
               r"\p{Thai}+|\p{Devanagari}+", "end": r"\s+$|^\s+", "lazy": r"\p{L}{2,3}?|\s{2}?|\p{N}{2}+"}
TIKTOKEN = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
              r"\s+(?!\S)|\s",
    "llama3": FAMILIES["llama3"][0],
    "o200k": FAMILIES["o200k"][0],
    "kimi": styles.KIMI,
}
ALL = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
USUAL = list("aA's1 \n-中ª/strelSTé\tЖжǅʰ9٣Ⅷ½\r!$_’“€") + ["\u0301", "\u0316", "\u00a0", "\u3000", "\u0085", "\ufe0f", "\U0001f600",
                                                "\u200d", "\u017f", "\u30fb", "\u309b", "\u0378", "\ue000", "\x1c"]
failures = 0


def ask(case, requests):
    """The answers, as bytes, to [(string, text)]."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = os.path.join(folder, "asked"), os.path.join(folder, "answered")
        with open(asked, "wb") as file:
            for request in requests:
                for part in request:
                    part = part.encode()
                    file.write(struct.pack("<I", len(part)) + part)
        subprocess.run([TEST, case], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, TOKAMAK_SCAN_REQUESTS=asked, TOKAMAK_SCAN_ANSWERS=answered))
        with open(answered, "rb") as file:
            answers = file.read()
    at, size = 0, 1 if case == "oracle: normal form" else 4
    for _ in requests:
        count, = struct.unpack_from("<I", answers, at)
        at += 4
        yield answers[at:at + size * count]
        at += size * count
    assert at == len(answers)


def pieces(text, answer):
    data, start = text.encode(), 0
    for end, in struct.iter_unpack("<I", answer):
        yield data[start:end].decode()
        start = end


def compare(name, text, got, wanted):
    global failures
    if got == wanted:
        return
    failures += 1
    at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
    if failures < 20:
        print(f"{name}: from {at} of {ascii(text[:80])}: {ascii(got[at:at + 4])} instead of {ascii(wanted[at:at + 4])}")


def check(case, name, patterns, texts):
    split = Sequence([Split(Regex(pattern), "isolated") for pattern in patterns])
    if name == "smollm":
        split = Sequence([Digits(individual_digits=True), Split(Regex(GPT2), "isolated")])
    for text, answer in zip(texts, ask(case, [("\0".join(patterns), text) for text in texts])):
        compare(f"{case}, {name}", text, list(pieces(text, answer)), [piece for piece, _ in split.pre_tokenize_str(text)])


def tiktoken_pieces(pattern, text):
    """With every substring in the vocabulary, each piece is one token."""
    data = text.encode()
    parts = {data[i:j] for i in range(len(data)) for j in range(i + 2, len(data) + 1)}
    ranks = [bytes([byte]) for byte in range(256)] + sorted(parts, key=lambda part: (len(part), part))
    encoding = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks={part: i for i, part in enumerate(ranks)},
                                 special_tokens={})
    return [encoding.decode_single_token_bytes(token).decode(errors="replace") for token in encoding.encode_ordinary(text)]


def random_text(rnd, longest):
    kinds = [rnd.choice(USUAL) for _ in range(rnd.randrange(1, 14))]
    if rnd.random() < 0.2:
        kinds.append(rnd.choice(ALL))
    return "".join(rnd.choice(kinds) for _ in range(rnd.randrange(longest)))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--texts", type=int, default=1000)
    arguments.add_argument("--all-characters", action="store_true", help="each code point in five places (minutes)")
    options = arguments.parse_args()
    rnd = random.Random(5)
    texts = [random_text(rnd, 250) for _ in range(options.texts)]
    codes = ALL if options.all_characters else rnd.sample(ALL, 5000)
    for first in range(0, len(codes), 1000):
        texts.append("".join(f"a{c}a {c} {c}1{c}\n{c}!{c}" for c in codes[first:first + 1000]))
        texts.append("".join(codes[first:first + 1000]))
    for name, patterns in FAMILIES.items():
        for case in ("oracle: scanner", "oracle: scanner without vectors"):
            check(case, name, patterns, texts)
        if len(patterns) == 1:
            check("oracle: PCRE2", name, patterns, texts)
    for name, pattern in PATTERNS.items():
        check("oracle: PCRE2", name, [pattern], texts)
    for name, pattern in TIKTOKEN.items():
        short = [random_text(rnd, 40) for _ in range(options.texts // 4)]
        case, ours = ("oracle: scanner", FAMILIES[name][0]) if name in FAMILIES else ("oracle: PCRE2", PATTERNS[name])
        for text, answer in zip(short, ask(case, [(ours, text) for text in short])):
            compare(f"tiktoken, {name}", text, list(pieces(text, answer)), tiktoken_pieces(pattern, text))
    marks = [chr(code) for code in range(0x300, 0x370)] + ["\u07fd", "\u05b0", "\u1ae1", "\u093c", "\u1161", "\u11a8", "\uac00"]
    kinds = USUAL + marks + ["e", "a", "\u1100", "\u212b", "\uf900", "\ufb01", "\u3042", "\u3099"]
    for form in ("NFC", "NFKC"):
        normal = ["".join(rnd.choices(kinds, k=rnd.randrange(60))) for _ in range(options.texts * 4)] + texts[options.texts:]
        for text, answer in zip(normal, ask("oracle: normal form", [(form, text) for text in normal])):
            compare(form, text, answer.decode(), getattr(normalizers, form)().normalize_str(text))
    print(f"{failures} differences, {len(texts)} texts of each family and path")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
