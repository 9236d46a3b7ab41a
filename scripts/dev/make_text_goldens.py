#!/usr/bin/env python3
"""Writes tests/golden/text_rules.jsonl: verdicts and signatures of datatrove, and words of spaCy, for made-up texts.

The texts are random sequences of awkward pieces: contractions, addresses, units, marks, lists, repeated lines, scripts
without spaces. Run it by a Python that has requirements-text.txt.

    python scripts/dev/make_text_goldens.py [output file]
"""
import json
import random
import sys
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)
from datatrove.utils.word_tokenizers import SpaCyTokenizer

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = 90
WITH_WORDS = 24  # documents whose words are recorded

SENTENCES = [
    "The harbour lay quiet, and the boats that had come in with the tide were tied to the old stone wall.",
    "She didn't say what she'd seen; they're sure it wasn't the neighbours' dog.",
    "\"Isn't it the third time?\" he asked. \"I'd've thought you'd know, y'all!\"",
    "Dr. Smith (b. 1901) moved to St. Louis on Jan. 5 and paid $1,200.50, i.e. 10% of it, to Mr. O'Neil.",
    "It weighs 5kg, is 12.5cm long, costs 30€ and runs at 80km/h, i.e. 1.5m² per hour.",
    "See https://www.example.com/path?q=1#top or mail john.doe@example.org; www.example.net:8080 is down.",
    "The file main.cc:42 says x=y+1, a<b and c->d: it's well-known, state-of-the-art--really.",
    "Wait... what? No way!!! (Really?) [edit] It was so [12] they say [citation needed].",
    "Im sure you cant and wont; thats what theyre told, dont you think? Cannot say.",
    "Ein z.B. kurzer Satz, d.h. \u201eZitat\u201c mit \u00bbAnf\u00fchrung\u00ab und Stra\u00dfe 12a.",
    "L'\u00e9t\u00e9 dernier, j'ai vu \u00ab la mer \u00bb \u00e0 20 \u00b0C : c'\u00e9tait d\u00e9j\u00e0 beau\u2026",
    "\u00bfQu\u00e9 pasa? \u00a1Nada! El ni\u00f1o comi\u00f3 3,5 manzanas y bebi\u00f3 2 l de agua.",
    "\u041a\u043e\u0448\u043a\u0430 \u0441\u0438\u0434\u0438\u0442 \u043d\u0430 \u043e\u043a\u043d\u0435, \u0430 \u0441\u043e\u0431\u0430\u043a\u0430 \u2014 \u0443 \u0434\u0432\u0435\u0440\u0438; \u0432\u0435\u0441 10 \u043a\u0433.",
    "\u039f \u03c3\u03ba\u03cd\u03bb\u03bf\u03c2 \u03c4\u03bf\u03c5 \u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a9\u03a3 \u03ae\u03c4\u03b1\u03bd \u03c0\u03b9\u03c3\u03c4\u03cc\u03c2.",
    "\u732b\u5750\u5728\u7a97\u53f0\u4e0a\u3002\u72d7\u5728\u95e8\u53e3\uff01\u4eca\u5929\u662f2024\u5e745\u6708\u3002",
    "\u732b\u306f\u7a93\u306e\u4e0a\u306b\u3044\u307e\u3059\u3002\u72ac\u306f\u30c9\u30a2\u306e\u524d\u3067\u3059\u304b\uff1f",
    "\u0627\u0644\u0642\u0637 \u064a\u062c\u0644\u0633 \u0639\u0644\u0649 \u0627\u0644\u0646\u0627\u0641\u0630\u0629\u060c \u0641\u0647\u0644 \u0631\u0623\u064a\u062a\u0647\u061f",
    "\u092c\u093f\u0932\u094d\u0932\u0940 \u0916\u093f\u0921\u093c\u0915\u0940 \u092a\u0930 \u092c\u0948\u0920\u0940 \u0939\u0948\u0964 \u0915\u0941\u0924\u094d\u0924\u093e-\u0918\u0930 \u0926\u0942\u0930 \u0939\u0948\u0964",
    "\ub098\ub294 \ud559\uad50\uc5d0 \uac04\ub2e4. \uace0\uc591\uc774\uac00 \uc88b\uc544\uc694!",
    "\u0130stanbul'da 3 g\u00fcn kald\u0131k; \u00c7ok g\u00fczeldi, de\u011fil mi?",
    "\u00c5ngstr\u00f6m, na\u00efve caf\u00e9 and co\u00f6perate, \ufb01nally \u2116 5 \u2122 \u00bd cup.",
    "The temperature fell to -5\u00b0C. At 10am, 11 p.m. and 6pm. U.S. troops left :-) 8D <3 C++.",
    "and the of to a in that it was", "be with have that and to",
]
LINES = [
    "- first item of the list", "\u2022 second item", "* third", "Read more...", "Continue reading\u2026", "Home | About | Contact",
    "#tag #another #third", "Click here", "1. Introduction", "Copyright \u00a9 2024 Example Ltd. All rights reserved.",
    "We use cookies to improve your experience.", "Please enable JavaScript to view this page.", "Terms of Use",
    "Lorem ipsum dolor sit amet, consectetur.", "if (x) { return y; }", "a" * 1005, "12 34 56 78 90 11 22 33 44",
    "| a | b |", "2.0*3.5-1^2=5", "---", "", "", "   ", "x\u0085y", "end\u2028start", "tab\tseparated\tvalues",
]
JOINTS = [" ", " ", " ", "\n", "\n", "\n\n", "\n\n\n", "  ", "\r\n", "\u00a0"]


