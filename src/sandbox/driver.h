// The Python program that executes a generated one inside the sandbox. Verdicts must agree with those of the reference,
// execution.py of openai/human-eval: the same streams, the same functions and modules removed, empty globals.
#pragma once

#include <string_view>

namespace tokamak {

// Reads "NONCE MEMORY FILE_SIZE SECONDS\n" (bytes, bytes, of processor time), then the program. Standard output gets
// kReady once all limits hold, and after the program one write: the nonce if it was executed to its end, else kNoMemory
// or the exception.
constexpr std::string_view kDriver = R"PYTHON(
import builtins, resource, sys
# As in the reference. Some of these could not be imported later, without the functions that are removed.
import contextlib, faulthandler, io, multiprocessing, os, platform, shutil, signal, subprocess, tempfile, typing

class WriteOnly(io.StringIO):
    def read(self, *args, **kwargs):
        raise OSError
    readline = readlines = read
    def readable(self, *args, **kwargs):
        return False

def limit(kind, most):
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))

def remove(module, names):
    for name in names.split():
        setattr(module, name, None)

def judge():
    nonce, *limits = sys.stdin.buffer.readline().split()
    memory, file_size, seconds = map(int, limits)
    program = sys.stdin.buffer.read().decode("utf-8", "replace")
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # if the machine has no memory left, this process is killed, and not the one that trains
    limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_FSIZE, file_size)
    limit(resource.RLIMIT_CPU, seconds)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_NPROC, 64)  # threads
    limit(resource.RLIMIT_STACK, 8 << 20)
    limit(resource.RLIMIT_CORE, 0)
    write, verdict = os.write, os.dup(1)  # the program may replace os.write
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.close(null)
    sys.stdin = sys.stdout = sys.stderr = WriteOnly()
    faulthandler.disable()
    remove(builtins, "exit quit help")
    remove(os, "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate"
               " replace unlink fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir")
    remove(shutil, "rmtree move chown")
    remove(subprocess, "Popen")
    for name in ("ipdb", "joblib", "resource", "psutil", "tkinter"):
        sys.modules[name] = None
    write(verdict, b"ready\n")
    try:
        exec(program, {})
        text = nonce
    except MemoryError:
        text = b"MemoryError"
    except BaseException as error:
        text = ("%s: %s" % (type(error).__name__, error)).removesuffix(": ").encode("utf-8", "backslashreplace")
    write(verdict, text[:4000])

judge()
)PYTHON";

constexpr std::string_view kReady = "ready\n";
constexpr std::string_view kNoMemory = "MemoryError";

}  // namespace tokamak
