// Verdicts agree with those of openai/human-eval's execution.py, which lm-evaluation-harness uses.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/error.h"
#include "sandbox/judging.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

ProgramVerdict verdict_on(const std::string& program) {
  INFO(program);
  const ProgramVerdict verdict = patient().run(program);
  CHECK(verdict.error.empty() == (verdict.outcome == Outcome::kPassed));
  return verdict;
}

void check_passes(const std::string& program) {
  const ProgramVerdict verdict = verdict_on(program);
  INFO(program << "\n" << verdict.error);
  CHECK(verdict.outcome == Outcome::kPassed);
}

void check_fails(const std::string& program, const std::string& error) {
  const ProgramVerdict verdict = verdict_on(program);
  CHECK(verdict.outcome == Outcome::kFailed);
  CHECK(verdict.error == error);
}

// As HumanEval is assembled: prompt + completion + test + call of check.
std::string human_eval(const std::string& completion) {
  return "from typing import List\n\n\ndef has_close_elements(numbers: List[float], threshold: float) -> bool:\n"
         "    \"\"\" Check if two numbers are closer to each other than the threshold. \"\"\"\n" +
         completion +
         "\n\n\nMETADATA = {'author': 'jt'}\n\n\ndef check(candidate):\n"
         "    assert candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3) == True\n"
         "    assert candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.05) == False\n\ncheck(has_close_elements)";
}

}  // namespace

TEST_CASE("a right solution passes and a wrong one fails") {
  check_passes(
      human_eval("    return any(abs(a - b) < threshold for i, a in enumerate(numbers) for b in numbers[:i])"));
  check_fails(human_eval("    return True"), "AssertionError");
  check_fails(human_eval("    return sorted(numbers"), "SyntaxError: '(' was never closed (<string>, line 6)");
  check_passes("def add(a, b):\r\n    return a + b\r\nassert add(1, 2) == 3\nassert add(-1, 1) == 0");
  check_fails("def add(a, b):\n    return a - b\nassert add(1, 2) == 3, 'not \xE2\x82\xAC 3'",
              "AssertionError: not \xE2\x82\xAC 3");
}

TEST_CASE("a program has empty globals, so its main block does not run") {
  check_passes("assert __name__ == 'builtins'\nassert set(globals()) == {'__builtins__'}");
  check_passes("if __name__ == '__main__':\n    raise ValueError");
}

TEST_CASE("output is discarded, and input cannot be read") {
  check_passes("import sys\nprint('x' * 100000)\nprint('y', file=sys.stderr)\nassert not sys.stdin.readable()");
  check_fails("input()", "OSError");
  check_fails("import sys\nsys.stdin.read()", "OSError");
  check_passes("import os\nassert os.read(0, 1) == b''\nos.write(1, b'passed')");
}

TEST_CASE("the reference's functions and modules are absent") {
  check_fails("exit()", "TypeError: 'NoneType' object is not callable");
  check_passes(
      "import os, shutil, subprocess, builtins\nassert not any((builtins.exit, builtins.quit, builtins.help))\n"
      "assert os.getcwd is os.kill is os.fork is os.unlink is os.chdir is os.putenv is None\n"
      "assert shutil.rmtree is shutil.move is shutil.chown is subprocess.Popen is None");
  for (const std::string module : {"ipdb", "joblib", "resource", "psutil", "tkinter"}) {
    check_fails("import " + module, "ModuleNotFoundError: import of " + module + " halted; None in sys.modules");
  }
}

TEST_CASE("what programs of the benchmarks import works, threads and asyncio too") {
  check_passes(R"(
import math, re, itertools, functools, collections, heapq, bisect, hashlib, random, string, datetime, decimal, fractions
import json, copy, statistics, operator, queue, threading, time, typing, dataclasses, enum, sys, os, tempfile, ctypes
import multiprocessing, concurrent.futures, asyncio, cmath, array, struct, textwrap, calendar, zlib, sqlite3, unicodedata
assert hashlib.md5(b'Hello world').hexdigest() == '3e25960a79dbc69b674cd4ec67a72c62'
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    assert list(pool.map(abs, range(-9, 0))) == list(range(9, 0, -1))
assert asyncio.run(asyncio.sleep(0, 5)) == 5
assert ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)() == 7
with open('/tmp/notes', 'w+') as file:
    file.write('x')
assert os.listdir('/tmp') == ['notes']
)");
}

