#!/usr/bin/env python3
"""Words, verdicts and signatures of real documents are those of datatrove and spaCy. TOKAMAK_TEXT_PYTHON is a Python
with the packages of scripts/dev/requirements-text.txt.

The documents are those of the packages that are installed: README files, changelogs, licences. A difference is printed
with its document.
"""
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

PYTHON = os.environ.get("TOKAMAK_TEXT_PYTHON")
if PYTHON and "TEXT_TEST_INSIDE" not in os.environ:
    os.execve(PYTHON, [PYTHON, *sys.argv], {**os.environ, "TEXT_TEST_INSIDE": "1"})
try:
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                            GopherRepetitionFilter)
    from datatrove.utils.word_tokenizers import SpaCyTokenizer
except ImportError as error:
    print(f"SKIPPED: TOKAMAK_TEXT_PYTHON has not all of scripts/dev/requirements-text.txt: {error}")
    sys.exit(77)

FEWEST = 2000  # documents
LONGEST = 6000  # characters of a document
# spaCy joins smileys in program code, such as "):')", by the order of its internal matches. So many documents may have
# other words; none has another verdict or signature.
MOST_SMILEYS = 11
REASONS = {"gopher_short_doc": "words", "gopher_long_doc": "words", "gopher_below_avg_threshold": "word_length",
           "gopher_above_avg_threshold": "word_length", "gopher_too_many_hashes": "hashes",
           "gopher_too_many_ellipsis": "ellipses", "gopher_too_many_bullets": "bullet_lines",
           "gopher_too_many_end_ellipsis": "ellipsis_lines", "gopher_below_alpha_threshold": "letter_words",
           "gopher_enough_stop_words": "stop_words", "dup_para_frac": "duplicate_paragraphs",
           "dup_para_char_frac": "duplicate_paragraph_chars", "dup_line_frac": "duplicate_lines",
           "dup_line_char_frac": "duplicate_line_chars", "line_punct_ratio": "terminal_lines",
           "short_line_ratio": "short_lines", "char_dup_ratio": "repeated_line_chars", "list_ratio": "line_ends_per_word",
           "too_few_sentences": "few_sentences", "": ""}
REASONS.update({f"top_{n}_gram": f"top_{n}_grams" for n in (2, 3, 4)})
REASONS.update({f"duplicated_{n}_n_grams": f"duplicate_{n}_grams" for n in range(5, 11)})


def documents():
    """Texts of /usr/share/doc, of a long file several parts."""
    for path in sorted(Path("/usr/share/doc").rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".html", ".png", ".pdf", ".svg"):
            continue
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        for begin in range(0, min(len(text), 3 * LONGEST), LONGEST):
            part = text[begin:begin + LONGEST]
            if part.strip():
                yield part


def distinct(texts, count):
    seen = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text
        if len(seen) == count:
            return


def expected(text, tools):
    def judge(rule):
        document = Document(text=text, id="")
        result = rule.filter(document)
        reason = result[1] if isinstance(result, tuple) else "" if result else "dropped"
        return REASONS.get(reason, reason), document.text

    def cleaned(rule):
        reason, left = judge(rule)
        return [reason or "kept", "" if reason else left]

    shingles = tools["minhash"].get_shingles(text)
    bands = tools["minhash"].get_signature(shingles) if shingles.size else []
    return {"words": tools["words"].word_tokenize(text), "quality": judge(tools["quality"])[0],
            "repetition": judge(tools["repetition"])[0], "fineweb": judge(tools["fineweb"])[0],
            "c4": cleaned(tools["c4"]), "c4_fineweb": cleaned(tools["c4_fineweb"]),
            "minhash": [value for band in bands for value in band]}


def main():
    texts = list(distinct(documents(), FEWEST + 200))
    if len(texts) < FEWEST:
        print(f"SKIPPED: only {len(texts)} documents are installed in /usr/share/doc, of {FEWEST}")
        sys.exit(77)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    done = subprocess.run([os.environ["PRINT_TEXT_RULES"]], input=lines, capture_output=True, text=True, check=True)
    ours = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ours) == len(texts), (len(ours), len(texts))
    tools = {"words": SpaCyTokenizer("en"), "quality": GopherQualityFilter(), "repetition": GopherRepetitionFilter(),
             "fineweb": FineWebQualityFilter(), "c4": C4QualityFilter(),
             "c4_fineweb": C4QualityFilter(filter_no_terminal_punct=False),
             "minhash": MinhashDedupSignature("unused", config=MinhashConfig())}
    different = {}
    for text, found in zip(texts, ours):
        for name, value in expected(text, tools).items():
            if found[name] != value:
                different.setdefault(name, []).append((text, value, found[name]))
    for name, cases in different.items():
        print(f"{name}: {len(cases)} of {len(texts)} documents differ")
        for text, value, found in cases[:3]:
            if isinstance(value, list):
                at = next((i for i, (a, b) in enumerate(zip(value, found)) if a != b), min(len(value), len(found)))
                value, found = value[at:at + 6], found[at:at + 6]
            print(f"  expected {value!r}\n  found    {found!r}\n  in       {text[:70]!r}")
    smileys = different.pop("words", [])
    assert len(smileys) <= MOST_SMILEYS and not different, "documents differ"
    print(f"{len(texts)} documents, equal: {', '.join(sorted(ours[0]))}; {len(smileys)} with other words")


if __name__ == "__main__":
    main()
