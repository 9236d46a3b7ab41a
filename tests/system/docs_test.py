"""Runs the commands of docs/tutorial.md and docs/clusters.md as a reader pastes them. They run in order, in one shell
per page, from a directory that looks like the root of a fresh clone. It is an error if a command fails, an option does
not exist, or the program does not print the output on the page.

A fence says what is done with it:
  sh           run; a command that exits other than 0 ends the test
  sh cluster   run on two nodes of a Slurm cluster; only parsed where there is no Slurm or no right to make namespaces
  text         output of the commands above: each line must come, in this order; numbers may differ, ... is anything
  text sample  not compared: it varies, as text that a model makes

TOKAMAK_DOCS_FULL=1 runs the pages as they are, not shortened, and prints all output: for what the pages show."""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import slurm_cluster

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["tutorial.md", "clusters.md"]
SKIPPED = 77
FULL = os.environ.get("TOKAMAK_DOCS_FULL") == "1"
INSTALL = "" if os.environ.get("TOKAMAK_TEST_INSTALLS") == "yes" else " --no-install"

# Makes the pages short enough to be a test: text on a page -> its replacement.
SHORTER = {
    "quickstart.sh --text-only": f"quickstart.sh --text-only --program build/tokamak{INSTALL}",
    "tokamak train configs/quickstart.yaml": "tokamak train configs/quickstart.yaml training.max_steps=6 "
                                             "metrics.log_interval=1 checkpoint.interval=3 runtime.threads_per_rank=1",
    "--stop-at-step 200": "--stop-at-step 3",
    "--task shards=": "--limit 8 --task shards=",
    "training.max_steps=20": "training.max_steps=4 checkpoint.interval=10",
    "--stop-at-step 10": "--stop-at-step 2",
    "run.output_dir=runs/batch": "run.output_dir=runs/batch training.max_steps=1000000 checkpoint.interval=1000000",
    "step 10/": "step 1/",
}

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\b[0-9a-f]{32}\b|(?<!exit code )\d[\d.,:]*(e[+-]?\d+)?( ?([KMGT](iB)?|B)\b)?")
END = "== end of block"


class Block:
    def __init__(self, page, line, kind, commands):
        self.where, self.kind, self.commands, self.shown, self.output = f"docs/{page}:{line}", kind, commands, None, ""


def blocks_of(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = []
    for fence in FENCE.finditer(text):
        kind, line = fence[1], text.count("\n", 0, fence.start()) + 1
        assert kind in ("sh", "sh cluster", "text", "text sample"), f"docs/{page}:{line}: no fence is called '{kind}'"
        if kind.startswith("sh"):
            blocks.append(Block(page, line, kind, fence[2]))
        elif kind == "text":
            assert blocks and blocks[-1].shown is None, f"docs/{page}:{line}: output of nothing"
            blocks[-1].shown = (line + 1, fence[2].splitlines())
    return blocks


def shortened(commands, used):
    for long, short in SHORTER.items():
        if long in commands:
            used.add(long)
            if not FULL or "--program" in short:
                commands = commands.replace(long, short)
    return commands


def run(blocks, directory, used):
    """Runs all blocks in one shell, so that a block's exported variables reach the next ones."""
    script = "set -eo pipefail\n" + "".join(f"{shortened(block.commands, used)}\necho '{END}'\n" for block in blocks)
    command = ["timeout", str(3600 if FULL else 900), "bash", "-c", script]  # a block may wait forever
    done = subprocess.run(command, cwd=directory, text=True, check=False, env=os.environ,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    outputs = done.stdout.split(END + "\n")
    for block, output in zip(blocks, outputs):
        block.output = output
        if FULL:
            print(f"---- {block.where}\n{block.commands}----\n{output}", flush=True)
    if done.returncode != 0:
        failed = blocks[len(outputs) - 1]
        if "the text is not there" in failed.output:
            print(f"skipped: {failed.output.splitlines()[-2]}")
            sys.exit(SKIPPED)
        logs = "".join(f"---- the end of {log.name}\n{log.read_text()[-4000:]}\n" for log in Path(directory).glob("*.log"))
        sys.exit(f"{failed.where}: exit {done.returncode}\n{failed.commands}\n{failed.output}\n{logs}")
    for block in blocks:
        compare(block)


def skeleton(line):
    return " ".join(NUMBER.sub("#", line).split())


def compare(block):
    if block.shown is None:
        return
    first, lines = block.shown
    printed = [skeleton(line) for line in block.output.splitlines()]
    for number, line in enumerate(lines, first):
        if line.strip() in ("", "..."):
            continue
        pattern = re.compile(".*".join(re.escape(skeleton(part)) for part in line.split("...")))
        at = next((i for i, one in enumerate(printed) if pattern.fullmatch(one)), None)
        assert at is not None, (f"{block.where.split(':')[0]}:{number}: the page shows\n  {line}\nbut (from where the "
                                f"line before it came) the commands print\n{block.output}")
        printed = printed[at + 1:]


def parse(block):
    done = subprocess.run(["bash", "-n"], input=block.commands, text=True, check=False, capture_output=True)
    assert done.returncode == 0, f"{block.where}: {done.stderr}"


def run_page(page, directory):
    """Runs a page in a separate process, since with Slurm its processes live in namespaces."""
    blocks = blocks_of(page)
    with_slurm = slurm_cluster.INSIDE in os.environ
    if with_slurm:
        cluster = slurm_cluster.Cluster(f"{directory}/slurm", nodes=2)
        os.environ.update(cluster.env)
    else:
        for block in blocks:
            parse(block)
        blocks = [block for block in blocks if block.kind == "sh"]
    used = set()
    begin = time.monotonic()
    run(blocks, directory, used)
    print(f"ok ({time.monotonic() - begin:.1f} s): docs/{page}, {len(blocks)} blocks" + (", with Slurm" if with_slurm else ""))
    return used


def main():
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                      OMP_WAIT_POLICY="passive")
    if len(sys.argv) == 3:  # PAGE DIRECTORY
        if any(block.kind == "sh cluster" for block in blocks_of(sys.argv[1])):
            slurm_cluster.enter_if_possible()
        run_page(sys.argv[1], sys.argv[2])
        return
    everything = "".join(block.commands for page in PAGES for block in blocks_of(page))
    unused = [long for long in SHORTER if long not in everything]
    assert not unused, f"no page has {unused}: take it out of SHORTER"
    with tempfile.TemporaryDirectory(prefix="tokamak-docs-") as directory:
        for name, target in (("configs", ROOT / "configs"), ("scripts", ROOT / "scripts"),
                             ("build", Path(os.environ["TOKAMAK"]).parent)):
            os.symlink(target, f"{directory}/{name}")
        for page in PAGES:
            code = subprocess.run([sys.executable, __file__, page, directory], check=False).returncode
            if code != 0:
                sys.exit(code)


if __name__ == "__main__":
    main()
