"""scripts/run_until_done.sh over two hosts. A cable cut ends mpirun within seconds. The run continues over the
remaining hosts, to the bits of an undisturbed run."""
import os
import re
import subprocess
import time

from jobs import ENV, SCRIPTS, TOKAMAK, named, run_tests, same_bits, wait_until

STEPS = 400

# In place of ssh: runs a command on the host of an address.
AGENT = """\
#!/bin/bash
case $1 in
{cases}
esac
shift
exec nsenter -t "$init" -n -u -m -p /bin/sh -c "$*"
"""


def cable_cut(place, cluster):
    """the cable of the second host is cut: mpirun notices by its keep-alives, the third host takes over"""
    agent, hosts, log = place.file("agent"), place.file("hosts"), place.file("cable.log")
    cases = "\n".join(f"  {address}) init={cluster.init(name)} ;;" for name, address in cluster.addresses.items())
    with open(agent, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as out:
        out.write(AGENT.format(cases=cases))
    write_hosts(hosts, cluster, ["n1", "n2"])
    # The head process is on n1's network, and in the outer process namespace, from where the agent reaches all hosts.
    command = [*cluster.enter("n1", "-F"), SCRIPTS + "/run_until_done.sh", "-n", "2", "--hostfile", hosts, "--bind-to", "none",
               "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl", "tcp,self,vader",
               "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--", "train",
               place.config("cable"), f"training.max_steps={STEPS}", "checkpoint.interval=20"]
    with open(log, "w") as out:
        series = subprocess.Popen(command, env=dict(ENV, TOKAMAK=TOKAMAK, LAST_RANKS="5", OMPI_MCA_mpi_yield_when_idle="1"), stdout=out, stderr=out)
    wait_until(lambda: "step 60/" in read(log), "step 60")
    old = named("tokamak")
    assert len(old) == 2
    write_hosts(hosts, cluster, ["n1", "n3"])
    cluster.cut("n2")
    cut = time.monotonic()
    wait_until(lambda: "starting again" in read(log), "mpirun's end", seconds=60)
    print(f"  mpirun ended {time.monotonic() - cut:.1f} s after the cut")
    wait_until(lambda: "resumed from" in read(log), "the restart")
    cluster.heal("n2")
    assert series.wait(timeout=240) == 0, read(log)[-3000:]
    same_bits(place, "cable", STEPS, 2, STEPS)
    assert len(re.findall("starting again", read(log))) == 1
    cluster.power_off("n2")
    cluster.power_on("n2")


def write_hosts(path, cluster, names):
    with open(path, "w") as out:
        out.writelines(f"{cluster.addresses[name]} slots=1\n" for name in names)


def read(path):
    with open(path) as file:
        return file.read()


if __name__ == "__main__":
    run_tests([cable_cut], nodes=3)
