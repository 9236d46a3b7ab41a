"""Finding, watching and waiting for the processes of a run."""
import os
import re
import time


def children(pid):
    """Process ids of tokamak directly below process `pid`."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)", file.read(), re.S).groups()
        except (OSError, AttributeError):
            continue
        if name == "tokamak" and int(rest.split()[1]) == pid:
            found.append(int(entry))
    return found


def alive(pids):
    """Those of `pids` that still run; zombies do not."""
    running = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                    running.append(pid)
        except OSError:
            pass
    return running


def wait_for(process, log, pattern, seconds=60, times=1):
    """Waits until the log has the text so many times. It is an error if the process ends before that."""
    deadline = time.monotonic() + seconds
    while True:
        with open(log) as file:
            text = file.read()
        if len(re.findall(pattern, text)) >= times:
            return text
        assert process.poll() is None and time.monotonic() < deadline, text
        time.sleep(0.02)
