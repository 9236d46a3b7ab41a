#!/usr/bin/env python3
"""Keeps the code in docs/*.md equal to the sources. A page names definitions in a comment; their text follows it:

    <!-- code: src/train/trainer.cc Trainer::train Trainer::step -->
    ```cpp
    ...
    ```

The path is a file, or a folder to search for C++ files. A name is a function's or a type's. Comments right above a
definition belong to it.

  scripts/dev/page_code.py          prints each block that differs from its source; exit 1 if there is one
  scripts/dev/page_code.py --write  writes the blocks into the pages"""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".h", ".cc", ".cu", ".cuh"}
MARKER = re.compile(r"^<!-- code: (\S+) (.+?) -->\n(?:```cpp\n(.*?)^```\n)?", re.M | re.S)
STATEMENT = re.compile(r"\s*(?:if|while|for|return|switch|else|//|#)")


def definition_at(lines, first):
    """The lines of the definition that begins at `first`, or None if it only declares or is a statement."""
    if STATEMENT.match(lines[first]):
        return None
    indent = re.match(r"\s*", lines[first])[0]
    for opening in range(first, len(lines)):
        if lines[opening].endswith("{") or lines[opening].endswith("}"):
            break
        if lines[opening].endswith(";") or not lines[opening].strip():
            return None
    end = opening if lines[opening].endswith("}") else next(
        n for n in range(opening + 1, len(lines)) if re.match(indent + r"\}", lines[n]))
    while first > 0 and lines[first - 1].startswith(indent + "// ") and not lines[first - 1].startswith(indent + "// ---"):
        first -= 1
    return "".join(line.removeprefix(indent) + "\n" for line in lines[first:end + 1])


def definitions(path, name):
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = re.compile(rf"[^{{(=;]*(?<![\w:.>]){re.escape(name)}(?:\(|\s[^()]*\{{$)")
    found = (definition_at(lines, n) for n, line in enumerate(lines) if begins.match(line))
    return [text for text in found if text]


def code(root, where, names):
    """The text of the named definitions, in this order. ValueError unless there is exactly one of each name."""
    files = [root / where] if (root / where).is_file() else sorted(
        path for path in (root / where).rglob("*") if path.suffix in SOURCES)
    if not files:
        raise ValueError(f"{where} is not there")
    texts = []
    for name in names:
        found = [text for path in files for text in definitions(path, name)]
        if len(found) != 1:
            raise ValueError(f"{where} defines {name} {len(found)} times")
        texts.append(found[0])
    return "\n".join(texts)


def updated(root, page, problems):
    """The page's text, with every block replaced by the source's text."""
    text = page.read_text(encoding="utf-8")

    def block(marker):
        at = f"{page.relative_to(root)}:{text.count(chr(10), 0, marker.start()) + 1}"
        try:
            now = code(root, marker[1], marker[2].split())
        except ValueError as error:
            problems.append(f"{at}: {error}")
            return marker[0]
        if now != marker[3]:
            problems.append(f"{at}: {marker[1]} has changed: scripts/dev/page_code.py --write")
        return f"<!-- code: {marker[1]} {marker[2]} -->\n```cpp\n{now}```\n"

    return MARKER.sub(block, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    root, problems, blocks = options.root.resolve(), [], 0
    for page in sorted((root / "docs").glob("*.md")):
        text = updated(root, page, problems)
        blocks += len(MARKER.findall(text))
        if options.write:
            page.write_text(text, encoding="utf-8")
    if options.write:
        problems = [problem for problem in problems if not problem.endswith("--write")]
    print("\n".join([*problems, f"page_code: {blocks} blocks, {len(problems)} problems"]))
    return 1 if problems or blocks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
