#!/usr/bin/env python3
"""Writes tokenizer/scan/normalization_tables.inc: combining classes, decompositions and compositions as tokenizers has
them (Unicode 9.0), found by asking tokenizers about each code point. unicodedata2 16.0.0 has the candidates: Unicode
never changes these values of a character that it has assigned.

    python3 scripts/dev/normalization_tables.py
"""
import pathlib
import sys

import unicodedata2
from tokenizers import normalizers

from unicode_tables import runs_of, wrapped

OUT = pathlib.Path(__file__).resolve().parents[2] / "tokenizer/scan/normalization_tables.inc"
NFC, NFD, NFKC, NFKD = (getattr(normalizers, name)().normalize_str for name in ("NFC", "NFD", "NFKC", "NFKD"))
CODES = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def combining(char):
    """The class that tokenizers gives it: it moves over a mark of another class, or it is no mark there."""
    ours = unicodedata2.combining(char)
    other = "\u0334" if ours > 1 else "\u0301"  # classes 1 and 230
    given = "q" + char + other if ours > 1 else "q" + other + char
    return ours if ours and NFD(given) != given else 0


def is_hangul(char):
    return "\uac00" <= char <= "\ud7a3"


def main():
    classes = {char: combining(char) for char in CODES}
    canonical = {char: NFD(char) for char in CODES if NFD(char) != char and not is_hangul(char)}
    compatible = {char: NFKD(char) for char in CODES
                  if NFKD(char) != canonical.get(char, char) and not is_hangul(char)}
    pairs = []
    for char in canonical:
        parts = unicodedata2.decomposition(char).split()
        if len(parts) == 2:
            first, second = (chr(int(part, 16)) for part in parts)
            if NFC(first + second) == char:
                pairs.append((first, second, char))
    seconds = {second for _, second, _ in pairs}

    def quick(char, changed):
        """0 begins a segment; 1 to 240 is the class of a mark that only its order can change; 255 is the rest."""
        jamo = "\u1161" <= char <= "\u1175" or "\u11a8" <= char <= "\u11c2"
        return 255 if changed(char) != char or char in seconds or jamo else classes[char]

    lines = ["// Made by scripts/dev/normalization_tables.py. Unicode 9.0, as Hugging Face tokenizers normalises."]

    def table(name, comment, numbers):
        lines.append(f"constexpr uint32_t {name}[] = {{  // {comment}")
        lines.extend(line.rstrip() for line in wrapped(map(hex, numbers)))
        lines.append("};")

    def runs(value):
        full = [0 if 0xD800 <= code < 0xE000 else value(chr(code)) for code in range(0x110000)]
        return (first << 8 | value for first, value in runs_of(full))

    def flat(decompositions):
        for char, parts in sorted(decompositions.items()):
            yield ord(char) << 8 | len(parts)
            yield from map(ord, parts)

    table("kClassRuns", "first code point << 8 | combining class", runs(classes.get))
    table("kNfcRuns", "first code point << 8 | quick check: see normalization.cc", runs(lambda c: quick(c, NFC)))
    table("kNfkcRuns", "the same for NFKC", runs(lambda c: quick(c, NFKC)))
    table("kCanonical", "code point << 8 | length, and its full decomposition", flat(canonical))
    table("kCompatible", "the same, where the compatible one differs", flat(compatible))
    table("kCompositions", "first, second, composite", (ord(c) for triple in sorted(pairs) for c in triple))
    OUT.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
