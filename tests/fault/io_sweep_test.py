"""Every k-th file operation of a save of the real program fails, is cut short, or is a rank's last act. After each:
nothing committed is lost, training continued if it could, and the next start ends with an undisturbed run's bits.

usage: io_sweep_test.py [TEST ...]     SWEEP=all: each fault at each operation; a number: one in so many"""
import errno
import glob
import os
import re
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from faulty_disk import (  # noqa: E402
    Disk, check_what_is_left, committed, end, forget, resume, run, start, work_in_memory)
from harness import gathered, main  # noqa: E402

SWEEP = os.environ.get("SWEEP", "10")
STRIDE = 1 if SWEEP == "all" else int(SWEEP)
STRUCK, STOP, LAST = 3, 5, 6  # a save in the middle, where the first start stops, the end
OPTIONS = [f"training.max_steps={LAST}", "checkpoint.interval=1"]
# Which operations a fault can strike, and what it is to the library.
FAULTS = {"kill": (".*", "kill"), "ENOSPC": (".*", errno.ENOSPC), "EDQUOT": (".*", errno.EDQUOT), "EIO": (".*", errno.EIO),
          "failed fsync": ("fsync", "lost"), "short write": ("write", "short")}


def operations_of_save(place, ranks, rank, number):
    """(numbers, calls) of the operations of the `number`-th save of a rank, including its retention; counted in this
    save."""
    name = f"count-{ranks}-{rank}-{number}"
    disk = Disk(place, name, rank=rank)
    code, log = run(place, name, ranks, *OPTIONS, "--stop-at-step", str(STOP), env=disk.env)
    assert code == 75, log
    calls = disk.operations(rank)
    begins = [i for i, (call, path) in enumerate(calls) if call == "open" and first_file(rank) in path]
    assert len(begins) == STOP, calls
    ends = (begins + [len(calls)])[number]
    # The next save begins with these, before its first file; either rank may make its directory.
    while calls[ends - 1][0] == "mkdir":
        ends -= 1
    forget(place, name)
    begin = begins[number - 1]
    return [(i - begin + 1, calls[i][0]) for i in range(begin, ends) if not calls[i][1].endswith("/.lock")]


def first_file(rank):
    """The first file that a rank opens in a save."""
    return "/.probe-" if rank == 0 else "/rank-"


def strike(place, name, ranks, fault, at, rank, number, mode):
    """Puts one fault into the `number`-th save, then starts again. Returns whether the fault occurred."""
    disk = Disk(place, name, at=at, fault=FAULTS[fault][1], rank=rank, begin=f"{number} {first_file(rank)}")
    code, log = run(place, name, ranks, *OPTIONS, mode, "--stop-at-step", str(STOP), env=disk.env)
    struck = disk.struck()
    promised = committed(log)
    check_what_is_left(place, name, promised)
    if not struck:
        assert code == 75 and promised[-1] == STOP, log
    elif fault == "kill":
        assert code not in (0, 75), log
    elif number == STOP and fault != "short write":
        assert code in (4, 75) and f"step {STOP}/" in log, log
        assert (promised[-1] == STOP) == (code == 75), log
        assert promised[-1] == STOP or re.search(rf"checkpoint of step {STOP} was not written: .*", log), log
    else:
        missing = set(range(1, STOP + 1)) - set(promised)
        assert code == 75 and missing <= {number}, f"training has not gone on: exit {code}\n{log}"
        assert not missing or f"checkpoint of step {number} was not written: " in log, log
    resume(place, name, ranks, promised, f"straight-{ranks}", LAST, *OPTIONS, mode)
    forget(place, name)
    os.remove(disk.trace)
    return bool(struck)


def sweep(place, ranks, number, stride=STRIDE):
    if not os.path.isdir(place.run(f"straight-{ranks}")):
        assert run(place, f"straight-{ranks}", ranks, *OPTIONS)[0] == 0
    began, cases, struck = time.monotonic(), 0, 0
    for rank in range(ranks):
        operations = operations_of_save(place, ranks, rank, number)
        for mode in ("async", "sync"):
            todo = [(fault, at, call) for fault, (calls, _) in FAULTS.items() for at, call in operations
                    if re.fullmatch(calls, call)]
            for fault, at, call in todo[cases % stride::stride]:
                name = f"{ranks}-{number}-{mode}-{rank}-{at}-{fault.replace(' ', '-')}"
                try:
                    struck += strike(place, name, ranks, fault, at, rank, number,
                                     f"checkpoint.async={'true' if mode == 'async' else 'false'}")
                except AssertionError as error:
                    raise AssertionError(f"{fault} at operation {at} ({call}) of rank {rank}, {mode}: {error}") from error
                cases += 1
        print(f"  rank {rank} of {ranks}, save {number}: {len(operations)} operations", flush=True)
    print(f"  {cases} faults, {struck} struck, {time.monotonic() - began:.0f} s", flush=True)
    assert struck >= 0.9 * cases > 0, (struck, cases)  # a rank may find that the other one has made the directory


