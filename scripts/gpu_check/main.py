"""The check's order, time budget and arguments. See scripts/gpu_check.sh."""
import argparse
import sys
import tarfile
import textwrap
import time
import traceback
from pathlib import Path

import families
import peer
import place as places
import ranks
import sanitizers
import speed
import stalls
import training
from report import FAILED, NOT_RUN, SKIPPED, WIDTH, Report

NOTHING_CHECKED = 77  # the exit code that ctest shows as skipped
RESERVE = 0.04  # of the seconds, for kills, table and archive
# command: (its seconds, its parts and the maximum share of each). Timed parts run alone on the machine. PyTorch
# compiles for minutes in the race.
COMMANDS = {
    "contact": (240, {"contact": 50, "kernels": 70, "families": 60, "models": 90}),
    "correct": (540, {"families": 90, "curves": 150, "graphs": 60, "resume": 60, "stalls": 60, "ranks": 150}),
    "deep": (1000, {"memcheck": 300, "racecheck": 300, "race": 700}),
}


def arguments():
    def path(text):
        return Path(text).resolve()

    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh",
        description="Checks the CUDA backend on this machine's first GPU; exits 1 if a line has FAILED, 77 without a GPU. contact: does "
        "it work at all, and how fast, in 240 s; correct: 540 s; deep: sanitizers and the race, 1000 s.")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=[*COMMANDS, *{part for _, parts in COMMANDS.values() for part in parts}],
                        help="contact, correct, deep, or a part: contact kernels models families curves graphs resume "
                        "stalls ranks memcheck racecheck race; may be repeated (all, in this order)")
    parser.add_argument("--seconds", type=int, help="when it ends at the latest; parts have their shares of it (240 "
                        "for contact, 540 for correct, 1000 for deep)")
    parser.add_argument("--build", type=path, help="the build to check (build/; in a bundle, itself)")
    parser.add_argument("--programs", type=path, help="a folder of emulated programs to check in place of a GPU")
    parser.add_argument("--data", type=path,
                        help="the shards to train on, train/ and validation/ (runs/quickstart/data)")
    parser.add_argument("--output", type=path, default=path("runs/gpu_check"),
                        help="logs and gpu_check.json (runs/gpu_check); OUTPUT.tar.gz has all of it")
    parser.add_argument("--family", action="append", help="of the operations' tests, only these")
    parser.add_argument("--python", default="python3",
                        help="an interpreter that has torch, for the race against it (python3)")
    return parser.parse_args()


def chosen(only):
    """({part: its maximum seconds} in order, each once; the total)."""
    parts, seconds = {}, 0
    for command, (limit, its_parts) in COMMANDS.items():
        if not only or command in only:
            seconds += limit
            parts.update({part: most for part, most in its_parts.items() if part not in parts})
        for part, most in its_parts.items():
            if part in (only or []):
                parts.setdefault(part, most)
    return parts, seconds or sum(parts.values())


def check(place, report, options, parts, scale):
    run = {"contact": families.contact, "kernels": speed.kernels, "models": speed.models, "curves": training.curves,
           "graphs": training.graphs, "resume": training.resume, "stalls": stalls.stalls, "ranks": ranks.ranks,
           "memcheck": sanitizers.memcheck, "racecheck": sanitizers.racecheck,
           "families": lambda place, report: families.families(place, report, options.family),
           "race": lambda place, report: peer.race(place, report, options.python)}
    for part, most in parts.items():
        if place.lost or place.left() < 1:
            report.add(part, NOT_RUN, detail=place.lost or "no time is left")
            continue
        with place.part(part, most * scale):
            try:
                run[part](place, report)
            except Exception as error:  # the other parts still count
                report.add(part, FAILED, detail=f"the check itself: {error!r}")
                (place.output / f"{part}-error.log").write_text(traceback.format_exc())


def pack(folder):
    """Packs everything into one archive; checkpoints of passed parts were deleted."""
    archive = Path(f"{folder}.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=3) as tar:
        tar.add(folder, folder.name, filter=lambda member: None if "checkpoints" in member.name else member)
    return archive


def main():
    start, options = time.monotonic(), arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    parts, seconds = chosen(options.only)
    scale = (options.seconds or seconds) / seconds
    place = places.Place(options, (1 - RESERVE) * scale * seconds, scale)
    if not place.tokamak.exists():
        sys.exit(f"gpu_check: error: no {place.tokamak}; build it, or name a build with --build")
    report = Report(options.output / "gpu_check.json", places.facts(place))
    missing = "" if place.emulated else places.missing_gpu()
    without_cuda = "without cuda" in " ".join(report.facts["tokamak"])
    if missing or without_cuda:
        for part in parts:
            report.add(part, SKIPPED if missing else NOT_RUN, detail=missing or "the program is built without CUDA")
    else:
        faults = places.faults_of(report.facts["doctor"])
        if faults:
            report.add("doctor", FAILED, detail=faults)
        elif not (report.facts["doctor"] or place.emulated):
            report.add("doctor", NOT_RUN, detail=f"it did not end in {places.DOCTOR_SECONDS} s")
        check(place, report, options, parts, scale)
    report.write(seconds=round(time.monotonic() - start, 1), parts=place.seconds)
    machine = ", ".join(f"{gpu['name']}, driver {gpu['driver']}" for gpu in report.facts["gpus"])
    head = (f"{report.facts['date']}, {machine or missing or 'a GPU that NVML does not show'}, "
            f"{' '.join(' '.join(report.facts['tokamak'][:2]).split())}, {report.facts['seconds']:.0f} s: "
            + ", ".join(f"{part} {its}" for part, its in place.seconds.items()))
    table = "\n".join([*textwrap.wrap(head, WIDTH), "", report.table()])
    (options.output / "table.txt").write_text(table + "\n")
    print(f"\n{table}\n{pack(options.output)}")
    if missing or without_cuda:
        return NOTHING_CHECKED
    return 1 if report.count(FAILED) else 0


sys.exit(main())
