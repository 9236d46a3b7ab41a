"""Starts the ranks of a run that strangers attack, one by one, with limits of time and memory, and judges them. A run
is unharmed if it ends with the same bits as without strangers."""
import os
import re
import resource
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "system"), os.path.join(HERE, "..", "support"), HERE]
import run_ranks  # noqa: E402
from harness import ENV, TOKAMAK, own_address_space  # noqa: E402
from judge import CONTROLS, DOCUMENTED  # noqa: E402
from strangers import listening_ports  # noqa: E402

SECONDS = 50  # no case takes nearly as long, even on a slow machine: a rank that does hangs
MEMORY = own_address_space() + (640 << 20)
LONGEST_ERROR = 300
LONGEST_LOG = 20000
LINE = re.compile(r"^\d\d:\d\d:\d\d (\w+) (?:\[\d+\] )?(.*)$")


class Run:
    """The ranks of one case, started one by one."""

    def __init__(self, place, name, size=2, port=None, secret=None, **more):
        self.place, self.name, self.size = place, name, size
        self.env = dict(ENV, WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", OMP_WAIT_POLICY="passive",
                        MASTER_PORT=str(port or run_ranks.free_port()), **more)
        if secret:
            self.env["TOKAMAK_SECRET"] = secret
        self.port = int(self.env["MASTER_PORT"]) if self.env["MASTER_PORT"].isdigit() else 0
        self.config = place.config(name)
        self.processes, self.logs = [], []

    def start(self, rank, steps=2, **more):
        log = open(self.place.file(f"{self.name}-{len(self.logs)}.log"), "w+b")
        self.logs.append(log)
        command = [TOKAMAK, "train", self.config, f"training.max_steps={steps}"]
        process = subprocess.Popen(command, env=dict(self.env, RANK=str(rank), **more), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        self.processes.append(process)
        return process

    def listen(self, process, port=None):
        """Waits until a rank listens; returns the port."""
        def ports():
            found = listening_ports(process.pid)
            return found if port is None else {port} & set(found)
        self.until(ports, "it does not listen", process)
        return next(iter(ports()))

    def until(self, condition, what, process=None):
        end = time.monotonic() + SECONDS
        while not condition():
            ended = process is not None and process.poll() is not None
            assert time.monotonic() < end and not ended, f"{what}: {process and process.poll()}\n{self.text()}"
            time.sleep(0.01)

    def code(self, process):
        try:
            return process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError("no end\n" + self.text())

    def text(self, index=None):
        texts = []
        for log in self.logs if index is None else [self.logs[index]]:
            with open(log.name, "rb") as file:
                texts.append(file.read().decode("utf-8", "backslashreplace"))
        return "".join(texts)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for log in self.logs:
            log.close()

    # ---- judging ----

    def expect_clean_log(self):
        text = self.text()
        assert not CONTROLS.search(text), f"control characters: {text!r}"
        for line in text.splitlines():
            assert not line.startswith("12:00:00"), "a forged line: " + line
        for unwanted in ("bug of tokamak", "terminate called", "check failed", "bad_alloc", "exception"):
            assert unwanted not in text, text
        assert len(text) < LONGEST_LOG, f"{len(text)} characters in the log"

    def expect_error(self, process, code, word=""):
        """This process must print one short error. Returns it."""
        got = self.code(process)
        index = self.processes.index(process)
        assert got in DOCUMENTED and got == code, f"exit {got}, expected {code}\n{self.text()}"
        errors = [match.group(2) for match in map(LINE.match, self.text(index).splitlines()) if match and match.group(1) == "error"]
        assert len(errors) == 1, f"{len(errors)} errors\n{self.text()}"
        assert len(errors[0]) <= LONGEST_ERROR, f"an error of {len(errors[0])} characters\n{self.text()}"
        assert word in errors[0], f"'{word}' is not in the error\n{self.text()}"
        return errors[0]

    def expect_unharmed(self, processes, bits):
        for process in processes:
            code = self.code(process)
            assert code == 0, f"exit {code}\n{self.text()}"
        assert self.place.records(self.name) == bits[self.size], "other losses than without strangers"
