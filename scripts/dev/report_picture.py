#!/usr/bin/env python3
"""Draws the pictures of reports in the docs with headless Chromium: docs/report.png has the top of a run's page and its
losses, docs/report_inside.png the map of tensors. With --stability, it draws those of docs/stability.md, from the
runs of scripts/bench/stability.py."""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from browser import Browser, find_browser  # noqa: E402



class Picture(NamedTuple):
    runs: list
    sections: list  # of the page
    width: int      # of the window: 1800 has three charts in a row, 1280 two
    charts: list = []  # titles; none: all
    maps: str = ""  # what the maps of tensors show, if not their first choice


LOSS = ["Loss", "Gradient norm"]
REPORT = {"report.png": Picture([""], ["overview", "training"], 1800), "report_inside.png": Picture([""], ["tensors"], 1280)}
STABILITY = {"stability_nan.png": Picture(["nan"], ["tensors", "events"], 1280),
             "stability_spike.png": Picture(["poison-logged", "poison-rolled-back"], ["training"], 1280, LOSS),
             "stability_rate.png": Picture(["qk-false", "qk-true"], ["training", "tensors"], 1280,
                                           [*LOSS, "qk-false", "qk-true"], "activations")}
SHOW_ONLY = """[...document.querySelectorAll("main > section")].forEach((section) => {
  section.hidden = !%s.includes(section.id); });
[...document.querySelectorAll("figure")].forEach((figure) => {
  figure.hidden = %s.length > 0 && !%s.some((title) => figure.querySelector("h3").textContent.startsWith(title)); });
document.querySelector("footer").hidden = true"""
SHOW_MAPS_OF = """[...document.querySelectorAll("#tensors select")].forEach((select) => {
  select.value = %r; select.dispatchEvent(new Event("change")); })"""
IDS = "[...document.querySelectorAll('main > section')].map((section) => section.id)"
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=ROOT / "runs/quickstart", type=Path,
                        help="a finished run of scripts/quickstart.sh (%(default)s)")
    parser.add_argument("--stability", type=Path, help="the runs of scripts/bench/stability.py poison nan qk")
    parser.add_argument("--only", choices=[*REPORT, *STABILITY], help="this picture alone")
    parser.add_argument("--program", default=ROOT / "build/tokamak", help="the program (%(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="the folder of the pictures (%(default)s)")
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        sys.exit("needs Chromium: apt-get install chromium")
    root, pictures = (options.stability, STABILITY) if options.stability else (options.run, REPORT)
    with tempfile.TemporaryDirectory() as directory, Browser(program) as browser:
        page = f"{directory}/report.html"
        for name, (runs, sections, width, charts, maps) in pictures.items():
            if options.only not in (None, name):
                continue
            subprocess.run([options.program, "report", *(root / run for run in runs), "--output", page], check=True)
            browser.set_window(width, 400)
            browser.open(page)
            missing = set(sections) - set(browser.value(IDS))
            if missing:
                sys.exit(f"{page} of {root}: the report has no section {', '.join(sorted(missing))}")
            browser.value(SHOW_ONLY % (sections, charts, charts))
            if maps:
                browser.value(SHOW_MAPS_OF % maps)
            browser.value(PAINTED)
            browser.screenshot(options.output / name)
            print(f"{options.output / name}: {(options.output / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
