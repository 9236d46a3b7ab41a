#!/usr/bin/env python3
"""Makes the texts of scripts/bench/tokenizers.py from Debian packages: English, code, Russian, Chinese, in two halves.

    scripts/bench/tokenizer_texts.py /tmp/texts

Downloads the packages with apt-get, unpacks them without installing, and takes the paragraphs of HTML, man and pod
pages that are in the language, each once. A document is a page; NUL bytes separate documents in a file. The order of
documents is shuffled with a fixed seed. Code is the headers of /usr/include.
"""
import argparse
import gzip
import html
import pathlib
import random
import re
import shutil
import subprocess

PACKAGES = {
    "english": ["bible-kjv-text", "debian-handbook", "debian-reference-en", "debian-faq", "developers-reference",
                "libreoffice-help-en-us", "perl-doc", "manpages", "manpages-dev", "git-doc", "aptitude-doc-en"],
    "russian": ["manpages-ru", "debian-handbook", "debian-faq-ru", "developers-reference-ru", "libreoffice-help-ru",
                "aptitude-doc-ru"],
    "chinese": ["manpages-zh", "debian-handbook", "debian-reference-zh-cn", "debian-reference-zh-tw",
                "debian-faq-zh-cn", "libreoffice-help-zh-cn"],
}
LETTERS = {"english": re.compile("[a-zA-Z ]"), "russian": re.compile("[Ѐ-ӿ ]"), "chinese": re.compile("[぀-ヿ㐀-鿿]")}
LEAST_SHARE = {"english": 0.7, "russian": 0.4, "chinese": 0.25}
MOST_BYTES = 24 << 20


def paragraphs(path, data):
    text = data.decode("utf-8", "replace")
    if path.suffix == ".html" or path.suffix == ".htm":
        text = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", text)
        text = re.sub(r"(?i)</?(p|div|li|h\d|tr|td|dt|dd|br|pre|table|ul|ol)\b[^>]*>", "\n\n", text)
        text = html.unescape(re.sub(r"<[^>]*>", "", text))
        return [re.sub(r"[ \t]*\n[ \t]*", "\n", p).strip() for p in re.split(r"\n\s*\n", text)]
    if path.suffix == ".gz":  # a man page
        text = re.sub(r"(?m)^[.'](\\\"|[A-Z]{2}|[a-z]).*$", "\n", text)
        text = re.sub(r"\\f[A-Z]|\\&|\\\(..", "", text).replace("\\-", "-")
    return [p.strip() for p in re.split(r"\n\s*\n", text)]


def documents(root, language):
    seen = set()
    for package in PACKAGES[language]:
        for path in sorted((root / package).rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            if path.suffix not in (".html", ".htm", ".gz", ".pod", ".txt") or "changelog" in path.name:
                continue
            data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
            kept = []
            for paragraph in paragraphs(path, data):
                share = len(LETTERS[language].findall(paragraph)) / max(1, len(paragraph))
                if len(paragraph) < 8 or share < LEAST_SHARE[language] or paragraph in seen:
                    continue
                seen.add(paragraph)
                kept.append(paragraph)
            if kept:
                yield "\n\n".join(kept).replace("\0", "")
        if package == "bible-kjv-text":
            program = shutil.which("bible")  # of the package bible-kjv
            if program:
                library = root / package / "usr" / "lib" / "bible.data"
                text = subprocess.run([program, "-d", library, "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False).stdout
                lines = text.split("\n")
                yield from ("\n".join(lines[i:i + 500]) for i in range(0, len(lines), 500))


def headers():
    for path in sorted(pathlib.Path("/usr/include").rglob("*.h*")):
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
            if len(text) < 1 << 20:
                yield text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    for package in sorted({name for names in PACKAGES.values() for name in names}):
        unpacked = folder / "packages" / package
        if unpacked.exists():
            continue
        debs = folder / "debs"
        for made in (debs, unpacked.parent):
            made.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=debs, check=True, capture_output=True)
        subprocess.run(["dpkg-deb", "-x", next(debs.glob(package + "_*.deb")), unpacked], check=True)
    for language in [*PACKAGES, "code"]:
        found = list(headers() if language == "code" else documents(folder / "packages", language))
        random.Random(1).shuffle(found)
        halves = [[], []]
        sizes = [0, 0]
        for document in found:
            if sum(sizes) >= MOST_BYTES:
                break
            half = int(sizes[1] < sizes[0])
            halves[half].append(document)
            sizes[half] += len(document.encode())
        for half, name in enumerate(("first", "second")):
            (folder / f"{language}.{name}").write_text("\0".join(halves[half]), encoding="utf-8")
        print(f"{language}: {len(found)} documents, {sizes[0] / 1e6:.1f} + {sizes[1] / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
