"""The disk of data.cache fails while a run makes the data set of its text: exit code 3 and the reason, or a killed
process. Nothing unfinished is taken for a data set afterwards: the next start ends with an undisturbed run's losses."""
import errno
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from faulty_disk import Disk, run, work_in_memory  # noqa: E402
from harness import main, relative, tokamak  # noqa: E402


def options(place, cache):
    """Options of a short run on the workplace's text."""
    source = f"{{path: {place.file('text.jsonl')}, tokenizer: {place.file('tokenizer.model')}}}"
    return ["training.max_steps=2", "training.validation_interval=0", f"data.sources=[{source}]", "data.validation=[]",
            f"data.cache={place.file(cache)}"]


def sets_in(place, cache):
    """The data sets there, which must all be sound."""
    directory = place.file(cache)
    names = os.listdir(directory) if os.path.isdir(directory) else []
    sets = [f"{directory}/{name}" for name in names if os.path.exists(f"{directory}/{name}/manifest.json")
            and ".tokamak-tmp-" not in name]
    for path in sets:
        assert ": sound" in tokamak("data", "verify", path)
    return sets, [name for name in names if ".tokamak-tmp-" in name]


def operations(place, name):
    """Returns number_of(call, end of the path), of the last such operation of an undisturbed run on its cache."""
    cache = name + "_cache"
    disk = Disk(place, name, under=place.file(cache))
    code, log = run(place, name, 1, *options(place, cache), env=disk.env)
    assert code == 0 and len(sets_in(place, cache)[0]) == 1, log
    seen = disk.operations()

    def number_of(call, ending):
        return max(number for number, (its, path) in enumerate(seen, 1) if its == call and re.search(ending + "$", path))

    return number_of


def ends_well(place, name, cache, ranks, straight):
    code, log = run(place, name, ranks, *options(place, cache))
    assert code == 0, log
    losses, expected = place.records(name), place.records(straight)
    assert len(losses) == 2 and all(relative(losses[step], expected[step]) < 1e-5 for step in losses), (losses, expected)
    sets, left = sets_in(place, cache)
    assert len(sets) == 1 and not left, (sets, left)


def full_disk(place):
    """no space for one of the calls: exit code 3 on one and on two ranks, nothing left, and the next start succeeds"""
    number_of = operations(place, "straight")
    calls = [("open", ".lock"), ("write", ".bin"), ("fsync", ".idx"), ("rename", r"tmp-[^/]*")]
    for number, call in enumerate(calls):
        at = number_of(*call)
        ranks, name = 1 + number % 2, f"full{at}"
        disk = Disk(place, name, at=at, fault=errno.ENOSPC, under=place.file(name + "_cache"), rank=0)
        code, log = run(place, name, ranks, *options(place, name + "_cache"), env=disk.env)
        assert disk.struck() and code == 3 and "No space left on device" in log, (at, code, log)
        sets, left = sets_in(place, name + "_cache")
        assert not sets and not left, (at, sets, left, log)
        assert not os.path.exists(place.run(name) + "/checkpoints"), "a run began"
        ends_well(place, name, name + "_cache", ranks, "straight")


def killed(place):
    """kill -9 at one of the calls: the rest is removed by the next start, which makes the data set"""
    number_of = operations(place, "undisturbed")
    for at in (number_of("write", ".bin"), number_of("rename", r"tmp-[^/]*")):
        name = f"killed{at}"
        disk = Disk(place, name, at=at, fault="kill", under=place.file(name + "_cache"))
        code, log = run(place, name, 1, *options(place, name + "_cache"), env=disk.env)
        assert code == -9, (code, log)
        sets, left = sets_in(place, name + "_cache")
        assert not sets and left, (at, sets, left)
        ends_well(place, name, name + "_cache", 1, "undisturbed")


work_in_memory()
main([full_disk, killed])
