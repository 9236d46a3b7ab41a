"""A Slurm cluster on one machine, of real daemons: every node has its own network, host name, processes and mounts, and
shares the files. All of it lives in a namespace that ends with this process; the machine itself sees nothing of it."""
import os
import shutil
import subprocess
import sys
import time

from processor_limit import limit_processors

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "ip", "unshare", "mount")
NAMESPACES = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
              "--propagation", "private"]
INSIDE = "TOKAMAK_IN_SLURM_CLUSTER"
NETWORK = "10.99.0"
CPUS = 4  # how many a node reports to Slurm

CONF = """\
ClusterName=test
SlurmctldHost=control({network}.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={path}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPidFile={path}/slurmctld.pid
SlurmdPidFile={path}/slurmd.%n.pid
SlurmdSpoolDir={path}/spool.%n
TmpFS={path}/tmp.%n
StateSaveLocation={path}/state
SlurmctldLogFile={path}/slurmctld.log
SlurmdLogFile={path}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# A node: waits for its cable, then runs the daemon and reaps what that leaves behind.
NODE = """\
hostname {name}
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
ip addr add {address}/24 dev eth0
mount -t tmpfs tmpfs /dev/shm
mount --bind {hosts} /etc/hosts
slurmd -D -N {name} &
while :; do wait; sleep 1 & wait; done
"""


def enter_or_skip():
    """Continues in a new namespace. Ends the process with 77 if it cannot make one, or without Slurm."""
    if reason := enter_if_possible():
        print("SKIPPED:", reason)
        sys.exit(77)


def enter_if_possible():
    """Starts this program again in a new namespace and returns there; else returns why it cannot."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if INSIDE in os.environ:
        return None
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0 or subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL).returncode:
        return "making namespaces is not permitted here"
    os.environ[INSIDE] = "1"
    return os.execvp(NAMESPACES[0], [*NAMESPACES, sys.executable, *sys.argv])


class Cluster:
    """The constructor starts the cluster; `env` is the environment for its commands (srun, sbatch, ...). `settings`:
    more lines of slurm.conf."""

    def __init__(self, path, nodes, settings=""):
        if reason := limit_processors():
            print("no limit of processor time:", reason, flush=True)
        self.path, self.settings = path, settings
        self.nodes = {}  # name -> the process that ends the node when it ends
        names = [f"n{i + 1}" for i in range(nodes)]
        for directory in ["state", *(f"tmp.{name}" for name in names), *(f"spool.{name}" for name in names)]:
            os.makedirs(f"{path}/{directory}")
        self.env = {"SLURM_CONF": path + "/slurm.conf"}
        os.environ.update(self.env)
        self.addresses = {name: f"{NETWORK}.{11 + i}" for i, name in enumerate(names)}
        self.write_files()
        self.wire()
        self.daemon("munged", "--foreground", "--force", "--key-file=" + path + "/munge.key",
                    f"--socket={path}/munge.socket", f"--pid-file={path}/munge.pid", f"--log-file={path}/munge.log",
                    f"--seed-file={path}/munge.seed")
        self.wait_until(lambda: os.path.exists(path + "/munge.socket"), "munged")
        self.controller = self.daemon("slurmctld", "-D")
        for name, address in self.addresses.items():
            self.add_node(name, address)
        self.wait_until(lambda: self.idle_nodes() == set(names), "the nodes")

    def write_files(self):
        with open(self.path + "/munge.key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as key:
            key.write(os.urandom(1024))
        with open(self.env["SLURM_CONF"], "w") as conf:
            conf.write(CONF.format(path=self.path, network=NETWORK) + self.settings)
            for name, address in self.addresses.items():
                conf.write(f"NodeName={name} NodeHostname={name} NodeAddr={address} CPUs={CPUS} RealMemory=500\n")
        with open(self.path + "/hosts", "w") as hosts:
            hosts.write(f"127.0.0.1 localhost\n{NETWORK}.1 control\n")
            hosts.writelines(f"{address} {name}\n" for name, address in self.addresses.items())
        for own in self.addresses:  # a node's own name is a loopback address, as Debian's installer sets it
            with open(f"{self.path}/hosts.{own}", "w") as hosts:
                hosts.write(f"127.0.0.1 localhost\n127.0.1.1 {own}\n{NETWORK}.1 control\n")
                hosts.writelines(f"{address} {name}\n" for name, address in self.addresses.items() if name != own)

    def wire(self):
        for command in ("hostname control", f"mount --bind {self.path}/hosts /etc/hosts", "ip link set lo up",
                        "ip link add bridge0 type bridge", f"ip addr add {NETWORK}.1/24 dev bridge0",
                        "ip link set bridge0 up"):
            subprocess.run(command.split(), check=True)

    def daemon(self, *command):
        with open(f"{self.path}/{command[0]}.out", "w") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def add_node(self, name, address):
        node = subprocess.Popen([*NAMESPACES, "sh", "-c", NODE.format(name=name, address=address,
                                                                                hosts=f"{self.path}/hosts.{name}")],
                                stdout=open(f"{self.path}/{name}.out", "w"), stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        self.wait_until(lambda: os.readlink(f"/proc/{node.pid}/ns/net") != own, f"the network of {name}")
        for command in (f"ip link add to-{name} type veth peer name eth0 netns {node.pid}",
                        f"ip link set to-{name} master bridge0", f"ip link set to-{name} up"):
            subprocess.run(command.split(), check=True)
        self.nodes[name] = node

    def idle_nodes(self):
        found = subprocess.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        return set(found.stdout.split())

    @staticmethod
    def wait_until(condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not there after {seconds} s"
            time.sleep(0.05)
