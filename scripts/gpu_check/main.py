"""Order, time budget and arguments of the check. See scripts/gpu_check.sh."""
import argparse
import contextlib
import os
import shutil
import signal
import sys
import tarfile
import textwrap
import time
import traceback
from pathlib import Path

import depth
import first
import matrix
import place as places
from report import FAILED, NOT_RUN, SKIPPED, WIDTH, Report, write_whole

NOTHING_CHECKED = 77  # the exit code that ctest shows as skipped
RESERVE = 0.04  # share of the seconds, for kills, table and archive
SITTINGS, SECONDS = {"first": first.PARTS, "matrix": matrix.PARTS, "depth": depth.PARTS}, 570
RUN = {part: run for sitting in SITTINGS.values() for part, (_, run) in sitting.items()}
# A borrowed machine gives back a few files of 16 MiB.
LARGEST_LOG, ARCHIVE = 4 << 20, "gc.tar.gz"


class Stopped(BaseException):
    """A signal came: the results so far must be kept."""


def arguments():
    def path(text):
        return Path(text).resolve()

    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh",
        description="Checks the CUDA backend on this machine's first GPU; exits 1 if a line has FAILED, 77 without a GPU. "
        "first: does it work, learn and how fast is it, the most valuable facts first; matrix: changes one at a time, and "
        "the race; depth: sanitizers, ranks, resume, stalls, minutes of training. 570 s each.")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=[*SITTINGS, *RUN],
                        help="first, matrix, depth, or a part: " + "; ".join(
                            " ".join(sitting) for sitting in SITTINGS.values()) + "; may be repeated")
    parser.add_argument("--seconds", type=int, help="when it ends at the latest; parts and programs have their shares of "
                        "it (570 of each sitting)")
    parser.add_argument("--build", type=path, help="the build to check (build/; in a bundle, itself)")
    parser.add_argument("--programs", type=path, help="a folder of emulated programs to check in place of a GPU")
    parser.add_argument("--data", type=path,
                        help="the shards to train on, train/ and validation/ (runs/quickstart/data)")
    parser.add_argument("--output", type=path, default=path("runs/gpu_check"),
                        help=f"gets three files: gpu_check.json, table.txt and {ARCHIVE} with all logs (runs/gpu_check)")
    parser.add_argument("--family", action="append", help="only these families of operations' tests")
    parser.add_argument("--previous", type=path, help="for matrix: gpu_check.json of an earlier sitting, whose failed "
                        "parts run again")
    parser.add_argument("--python", default="python3",
                        help="an interpreter that has torch, for the race against it (python3)")
    return parser.parse_args()


def chosen(only):
    """({part: its maximum seconds, None for the rest} in order, each once; the total)."""
    parts, seconds = {}, 0
    for name, sitting in SITTINGS.items():
        whole = not only or name in only
        seconds += SECONDS if whole else 0
        for part, (most, _) in sitting.items():
            if whole or part in only:
                parts.setdefault(part, most)
    return parts, seconds or sum(most or SECONDS for most in parts.values())


def check(place, report, options, parts, scale):
    for number, (part, most) in enumerate(parts.items()):
        report.part = part
        if place.stopped or place.left() < 1:
            report.add(part, NOT_RUN, detail=place.stopped or "no time is left")
            continue
        if most is None or number + 1 == len(parts):  # all except the limits of the later parts
            most = place.left() / scale - sum(limit or 0 for limit in list(parts.values())[number + 1:])
        with place.part(part, max(1, most * scale)):
            try:
                RUN[part](place, report)
            except Exception as error:  # the other parts still run
                report.add(part, FAILED, detail=f"the check itself: {error!r}")
                (place.output / f"{part}-error.log").write_text(traceback.format_exc())
        keep(place, report, options)


def keep(place, report, options):
    """Writes the three files with the results so far; returns the table."""
    report.write(seconds=round(time.monotonic() - place.began, 1), parts=place.seconds)
    facts = report.facts
    machine = facts.get("gpu") or facts.get("missing") or "a GPU without a name"
    drivers = {gpu["driver"] for gpu in facts["gpus"]}
    head = (f"{facts['date']}, {machine}{''.join(f', driver {driver}' for driver in drivers)}, "
            f"{' '.join(' '.join(facts['tokamak'][:2]).split())}, {facts['seconds']:.0f} s: "
            + ", ".join(f"{part} {its}" for part, its in place.seconds.items()))
    table = "\n".join([*textwrap.wrap(head, WIDTH), "", report.table()])
    write_whole(options.output / "table.txt", table + "\n")
    with contextlib.suppress(OSError):  # a full disk must not end the check
        pack(place.output, options.output / ARCHIVE)
    return table


def pack(folder, archive):
    """Packs logs, results and traces into one archive: no checkpoints, nothing large."""
    def wanted(member):
        return None if "checkpoints" in member.name or member.size > LARGEST_LOG else member

    part = f"{archive}.part"
    with tarfile.open(part, "w:gz", compresslevel=3) as tar:
        tar.add(folder, "gpu_check", filter=wanted)
    os.replace(part, archive)


def judge(options, place, report, parts, scale):
    """Runs the parts; returns the exit code."""
    missing = "" if place.emulated else places.missing_gpu()
    without_cuda = "without cuda" in " ".join(report.facts["tokamak"])
    if missing or without_cuda:
        report.facts["missing"] = missing
        for part in parts:
            report.add(part, SKIPPED if missing else NOT_RUN, detail=missing or "the program is built without CUDA")
        return NOTHING_CHECKED
    report.facts["gpu"] = places.gpu_name(place)
    try:
        check(place, report, options, parts, scale)
    except Stopped:
        report.add("the check", NOT_RUN, detail=place.stopped)
    return 1 if report.count(FAILED) else 0


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    parts, seconds = chosen(options.only)
    scale = (options.seconds or seconds) / seconds
    place = places.Place(options, (1 - RESERVE) * scale * seconds, scale)
    if not place.tokamak.exists():
        sys.exit(f"gpu_check: error: no {place.tokamak}; build it, or name a build with --build")

    def stop(number, _):
        signal.signal(number, signal.SIG_IGN)  # ignores further signals
        place.stop(f"stopped by {signal.Signals(number).name}")  # ends all programs, since threads wait for them
        raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    report = Report(options.output / "gpu_check.json", places.facts(place))
    code = judge(options, place, report, parts, scale)
    table = keep(place, report, options)
    print(f"\n{options.output}\n\n{table}")
    shutil.rmtree(place.output, ignore_errors=True)
    sys.stdout.flush()
    os._exit(code)  # a thread may still wait for a program that cannot be killed


if __name__ == "__main__":
    main()
