"""ext4 makes a file system read-only when it finds an error in it. Saves are refused then, training continues, and
committed checkpoints stay. The next start on the repaired file system resumes from them. Needs the right to mount a
loop device."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from faulty_disk import check_what_is_left, committed  # noqa: E402
from harness import ENV, TOKAMAK, main  # noqa: E402
from processes import wait_for  # noqa: E402

if "MOUNTS_OF_ITS_OWN" not in os.environ:  # so that no other namespace keeps a mount that is taken away here
    own = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        print("skipped: nothing can be mounted here")
        sys.exit(77)
    os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, MOUNTS_OF_ITS_OWN="1"))

NAME = "run"
REFUSED = r"checkpoint of step (\d+) was not written: .*Read-only file system"


def call(*command, check=True):
    return subprocess.run(command, text=True, capture_output=True, check=check).stdout.strip()


def mount(image, directory):
    """Returns the loop device's name. Ends the test with 77 if it cannot mount."""
    done = subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, directory], text=True, capture_output=True)
    if done.returncode != 0:
        print(f"skipped: an ext4 image cannot be mounted here: {done.stderr.strip()}")
        sys.exit(77)
    return os.path.basename(call("findmnt", "--noheadings", "--output", "SOURCE", directory))



def start(place, log):
    arguments = ["training.max_steps=1000000", "checkpoint.interval=20", "checkpoint.keep_latest=0"]
    return subprocess.Popen([TOKAMAK, "train", place.config(NAME), *arguments], env=ENV, stdout=log, stderr=log)


def read_only(place):
    """ext4 has made the file system read-only: saves are refused, the run says so at its end, no commit is lost"""
    image, directory = place.file("image"), place.run(NAME) + "/checkpoints"
    os.makedirs(directory)
    call("truncate", "--size=64M", image)
    call("mkfs.ext4", "-q", image)
    loop = mount(image, directory)
    try:
        log = open(place.file("log"), "w+")
        process = start(place, log)
        wait_for(process, log.name, r"checkpoint of step \d+ committed", times=2)
        with open(f"/sys/fs/ext4/{loop}/trigger_fs_error", "w") as trigger:
            trigger.write("1")
        text = wait_for(process, log.name, REFUSED, times=3)
        promised, refused = committed(text), [int(step) for step in re.findall(REFUSED, text)]
        assert refused[:3] == [promised[-1] + 20 * n for n in (1, 2, 3)], text
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 4, open(log.name).read()  # the last save was refused, too
        call("umount", directory)
        call("e2fsck", "-fy", image, check=False)
        mount(image, directory)
        assert check_what_is_left(place, NAME, promised) == promised
        second = start(place, log)
        wait_for(second, log.name, rf"resumed from \S+ \(step {promised[-1]},")
        wait_for(second, log.name, r"checkpoint of step \d+ committed", times=len(promised) + 1)
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=60) == 75, open(log.name).read()
        print(f"  read-only from step {refused[0]} on, {len(refused)} saves refused, resumed at step {promised[-1]}")
    finally:
        subprocess.run(["umount", "--lazy", directory], check=False)


main([read_only])
