#!/usr/bin/env python3
"""Draws the pictures of a run's report in README and tutorial with headless Chromium. docs/report.png has the top of
the page and its losses, docs/report_inside.png the map of tensors."""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from browser import Browser, find_browser  # noqa: E402

# Sections of the page in each picture, and the width of the window: the wider one has three charts in a row.
PICTURES = {"report.png": (["overview", "training"], 1800), "report_inside.png": (["tensors"], 1280)}
SHOW_ONLY = """[...document.querySelectorAll("main > section")].forEach((section) => {
  section.hidden = !%s.includes(section.id); });
document.querySelector("footer").hidden = true"""
IDS = "[...document.querySelectorAll('main > section')].map((section) => section.id)"
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=ROOT / "runs/quickstart", help="a finished run of scripts/quickstart.sh (%(default)s)")
    parser.add_argument("--program", default=ROOT / "build/tokamak", help="the program (%(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="the folder of the pictures (%(default)s)")
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as directory, Browser(program) as browser:
        page = f"{directory}/report.html"
        subprocess.run([options.program, "report", options.run, "--output", page], check=True)
        for name, (sections, width) in PICTURES.items():
            browser.set_window(width, 400)
            browser.open(page)
            missing = set(sections) - set(browser.value(IDS))
            if missing:
                sys.exit(f"{options.run}: its report has no section {', '.join(sorted(missing))}")
            browser.value(SHOW_ONLY % sections)
            browser.value(PAINTED)
            browser.screenshot(options.output / name)
            print(f"{options.output / name}: {(options.output / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
