"""enter_python(packages) re-executes a test in TOKAMAK_PYTHON, a Python with the packages of
scripts/dev/requirements-interop.txt. Without that one it exits with 77, which ctest shows as skipped.
enter_python_with_shards() adds the packages of TOKAMAK_SHARDS_PYTHON, that is of scripts/dev/requirements-shards.txt,
which bring no torch and no numpy."""
import importlib.util
import os
import subprocess
import sys
import types

# Only checks that they exist: importing all of them takes seconds.
CHECK = ("import importlib.util, sys; "
         "missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]; "
         "sys.exit('no ' + ', '.join(missing) if missing else 0)")


def enter_python(packages):
    """Returns in that Python only."""
    python = os.environ.get("TOKAMAK_PYTHON")
    if not python:
        print("SKIPPED: TOKAMAK_PYTHON is not set; it names a Python with the packages of scripts/dev/requirements-interop.txt")
        sys.exit(77)
    if os.environ.get("TOKAMAK_PYTHON_ENTERED") == python:
        return
    try:
        found = subprocess.run([python, "-c", CHECK, *packages], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        problem = found.stdout.strip().splitlines()[-1] if found.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        print(f"SKIPPED: {python} has not all of scripts/dev/requirements-interop.txt: {problem}")
        sys.exit(77)
    os.execve(python, [python, *sys.argv], dict(os.environ, TOKAMAK_PYTHON_ENTERED=python))


def enter_python_with_shards():
    """As enter_python, for torch, numpy and those packages."""
    python = os.environ.get("TOKAMAK_SHARDS_PYTHON")
    if not python:
        print("SKIPPED: TOKAMAK_SHARDS_PYTHON is not set; it names a Python with scripts/dev/requirements-shards.txt")
        sys.exit(77)
    enter_python(["torch", "numpy"])
    found = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], text=True,
                           stdout=subprocess.PIPE, check=True)
    sys.path.append(found.stdout.strip())


def enter_package(*names):
    """Makes modules of a package and of those inside it importable without what their __init__.py import, which takes
    seconds: "a", "a.b" for a.b.c."""
    (root,) = importlib.util.find_spec(names[0]).submodule_search_locations
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(root, *name.split(".")[1:])]
        sys.modules[name] = module
