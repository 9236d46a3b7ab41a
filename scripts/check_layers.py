#!/usr/bin/env python3
"""Checks that the compiler cannot do: the modules' include graph, one library in one module, and the coding rules that
a text search can verify. Prints "file:line: rule: message" for each violation; exits 1 if there is any. The findings of
scripts/dev/check_sentences.py are violations, too.

usage: scripts/check_layers.py [ROOT]      (tests/system/check_layers_test.py plants a violation of each rule)
"""
import functools
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "dev"))
import check_sentences  # noqa: E402

# ---- the rules as data ---------------------------------------------------------------------------------------------

# module -> the modules directly below it. A module may include itself and everything reachable from it.
BELOW = {
    "base": [],
    "tensor": ["base"],
    "sandbox": ["base"],
    "backend": ["tensor"],
    "comm": ["backend"],
    "zero": ["comm"],
    "optim": ["zero"],
    "model": ["zero"],
    "formats": ["tensor"],
    "checkpoint": ["comm", "formats"],
    "resilience": ["comm"],
    "monitor": ["formats"],
    "report": ["monitor"],
    "watch": ["report"],
    "data": ["formats", "tokenizer"],
    "tokenizer": ["formats"],
    "data/prepare": ["data", "tokenizer"],
    "data/rules": ["tokenizer"],
    "data/dedup": ["data/rules"],
    "data/web": ["formats", "data/rules"],
    "data/classify": ["base"],
    "data/pipeline": ["data/prepare", "data/dedup", "data/web", "data/classify"],
    "infer": ["model", "tokenizer"],
    "engine": ["infer", "optim"],
    "train": ["engine", "checkpoint", "data", "monitor", "resilience"],
    "doctor": ["train", "data/prepare"],
    "plan": ["train"],
    "bench": ["plan"],
    "config": ["train"],
    "eval": ["config", "sandbox"],
    "interop": ["config", "tokenizer"],
    "sweep": ["config", "report"],
    "serve": ["train"],
    "cli": ["interop", "eval", "data/pipeline", "bench", "doctor", "watch", "sweep", "serve"],
    "main": ["cli"],
    "cuda": ["backend", "comm"],
}
# The others are folders of src/.
TOP_LEVEL_MODULES = ["data/prepare", "data/rules", "data/dedup", "data/web", "data/classify", "data/pipeline", "data", "tokenizer", "cuda"]

# Structs of plain options: they depend on base only, so that including one never pulls in its module.
OPTION_HEADERS = ["*/options.h", "src/train/eval_options.h", "src/train/stage_options.h", "src/train/sample_options.h",
                  "src/model/model_config.h", "src/model/rope_scaling.h", "src/model/mup.h"]

# Headers that the build generates, as they are included.
GENERATED = ["cli/build_info.h"]

# header -> the places that may include it, besides tests.
LIBRARIES = [
    (r"yaml-cpp/", "yaml-cpp", ["src/config/*"]),
    (r"(spdlog|fmt)/", "spdlog", ["src/base/log.cc"]),
    (r"xxhash\.h", "xxhash", ["src/base/hash.cc", "src/base/digest.cc"]),
    (r"omp\.h", "OpenMP's runtime", ["src/base/parallel_for.*", "src/backend/cpu/*"]),
    (r"CLI/", "CLI11", ["src/cli/*", "src/main.cc"]),
    (r"nlohmann/", "nlohmann-json", ["src/formats/*", "src/checkpoint/*", "src/doctor/*", "src/monitor/*", "src/infer/*",
                                    "src/interop/*", "src/report/*", "src/sweep/*", "src/serve/*", "src/cli/*", "data/*",
                                    "tokenizer/train_bytes/*"]),
    (r"httplib\.h", "cpp-httplib", ["src/serve/connection.h"]),
    (r"pcre2", "PCRE2", ["tokenizer/scan/*"]),
    (r"z(std|lib)\.h", "zlib and zstd", ["src/formats/*"]),
    (r"gumbo\.h", "gumbo", ["data/web/page.cc"]),
    (r"uchardet/|iconv\.h", "uchardet and iconv", ["data/web/charset.cc"]),
    (r"re2/", "RE2", ["data/web/content_marks.cc"]),
    (r"simdjson\.h", "simdjson", ["data/pipeline/document_line.cc"]),
    (r"fasttext/", "fastText", ["data/classify/text_classifier.cc"]),
    (r"utf8proc\.h", "utf8proc", ["data/dedup/simplified_text.cc"]),
    (r"sentencepiece|google/protobuf/", "SentencePiece", ["tokenizer/*"]),
    (r"(oneapi/)?dnnl", "oneDNN", ["src/backend/cpu/gemm.cc"]),
    (r"(ncursesw?/)?n?curses", "ncurses", ["src/watch/screen.cc"]),
    (r"mpi\.h", "MPI", ["src/comm/mpi*"]),
    (r"openssl/", "OpenSSL's libcrypto", ["src/base/secret.cc", "src/base/digest.cc"]),
    (r"nccl", "NCCL", ["cuda/nccl/*"]),
    (r"cublas", "cuBLASLt", ["cuda/gemm/*"]),
    (r"cudnn", "cuDNN", ["cuda/attention/cudnn*"]),
    (r"(cuda|cub/|cute/|cutlass/|cooperative_groups|nvtx3/|nvml|mma\.h|curand)", "CUDA", ["cuda/*"]),
    (r"catch2/", "Catch2", []),
]

