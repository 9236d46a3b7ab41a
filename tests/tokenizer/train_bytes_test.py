"""Byte-level BPE trained by us and by Hugging Face's BpeTrainer on the same texts: train_bytes_test.py [case].
TOKAMAK_LONG=1 trains on more."""
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from other_python import enter_python  # noqa: E402

os.environ["TOKAMAK_PYTHON"] = os.environ.get("TOKAMAK_TOKENS_PYTHON", "")
enter_python(["tokenizers"])
import tempfile  # noqa: E402

import tokenizers  # noqa: E402
from tokenizers import models, pre_tokenizers, trainers  # noqa: E402

TOKAMAK = os.environ["TOKAMAK"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LONG = bool(os.environ.get("TOKAMAK_LONG"))
PATTERNS = ["gpt2", "cl100k", "phi4", "llama3", "qwen2", "qwen35", "o200k", "tekken", "smollm", "deepseek3"]


def train(directory, files, *options, threads=2, fails=False):
    """The tokenizer.json that we write, and what is printed. `files`: {name: documents}."""
    inputs = []
    for name, documents in files.items():
        path = os.path.join(directory, name.split("=")[0])
        with open(path, "w", encoding="utf-8", newline="") as out:
            for document in documents:
                out.write(json.dumps({"text": document}) + "\n")
        inputs.append(os.path.join(directory, name))
    output = os.path.join(directory, "made", "tokenizer.json")
    done = subprocess.run([TOKAMAK, "tokenizer", "train", "--type", "bytelevel", "--input", *inputs, "--output", output,
                           *options], env=dict(os.environ, OMP_NUM_THREADS=str(threads)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if fails:
        return done
    assert done.returncode == 0, done.stdout
    with open(output, encoding="utf-8") as file:
        return json.load(file), done.stdout


def train_theirs(ours, documents, vocab_size, **options):
    """The same by their trainer, with the pre-tokenizer of our file."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = tokenizers.Tokenizer.from_str(json.dumps(ours)).pre_tokenizer
    special = [token["content"] for token in ours["added_tokens"]]
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)
    tokenizer.train_from_iterator(documents, trainer)
    return json.loads(tokenizer.to_str())


def expect_equal(ours, documents, vocab_size, what, **options):
    theirs = train_theirs(ours, documents, vocab_size, **options)["model"]
    merges = [merge.split(" ") for merge in ours["model"]["merges"]]
    for i, (a, b) in enumerate(zip(merges, theirs["merges"])):
        assert a == b, f"{what}: merge {i} is {a}, theirs {b}"
    assert len(merges) == len(theirs["merges"]), (what, len(merges), len(theirs["merges"]))
    assert ours["model"]["vocab"] == theirs["vocab"], what
    return merges


def random_words(seed, alphabet, words, longest):
    """Words with runs and repetitions, which need the bookkeeping of overlapping pairs."""
    source = random.Random(seed)
    made = []
    for _ in range(words):
        word = "".join(source.choice(alphabet) for _ in range(source.randint(1, longest)))
        made.append(source.choice([word, word, word * 2, word[:1] * source.randint(1, longest)]))
    return made


def random_corpora():
    """random words, runs of a letter, every option"""
    with tempfile.TemporaryDirectory() as place:
        total = 0
        for seed in range(400 if LONG else 60):
            source = random.Random(seed)
            alphabet = source.choice(["ab", "abc", "aé中", "abcdefgh", "a1 .\n", "xyz'ſ😀"])
            words = random_words(seed, alphabet, source.choice([20, 100, 400]), source.choice([4, 9, 20]))
            documents = [" ".join(words[i:i + 7]) for i in range(0, len(words), 7)]
            vocab_size = 257 + source.choice([20, 100, 400])
            min_frequency = source.choice([0, 1, 2, 5])
            longest = source.choice([0, 0, 0, 2, 3, 5])
            ours, _ = train(place, {"text.jsonl": documents}, "--pattern", source.choice(PATTERNS), "--vocab-size",
                            str(vocab_size), "--min-frequency", str(min_frequency), "--max-token-length", str(longest),
                            threads=1 + seed % 3)
            total += len(expect_equal(ours, documents, vocab_size, f"seed {seed}", min_frequency=min_frequency,
                                      **({"max_token_length": longest} if longest else {})))
        print(f"  {total} merges equal")


def real_documents():
    found = []
    for folder in ["src", "docs", "tests"] if LONG else ["docs", "src/train", "src/cli"]:
        for directory, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith((".md", ".cc", ".h", ".py")):
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        found.append(file.read())
    source = random.Random(1)
    scripts = [(0x400, 0x44F), (0x5D0, 0x5EA), (0x905, 0x939), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0x1F600, 0x1F640),
               (0x300, 0x315), (0x30, 0x39), (0x660, 0x669)]
    for _ in range(200):
        first, last = source.choice(scripts)
        found.append(" ".join("".join(chr(source.randint(first, min(last, first + 12))) for _ in range(source.randint(1, 6)))
                              for _ in range(60)))
    return found


def real_texts():
    """code, prose and eight scripts, by every pattern and by other digits"""
    documents = real_documents()
    cases = [(name, ()) for name in PATTERNS]
    cases += [("gpt2", ("--digits", "single")), ("gpt2", ("--digits", "up-to-three")), ("llama3", ("--digits", "single")),
              ("qwen2", ("--digits", "up-to-three")), ("o200k", ("--digits", "single"))]
    size = 8000 if LONG else 1200
    with tempfile.TemporaryDirectory() as place:
        for name, digits in cases:
            ours, _ = train(place, {"text.jsonl": documents}, "--pattern", name, *digits, "--vocab-size", str(size),
                            "--special-token", "<|a|>", "<|b|>", "--min-frequency", "0")
            merges = expect_equal(ours, documents, size, name, min_frequency=0)
            assert len(ours["model"]["vocab"]) == size and list(ours["model"]["vocab"])[:3] == ["<|endoftext|>", "<|a|>", "<|b|>"]
            print(f"  {name} {' '.join(digits)}: {len(merges)} merges of {sum(map(len, documents))} characters equal")
            tokenizer = tokenizers.Tokenizer.from_file(os.path.join(place, "made", "tokenizer.json"))
            text = documents[0][:3000] + documents[-1] + " 12345 1 22\n\n  x<|a|>"
            assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def special_pieces():
    """a special token that a merge would make, and one that is a byte: the ids are theirs"""
    words = random_words(5, "ab", 300, 8)
    with tempfile.TemporaryDirectory() as place:
        ours, _ = train(place, {"text.jsonl": words}, "--pattern", "gpt2", "--vocab-size", "300", "--special-token", "ab",
                        "a", "--eos-token", "", "--bos-token", "<s>")
        expect_equal(ours, words, 300, "special pieces", min_frequency=2)
        assert ours["model"]["vocab"]["ab"] == 1 and [merge for merge in ours["model"]["merges"] if merge == "a b"]
        config = json.load(open(os.path.join(place, "made", "tokenizer_config.json")))
        assert config["bos_token"] == "<s>" and "eos_token" not in config, config


def out_of_core():
    """the same file when the counts do not fit the memory, for any number of threads"""
    source = random.Random(3)
    words = ["".join(source.choice("abcdefgh") for _ in range(source.randint(1, 24))) for _ in range(120000)]
    documents = [" ".join(words[i:i + 50]) for i in range(0, len(words), 50)]
    files = []
    with tempfile.TemporaryDirectory() as place:
        for threads, memory in [(1, "4Gi"), (3, "4Gi"), (3, "8Mi"), (1, "8Mi")]:
            ours, printed = train(place, {"text.jsonl": documents}, "--pattern", "llama3", "--vocab-size", "900",
                                  "--memory", memory, threads=threads)
            assert ("files of counts" in printed) == (memory == "8Mi"), printed
            assert sorted(os.listdir(place + "/made")) == ["tokenizer.json", "tokenizer_config.json"]
            files.append(ours)
        assert files[0] == files[1] == files[2] == files[3]
        print("  " + printed.strip().splitlines()[-1].split(": ", 1)[1])


def weights():
    """PATH=WEIGHT counts documents several times, or a share of them"""
    a, b, c = random_words(7, "abcd", 400, 7), random_words(8, "cdef", 400, 7), random_words(9, "aeg", 401, 7)
    with tempfile.TemporaryDirectory() as place:
        ours, _ = train(place, {"a.jsonl=3": a, "b.jsonl": b, "c.jsonl=0.5": c}, "--pattern", "gpt2", "--vocab-size", "400")
        expect_equal(ours, a * 3 + b + c[1::2], 400, "weights", min_frequency=2)
        for weight in ["0", "-1", "x", "1e9"]:
            done = train(place, {f"a.jsonl={weight}": a}, fails=True)
            assert done.returncode == 2 and "the weight must be" in done.stdout, done.stdout


def evaluation():
    """`tokenizer evaluate` counts the tokens that tokenizers makes of each file, and parts of characters"""
    documents = real_documents()
    files = {"code.jsonl": documents[:30], "scripts.jsonl": documents[-60:]}
    with tempfile.TemporaryDirectory() as place:
        paths = []
        for pattern, size in [("llama3", 700), ("gpt2", 300)]:
            folder = os.path.join(place, "x" * 60, pattern)  # the table shows the ends of long paths
            os.makedirs(folder)
            train(folder, files, "--pattern", pattern, "--vocab-size", str(size))
            paths.append(folder + "/made/tokenizer.json")
        inputs = [os.path.join(place, "x" * 60, "gpt2", name) for name in files]
        command = [TOKAMAK, "tokenizer", "evaluate", *(word for path in paths for word in ("--tokenizer", path)), "--input", *inputs]
        found = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout)
        table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        sums = [0, 0]
        assert [tokenizer["vocab_size"] for tokenizer in found["tokenizers"]] == [700, 300]
        for entry, path, texts in zip(found["files"], inputs, files.values()):
            assert entry["file"] == path
            assert entry["bytes"] == sum(len(text.encode()) for text in texts)
            assert entry["characters"] == sum(map(len, texts))
            assert entry["words"] == sum(len(text.split()) for text in texts)
            for i, (ours, file) in enumerate(zip(entry["tokenizers"], paths)):
                tokenizer = tokenizers.Tokenizer.from_file(file)
                ids = [id for text in texts for id in tokenizer.encode(text, add_special_tokens=False).ids]
                assert ours["tokens"] == len(ids), (path, file, ours, len(ids))
                assert ours["part_tokens"] == sum("\ufffd" in tokenizer.decode([id]) for id in ids)
                assert ours["unknown_tokens"] == 0 and ours["bytes_per_token"] == entry["bytes"] / len(ids)
                assert ours["tokens_per_word"] == len(ids) / entry["words"]
                sums[i] += len(ids)
        assert found["files"][1]["tokenizers"][1]["part_tokens"] > 100
        assert [ours["tokens"] for ours in found["total"]["tokenizers"]] == sums and str(sums[0]) in table
        assert all(re.search(rf"^  \.\.\.x+/{pattern}/made/tokenizer.json ", table, re.M) for pattern in ("llama3", "gpt2")), table
        print("  " + "\n  ".join(table.splitlines()[-4:]).replace(place, ""))


def refusals():
    """options of the other type, patterns and sizes that there are not"""
    with tempfile.TemporaryDirectory() as place:
        def refused(*options, code=2, says):
            done = train(place, {"a.jsonl": ["a text"]}, *options, fails=True)
            assert done.returncode == code and says in done.stdout, (options, done.returncode, done.stdout)
        refused("--pattern", "nonsense", says="there is no pattern 'nonsense'")
        refused("--vocab-size", "256", says="vocab_size=256")
        refused("--split-digits", "true", says="--split-digits is no option of --type bytelevel")
        refused("--special-token", "a", "a", says="'a' is there twice")
        refused("--memory", "1000", says="memory=1000")
        refused("--pattern", "qwen2", "--digits", "four", says="--digits")
        done = subprocess.run([TOKAMAK, "tokenizer", "train", "--input", place + "/a.jsonl", "--output", place + "/m",
                               "--pattern", "gpt2"], capture_output=True, text=True)
        assert done.returncode == 2 and "--pattern is no option of --type sentencepiece" in done.stderr, done
        done = train(place, {"a.jsonl": [""]}, fails=True)
        assert done.returncode == 3 and "no text" in done.stdout, done.stdout


if __name__ == "__main__":
    cases = [random_corpora, real_texts, special_pieces, out_of_core, weights, evaluation, refusals]
    for case in cases:
        if len(sys.argv) == 1 or case.__name__ in sys.argv[1:]:
            print(f"{case.__name__}: {case.__doc__}", flush=True)
            case()
