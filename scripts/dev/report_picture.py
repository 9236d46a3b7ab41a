#!/usr/bin/env python3
"""Draws the pictures of reports in the docs with headless Chromium: docs/report.png has the top of a run's page and its
losses, docs/report_inside.png the map of tensors. With --stability, it draws those of docs/stability.md, from the
runs of scripts/bench/stability.py."""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from browser import Browser, find_browser  # noqa: E402

# Runs, sections of their page, and the width of the window: the wider one has three charts in a row.
REPORT = {"report.png": ([""], ["overview", "training"], 1800), "report_inside.png": ([""], ["tensors"], 1280)}
STABILITY = {"stability_nan.png": (["nan"], ["tensors", "events"], 1280),
             "stability_spike.png": (["poison-logged", "poison-rolled-back"], ["training"], 1800),
             "stability_rate.png": (["qk-false", "qk-true"], ["training"], 1800)}
SHOW_ONLY = """[...document.querySelectorAll("main > section")].forEach((section) => {
  section.hidden = !%s.includes(section.id); });
document.querySelector("footer").hidden = true"""
IDS = "[...document.querySelectorAll('main > section')].map((section) => section.id)"
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=ROOT / "runs/quickstart", type=Path,
                        help="a finished run of scripts/quickstart.sh (%(default)s)")
    parser.add_argument("--stability", type=Path, help="the runs of scripts/bench/stability.py poison nan qk")
    parser.add_argument("--program", default=ROOT / "build/tokamak", help="the program (%(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="the folder of the pictures (%(default)s)")
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        sys.exit("needs Chromium: apt-get install chromium")
    root, pictures = (options.stability, STABILITY) if options.stability else (options.run, REPORT)
    with tempfile.TemporaryDirectory() as directory, Browser(program) as browser:
        page = f"{directory}/report.html"
        for name, (runs, sections, width) in pictures.items():
            subprocess.run([options.program, "report", *(root / run for run in runs), "--output", page], check=True)
            browser.set_window(width, 400)
            browser.open(page)
            missing = set(sections) - set(browser.value(IDS))
            if missing:
                sys.exit(f"{page} of {root}: the report has no section {', '.join(sorted(missing))}")
            browser.value(SHOW_ONLY % sections)
            browser.value(PAINTED)
            browser.screenshot(options.output / name)
            print(f"{options.output / name}: {(options.output / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
