"""Several ranks against one. Runs the test of NCCL's collectives, and trainings on several ranks, also stopped on some
ranks and resumed on others. Ranks share GPUs if there are too few, which is slow."""
import math
import os
import re
import shutil
import time

from families import facts_of, report_measured
from place import ROOT, ended, gpus, output_of
from report import CUT, FAILED, LOST, NOT_RUN, PASSED, not_zero
from training import SAVED, no_data, records, training

COUNTS = (2, 4)
STEPS, HALF, BAR = 20, 10, 1e-5
# line: (ranks, last step) of consecutive runs
TRAININGS = {**{f"training, {n} ranks against 1": [(n, STEPS)] for n in COUNTS},
             "resume, from 2 ranks to 4, against 1": [(2, HALF), (4, STEPS)]}
SKIPS = 77  # exit code of a test program that has no GPU, or no NCCL
LIMIT, SLOW = 60, 20  # seconds: limit of one run; limit of two ranks for trying four
SHARED_LIMIT = 19
TALK = {"NCCL_DEBUG": "INFO"}  # transports, versions, warnings: for the log
OTHER_MPI = "rank(s): this mpirun is not of the MPI that the program is built with"
# As in the bundle's tokamak-env: Open MPI refuses root without both variables.
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def collectives_line(n):
    return f"NCCL, {n} ranks"


def find_mpirun(place):
    """(mpirun, why it is missing)."""
    if place.bundle:
        return ROOT / "bin" / "mpirun", ""
    found = shutil.which("mpirun")
    if not found:
        return None, "no mpirun on the PATH"
    return (found, "") if "Open MPI" in output_of([found, "--version"]) else (None, f"{found} is not Open MPI's")


class Runs:
    """Programs on several ranks, within the part's time."""

    def __init__(self, place, mpirun):
        self.place, self.mpirun, self.gpus = place, mpirun, gpus() or 1
        self.environment = dict(MPI_AS_ROOT) if os.geteuid() == 0 else {}

    def run(self, log, n, command, environment=None, limit=LIMIT):
        if n > 1:
            command = [self.mpirun, "-n", n, "--oversubscribe", "--bind-to", "none", *command]
        return self.place.run(log, command, limit, {**self.environment, **(environment or {})})

    def train(self, name, legs):
        """(verdict, why) if it did not finish, else (None, "")."""
        folder = self.place.scratch(name)
        for n, stop in legs:
            code, text = self.run(f"{name}-{stop}", n, training(
                self.place, folder, "cuda", "f32", stop, "training.micro_batch_size=4"),  # 16 sequences a step
                {"TOKAMAK_RANKS_PER_GPU": str(-(-n // self.gpus))})
            if code != SAVED:
                return not_zero(code, text), f"{n} rank(s): {ended(code, text)}"
            saved = len(list((folder / "checkpoints" / f"step-{stop:08d}").glob("*.safetensors")))
            if saved != n:  # one file a rank
                return NOT_RUN, f"it ran on {saved} {OTHER_MPI}"
        shutil.rmtree(folder / "checkpoints")
        return None, ""


def two_ranks(place, report):
    """Collectives of two ranks alone, which share the GPU where there is one."""
    mpirun, why = find_mpirun(place)
    if not mpirun:
        report.add(collectives_line(2), NOT_RUN, detail=why)
        return
    runs = Runs(place, mpirun)
    runs.environment.update(TALK)
    collectives(runs, report, 2, LIMIT if place.emulated else SHARED_LIMIT)  # an emulated GPU shares its processors, too


def ranks(place, report):
    mpirun, why = find_mpirun(place)
    if not mpirun:
        report.add("several ranks", NOT_RUN, detail=why)
        return
    runs = Runs(place, mpirun)
    runs.environment.update(TALK)
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
    told = re.search(r"nccl_comm_test: (\d+) ranks", text)
    if code == SKIPS and skipped:
        report.add(name, NOT_RUN, bar=bar, detail=skipped[1])
    elif code != 0:
        report.add(name, NOT_RUN if code in (CUT, LOST) else FAILED, bar=bar, detail=f"{ended(code, text)} (see {log}.log)")
    elif not told or int(told[1]) != n:
        report.add(name, NOT_RUN, bar=bar, detail=f"it ran on {told[1] if told else 'no'} {OTHER_MPI}")
    else:
        cases = re.search(r"All tests passed \(\d+ assertions in (\d+) test cases\)", text)
        transport = sorted(set(re.findall(r" via (\S+)", text)))
        report.add(name, PASSED, f"{cases[1] if cases else 'all'} cases on {min(n, runs.gpus)} GPU(s)"
                   + (f" by {', '.join(transport)[:40]}" if transport else ""), bar,
                   transports=[line for line in text.splitlines() if " via " in line][:20])
        report_measured(report, facts_of(facts))


def trainings(runs, report, most):
    bar, why = f"within {BAR:g} of it at each of {STEPS} steps", no_data(runs.place)
    verdict, why = (NOT_RUN, why) if why else runs.train("ranks-1", [(1, STEPS)])
    for name, legs in TRAININGS.items():
        if max(n for n, _ in legs) > most:
            report.add(name, NOT_RUN, bar=bar, detail=f"2 ranks took more than {SLOW} s")
            continue
        folder = "ranks-" + "-".join(str(n) for n, _ in legs)
        its_verdict, its_why = (verdict, why) if verdict else runs.train(folder, legs)
        if its_verdict:
            report.add(name, its_verdict, bar=bar, detail=its_why)
            continue
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
