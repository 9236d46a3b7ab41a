"""The order of the check, its time, its arguments. See scripts/gpu_check.sh."""
import argparse
import sys
import time
from pathlib import Path

import correctness
import peer
import place as places
import ranks
import speed
import stalls
from report import FAILED, NOT_RUN, SKIPPED, Report

RESERVE = 10  # seconds for the table
PARTS = ["twins", "ranks", "stalls", "training", "kernels", "models", "sanitizers", "race"]  # in their order


def arguments():
    def path(text):
        return Path(text).resolve()

    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh",
        description="Checks the CUDA backend on this machine's first GPU; exits 1 if a line has FAILED.")
    parser.add_argument("--build", type=path, help="the build to check (build/; in a bundle, itself)")
    parser.add_argument("--data", type=path,
                        help="the shards to train on, train/ and validation/ (runs/quickstart/data)")
    parser.add_argument("--output", type=path, default=path("runs/gpu_check"),
                        help="logs and gpu_check.json (runs/gpu_check)")
    parser.add_argument("--seconds", type=int, default=540, help="when it ends at the latest (540)")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part of it; may be repeated")
    parser.add_argument("--python", default="python3",
                        help="an interpreter that has torch, for the race against it (python3)")
    return parser.parse_args()


def check(place, report, parts, python):
    """What is timed has the machine for itself; ranks and stalls come while the CPU still trains. The sanitizers take
    whatever time there is, so they give way to all before them; what they do not need is the race's: PyTorch compiles
    for minutes. With --only race it has all of it."""
    on_cpu = correctness.CpuCurves(place) if "training" in parts else None
    if "twins" in parts:
        correctness.twins(place, report)
    if "ranks" in parts:
        ranks.ranks(place, report)
    if "stalls" in parts:
        stalls.stalls(place, report)
    if on_cpu:
        correctness.curves(place, report, on_cpu)
        correctness.resume(place, report)
    if "kernels" in parts:
        speed.kernels(place, report)
    if "models" in parts:
        speed.models(place, report)
    if "sanitizers" in parts:
        correctness.sanitizers(place, report)
    if "race" in parts:
        peer.race(place, report, python)


def main():
    start, options = time.monotonic(), arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    place = places.Place(options.build, options.data, options.output, options.seconds - RESERVE)
    if not place.tokamak.exists():
        sys.exit(f"gpu_check: error: no {place.tokamak}; build it, or name a build with --build")
    report = Report(options.output / "gpu_check.json", places.facts(place))
    missing = places.missing_gpu()
    without_cuda = "without cuda" in " ".join(report.facts["tokamak"])
    if missing or without_cuda:
        for name in [name for part in (correctness, ranks, stalls, speed, peer) for name in part.names()]:
            report.add(name, SKIPPED if missing else NOT_RUN, detail=missing or "the program is built without CUDA")
    else:
        check(place, report, options.only or PARTS, options.python)
    report.write(seconds=round(time.monotonic() - start, 1))
    machine = ", ".join(f"{gpu['name']}, driver {gpu['driver_version']}" for gpu in report.facts["gpus"])
    print(f"\n{report.facts['date']}, {machine or missing or 'a GPU that nvidia-smi does not show'}, "
          f"{' '.join(report.facts['tokamak'][:2])}, {report.facts['seconds']:.0f} s; {report.path}\n\n{report.table()}")
    return 1 if report.count(FAILED) else 0


sys.exit(main())
