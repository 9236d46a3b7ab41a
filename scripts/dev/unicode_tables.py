#!/usr/bin/env python3
"""Writes tokenizer/scan/unicode_runs.inc: the general category of every code point (Unicode 16.0) and the scripts that
patterns name. Needs unicodedata2 16.0.0 for the categories, and tokenizers 0.23.3 for the scripts and as a check of the
categories: every code point against its `\\p{..}`.

    python3 scripts/dev/unicode_tables.py
"""
import pathlib
import sys

import unicodedata2
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn Cs".split()
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Thai",
           "Devanagari"]
OUT = pathlib.Path(__file__).resolve().parents[2] / "tokenizer/scan/unicode_runs.inc"


def runs_of(values):
    """(first code point, value) of each maximal run."""
    found, last = [], None
    for code, value in enumerate(values):
        if value != last:
            found.append((code, value))
            last = value
    return found


def matched(pattern):
    """The code points that `pattern`, of one character, matches in tokenizers. Text has no surrogates."""
    split = Split(Regex(pattern), "removed", True)
    found = set()
    for first in range(0, 0x110000, 0x8000):
        codes = [c for c in range(first, first + 0x8000) if not 0xD800 <= c < 0xE000]
        for piece, _ in split.pre_tokenize_str("".join(map(chr, codes))):
            found.update(map(ord, piece))
    return found


def wrapped(numbers):
    """The numbers as lines of at most 120 characters."""
    line = ""
    for number in numbers:
        if len(line) + len(number) > 118:
            yield line
            line = ""
        line += f"{number}, "
    yield line


def main():
    assert unicodedata2.unidata_version == "16.0.0", unicodedata2.unidata_version
    categories = [unicodedata2.category(chr(code)) for code in range(0x110000)]
    for name in CATEGORIES:
        if name == "Cs":
            continue
        ours = {code for code, category in enumerate(categories) if category == name}
        theirs = matched(rf"\p{{{name}}}")
        ours -= set(range(0xD800, 0xE000))
        if ours != theirs:
            print(name, "differs:", [hex(c) for c in sorted(ours ^ theirs)][:20], len(ours ^ theirs), file=sys.stderr)
            return 1
    lines = ["// Made by scripts/dev/unicode_tables.py. Unicode 16.0, one line per run of equal code points."]
    lines.append("constexpr uint32_t kCategoryRuns[] = {  // first code point << 5 | Category")
    lines += wrapped(hex(first << 5 | CATEGORIES.index(category)) for first, category in runs_of(categories))
    lines.append("};")
    for script in [*SCRIPTS, "Word"]:  # Word is \w, which is not a union of categories
        members = matched(rf"\p{{{script}}}")
        lines.append(f"constexpr uint32_t k{script}Borders[] = {{  // the set begins and ends in turn")
        lines += wrapped(hex(first) for first, _ in runs_of(c in members for c in range(0x110001))[1:])
        lines.append("};")
    OUT.write_text("\n".join(line.rstrip() for line in lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
