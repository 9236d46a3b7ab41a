"""Reads of training data fail and then work, as on NFS or Lustre while a server fails over. The run waits, reads again
and ends with an undisturbed run's bits. Reads that keep failing end it with exit code 3 and an error that names file,
offset and tries."""
import errno
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from faulty_disk import Disk, run, work_in_memory  # noqa: E402
from harness import gathered, main  # noqa: E402

STEPS = 3
OPTIONS = [f"training.max_steps={STEPS}", "checkpoint.interval=0", "training.validation_interval=0"]
GOES_AWAY = {"EIO": errno.EIO, "ETIMEDOUT": errno.ETIMEDOUT, "stale handle": "stale", "short read": "short", "early end": "end"}


def reads_of(place, name):
    """[number] of the reads of each file of the training data, by the end of its name, in a run without faults."""
    disk = Disk(place, name, under=place.data + "/train/part-00000", reads=True)
    code, log = run(place, name, 1, *OPTIONS, env=disk.env)
    assert code == 0 and "try 2" not in log, log
    numbers = {}
    for _, number, call, path in disk.lines():
        assert call == "read", call
        numbers.setdefault(path.rsplit(".", 1)[1], []).append(int(number))
    assert {"bin", "idx", "sum"} <= set(numbers), numbers
    return numbers


def goes_away(place):
    """a failed, stale, short or early ended read of tokens, index or checksums: a warning, and the same bits"""
    numbers = reads_of(place, "straight")
    for kind in ("bin", "idx", "sum"):
        for fault, code_of_fault in GOES_AWAY.items():
            name = f"{kind}-{fault.replace(' ', '-')}"
            disk = Disk(place, name, at=numbers[kind][0], fault=code_of_fault, under=place.data + "/train/part-00000", reads=True)
            code, log = run(place, name, 1, *OPTIONS, env=disk.env)
            assert code == 0 and disk.struck(), log
            assert gathered(place.checkpoint(name, STEPS)) == gathered(place.checkpoint("straight", STEPS)), log
            warned = re.findall(rf"warning .*\.{kind} .*; try 2 of 6 in 0.1 s \(repetition 1 so far\)", log)
            assert len(warned) == (0 if fault == "short read" else 1), log  # the rest of a short read is read at once


def stays(place):
    """reads that fail as often as they are tried: exit code 3, with file, offset, reason and tries"""
    numbers = reads_of(place, "count")
    for fault, reason in ((errno.EIO, "Input/output error"), ("end", "too early")):
        name = f"stays-{fault}"
        disk = Disk(place, name, at=numbers["bin"][0], times=3, fault=fault, under=place.data + "/train/part-00000", reads=True)
        code, log = run(place, name, 1, *OPTIONS, "data.read_retries=2", env=disk.env)
        assert code == 3 and len(disk.struck()) == 3, log
        assert re.search(rf"part-00000\.bin .*at byte \d+.*{reason}, after 3 tries", log), log
        assert "try 3 of 3 in 0.4 s" in log, log
    disk = Disk(place, "final", at=numbers["bin"][0], fault=errno.EACCES, under=place.data + "/train/part-00000", reads=True)
    code, log = run(place, "final", 1, *OPTIONS, env=disk.env)
    assert code == 3 and "Permission denied" in log and "try 2" not in log, log


work_in_memory()
main([goes_away, stays])
