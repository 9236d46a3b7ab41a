#!/usr/bin/env python3
"""Each rule of scripts/dev/check_sentences.py reports a bad example with its line, and none of the good ones."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "dev"))
import check_sentences  # noqa: E402

WORDS = " ".join(["to"] * 10)
LONG = f"The {WORDS} {WORDS} {WORDS}."  # 31 words
FULL = f"{WORDS} {WORDS} {WORDS}."      # 30 words
HELP = "h" * 80 + " " + "e" * 80        # 161 characters


class CheckSentences(unittest.TestCase):
    def findings(self, name, text):
        with tempfile.TemporaryDirectory() as root:
            Path(root, name).write_text(text, encoding="utf-8")
            return [(line, message.split(":")[0]) for _, line, message in check_sentences.check(Path(root))[1]]

    def expect(self, name, text, *findings):
        self.assertEqual(self.findings(name, text), list(findings), text)

    def test_long_sentences_of_comments_joined_over_lines(self):
        long, half = "a sentence of 31 words, over 30", len(LONG) // 2
        cut = LONG.index(" ", half)
        for name, before, after in [("a.cc", "int x;\n// Good. ", "\n// "), ("a.h", "int x;\n  // Good. ", "\n  // "),
                                    ("a.py", "x = 1\n# Good. ", "\n# "), ("a.sh", "#!/bin/sh\n# Good. ", "\n# "),
                                    ("a.py", 'def f():\n    """Good. ', "\n    "), ("a.md", "# Title\nGood. ", "\n"),
                                    ("a.md", "text\n- ", "\n  ")]:
            with self.subTest(name=name, before=before):
                end = '"""\n' if '"""' in before else "\n"
                self.expect(name, before + LONG[:cut] + after + LONG[cut + 1:] + end, (2, long))
                self.expect(name, before + FULL + after + FULL + end)

    def test_what_is_no_running_text(self):
        for name, text in [("a.md", f"```\n{LONG}\n```\n"), ("a.md", f"text\n\n    {LONG}\n"), ("a.md", f"| {LONG} |\n"),
                           ("a.md", f"# {LONG}\n"), ("a.md", "Text `" + LONG[:-1] + "`.\n"),
                           ("a.cc", f'const char* s = "// {LONG}";\n'), ("a.cc", f"//     {LONG}\n"),
                           ("a.h", f"int a;  // {FULL[:-1]}\nint b;  // {FULL[:-1]}\n"), ("a.py", f's = "# {LONG}"\n')]:
            with self.subTest(name=name, text=text):
                self.expect(name, text)

    def test_openings(self):
        for word in ["Of", "What", "Whose", "Where"]:
            finding = f'begins with "{word}"'
            self.expect("a.cc", f"// Good.\n// {word} a cut sees.\n", (2, finding))
            self.expect("a.cc", f"// {word} is it?\n// Offers a cut. It says {word} a cut.\n")
            self.expect("a.cc", f'v("key", key, "{word.lower()} a cut");\n', (1, finding))

    def test_help_texts(self):
        too_long = (2, "a help text of 161 characters, over 160")
        self.expect("a.h", f'x;\nv("key", key, "{HELP[:50]}"\n  "{HELP[50:]}");\n', too_long)
        self.expect("a.cc", f'x;\np->add_option("--key", [](std::string s) {{ f(")"); }}, "{HELP}")->required();\n', too_long)
        self.expect("a.py", f'x = 1\np.add_argument("--key", help="{HELP}")\n', too_long)
        self.expect("a.h", f'v("key", key, "{HELP[1:]}");\nf("{HELP}");\n')

    def test_comments_beyond_the_margin(self):
        self.expect("a.cc", "int x;\n// " + "c" * 118 + "\n", (2, "a comment beyond column 120"))
        self.expect("a.cc", "// " + "c" * 117 + '\nauto s = "' + "c" * 118 + '";\n')

    def test_draws_sentences_with_their_places(self):
        with tempfile.TemporaryDirectory() as root:
            path = Path(root, "a.md")
            path.write_text("One sentence of exactly six words. Too short.\n" * 5, encoding="utf-8")
            script = Path(check_sentences.__file__)
            done = subprocess.run([sys.executable, script, "--draw", "3", path], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.count("a.md:"), 3)
        self.assertNotIn("Too short.", done.stdout)


if __name__ == "__main__":
    unittest.main()
