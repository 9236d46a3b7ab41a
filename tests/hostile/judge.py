"""Runs the program on a hostile file, with limits of time and memory, and says what was wrong with its answer."""
import os
import re
import resource
import subprocess
import tempfile

TOKAMAK = os.environ["TOKAMAK"]
DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 8, 75}
SECONDS = 60  # no case takes nearly as long, even on a slow machine: a program that does hangs
MEMORY = 3 << 30
LONGEST_LINE = 300
LONGEST_LOG = 16000
ERROR = re.compile(r"^\d\d:\d\d:\d\d error ")
# Our log's and results' own: line breaks, and tabs.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ENVIRONMENT = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "LC_ALL": "C.UTF-8",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def names_below(directory):
    return sorted(os.path.join(root, name) for root, _, files in os.walk(directory) for name in files)


def start(arguments, where):
    """(exit code or None, output, log): of the program, in directory `where`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        process = subprocess.Popen([TOKAMAK, *arguments], cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                   env=ENVIRONMENT, preexec_fn=limits, start_new_session=True)
        try:
            code = process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        texts = []
        for file in (out, log):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    return code, texts[0], texts[1]


def faults_of(code, output, log, may_pass, prints_text=False):
    """The faults, in words. `may_pass`: the file may be legal. `prints_text`: its output is the file's text."""
    if code is None:
        return ["no end"]
    faults = []
    if code not in DOCUMENTED:
        faults.append(f"exit {code}" if code >= 0 else f"signal {-code}")
    if code == 0 and not may_pass:
        faults.append("taken for good")
    errors = [line for line in log.splitlines() if ERROR.match(line)]
    if code not in (0, 75) and len(errors) != 1:
        faults.append(f"{len(errors)} errors in the log")
    for name, text in (("log", log), ("output", "" if prints_text else output)):
        if CONTROLS.search(text):
            faults.append(f"control characters in the {name}")
    longest = max((len(line) for line in log.splitlines() if "hint: " not in line), default=0)
    if longest > LONGEST_LINE:
        faults.append(f"a line of {longest} characters in the log")
    if len(log) > LONGEST_LOG:
        faults.append(f"{len(log)} characters in the log")
    return faults
