"""Simulates hosts on one machine: each has its own network, host name, processes and mounts, and they share the files.
Cables join them in a switch and can be pulled, plugged in, shaped, or made to lose all packets of one direction.
Everything is in namespaces of this process and ends with it, however it ends. The machine itself is not affected."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from slurm_cluster import NAMESPACES  # noqa: E402

INSIDE = "TOKAMAK_BESIDE_HOSTS"
PROGRAMS = ("ip", "tc", "nsenter", "unshare", "mount")
NETWORK = "10.98.0"
PORT = 29500  # each host has all ports for itself
KEEPALIVE = ["--mca", "oob_tcp_keepalive_time", "5", "--mca", "oob_tcp_keepalive_intvl", "2",
             "--mca", "oob_tcp_keepalive_probes", "3"]

# A host: waits for its cable, then reaps what its processes leave behind. Everything on it ends with this shell.
HOST = """\
hostname {name}
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
ip addr add {address}/24 dev eth0
mount -t tmpfs tmpfs /dev/shm
touch {ready}
while :; do wait; sleep 1 & wait; done
"""

# mpirun's stand-in for ssh: AGENT ADDRESS COMMAND...
AGENT = """\
#!/bin/sh
init=$(cat {path}/$1.init)
shift
exec nsenter -t $init -n -u -m -p /bin/sh -c "$*"
"""


def enter_or_skip():
    """Continues in a new namespace. Ends the process with 77 if it cannot make one."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if INSIDE in os.environ:
        return
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        print("SKIPPED: not installed:", ", ".join(missing))
        sys.exit(77)
    if os.geteuid() != 0 or subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL).returncode:
        print("SKIPPED: making namespaces is not permitted here")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp(NAMESPACES[0], [*NAMESPACES, sys.executable, *sys.argv])


def run(command):
    subprocess.run(command.split(), check=True)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the process has ended by itself


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
    return value


