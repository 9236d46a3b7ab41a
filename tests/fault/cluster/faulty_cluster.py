"""A Slurm cluster on one machine (tests/system/slurm_cluster.py) whose nodes and cables a test can break. A cut cable
loses packets, without FIN or RST; a node without power loses every process at once; the files are shared and stay.
Everything ends with the test's process, whatever happens: it lives in namespaces below it."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system"))
import slurm_cluster  # noqa: E402

SLURMD_TIMEOUT = 10  # seconds until Slurm declares a silent node down; 300 by default
GRACE_TIME = 8  # seconds that a preempted job has before Slurm kills it

# A partition for most tests, and two of which one preempts the other.
SETTINGS = f"""\
SlurmdTimeout={SLURMD_TIMEOUT}
MessageTimeout=5
TCPTimeout=2
UnkillableStepTimeout=30
SlurmctldDebug=verbose
SchedulerParameters=bf_interval=3,sched_interval=3
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={GRACE_TIME}
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class FaultyCluster(slurm_cluster.Cluster):
    def __init__(self, path, nodes):
        self.rate = None  # of every cable, as `tc` writes it
        super().__init__(path, nodes, SETTINGS)

    def slow_down(self, rate):
        """Limits the rate of all cables, so that steps take longer but no more processor time."""
        self.rate = rate
        for name in self.nodes:
            self.set_rate(name)

    def set_rate(self, name):
        run(f"tc qdisc replace dev to-{name} root tbf rate {self.rate} burst 64kb latency 200ms")

    def set_slurmd_timeout(self, seconds):
        with open(self.env["SLURM_CONF"]) as file:
            text = re.sub("SlurmdTimeout=.*", f"SlurmdTimeout={seconds}", file.read())
        with open(self.env["SLURM_CONF"], "w") as file:
            file.write(text)
        run("scontrol", "reconfigure")

    def cut(self, name):
        run(f"ip link set to-{name} nomaster")

    def heal(self, name):
        run(f"ip link set to-{name} master bridge0")

    def power_off(self, name):
        """Cuts the cable first, so that no dying process can send anything."""
        self.cut(name)
        self.nodes[name].kill()
        self.nodes[name].wait()
        subprocess.run(["ip", "link", "del", f"to-{name}"], stderr=subprocess.DEVNULL, check=False)  # or the kernel has

    def power_on(self, name):
        self.add_node(name, self.addresses[name])
        if self.rate:
            self.set_rate(name)

    def is_on(self, name):
        return self.nodes[name].poll() is None

    def kill_slurmd(self, name):
        """The daemon alone; the ranks and their slurmstepd live on."""
        for pid in self.processes(name, "slurmd"):
            os.kill(pid, signal.SIGKILL)

    def start_slurmd(self, name):
        run(*self.enter(name), "slurmd", "-N", name)

    def restart_slurmctld(self):
        self.controller.kill()
        self.controller.wait()
        self.controller = self.daemon("slurmctld", "-D")

    def init(self, name):
        """Process id of the node's first process, as seen from here."""
        parent = self.nodes[name].pid
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            return int(file.read().split()[0])

    def enter(self, name, *more):
        """A command prefix that runs what follows on the node."""
        return ["nsenter", "-t", str(self.init(name)), "-n", "-u", *(more or ["-m", "-p"])]

    def processes(self, name, program):
        """Process ids of `program` on the node, as seen from here."""
        node = os.readlink(f"/proc/{self.init(name)}/ns/pid")
        return [pid for pid in named(program) if namespace(pid) == node]


def run(*command):
    words = command[0].split() if len(command) == 1 else command
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def named(program):
    """Process ids of all living processes called `program`, on whatever node."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == program and rest.split()[0] != "Z":
            found.append(int(entry))
    return found


def namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
