"""enter_tokens_python() re-executes a test in the Python of scripts/dev/requirements-tokens.txt: TOKAMAK_TOKENS_PYTHON,
or the one that scripts/dev/install_python.sh has installed. Without it the test exits with 77, which ctest shows as
skipped."""
import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def installed():
    """As install_python.sh names it; nothing is installed here."""
    requirements = ROOT / "scripts/dev/requirements-tokens.txt"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokamak"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    home = cache / f"tokens-{sys.version_info[0]}.{sys.version_info[1]}-{digest}"
    return str(home / "bin/python3") if (home / "complete").exists() else None


def enter_tokens_python():
    """Returns in that Python only."""
    python = os.environ.get("TOKAMAK_TOKENS_PYTHON") or installed()
    if not python:
        print("SKIPPED: no Python with scripts/dev/requirements-tokens.txt: run scripts/dev/install_python.sh tokens")
        sys.exit(77)
    if os.environ.get("TOKAMAK_TOKENS_ENTERED") == python:
        return
    os.execve(python, [python, *sys.argv], dict(os.environ, TOKAMAK_TOKENS_ENTERED=python))
