"""The power fails under a run that saves at every step. After a remount, each checkpoint that the log called committed
must verify. The next start ends with an undisturbed run's bits. The ioctl GOINGDOWN discards everything on a
loop-mounted ext4 or xfs that had not reached the disk. With "log" the journal was flushed before, so names exist and
their data does not.

usage: power_loss_test.py [TEST ...] CUTS=6: the number of power cuts of a test; CUTS_SEED. Needs root and loop devices;
else it exits with 77."""
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from faulty_disk import Disk, check_what_is_left, committed, end, resume, run, start, work_in_memory  # noqa: E402
from harness import main  # noqa: E402

CUTS = int(os.environ.get("CUTS", "6"))
RNG = random.Random(int(os.environ.get("CUTS_SEED", "7")))
MEGABYTES = {"ext4": 64, "xfs": 320}  # mkfs.xfs takes no less than 300
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
GOINGDOWN = 0x8004587D  # _IOR('X', 125, uint32_t): of xfs, and of ext4 by the name of EXT4_IOC_SHUTDOWN
FLAGS = {"nolog": 2, "log": 1}  # the journal is lost, too; it is flushed first
LAST = 12
OPTIONS = [f"training.max_steps={LAST}", "checkpoint.interval=1"]


class FileSystem:
    """A file system in a file, mounted where the runs lie."""

    def __init__(self, place, kind, mode):
        self.image, self.mode = place.file("image"), mode
        self.mounted_at = place.run("disk")
        os.makedirs(self.mounted_at, exist_ok=True)
        with open(self.image, "wb") as out:
            out.truncate(MEGABYTES[kind] << 20)
        made = subprocess.run([*MAKE[kind], self.image], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr

    def mount(self):
        return subprocess.run(["mount", "-o", "loop", self.image, self.mounted_at], capture_output=True, text=True)

    def unmount(self, *options):
        return subprocess.run(["umount", *options, self.mounted_at], capture_output=True, text=True)

    def __enter__(self):
        done = self.mount()
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(self, *_):
        if os.path.ismount(self.mounted_at):
            self.unmount("-l")
        os.remove(self.image)

    def lose_power(self):
        root = os.open(self.mounted_at, os.O_RDONLY)
        fcntl.ioctl(root, GOINGDOWN, struct.pack("I", FLAGS[self.mode]))
        os.close(root)

    def come_back(self):
        """Mounts it again. Unmounting waits for the last process that used the file system."""
        deadline = time.monotonic() + 60
        while (done := self.unmount()).returncode != 0:
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.02)
        done = self.mount()
        assert done.returncode == 0, "the file system does not come back: " + done.stderr
        os.listdir(self.mounted_at)  # fails if this is still the old mount, which has no power


def skip_unless_possible(place):
    for kind, command in MAKE.items():
        reason = f"{command[0]} is not installed" if shutil.which(command[0]) is None else ""
        try:
            if not reason:
                with FileSystem(place, kind, "log"):
                    pass
        except AssertionError as error:
            reason = f"{kind} cannot be mounted here: {error}"
        if reason:
            print("skipped: " + reason)
            sys.exit(77)


def cut(place, kind, mode, ranks, at, begin=""):
    """Power is lost when rank 0 is at the at-th operation, which never returns. FAULTY_DISK_FROM in `begin` says how to
    count. Returns (steps promised, steps left, operation)."""
    name = f"disk/run-{ranks}"
    with FileSystem(place, kind, mode) as disk_image:
        disk = Disk(place, name, at=at, fault="hang", rank=0, begin=begin)
        process, log = start(place, name, ranks, *OPTIONS, env=disk.env)
        try:
            deadline = time.monotonic() + 120
            while not (os.path.exists(disk.trace) and disk.struck()):
                assert process.poll() is None and time.monotonic() < deadline, open(log).read()
                time.sleep(0.005)
            # Only checkpoints that the log names by now were promised: the operation hangs, so nothing follows.
            promised = committed(open(log).read())
            disk_image.lose_power()
        finally:
            end(process)
        call, path = disk.operations()[-2]
        os.remove(disk.trace)
        disk_image.come_back()
        left = check_what_is_left(place, name, promised)
        what = f"{call} {os.path.relpath(path, place.run(name))}"
        resume(place, name, ranks, promised, f"straight-{ranks}", LAST, *OPTIONS)
    return promised, left, what


def cuts(place, kinds):
    skip_unless_possible(place)
    # Undisturbed runs on another disk count the operations at which power can fail.
    os.makedirs(place.file("disk"), exist_ok=True)
    operations = {}
    for ranks in (1, 2):
        disk = Disk(place, f"straight-{ranks}", rank=0)
        code, log = run(place, f"straight-{ranks}", ranks, *OPTIONS, env=disk.env)
        assert code == 0, log
        operations[ranks] = len(disk.operations())
    after_promise = 0
    for number in range(CUTS):
        kind, mode = kinds[number % len(kinds)], ("nolog", "log")[number // len(kinds) % 2]
        ranks = 2 if number % 5 == 4 else 1
        at = RNG.randint(1, operations[ranks] - 2)
        try:
            promised, left, what = cut(place, kind, mode, ranks, at)
        except AssertionError as error:
            raise AssertionError(f"{kind}, {mode}, {ranks} ranks, operation {at}: {error}") from error
        after_promise += bool(promised)
        print(f"  {kind} {mode}, {ranks} rank(s), at {what} (operation {at}): promised {promised[-1:]}, left {left}", flush=True)
    print(f"  {CUTS} cuts, {after_promise} of them after a promise")
    assert after_promise > 0


def both(place):
    """power cuts at random operations, ext4 and xfs in turn, the journal flushed or not"""
    cuts(place, ["ext4", "xfs"])


def right_after_a_promise(place):
    """a power cut between the first checkpoint's promise and the next save's first file, which would sync it"""
    skip_unless_possible(place)
    os.makedirs(place.file("disk"), exist_ok=True)
    if not os.path.isdir(place.run("straight-1")):
        assert run(place, "straight-1", 1, *OPTIONS)[0] == 0
    for kind in MAKE:
        promised, left, what = cut(place, kind, "nolog", 1, at=1, begin="2 /.probe-")
        print(f"  {kind} nolog, at {what}: promised {promised}, left {left}", flush=True)
        assert promised == [1], promised


# In its own mount namespace. A process that copied the common one now would keep the file system mounted.
if "POWER_LOSS_UNSHARED" not in os.environ and shutil.which("unshare"):
    os.environ["POWER_LOSS_UNSHARED"] = "1"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
work_in_memory()
main([both, right_after_a_promise])
