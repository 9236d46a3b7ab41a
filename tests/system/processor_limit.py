"""Limits the processor time of this process and its children by a control group. So a cluster of many processes on two
cores leaves some for others. Holds whatever the processes do; needs root."""
import os
import uuid

SHARE = 0.75  # of all cores
PERIOD = 100_000  # microseconds

# The folders for groups, and the files that limit a group, of cgroup versions 2 and 1.
PLACES = [("/sys/fs/cgroup", {"cpu.max": "{quota} {period}"}),
          ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}"})]


def limit_processors():
    """Moves this process into a group of its own. Returns why that is not possible, or ""."""
    quota, reason = int(SHARE * os.cpu_count() * PERIOD), "there are no control groups of processors here"
    for root, files in PLACES:
        group = f"{root}/tokamak-test-{uuid.uuid4().hex[:12]}"
        try:
            if not os.path.exists(f"{root}/cgroup.procs"):
                continue
            remove_old_groups(root)
            os.mkdir(group)
            for name, text in files.items():
                write(f"{group}/{name}", text.format(quota=quota, period=PERIOD))
            write(f"{group}/cgroup.procs", "0")  # 0 is this process, whatever its id in this namespace
            return ""
        except OSError as error:
            reason = str(error)
            if os.path.isdir(group):
                os.rmdir(group)
    return reason


def remove_old_groups(root):
    for name in os.listdir(root):
        if name.startswith("tokamak-test-"):
            try:
                os.rmdir(f"{root}/{name}")
            except OSError:
                pass  # another test's group, which still runs


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