def texts(rng):
    yield "Short."
    yield "the be to of and that have with " * 10
    yield "\n".join(SENTENCES)
    yield "\n\n".join(SENTENCES[:12] + SENTENCES[:12])
    for _ in range(DOCUMENTS):
        pieces = rng.sample(SENTENCES, rng.randint(1, len(SENTENCES))) if rng.random() < 0.8 else [rng.choice(SENTENCES)] * 6
        english = rng.random() < 0.6
        if english:
            pieces = [piece for piece in pieces if piece.isascii()] or SENTENCES[:1]
            pieces = pieces * rng.choice([1, 1, 1, 2, 3])
        pieces += rng.sample(LINES, rng.choice([0, 0, 1, 3, 8, 15]))
        rng.shuffle(pieces)
        text = "".join(piece + rng.choice(JOINTS) for piece in pieces)
        if text.strip():
            yield text


def verdict(result):
    return result[1] if isinstance(result, tuple) else "" if result else "dropped"


def main():
    output = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/golden/text_rules.jsonl")
    english, any_language = SpaCyTokenizer("en"), SpaCyTokenizer("xx")
    quality, repetition, fineweb = GopherQualityFilter(), GopherRepetitionFilter(), FineWebQualityFilter()
    c4, c4_fineweb = C4QualityFilter(), C4QualityFilter(filter_no_terminal_punct=False)
    signatures = MinhashDedupSignature("unused", config=MinhashConfig())
    with open(output, "w", encoding="utf-8") as out:
        for number, text in enumerate(texts(random.Random(36))):
            def judge(rule):
                document = Document(text=text, id="")
                reason = verdict(rule.filter(document))
                return reason, document.text

            shingles = signatures.get_shingles(text)
            signature = [value for band in signatures.get_signature(shingles) for value in band] if shingles.size else []
            row = {"text": text, "quality": judge(quality)[0], "repetition": judge(repetition)[0], "fineweb": judge(fineweb)[0],
                   "c4": judge(c4), "c4_fineweb": judge(c4_fineweb),
                   "minhash": [str(value) for value in signature[:8] + signature[-1:]]}
            if number < WITH_WORDS:
                row.update(words=english.word_tokenize(text), words_any=any_language.word_tokenize(text))
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
