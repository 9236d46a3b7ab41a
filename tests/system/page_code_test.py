#!/usr/bin/env python3
"""Runs scripts/dev/page_code.py on a copy of docs/how_it_works.md and its sources. It must find a changed line and a
missing name, and --write must update the page."""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "dev" / "page_code.py"
PAGE = "docs/how_it_works.md"


class PageCode(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.markers = re.findall(r"^<!-- code: (\S+) (\S+)", (ROOT / PAGE).read_text(encoding="utf-8"), re.M)
        for name in {PAGE, *(where for where, _ in self.markers)}:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.root / name)

    def run_on_copy(self, *arguments):
        done = subprocess.run([sys.executable, SCRIPT, self.root, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def change(self, where, before, after):
        for path in [self.root / where] if (self.root / where).is_file() else (self.root / where).rglob("*.cc"):
            path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")

    def test_a_changed_line_fails_until_it_is_written(self):
        where, _ = self.markers[0]
        (opening,) = re.findall(rf"^<!-- code: {where} .*\n```cpp\n(.*\{{)$", (self.root / PAGE).read_text(encoding="utf-8"), re.M)
        self.assertEqual(self.run_on_copy()[0], 0)
        self.change(where, f"{opening}\n", f"{opening}\n  planted();\n")
        code, text = self.run_on_copy()
        self.assertEqual(code, 1)
        self.assertRegex(text, rf"{PAGE}:\d+: {where} has changed")
        self.assertEqual(self.run_on_copy("--write")[0], 0)
        self.assertIn(f"{opening}\n  planted();\n", (self.root / PAGE).read_text(encoding="utf-8"))
        self.assertEqual(self.run_on_copy()[0], 0)

    def test_a_renamed_function_fails_and_the_page_stays(self):
        where, name = self.markers[0]
        before = (self.root / PAGE).read_text(encoding="utf-8")
        self.change(where, f"{name}(", f"{name}_all(")
        code, text = self.run_on_copy("--write")
        self.assertEqual(code, 1)
        self.assertIn(f"defines {name} 0 times", text)
        self.assertEqual((self.root / PAGE).read_text(encoding="utf-8"), before)


if __name__ == "__main__":
    unittest.main()