# (rule, what it finds, the places that may have it, message)
WORDS = [
    ("printing", r"\b(?:v?f?printf|f?puts|f?putchar|perror)\s*\(|std::(?:cout|cerr|clog|print\w*)\b|<iostream>",
     ["src/base/log.cc", "src/cli/*", "tests/*"], "only src/base/log.cc and src/cli print"),
    ("ownership", r"\b(?:shared_ptr|make_shared)\b|\bnew\s+[A-Za-z_:]",
     ["src/base/log.cc", "tests/*"], "values and unique_ptr own, nothing else does"),  # spdlog's API returns shared_ptr
]

TYPE_OR_BRACE = re.compile(r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{|[{}]"
                           r"|\b(?:struct|class)\s+(?P<type>\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")

DOCUMENTED = ["docs", "src", "cuda", "data", "tokenizer", "tests"]
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")      # except for URLs and headings
DRAWING = re.compile(r"^```mermaid\ngraph LR\n(.*?)^```", re.M | re.S)  # a --> b: b may include a

MAX_LINES = 400
LONGER_BECAUSE = "Longer than 400 lines because"  # in the first ten lines, with the reason

# ---- reading the tree ----------------------------------------------------------------------------------------------

SOURCES = {".cc", ".cu"}
HEADERS = {".h", ".cuh"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
NOT_CODE = re.compile(check_sentences.NOT_CODE, re.S)


def matches(path, patterns):
    return any(fnmatch(path, pattern) for pattern in patterns)


def without_comments_and_strings(text):
    """The same text, line for line, with comments and literals blanked; #include lines keep their names."""
    def blank(match):
        start = text.rfind("\n", 0, match.start()) + 1
        if INCLUDE.match(text[start:match.end()]):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return NOT_CODE.sub(blank, text)


def module_of(path):
    """The module of a file of the tree, or of a path as an #include writes it; None outside the modules."""
    for module in TOP_LEVEL_MODULES:
        if path.startswith(module + "/"):
            return module
    parts = path.removeprefix("src/").split("/")
    if len(parts) == 1:
        return "main" if path.startswith("src/") else None
    return parts[0] if parts[0] in BELOW else None


@functools.cache
def reachable(module):
    return {module}.union(*map(reachable, BELOW[module]))


class File:
    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.suffix = path.suffix
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.code = without_comments_and_strings(self.text)
        self.is_test = self.path.startswith("tests/")
        self.module = None if self.is_test else module_of(self.path)

    def line_at(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def includes(self):
        for match in INCLUDE.finditer(self.text):
            yield self.line_at(match.start()), match.group(1), match.group(2)

    def find(self, pattern):
        for match in pattern.finditer(self.code):
            yield self.line_at(match.start()), match


class Tree:
    def __init__(self, root):
        self.root = root
        folders = ["src", *dict.fromkeys(module.split("/")[0] for module in TOP_LEVEL_MODULES), "tests"]
        lists = [path for folder in folders for path in root.glob(f"{folder}/**/CMakeLists.txt")]
        self.cmake = {path.parent: cmake_words(path) for path in lists}
        paths = [p for folder in folders for p in sorted(root.glob(f"{folder}/**/*")) if p.suffix in SOURCES | HEADERS]
        self.files = [File(root, path) for path in paths]

    def resolve(self, name, of):
        """The file that an include in file `of` refers to: relative to src/ or the root; in tests also to tests/ or the
        test's own folder."""
        if name in GENERATED:
            return "src/" + name
        for base in ["src", "."] + (["tests", Path(of.path).parent] if of.is_test else []):
            candidate = self.root / base / name
            if candidate.is_file():
                return candidate.relative_to(self.root).as_posix()
        return None


def cmake_words(path):
    text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
    return set(re.split(r'[\s()"]+', text))

# ---- the checks: each yields (file, line, rule, message) -------------------------------------------------------------


def check_include_graph(tree):
    for file in tree.files:
        if not file.is_test and file.module is None:
            yield file.path, 1, "layers", "lies outside the modules of scripts/check_layers.py"
            continue
        for line, bracket, name in file.includes():
            if bracket == "<":
                continue
            target = tree.resolve(name, file)
            if target is None:
                yield file.path, line, "layers", f'no file "{name}": includes are written from src/ or from the root'
                continue
            module = module_of(target)
            if target.startswith("tests/") and not file.is_test:
                yield file.path, line, "layers", f'a module includes a test ("{name}")'
            elif module == "cuda" and file.module != "cuda" and not file.path.startswith("tests/cuda/"):
                yield file.path, line, "layers", f'cuda/ is not included ("{name}"): reach it through a factory in src/'
            elif matches(file.path, OPTION_HEADERS) and module != "base" and not matches(target, OPTION_HEADERS):
                yield file.path, line, "layers", f'a header of options includes base alone, not "{name}"'
            elif not file.is_test and module not in reachable(file.module):
                below = ", ".join(sorted(reachable(file.module) - {file.module})) or "no other module"
                yield file.path, line, "layers", f'{file.module} includes "{name}" of {module}; it may include {below}'


def check_libraries(tree):
    for file in tree.files:
        if file.is_test:
            continue
        for line, _, name in file.includes():
            for pattern, library, places in LIBRARIES:
                if re.match(pattern, name) and tree.resolve(name, file) is None and not matches(file.path, places):
                    where = ", ".join([*places, "tests"])
                    yield file.path, line, "libraries", f"{library} ({name}) may be included in {where} only"


def check_words(tree):
    for rule, pattern, places, message in WORDS:
        for file in (file for file in tree.files if not matches(file.path, places)):
            for line, match in file.find(re.compile(pattern)):
                yield file.path, line, rule, f"{match.group().strip(' (')}: {message}"


def check_build_lists(tree):
    for file in tree.files:
        if file.suffix not in SOURCES:
            continue
        path = tree.root / file.path
        folders = [parent for parent in path.parents if parent in tree.cmake]
        if not any(path.relative_to(folder).as_posix() in tree.cmake[folder] for folder in folders):
            yield file.path, 1, "build", "named in no CMakeLists.txt, so it is never built"


def check_operations(tree):
    contract = next((file for file in tree.files if file.path == "src/backend/ops.h"), None)
    if contract is None:
        return
    # The compiler ensures checks and implementations for each: TOKAMAK_OPS declares them.
    tests = "".join(file.code for file in tree.files if file.path.startswith("tests/backend/") and file.suffix in SOURCES)
    for line, match in contract.find(re.compile(r"\bV\((\w+), \w+\)")):
        if not re.search(rf"(\.|->){match.group(1)}\s*\(", tests):
            yield contract.path, line, "operations", f"{match.group(1)} has no test: nothing in tests/backend/ calls it"


def check_kernel_launches(tree):
    launch = re.compile(r"<<<.*?>>>\s*\(.*?;", re.S)
    for file in tree.files:
        for line, match in file.find(launch):
            if not re.match(r"\s*\w*check\w*\s*\(", file.code[match.end():], re.I):
                yield file.path, line, "kernels", "the statement after a kernel launch must check it"


def check_form(tree):
    stems = {str(Path(file.path).with_suffix("")) for file in tree.files if file.suffix in HEADERS}
    for file in tree.files:
        lines = file.text.splitlines()
        if file.suffix in HEADERS and not re.search(r"^#pragma once$", file.code, re.M):
            yield file.path, 1, "form", "a header needs #pragma once"
        stands_alone = not file.is_test and str(Path(file.path).with_suffix("")) not in stems
        if (file.suffix in HEADERS or stands_alone) and not (lines and lines[0].startswith("// ")):
            yield file.path, 1, "form", "the first line must begin a banner: what the file is for, what must stay true"
        if len(lines) > MAX_LINES and not any(LONGER_BECAUSE in line for line in lines[:10]):
            reason = f'{len(lines)} lines: split it, or say "{LONGER_BECAUSE} ..." in the banner'
            yield file.path, len(lines), "form", reason
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                yield file.path, number, "form", "finish it, or open an issue: no TODO, FIXME, XXX or HACK in the tree"


def check_type_names(tree):
    """A namespace defines a type once. If there are two definitions, the linker keeps one's functions for both."""
    headers = [file for file in tree.files if file.suffix in HEADERS and not file.is_test]
    seen = {}
    for file in headers:
        scopes = []  # of each open brace: the namespace's name, or None
        for match in TYPE_OR_BRACE.finditer(file.code):
            namespace, name = match.group("namespace"), match.group("type")
            if name and None not in scopes:
                known = seen.setdefault("::".join([*scopes, name]), file.path)
                if known != file.path:
                    yield file.path, file.line_at(match.start()), "types", f"{name} is also defined in {known}"
            if match.group() == "}":
                scopes = scopes[:-1]
            else:
                scopes.append(namespace)


def check_readmes(tree):
    for folder in tree.cmake:
        path = folder.relative_to(tree.root).as_posix()
        if module_of(path + "/x") in (path.removeprefix("src/"), path) and not (folder / "README.md").is_file():
            yield path + "/CMakeLists.txt", 1, "form", "a module has a README.md: what it is, where to start"


def check_docs(tree):
    """Links must resolve, and the drawn graph must equal the one above."""
    pages = [*tree.root.glob("*.md"), *(page for folder in DOCUMENTED for page in (tree.root / folder).rglob("*.md"))]
    for page in sorted(pages):
        path, text = page.relative_to(tree.root).as_posix(), page.read_text(encoding="utf-8")
        for match in LINK.finditer(text):
            if not (page.parent / match[1]).exists():
                yield path, text.count("\n", 0, match.start()) + 1, "docs", f"a link to {match[1]}, which is not there"
        for drawing in DRAWING.finditer(text):
            drawn = {edge for line in drawing[1].splitlines() for edge in edges_of(line)}
            stated = {(below, module) for module, below_it in BELOW.items() for below in below_it}
            for a, b in sorted(drawn ^ stated):
                what = "is not in the graph" if (a, b) in drawn else "is missing from the drawing"
                yield path, text.count("\n", 0, drawing.start()) + 1, "docs", f"{a} --> {b} {what}"


def edges_of(line):
    nodes = [re.sub(r"\w+\[(.*)\]", r"\1", node.strip()) for node in line.split("-->")]
    return zip(nodes, nodes[1:])


CHECKS = [check_include_graph, check_libraries, check_words, check_build_lists, check_operations, check_kernel_launches,
          check_form, check_type_names, check_readmes, check_docs]


def main():
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    root = Path(sys.argv[1] if len(sys.argv) == 2 else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    if not tree.files:
        print(f"{root}: no sources found", file=sys.stderr)
        return 2
    violations = {violation for check in CHECKS for violation in check(tree)}
    violations |= {(path, line, "sentences", message) for path, line, message in check_sentences.check(root)[1]}
    for path, line, rule, message in sorted(violations):
        print(f"{path}:{line}: {rule}: {message}")
    print(f"check_layers: {len(tree.files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
