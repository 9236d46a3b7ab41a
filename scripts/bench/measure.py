"""Shared by the measuring scripts: the program, its ranks and results, the load of others, variants in turn, tables.
Variants that take turns within a round see the same load, so medians over the rounds can be compared."""
import argparse
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "bin" / "tokamak"
TOKAMAK = str(BUNDLED if BUNDLED.exists() else ROOT / "build" / "tokamak")
MPIRUN = shutil.which("mpirun") or "mpiexec"
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Failed(Exception):
    """A program failed. If its code is None, it timed out."""

    def __init__(self, what, code, text):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "out of memory" in line.lower()] or lines or ["-"]
        super().__init__(f"{what}: " + ("out of time" if code is None else f"exit {code}: {errors[-1][:200]}"))
        self.what, self.code, self.text = what, code, text


def arguments(script, *options):
    """A parser with the script's text and options of (name, default, help)."""
    parser = argparse.ArgumentParser(description=script, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, text in options:
        parser.add_argument(name, type=type(default) if default is not None else None, default=default,
                            help=text if default is None else f"{text} (%(default)s)")
    return parser


def mpirun(ranks, *command):
    return [MPIRUN, "-n", ranks, "--oversubscribe", "--bind-to", "none", *command]


def busy_seconds():
    """Busy and stolen CPU seconds of this machine since boot."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq, steal = [int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:9]]
    return user + nice + system + irq + softirq + steal


def run(what, command, environment=None, limit=None):
    """Returns (standard output, the share of the machine's cores that other processes used meanwhile)."""
    def own():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begin, busy, before = time.monotonic(), busy_seconds(), own()
    try:
        done = subprocess.run([str(word) for word in command], text=True, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, env={**os.environ, **MPI_AS_ROOT, **(environment or {})}, timeout=limit)
    except subprocess.TimeoutExpired as late:
        raise Failed(what, None, "") from late
    if done.returncode != 0:
        raise Failed(what, done.returncode, done.stdout + done.stderr)
    others = busy_seconds() - busy - (own() - before)
    return done.stdout, max(0.0, others / ((time.monotonic() - begin) * os.cpu_count()))


def bench(program, *words):
    """The results of `tokamak bench`, and "others": the share of the machine's cores that other processes used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.json")
        _, others = run("tokamak bench", [*program, "bench", *words, "--json", path])
        return dict(json.loads(path.read_text()), others=others)


def in_turn(rounds, variants, measure, order=list):
    """Measures each variant once per round; returns {variant: [measure(variant, round) of each round]}."""
    found = {variant: [] for variant in variants}
    for number in range(rounds):
        for variant in order(variants):
            found[variant].append(measure(variant, number))
    return found


def tests_harness(*modules):
    """The modules of the system tests: small data sets and configs, simulated hosts."""
    sys.path[:0] = [str(ROOT / "tests" / "fault"), str(ROOT / "tests" / "system")]
    os.environ.setdefault("TOKAMAK", TOKAMAK)
    os.environ.setdefault("MPIRUN", MPIRUN)
    return [importlib.import_module(module) for module in modules]


def predicted(harness, place, machine, ranks, *overrides):
    """The prediction of `tokamak plan` for the config on a machine that `bench calibrate` measured."""
    plan = json.loads(harness.tokamak("plan", place.config("plan"), *overrides, "--ranks", str(ranks), "--gpu", machine,
                                      "--as-configured", "--json"))
    (choice,) = plan["choices"]
    return choice


def table(header, rows):
    """In Markdown; the first column is aligned to the left."""
    lines = [header, ["---" if i == 0 else "---:" for i in range(len(header))], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def say(text):
    print(text, file=sys.stderr, flush=True)