def some_calls(place):
    """every 60th fault of middle_save and last_save"""
    sweep(place, 1, STRUCK, stride=60)
    sweep(place, 1, STOP, stride=60)


def middle_save(place):
    """kill, ENOSPC, EDQUOT, EIO, failed fsync or short write in a save of one rank, before later saves"""
    sweep(place, 1, STRUCK)


def last_save(place):
    """the faults of middle_save in the last save of a run: its exit code tells"""
    sweep(place, 1, STOP)


def two_ranks(place):
    """the faults of middle_save in a save of two ranks, on either rank"""
    sweep(place, 2, STRUCK)


def hung_fsync(place):
    """an fsync that never returns in the last save: exit 6 within the limit plus 5 s, and a file that names the rank"""
    for mode in ("true", "false"):
        name = f"hung-{mode}"
        options = [f"training.max_steps={LAST}", "checkpoint.interval=0", f"checkpoint.async={mode}",
                   "resilience.watchdog_min=1s", "resilience.watchdog_max=20s"]
        straight = f"count-{mode}"
        counted = Disk(place, straight, rank=1)
        code, log = run(place, straight, 2, *options, env=counted.env)
        assert code == 0, log
        at = [call for call, path in counted.operations(1)].index("fsync") + 1
        disk = Disk(place, name, at=at, fault="hang", rank=1)
        process, log = start(place, name, 2, *options, env=disk.env)
        try:
            began = time.monotonic()
            while not (os.path.exists(disk.trace) and disk.struck()):
                assert process.poll() is None and time.monotonic() < began + 60, open(log).read()
                time.sleep(0.01)
            began = time.monotonic()
            code = process.wait(timeout=120)
            seconds = time.monotonic() - began
        finally:
            end(process)
        text = open(log).read()
        files = glob.glob(place.run(name) + "/hang-*.txt")
        assert code == 6 and len(files) == 1, (code, files, text)
        report = open(files[0]).read()
        limit = float(re.search(r"^limit: ([0-9.]+) s", report, re.M)[1])
        print(f"  async={mode}: {seconds:.1f} s, limit {limit} s; " + re.search(r"the run hangs: (.*)", text)[1], flush=True)
        assert seconds < limit + 5 and limit <= 20, report
        assert "phase save" in report or "phase stop" in report, report[:2000]
        resume(place, name, 2, [], straight, LAST, *options)


def file_size_limit(place):
    """`ulimit -f` below a checkpoint's size: training continues, exit 4 at the last save; a start without it ends"""
    assert run(place, "straight-1", 1, *OPTIONS)[0] == 0
    limit = max(os.path.getsize(path) for path in glob.glob(place.checkpoint("straight-1", LAST) + "/rank-*")) // 2
    code, log = run(place, "limited", 1, *OPTIONS,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert code == 4 and f"step {LAST}/" in log and not committed(log), (code, log)
    assert re.search(rf"checkpoint of step {LAST} was not written: .*File too large", log), log
    resume(place, "limited", 1, [], "straight-1", LAST, *OPTIONS)


def slow_disk(place):
    """a disk of 1 MB/s makes a save longer than the watchdog's limit: no alarm, exit 0, the bits of a fast disk"""
    options = ["training.max_steps=3", "checkpoint.interval=2", "model.hidden_size=384", "model.intermediate_size=1300",
               "resilience.watchdog_min=3s", "resilience.watchdog_max=20s"]
    assert run(place, "quick", 2, *options)[0] == 0
    size = max(os.path.getsize(path) for path in glob.glob(place.checkpoint("quick", 3) + "/rank-*"))
    assert size > 22e6, size
    for mode in ("true", "false"):
        name = f"slow-{mode}"
        code, log = run(place, name, 2, *options, f"checkpoint.async={mode}", env=Disk(place, name, rate=1000000).env)
        assert code == 0 and "hangs" not in log and not glob.glob(place.run(name) + "/hang-*"), log
        assert gathered(place.checkpoint(name, 3)) == gathered(place.checkpoint("quick", 3))
        print(f"  async={mode}: {size / 1e6:.0f} MB a rank, {committed(log)} committed", flush=True)


work_in_memory()
main([some_calls, middle_save, last_save, two_ranks, file_size_limit, hung_fsync, slow_disk])