class Host:
    def __init__(self, path, number):
        self.name, self.address = f"h{number}", f"{NETWORK}.{number}"
        ready = f"{path}/{self.name}.ready"
        self.init = subprocess.Popen([*NAMESPACES, "sh", "-c", HOST.format(name=self.name, address=self.address, ready=ready)],
                                     stdin=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{self.init.pid}/ns/net") != own, f"the network of {self.name}")
        self.network = os.readlink(f"/proc/{self.init.pid}/ns/net")
        run(f"ip link add {self.name} type veth peer name eth0 netns {self.init.pid}")
        self.heal()
        run(f"ip link set {self.name} up")
        until(lambda: os.path.exists(ready), f"{self.name} does not start")
        # The shell is process 1 of its namespace. The child of `init` has its PID as other namespaces see it.
        with open(f"/proc/{self.init.pid}/task/{self.init.pid}/children") as file:
            self.shell = int(file.read().split()[0])
        with open(f"{path}/{self.address}.init", "w") as file:
            file.write(str(self.shell))

    def cut(self):
        run(f"ip link set {self.name} nomaster")

    def heal(self):
        run(f"ip link set {self.name} master switch")

    def lose_what_comes_from_it(self):
        """Loses all packets from this host, by a token bucket into which no packet fits."""
        run(f"nsenter -t {self.shell} -n tc qdisc replace dev eth0 root tbf rate 8bit burst 1 limit 1")

    def shape(self, rate, latency="200ms", burst="3000"):
        """Limits the cable in both directions."""
        for prefix, device in (("", self.name), (f"nsenter -t {self.shell} -n ", "eth0")):
            run(f"{prefix}tc qdisc replace dev {device} root tbf rate {rate} burst {burst} latency {latency}")

    def kill(self):
        """Kills all processes of the host at once, as a power loss does."""
        if self.init.poll() is not None:
            return
        self.cut()
        self.init.kill()
        self.init.wait()
        for pid in self.processes():  # mpirun's own ranks live outside of the host's list of processes
            kill(pid)

    def processes(self, name=None):
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/ns/net") != self.network:
                    continue
                with open(f"/proc/{entry}/stat") as file:
                    comm, state = re.match(r"\d+ \((.*)\) (\w)", file.read(), re.S).groups()
            except OSError:
                continue
            if state != "Z" and name in (None, comm):
                found.append(int(entry))
        return found

    def ranks(self):
        """{rank: process id} of the program's processes here."""
        found = {}
        for pid in self.processes("tokamak"):
            try:
                with open(f"/proc/{pid}/environ") as file:
                    environment = dict(word.split("=", 1) for word in file.read().split("\0") if "=" in word)
            except OSError:
                continue
            for variable in ("OMPI_COMM_WORLD_RANK", "RANK"):
                if variable in environment:
                    found[int(environment[variable])] = pid
                    break
        return found


class Start:
    """One start of a run: its launchers' processes, one under mpirun, one a rank over TCP."""

    def __init__(self, processes, log, hosts):
        self.processes, self.log, self.hosts = processes, log, hosts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in [pid for host in self.hosts for pid in host.processes("tokamak")]:
            kill(pid)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def text(self):
        with open(self.log) as file:
            return file.read()

    def wait_for(self, pattern, times=1):
        def said():
            return len(re.findall(pattern, self.text())) >= times
        until(lambda: said() or any(process.poll() is not None for process in self.processes), self.text)
        assert said(), self.text()

    def pids(self, ranks):
        """Waits until all ranks have started. Returns {rank: process id}."""
        def found():
            known = {}
            for host in self.hosts:
                known.update(host.ranks())
            return known if len(known) == ranks else None
        return until(found, self.text)

    def ended(self):
        return all(process.poll() is not None for process in self.processes)

    def codes(self, seconds=120):
        until(self.ended, self.text, seconds)
        return [process.returncode for process in self.processes]


class Hosts:
    """h1, h2, ... in one network."""

    def __init__(self, path, count):
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        run("ip link add switch type bridge")
        run("ip link set switch up")
        run("ip link set lo up")
        self.all = [Host(path, number + 1) for number in range(count)]
        with open(path + "/agent", "w", opener=lambda name, flags: os.open(name, flags, 0o755)) as agent:
            agent.write(AGENT.format(path=path))

    def down(self):
        for host in self.all:
            host.kill()
            host.init.wait()
            subprocess.run(["ip", "link", "del", host.name], stderr=subprocess.DEVNULL)  # it may be gone with its host
        run("ip link del switch")

    def __getitem__(self, number):
        """hosts[1] is h1."""
        return self.all[number - 1]

    def start(self, launcher, slots, command, log, env, options=()):
        """`slots`: {host's number: ranks there}; launcher: "mpirun", with `options`, or "tcp"."""
        hosts = [self[number] for number in slots]
        with open(log, "w") as out:
            starter = self.start_mpirun if launcher == "mpirun" else self.start_tcp
            return Start(starter(slots, command, out, env, options), log, hosts)

    # mpirun is on the first host by its network and host name. It needs the shared PID namespace to reach the others'
    # processes.
    def start_mpirun(self, slots, command, out, env, options):
        first = self[next(iter(slots))]
        names = ",".join(f"{self[number].address}:{count}" for number, count in slots.items())
        mca = {"plm_rsh_agent": self.path + "/agent", "plm_rsh_no_tree_spawn": "1", "btl": "tcp,self,vader",
               "btl_tcp_if_include": "eth0", "oob_tcp_if_include": "eth0",
               "mpi_yield_when_idle": "1"}  # all hosts share the processors of one machine
        mpirun = [env.get("MPIRUN", "mpirun"), "-n", str(sum(slots.values())), "--oversubscribe", "--bind-to", "none", "--host", names]
        for key, value in mca.items():
            mpirun += ["--mca", key, value]
        return [subprocess.Popen(["nsenter", "-t", str(first.shell), "-n", "-u", *mpirun, *options, *command], env=env,
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)]

    # The shell waits for its rank alone: nsenter would stop where its child is stopped.
    def start_tcp(self, slots, command, out, env, _):
        where = [number for number, count in slots.items() for _ in range(count)]
        variables = dict(env, WORLD_SIZE=str(len(where)), MASTER_ADDR=self[where[0]].address, MASTER_PORT=str(PORT))
        return [subprocess.Popen(["nsenter", "-F", "-t", str(self[number].shell), "-n", "-u", "-m", "-p",
                                  "sh", "-c", '"$@"; exit $?', "sh", *command], env=dict(variables, RANK=str(rank)),
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
                for rank, number in enumerate(where)]
