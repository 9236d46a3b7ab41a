#!/usr/bin/env python3
"""Packs HTML files into a web archive as a crawler writes it (WARC 1.0, a gzip member for each record), to try
`tokamak data prepare` on the documentation of this machine. Standard library only.

usage: scripts/html_to_warc.py OUTPUT.warc.gz DIRECTORY...
"""
import gzip
import os
import sys
import uuid
import zlib


def pages(directories):
    """Paths of the .html files below, plain or .gz, sorted; files that several links lead to once"""
    found, seen = [], set()
    for directory in directories:
        for root, _, names in os.walk(directory, followlinks=True):
            found += [os.path.join(root, name) for name in names if name.endswith((".html", ".htm", ".html.gz"))]
    for path in sorted(found):
        real = os.path.realpath(path)
        if os.path.isfile(real) and real not in seen:
            seen.add(real)
            yield path


def record(headers, block):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"WARC/1.0\r\n{lines}Content-Length: {len(block)}\r\n\r\n".encode()
    return gzip.compress(head + block + b"\r\n\r\n", mtime=0)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    output, directories = sys.argv[1], sys.argv[2:]
    count = 0
    with open(output, "wb") as out:
        out.write(record({"WARC-Type": "warcinfo", "WARC-Date": "2024-01-01T00:00:00Z"}, b"software: html_to_warc.py"))
        for path in pages(directories):
            try:
                with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                    body = file.read()
            except (OSError, EOFError, zlib.error) as error:
                print(f"skipped {path}: {error}", file=sys.stderr)
                continue
            uri = "file://" + path
            out.write(record({"WARC-Type": "response", "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, uri)}>",
                              "WARC-Target-URI": uri, "WARC-Date": "2024-01-01T00:00:00Z"},
                             b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body))
            count += 1
    if count == 0:
        sys.exit(f"no .html file in {' '.join(directories)}")
    print(f"{output}: {count} pages, {os.path.getsize(output) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