TEST_CASE("a program that does not end by itself is timed out") {
  const Sandbox hasty({.wall_time = 0.3});
  const ProgramVerdict verdict = hasty.run("while True:\n    pass");
  CHECK(verdict.outcome == Outcome::kTimedOut);
  CHECK(verdict.error == "not done after 0.3 s");
}

TEST_CASE("a program's text may have any bytes and any length") {
  check_passes("# \xFF\nx = '\xF0\x9F\x98\x80'\nassert len(x) == 1");
  check_fails(std::string("x = 1\0", 6), "ValueError: source code string cannot contain null bytes");
  check_passes("x = '" + std::string(5 << 20, 'x') + "'\nassert len(x) == 5 << 20");
  check_passes("");
}

TEST_CASE("an error is one printable line of at most 4 KiB") {
  check_fails("raise ValueError('two\\nlines\\x1b[2J')", "ValueError: two\\nlines\\x1b[2J");
  check_fails("raise ValueError('\\ud800')", "ValueError: \\ud800");
  for (const std::string letter : {"x", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\\x01"}) {
    CHECK(patient().run("raise ValueError('" + letter + "' * 100000)").error.size() <= 4096);
  }
}

TEST_CASE("verdicts of many programs come in their order") {
  std::vector<std::string> programs;
  for (int i = 0; i < 30; ++i) programs.push_back(i % 3 == 0 ? "pass" : str("raise ValueError(", i, ")"));
  const std::vector<ProgramVerdict> verdicts = patient().run_all(programs, 4);
  REQUIRE(verdicts.size() == programs.size());
  for (int i = 0; i < 30; ++i) {
    CHECK(verdicts[i].error == (i % 3 == 0 ? "" : str("ValueError: ", i)));
    CHECK(verdicts[i].outcome == (i % 3 == 0 ? Outcome::kPassed : Outcome::kFailed));
  }
  CHECK(patient().run_all({}, 4).empty());
}

TEST_CASE("the same program has the same verdict: the order of a set does not change") {
  const std::string program = "raise ValueError([*{'a', 'b', 'c', 'd', 'e', 'f'}])";
  const std::string first = patient().run(program).error;
  for (int i = 0; i < 5; ++i) CHECK(patient().run(program).error == first);
}

TEST_CASE("the description names bubblewrap, Python and numpy") {
  CHECK_THAT(patient().description(),
             Catch::Matches(R"(bubblewrap \d+\.\d+\.\d+, Python 3\.\d+\.\d+, (without numpy|with numpy \S+))"));
}

TEST_CASE("without bwrap in PATH, or if it starts nothing, there is no sandbox, and the error says what to do") {
  const TempDir own;
  const std::string before = std::getenv("PATH");
  for (const auto& [path, expected] :
       {std::pair<std::string, std::string>{"/nowhere:", "generated programs run in bubblewrap, and PATH has no bwrap"},
        // Not from a folder that depends on where the user is.
        {std::filesystem::relative(own.path()), "generated programs run in bubblewrap, and PATH has no bwrap"},
        {own.path(), "generated programs cannot be executed: the sandbox does not start, exit code 1: "}}) {
    std::filesystem::create_symlink("/usr/bin/false", own.file("bwrap"));
    ::setenv("PATH", path.c_str(), 1);
    std::string what, hint;
    try {
      const Sandbox sandbox;
    } catch (const Error& error) {
      CHECK(error.kind() == Kind::kConfig);
      what = error.what();
      hint = error.hint();
    }
    std::filesystem::remove(own.file("bwrap"));
    ::setenv("PATH", before.c_str(), 1);
    CHECK(what == expected);
    CHECK_THAT(hint, Catch::Contains("apt-get install bubblewrap") && Catch::Contains("user.max_user_namespaces"));
  }
}

TEST_CASE("the words of bwrap say why it does not start") {
  CHECK_THROWS_WITH(Sandbox({.directory_bytes = 0}),
                    Catch::Contains("exit code 1: bwrap: ") && Catch::Contains("--size"));
}
