"""Several ranks against one: the test of NCCL's collectives, trainings, and a resume on another number of ranks. Ranks
share GPUs if there are too few, which is slow."""
import math
import os
import re
import shutil
import time

from families import SKIPS, report_measured
from place import ROOT, ended, expect, gpus, json_lines, output_of
from report import CUT, FAILED, LOST, NOT_RUN, PASSED, Ended
from training import SAVED, records, training

COUNTS = (2, 4)
STEPS, HALF, BAR = 20, 10, 1e-5
# line: (ranks, last step) of consecutive runs
TRAININGS = {**{f"training, {n} ranks against 1": [(n, STEPS)] for n in COUNTS},
             "resume, from 2 ranks to 4, against 1": [(2, HALF), (4, STEPS)]}
LIMIT, SLOW = 60, 20  # seconds: limit of one run; limit of two ranks for trying four
SHARED_LIMIT = 19
TALK = {"NCCL_DEBUG": "INFO"}  # NCCL logs transports, versions and warnings
OTHER_MPI = "rank(s): this mpirun is not of the MPI that the program is built with"
# As in the bundle's tokamak-env: Open MPI refuses root without both variables.
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def collectives_line(n):
    return f"NCCL, {n} ranks"


def find_mpirun(place):
    if place.bundle:
        return ROOT / "bin" / "mpirun"
    found = shutil.which("mpirun")
    if not found or "Open MPI" not in output_of([found, "--version"]):
        raise Ended(NOT_RUN, f"{found} is not Open MPI's" if found else "no mpirun on the PATH")
    return found


class Runs:
    """Programs on several ranks, within the part's time."""

    def __init__(self, place):
        self.place, self.mpirun, self.gpus = place, find_mpirun(place), gpus() or 1
        self.environment = {**(MPI_AS_ROOT if os.geteuid() == 0 else {}), **TALK}

    def run(self, log, n, command, environment=None, limit=LIMIT):
        if n > 1:
            command = [self.mpirun, "-n", n, "--oversubscribe", "--bind-to", "none", *command]
        return self.place.run(log, command, limit, {**self.environment, **(environment or {})})

    def train(self, name, legs):
        """Trains. Raises Ended if the run does not finish."""
        folder = self.place.scratch(name)
        for n, stop in legs:
            expect(*self.run(f"{name}-{stop}", n, training(
                self.place, folder, "cuda", "f32", stop, "training.micro_batch_size=4"),  # 16 sequences a step
                {"TOKAMAK_RANKS_PER_GPU": str(-(-n // self.gpus))}), SAVED, f"{n} rank(s): ")
            saved = len(list((folder / "checkpoints" / f"step-{stop:08d}").glob("*.safetensors")))
            if saved != n:  # one file a rank
                raise Ended(NOT_RUN, f"it ran on {saved} {OTHER_MPI}")
        shutil.rmtree(folder / "checkpoints")


def two_ranks(place, report):
    """Collectives of two ranks alone, which share the GPU where there is one."""
    with report.line(collectives_line(2)):  # an emulated GPU shares its processors, too
        collectives(Runs(place), report, 2, LIMIT if place.emulated else SHARED_LIMIT)


def ranks(place, report):
    with report.line("several ranks"):
        runs = Runs(place)
        begin = time.monotonic()
        collectives(runs, report, 2)
        slow = time.monotonic() - begin > SLOW
        if not slow:
            collectives(runs, report, 4)
        trainings(runs, report, 2 if slow else 4)


def collectives(runs, report, n, limit=LIMIT):
    name, bar, program = collectives_line(n), "exact", runs.place.test_nccl
    if not program.exists():
        report.add(name, NOT_RUN, bar=bar, detail=f"no {program}")
        return
    log = f"test_nccl-{n}"
    facts = runs.place.output / f"{log}.jsonl"
    facts.unlink(missing_ok=True)
    code, text = runs.run(log, n, [program, "--use-colour", "no"],  # under mpirun, output is a terminal
                          {"TOKAMAK_FACTS": str(facts)}, limit=limit)
    skipped = re.search(r"nccl_comm_test skipped: (.*)", text)
    counted = re.search(r"nccl_comm_test: (\d+) ranks", text)
    if code == SKIPS and skipped:
        report.add(name, NOT_RUN, bar=bar, detail=skipped[1])
    elif code != 0:
        report.add(name, NOT_RUN if code in (CUT, LOST) else FAILED, bar=bar, detail=f"{ended(code, text)} (see {log}.log)")
    elif not counted or int(counted[1]) != n:
        report.add(name, NOT_RUN, bar=bar, detail=f"it ran on {counted[1] if counted else 'no'} {OTHER_MPI}")
    else:
        cases = re.search(r"All tests passed \(\d+ assertions in (\d+) test cases\)", text)
        transport = sorted(set(re.findall(r" via (\S+)", text)))
        report.add(name, PASSED, f"{cases[1] if cases else 'all'} cases on {min(n, runs.gpus)} GPU(s)"
                   + (f" by {', '.join(transport)[:40]}" if transport else ""), bar,
                   transports=[line for line in text.splitlines() if " via " in line][:20])
        report_measured(report, json_lines(facts))


def trainings(runs, report, most):
    bar = f"within {BAR:g} of it at each of {STEPS} steps"
    alone = None  # why there is nothing to compare with
    try:
        runs.place.need_data()
        runs.train("ranks-1", [(1, STEPS)])
    except Ended as missing:
        alone = missing
    for name, legs in TRAININGS.items():
        with report.line(name, bar):
            if max(n for n, _ in legs) > most:
                raise Ended(NOT_RUN, f"2 ranks took more than {SLOW} s")
            if alone:
                raise alone
            folder = "ranks-" + "-".join(str(n) for n, _ in legs)
            runs.train(folder, legs)
            one, more = (records(runs.place.output / run) for run in ("ranks-1", folder))
            apart = {step: relative(more[step]["loss/last"], one[step]["loss/last"]) for step in set(one) & set(more)}
            worst = max(apart, key=apart.get, default=0)
            all_steps = sorted(one) == sorted(more) == list(range(1, STEPS + 1))
            report.against(name, all_steps and apart[worst] <= BAR,
                           f"{apart.get(worst, math.inf):.2g} at step {worst} on {min(legs[-1][0], runs.gpus)} GPU(s)", bar,
                           "" if all_steps else f"{len(one)} and {len(more)} steps", worst=apart.get(worst))


def relative(value, reference):
    """Infinite if a loss is not a number: non-finite losses are logged as such."""
    if not all(isinstance(x, (int, float)) and math.isfinite(x) for x in (value, reference)):
        return math.inf
    return abs(value - reference) / abs(reference)
