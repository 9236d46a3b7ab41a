"""A real terminal for tests: a shell in tmux, on its own server. Tests can read its screen and change its size."""
import os
import re
import shutil
import subprocess
import tempfile
import time

from harness import ENV


class Terminal:
    def __init__(self, columns=120, rows=40):
        self.folder = tempfile.mkdtemp(prefix="tokamak-tmux-")
        # No user's settings; a shell without prompt decorations. A UTF-8 locale for tmux, none for what runs in it.
        self.env = {key: value for key, value in ENV.items() if key not in ("TMUX", "LANG", "LC_ALL", "LC_CTYPE")}
        self.tmux("-u", "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "env", "PS1=ready: ", "sh", "-i")
        self.tmux("set-option", "-g", "window-size", "manual")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.folder + "/socket", "kill-server"], capture_output=True, env=self.env)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.folder + "/socket", *arguments], env=self.env, text=True, capture_output=True)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def enter(self, line):
        self.tmux("send-keys", "-l", line)
        self.type("Enter")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, history=False):
        """Its rows as text, and those that have scrolled away."""
        return self.tmux("capture-pane", "-p", *(["-S", "-"] if history else []))

    def is_alternate(self):
        """Whether a program has switched the terminal to its alternate screen."""
        return self.tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def has_cursor(self):
        return self.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def wait_for(self, pattern, seconds=60, **options):
        """Waits until the screen has the text; returns the screen."""
        deadline = time.monotonic() + seconds
        while True:
            screen = self.screen(**options)
            if re.search(pattern, screen, re.M):
                return screen
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{screen}"
            time.sleep(0.05)


def has_tmux():
    return shutil.which("tmux") is not None
