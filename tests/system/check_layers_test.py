#!/usr/bin/env python3
"""Plants one violation of each rule of scripts/check_layers.py in a small clean tree, and expects a report of it, with
its file and line, and of nothing else."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

CLEAN = {
    "src/CMakeLists.txt": "add_executable(tokamak main.cc)\n",
    "src/main.cc": '// The program.\n#include "cli/command.h"\n#include <CLI/CLI.hpp>\n',
    "src/base/CMakeLists.txt": "tokamak_module(base SOURCES error.cc log.cc)\n",
    "src/base/README.md": "base\n",
    "src/base/error.h": "// Errors.\n#pragma once\n#include <string>\n",
    "src/base/error.cc": '#include "base/error.h"\n',
    "src/base/log.h": "// The log.\n#pragma once\n",
    "src/base/log.cc": '#include "base/log.h"\n#include <spdlog/spdlog.h>\n'
                       'std::shared_ptr<int> f() { printf("x"); }\n',
    "src/backend/CMakeLists.txt": "tokamak_module(backend SOURCES ops.cc\n  cpu/gemm.cc) # not.cc\n",
    "src/backend/README.md": "backend\n",
    "src/backend/options.h": '// Options.\n#pragma once\n#include "base/error.h"\n',
    "src/backend/ops.h": "// Operations.\n#pragma once\n"
                         "#define TOKAMAK_OPS(V) V(gemm, Gemm)\n",
    "src/backend/ops.cc": '#include "backend/ops.h"\n',
    "src/backend/cpu/gemm.cc": '// GEMM.\n#include <dnnl.hpp>\n#include "backend/ops.h"\n',
    "src/zero/options.h": '// Options.\n#pragma once\n#include "base/error.h"\n',
    "src/model/model.h": '// The model.\n#pragma once\n#include "zero/options.h"\n#include "backend/ops.h"\n',
    "src/optim/adamw.h": '// AdamW.\n#pragma once\n#include "zero/options.h"\n',
    "src/checkpoint/writer.h": '// Writer.\n#pragma once\n#include "backend/ops.h"\n',
    "src/cli/command.h": '// Printing is for this module.\n#pragma once\n#include <iostream>\n'
                         '#include "data/prepare/rules.h"\n',
    "data/loader.h": '// "The loader": printf( and std::cout << in a comment; here\'s an apostrophe.\n#pragma once\n'
                     'auto s = "new Tensor; printf(";  // 400\'000\nauto n = 400\'000;\n'
                     '/* std::cout */ char c = \'"\';\n',
    "data/prepare/rules.h": '// Rules.\n#pragma once\n#include "tokenizer/tokenizer.h"\n#include "data/loader.h"\n',
    "tokenizer/tokenizer.h": '// Tokenizer.\n#pragma once\n#include "base/error.h"\n',
    "tests/backend/CMakeLists.txt": "tokamak_test(backend SOURCES gemm_test.cc)\n",
    "tests/backend/gemm_test.cc": '#include "cases.h"\n#include "support/temp_dir.h"\n#include <catch2/catch.hpp>\n'
                                  'int x = ops.gemm(s, 1);\n',
    "tests/backend/cases.h": "// Cases.\n#pragma once\n",
    "tests/support/temp_dir.h": "// A folder.\n#pragma once\n",
}
CUDA = {
    "cuda/CMakeLists.txt": "tokamak_module(cuda SOURCES gemm/gemm.cu)\n",
    "cuda/README.md": "cuda\n",
    "cuda/gemm/gemm.cu": "// GEMM.\n#include <cublasLt.h>\nvoid Cuda::do_gemm(Stream&, int) {\n"
                    "  kernel<<<1, 2>>>(\n    3);\n  CUDA_CHECK(cudaGetLastError());\n}\n",
}


class CheckLayers(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()[:-1]

    def expect(self, planted, start, *words, tree=None):
        """With the files `planted`, exactly one violation: its line begins with `start` and contains `words`."""
        code, lines = self.run_on({**(tree or CLEAN), **planted})
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(start + ": "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(code, 1)

    def append(self, name, text, *expected, tree=None):
        before = (tree or CLEAN)[name]
        line = before.count("\n") + 1
        self.expect({name: before + text}, f"{name}:{line}", *expected, tree=tree)

    def test_clean_trees_pass(self):
        self.assertEqual(self.run_on(CLEAN), (0, []))
        self.assertEqual(self.run_on({**CLEAN, **CUDA}), (0, []))

    def test_an_empty_tree_is_no_success(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)

    def test_includes_against_the_arrows(self):
        for name, include in [
            ("src/base/error.h", "backend/ops.h"),        # upwards
            ("src/checkpoint/writer.h", "zero/options.h"),  # sideways: not even options
            ("src/checkpoint/writer.h", "model/model.h"),
            ("src/optim/adamw.h", "model/model.h"),
            ("src/model/model.h", "optim/adamw.h"),
            ("data/loader.h", "data/prepare/rules.h"),    # prepare is above data
            ("tokenizer/tokenizer.h", "data/loader.h"),
            ("src/model/model.h", "cli/command.h"),
        ]:
            with self.subTest(name=name, include=include):
                self.append(name, f'#include "{include}"\n', "layers", include)

    def test_includes_that_are_no_path_from_src_or_the_root(self):
        self.append("src/backend/ops.cc", '#include "options.h"\n', "layers", "options.h")

    def test_a_module_does_not_include_tests(self):
        self.append("src/base/error.h", '#include "tests/support/temp_dir.h"\n', "layers", "test")
        self.append("src/base/error.h", '#include "support/temp_dir.h"\n', "layers", "no file")

    def test_headers_of_options_stand_on_base(self):
        self.append("src/backend/options.h", '#include "backend/ops.h"\n', "layers", "options")

    def test_a_type_defined_twice_in_a_namespace(self):
        first = "// One.\n#pragma once\nnamespace tokamak {\nstruct Launch final : Base {\n  struct Part {};\n};\n}\n"
        self.expect({"src/base/one.h": first, "src/zero/two.h": first}, "src/zero/two.h:4", "types", "Launch", "src/base/one.h")
        other = first.replace("namespace tokamak", "namespace tokamak::cli")
        self.assertEqual(self.run_on({**CLEAN, "src/base/one.h": first, "src/zero/two.h": other}), (0, []))

    def test_a_file_outside_the_modules(self):
        self.expect({"src/common/util.h": "// Things.\n#pragma once\n"}, "src/common/util.h:1", "layers")

    def test_links_of_pages_and_their_drawings(self):
        self.expect({"docs/page.md": "A [file](../src/base/error.h#x), a [web](https://a.b/c) page,\n[none](none.md).\n"},
                    "docs/page.md:2", "docs", "none.md")
        self.expect({"README.md": "See [it](src/none.h).\n"}, "README.md:1", "docs", "src/none.h")
        graph = (SCRIPT.parents[1] / "docs" / "how_it_works.md").read_text(encoding="utf-8")
        graph = graph[graph.index("```mermaid"):]
        graph = graph[:graph.index("```", 3) + 4]
        self.assertEqual(self.run_on({**CLEAN, "docs/page.md": graph}), (0, []))
        self.expect({"docs/page.md": graph.replace("  comm --> cuda\n", "")}, "docs/page.md:1", "comm --> cuda", "missing")
        self.expect({"docs/page.md": graph.replace("  comm --> cuda", "  cli --> base\n  comm --> cuda")}, "docs/page.md:1",
                    "cli --> base", "not in the graph")

    def test_nobody_includes_cuda(self):
        tree = {**CLEAN, **CUDA, "cuda/gemm/gemm.h": "// GEMM.\n#pragma once\n"}
        self.append("src/cli/command.h", '#include "cuda/gemm/gemm.h"\n', "layers", "cuda/", tree=tree)
        self.append("tests/backend/gemm_test.cc", '#include "cuda/gemm/gemm.h"\n', "layers", "cuda/", tree=tree)

    def test_one_library_one_room(self):
        for name, header in [
            ("src/model/model.h", "yaml-cpp/yaml.h"), ("src/base/error.cc", "spdlog/spdlog.h"),
            ("src/base/error.cc", "fmt/core.h"), ("src/base/log.cc", "xxhash.h"), ("src/base/log.cc", "omp.h"),
            ("data/loader.h", "sentencepiece_processor.h"), ("src/backend/ops.cc", "dnnl.hpp"),
            ("src/backend/ops.cc", "oneapi/dnnl/dnnl.hpp"), ("src/checkpoint/writer.h", "mpi.h"),
            ("src/backend/ops.cc", "cuda_runtime.h"), ("src/model/model.h", "nlohmann/json.hpp"),
            ("src/optim/adamw.h", "CLI/CLI.hpp"), ("src/base/error.h", "catch2/catch.hpp"),
            ("src/backend/ops.cc", "nccl.h"), ("src/backend/cpu/gemm.cc", "cublasLt.h"),
        ]:
            with self.subTest(header=header):
                self.append(name, f"#include <{header}>\n", "libraries", header)

    def test_printing_outside_log_and_cli(self):
        for code in ['printf("%d", 1);', 'std::fprintf(stderr, "x");', "std::cout << 1;", "std::cerr << 1;",
                     'puts("");', "perror(p);", "#include <iostream>"]:
            with self.subTest(code=code):
                self.append("src/optim/adamw.h", code + "\n", "printing")
        code, lines = self.run_on({**CLEAN, "src/optim/adamw.h": CLEAN["src/optim/adamw.h"] + "snprintf(b, 1, p);\n"})
        self.assertEqual((code, lines), (0, []))

    def test_ownership(self):
        for code in ["std::shared_ptr<int> p;", "auto p = std::make_shared<int>();", "auto* p = new Tensor;"]:
            with self.subTest(code=code):
                self.append("src/model/model.h", code + "\n", "ownership")

    def test_sources_and_tests_that_no_build_names(self):
        for name in ("src/backend/cpu/rope.cc", "src/backend/not.cc", "tests/backend/rope_test.cc"):
            with self.subTest(name=name):
                self.expect({name: "// RoPE.\n"}, f"{name}:1", "build", "CMakeLists.txt")

    def test_an_operation_without_test(self):
        self.expect({"tests/backend/gemm_test.cc": "// ops.gemm(s, 1)\n"}, "src/backend/ops.h:3", "operations", "gemm",
                    "test")

    def test_kernel_launches_without_a_check(self):
        unchecked = CUDA["cuda/gemm/gemm.cu"].replace("  CUDA_CHECK(cudaGetLastError());\n", "  return;\n")
        self.expect({"cuda/gemm/gemm.cu": unchecked}, "cuda/gemm/gemm.cu:4", "kernels", tree={**CLEAN, **CUDA})

    def test_form(self):
        self.expect({"src/base/error.h": "// Errors.\n"}, "src/base/error.h:1", "form", "#pragma once")
        self.expect({"src/base/error.h": "#pragma once\n"}, "src/base/error.h:1", "form", "banner")
        self.expect({"src/main.cc": '#include "cli/command.h"\n'}, "src/main.cc:1", "form", "banner")
        self.append("src/base/error.cc", "// TO" "DO: later\n", "form")
        self.append("tests/backend/gemm_test.cc", "// FIX" "ME\n", "form")

    def test_length(self):
        long = CLEAN["src/base/error.cc"] + "\n" * 400
        self.expect({"src/base/error.cc": long}, "src/base/error.cc:401", "form", "401 lines")
        reason = "// Longer than 400 lines because the table is one.\n"
        self.assertEqual(self.run_on({**CLEAN, "src/base/error.cc": reason + long}), (0, []))

    def test_a_room_without_readme(self):
        for name in ("tokenizer/CMakeLists.txt", "src/optim/CMakeLists.txt"):
            self.expect({name: "tokamak_module(x)\n"}, f"{name}:1", "README.md")


if __name__ == "__main__":
    unittest.main()
