#!/usr/bin/env python3
"""Lists sentences that are hard to read in comments, help texts and the prose of pages. They have more than 30 words,
or open with Of, What, Whose or Where and are no question. Also lists help texts over 160 characters and comments over
120 columns. The test "layers" runs it.

usage: scripts/dev/check_sentences.py [--draw N] [FILE or FOLDER ...]
--draw N prints N sentences drawn at random, with their places, for readers.
"""
import argparse
import ast
import io
import os
import random
import re
import sys
import tokenize
from pathlib import Path

MAX_WORDS, MAX_HELP, MAX_COLUMNS = 30, 160, 120
OPENING = re.compile(r"(Of|What|Whose|Where)\b")
PLACES = ["src", "cuda", "data", "tokenizer", "scripts", "docs", "tests", "cmake"]  # and the files of the root
CPP = {".cc", ".h", ".cu", ".cuh"}
OTHERS = {".py", ".md", ".sh", ".sbatch", ".pl", ".cmake", "CMakeLists.txt", "Dockerfile", "tokamak-env"}
SENTENCE_END = re.compile(r"(?<!\.)(?<!e\.g)(?<!i\.e)(?<!etc)(?<!\bvs)[.!?][\"')\]*`]*\s+")
BULLET = re.compile(r"(?:[-*]|\d+\.)\s")
STRING = r'"(?:\\.|[^"\\\n])*"'
# Comments, raw strings, strings, and characters, but not the ' in 400'000.
NOT_CODE = (r'//(?P<comment>[^\n]*)|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\2"|' + STRING +
            r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'")
CPP_TOKEN = re.compile(NOT_CODE + "|[()]", re.S)
# The last literal is the help: v("key", value, "help") in fields(), add_option("--key", value, "help") in CLI11.
HELP_CALL = re.compile(r"\b(?:v|add_(?:option|flag|subcommand)\w*(?:<[\w:<>]+>)?)\(")
LITERALS = re.compile(rf"{STRING}(?:\s*{STRING})*")


def paragraphs(kind, lines):
    """Yields (kind, [(line, text)]) of running text: no code (fenced, or indented), no tables, no headings."""
    block, fenced, in_list = [], False, False
    for line, text in lines:
        bare = text.strip()
        bullet, fence = BULLET.match(bare), bare.startswith("```")
        fenced ^= fence
        is_indented = text.startswith("    " if kind == "page" else "  ") and not bullet and not (in_list and block)
        is_code = fenced or fence or is_indented
        is_prose = bare and not is_code and not (kind == "page" and bare[0] in "|#<")
        if bullet or not is_prose:
            yield kind, block
            block, in_list = [], bullet
        if is_prose:
            block.append((line, bare[bullet.end():] if bullet else bare))
    yield kind, block


def comments(text, offsets):
    """Paragraphs of the comments at these offsets. A line of comment alone continues the one above in its column."""
    group, last = [], (0, 0)
    for offset in offsets:
        line, start = text.count("\n", 0, offset) + 1, text.rfind("\n", 0, offset) + 1
        column = offset - start
        if text[start:offset].strip() or (line, column) != (last[0] + 1, last[1]):
            yield from paragraphs("comment", group)
            group = []
        group.append((line, text[offset:].split("\n", 1)[0].lstrip("/#").removeprefix(" ")))
        last = line, column
    yield from paragraphs("comment", group)


def cpp_blocks(text):
    yield from comments(text, [match.start() for match in CPP_TOKEN.finditer(text) if match["comment"] is not None])
    for call in HELP_CALL.finditer(text):
        depth, tokens = 1, CPP_TOKEN.finditer(text, call.end())
        while depth > 0 and (token := next(tokens, None)):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
        if literals := list(LITERALS.finditer(text, call.end(), token.end() if token else len(text))):
            line = text.count("\n", 0, literals[-1].start()) + 1
            yield "help", [(line, "".join(part[1:-1] for part in re.findall(STRING, literals[-1][0])))]


def python_blocks(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield from paragraphs("comment", enumerate(ast.get_docstring(node).splitlines(), node.body[0].lineno))
        if isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
            yield "help", [(node.value.lineno, str(node.value.value))]
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from comments(text, [starts[token.start[0] - 1] + token.start[1] for token in tokens
                               if token.type == tokenize.COMMENT and not token.string.startswith("#!")])


def blocks_of(path, text):
    if path.suffix in CPP | {".py"}:
        return cpp_blocks(text) if path.suffix in CPP else python_blocks(text)
    return paragraphs("page", enumerate(text.splitlines(), 1)) if path.suffix == ".md" else comments(
        text, [match.end() - 1 for match in re.finditer(r"^[ \t]*#(?=[ \n])", text, re.M)])


def sentences_of(kind, block):
    """Returns [(line, sentence)] of a block."""
    text = "".join(part + " " for _, part in block)
    ends = [match.end() for match in SENTENCE_END.finditer(text)] if kind != "help" else []
    lines = [line for line, part in block for _ in part + " "]
    return [(lines[begin], text[begin:end].strip()) for begin, end in zip([0, *ends], [*ends, len(text)]) if begin < end]


def problems(kind, sentence):
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", sentence))
    words = sum(bool(re.search(r"[A-Za-z]{2}|\d|^[aAI]$", word)) for word in plain.split())
    opening = OPENING.match(sentence[0].upper() + sentence[1:] if kind == "help" else sentence)
    if kind == "help" and len(sentence) > MAX_HELP:
        yield f"a help text of {len(sentence)} characters, over {MAX_HELP}"
    if kind != "help" and words > MAX_WORDS:
        yield f"a sentence of {words} words, over {MAX_WORDS}"
    if opening and not sentence.endswith("?"):
        yield f'begins with "{opening[0]}"'


def check(root, names=()):
    """Returns (sentences, findings), lists of (path, line, text)."""
    sentences, findings = [], []
    places = [root / name for name in names] or [*map(root.joinpath, PLACES), *filter(Path.is_file, root.iterdir())]
    for path in (file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*")))):
        if not {path.suffix, path.name} & (CPP | OTHERS):
            continue
        text, name = path.read_text(encoding="utf-8", errors="replace"), os.path.relpath(path, root)
        lines = text.splitlines()
        for kind, block in blocks_of(path, text):
            findings += [(name, line, f"a comment beyond column {MAX_COLUMNS}") for line, _ in block
                         if kind == "comment" and len(lines[line - 1]) > MAX_COLUMNS]
            for line, sentence in sentences_of(kind, block):
                sentences.append((name, line, sentence))
                findings += [(name, line, f"{problem}: {sentence}") for problem in problems(kind, sentence)]
    return sentences, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", type=Path)
    parser.add_argument("--draw", type=int, metavar="N")
    args = parser.parse_args()
    sentences, findings = check(Path(__file__).resolve().parents[2], [name.resolve() for name in args.names])
    drawn = [place for place in sentences if place[2].count(" ") > 4]
    for path, line, text in random.sample(drawn, min(args.draw, len(drawn))) if args.draw else findings:
        print(f"{path}:{line}: {text}")
    print(f"check_sentences: {len(sentences)} sentences, {len(findings)} findings")
    return 1 if findings and not args.draw else 0


if __name__ == "__main__":
    sys.exit(main())
