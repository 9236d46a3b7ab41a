"""A bit flips on one of two ranks of the real program, and the number stays finite (preload/bit_flip.c). It flips in
weights, in gradients in transit, or in the state. The checks of `resilience` name the rank. The step is computed again.
If that does not help, the run ends with exit 7 before it saves anything of the step. The run, or a resume from the
checkpoint that the error names, ends with the bits of an undisturbed run. Without the checks no error is reported.

usage: bit_flip_test.py [TEST ...]"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import call, gathered, main, mpirun  # noqa: E402

STEPS = 20
OVERRIDES = [f"training.max_steps={STEPS}", "checkpoint.interval=2", "checkpoint.keep_latest=0"]
RECOMPUTE, VERIFY = "resilience.recompute_interval=1", "resilience.verify_state=true"
# A gather in the middle of a step. The first gathers of a step overlap the update before it. A flip there is not
# between updates, and threads decide whether it is found. Calls 201 and 204 gather the embedding, of which a step reads
# only some rows.
MID_STEP = 209


def train(place, name, *overrides, call_name="", side="receive", at=0, then=0):
    """(exit code, log) of two ranks."""
    env = {"LD_PRELOAD": os.environ["BIT_FLIP"], "BIT_FLIP_CALL": call_name, "BIT_FLIP_SIDE": side, "BIT_FLIP_RANK": "1",
           "BIT_FLIP_AT": str(at), "BIT_FLIP_THEN": str(then)}
    done = call(mpirun(2, "train", place.config(name), *OVERRIDES, *overrides), env, timeout=120)
    assert at == 0 or "bit_flip: struck" in done.stdout, done.stdout
    return done.returncode, done.stdout


def undisturbed(place):
    """The final state of a run with all checks on. It has no alarm, and the bits of a run without checks."""
    if not os.path.isdir(place.run("checked")):
        assert train(place, "plain")[0] == 0
        code, log = train(place, "checked", RECOMPUTE, VERIFY)
        assert code == 0 and "corruption" not in log, log
        assert gathered(place.checkpoint("checked", STEPS)) == gathered(place.checkpoint("plain", STEPS))
    return gathered(place.checkpoint("checked", STEPS))


def seen(place, name, log, pattern):
    found = re.search(pattern, log)
    assert found, log
    print(f"  {found.group(0)}")
    records = [json.loads(line) for line in open(place.run(name) + "/metrics.jsonl")]
    assert os.path.getsize(place.run(name) + "/suspects.txt") > 0
    return [record["event"] for record in records if "event" in record]


def goes_on(place, name, pattern, **flip):
    """The run names rank 1, computes the step again, and ends with the bits of an undisturbed run."""
    code, log = train(place, name, RECOMPUTE, **flip)
    assert code == 0, log
    assert seen(place, name, log, pattern).count("corruption") == 1, log
    assert gathered(place.checkpoint(name, STEPS)) == undisturbed(place)


def ends(place, name, overrides, pattern, **flip):
    """The run ends with 7 and names rank 1. A resume from the named checkpoint ends with an undisturbed run's bits."""
    code, log = train(place, name, *overrides, **flip)
    assert code == 7, log
    assert seen(place, name, log, pattern)[-2:] == ["corruption", "end"], log
    newest = re.search(r"checkpoint\.load=(\S+):", log).group(1)
    assert newest == place.checkpoint(name, max(place.steps(name))), log
    code, log = train(place, name, *overrides, f"checkpoint.load={newest}")
    assert code == 0, log
    assert gathered(place.checkpoint(name, STEPS)) == undisturbed(place)


def weights_on_the_way(place):
    """a bit flips in the weights that rank 1 receives from another: its loss differs, so the step is computed again"""
    goes_on(place, "weights", r"gradients of step \d+ computed twice differ: rank 1 \(\S+\): the loss; .*; a third .*",
            call_name="MPI_Iallgather", at=202)


def gradients_on_the_way(place):
    """a bit flips in gradients that rank 1 receives to sum up: rank 1 is named, not the ranks that get the sums"""
    goes_on(place, "gradients", r"gradients of step \d+ computed twice differ: rank 1 \(\S+\): what it received of .*",
            call_name="MPI_Ialltoall", at=150)


def twice(place):
    """weights arrive wrong in two steps: the run takes the host for faulty and ends"""
    ends(place, "twice", [RECOMPUTE], r"gradients of step \d+ computed twice differ, not for the first time: rank 1 .*",
         call_name="MPI_Iallgather", at=124, then=205)


def state(place):
    """a bit flips in rank 1's master weights and stays wrong: found before the next update"""
    ends(place, "state", [VERIFY], r"state changed between the updates of steps \d+ and \d+: rank 1 \(\S+\): master",
         call_name="MPI_Iallgather", side="send", at=MID_STEP)


def unnoticed(place):
    """the flips of these tests with all checks off: exit code 0, and wrong weights"""
    sound = undisturbed(place)
    for name, flip in {"w": {"call_name": "MPI_Iallgather", "at": 202},
                       "s": {"call_name": "MPI_Iallgather", "side": "send", "at": MID_STEP}}.items():
        code, log = train(place, "unnoticed-" + name, **flip)
        assert code == 0, log
        assert gathered(place.checkpoint("unnoticed-" + name, STEPS)) != sound, name


main([weights_on_the_way, gradients_on_the_way, twice, state, unnoticed])
