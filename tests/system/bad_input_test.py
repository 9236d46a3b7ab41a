"""Each kind of bad input gives one clear error with file, key and values, and the same exit code on all ranks."""
import json
import os
import re
import resource
import shutil
import subprocess
import time

from harness import CONFIG, call, digest, main, mpirun, own_address_space, tokamak


def refused(place, name, code, words, *overrides, text=CONFIG, ranks=2):
    """One error with all of `words`, this exit code, within seconds, and no rank left behind."""
    start = time.monotonic()
    output = place.train(name, ranks, *overrides, expect=code, text=text)
    seconds = time.monotonic() - start
    errors = [line for line in output.splitlines() if re.search(r"\d error ", line)]
    assert len(errors) == 1, f"{len(errors)} errors\n{output}"
    for word in words:
        assert word in output, f"'{word}' is not in\n{output}"
    assert seconds < 10, seconds
    print("  " + errors[0])


def config_errors(place):
    """config: unknown key, wrong type, heads that do not divide, batch that does not divide: exit 2"""
    with_typo = CONFIG.replace("hidden_size", "hiden_size", 1)
    refused(place, "typo", 2, ["typo.yaml:3", "hiden_size", "hidden_size"], text=with_typo)
    refused(place, "type", 2, ["type.yaml:4", "intermediate_size", "many"],
            text=CONFIG.replace("intermediate_size: 100", "intermediate_size: many"))
    refused(place, "heads", 2, ["num_key_value_heads", "3", "num_attention_heads", "4"], "model.num_key_value_heads=3")
    refused(place, "override", 2, ["command line", "optimizer.lrr", "optimizer.lr"], "optimizer.lrr=1")
    refused(place, "batch", 2, ["training.global_batch_tokens", "770", "768", "800"],
            "training.global_batch_tokens=770")
    refused(place, "ranks", 2, ["training.global_batch_tokens", "768", "24", "5 ranks"], ranks=5)
    refused(place, "missing", 2, ["training.global_batch_tokens"],
            text=CONFIG.replace("global_batch_tokens: 768, ", ""))


def help_has_examples(place):
    """the help of each command shows a call of it"""
    def commands(words):
        text = call([os.environ["TOKAMAK"], *words, "--help"]).stdout
        names = re.findall(r"^  (\w+)  ", text.split("Subcommands:")[1], re.M) if "Subcommands:" in text else []
        if not names or words == ["bench"]:
            yield words, text
        for name in names:
            yield from commands([*words, name])

    found = list(commands([]))
    assert len(found) >= 26 and ["tokenizer", "train"] in [words for words, _ in found], found
    for words, text in found:
        example = r"^  (\S.*)?tokamak " + " ".join(words) + r"\b"
        assert re.search(example, text, re.M), (words, text)


def wrong_words(place):
    """a key, a subcommand or an option that is spelled wrong: exit 2, and the nearest one is named"""
    for arguments, said in ((["train", place.config("words"), "optimiser.lr=1"], "did you mean 'optimizer'?"),
                            (["trian", place.config("words")], "tokamak has no subcommand 'trian'\n  hint: did you mean 'train'?"),
                            (["data", "tokenise"], "tokamak data has no subcommand 'tokenise'\n  hint: did you mean 'tokenize'?"),
                            (["frobnicate"], "it has train, plan, "), (["checkpoint"], "tokamak checkpoint: a subcommand is required\n  hint: it has "),
                            (["train", place.config("words"), "--optimizer.lr=3e-4"], "hint: write optimizer.lr=3e-4, without dashes"),
                            (["train", place.config("words"), "--optimizer.lr", "3e-4"], "hint: write optimizer.lr=VALUE, without dashes"),
                            (["eval", "--model", "x"], "tokamak eval: --task is required\n  hint: --task: KIND=FILE"),
                            (["eval"], "hint: --task: KIND=FILE"),
                            (["checkpoint", "export", "--to", "onnx", "a", "b"], "--to has no value 'onnx'\n  hint: it is one of hf, gguf: "),
                            (["watch", "a", "--once", "--rows", "0"], "--rows has no value '0'\n  hint: it is a number from 1 to 1000: "),
                            (["plan", place.config("words"), "--ranks", "none"], "tokamak plan: --ranks has no value 'none'\n  hint: it is a positive number: ranks of"),
                            (["train", place.config("words"), "--stop-at-step", "x"], "tokamak train: Could not convert: --stop-at-step = x\n  hint: --stop-at-step: save"),
                            (["tokenizer", "inspect"], "--model is required\n  hint: --model: tokenizer model"),
                            (["data", "inspect", place.data + "/train", "--sample", "0", "--sequence-length", "0"], "--sequence-length 0: a window has at least 1 token"),
                            (["data", "verify", "a", "b"], "tokamak data verify has no use for 'b'\n  hint: without an option's name it takes DIR"),
                            (["train", place.config("words"), "--stop-at-stp=3"], "'--stop-at-stp'\n  hint: did you mean '--stop-at-step'?")):
        done = call([os.environ["TOKAMAK"], *arguments])
        assert done.returncode == 2 and said in done.stdout, (arguments, done.returncode, done.stdout)
        assert " error " in done.stdout and "Run with --help" not in done.stdout, done.stdout
    model = place.file("tokenizer.model")
    assert tokamak("tokenizer", "inspect", model) == tokamak("tokenizer", "inspect", "--model", model)


def data_errors(place):
    """data: missing, empty, truncated, ids beyond the vocabulary, two tokenizers: exit 3"""
    refused(place, "nowhere", 3, ["data.sources: no/such/set does not exist (looked in " + os.getcwd()], "data.sources=[{path: no/such/set}]")
    refused(place, "samples of nowhere", 3, ["data.sources", "no/such/set"], "data.sources=[{path: no/such/set}]",
            "model.vocab_size=400", "training.samples={prompts: [a], interval: 5}")
    refused(place, "none held out", 3, ["data.validation", "no/such/set"], "data.validation=[{path: no/such/set}]")
    os.makedirs(place.file("empty"))
    refused(place, "empty", 3, [place.file("empty")], f"data.sources=[{{path: {place.file('empty')}}}]")
    refused(place, "vocabulary", 3, ["vocab_size", "400", "300"], "model.vocab_size=300")

    damaged = place.file("damaged")
    shutil.copytree(place.data + "/train", damaged)
    os.truncate(damaged + "/part-00000.bin", 1000)
    refused(place, "truncated", 3, ["part-00000.bin", "1000"], f"data.sources=[{{path: {damaged}}}]")
    os.remove(damaged + "/part-00000.bin")
    refused(place, "shardless", 3, ["part-00000.bin"], f"data.sources=[{{path: {damaged}}}]")

    tokamak("tokenizer", "train", "--input", place.file("text.jsonl"), "--vocab-size", "350", "--output",
            place.file("other.model"))
    tokamak("data", "tokenize", "--input", place.file("text.jsonl"), "--tokenizer", place.file("other.model"),
            "--output", place.file("other"), "--validation", "10%")
    both = f"data.sources=[{{path: {place.data}/train}}, {{path: {place.file('other')}/train}}]"
    refused(place, "tokenizers", 3, ["tokenizer", place.file("other")], both)
    refused(place, "held-out", 3, ["tokenizer"], f"data.validation=[{{path: {place.file('other')}/validation}}]")

    flipped = place.file("flipped")
    shutil.copytree(place.data + "/train", flipped)
    with open(flipped + "/part-00000.bin", "r+b") as file:
        file.seek(500)
        byte = file.read(1)
        file.seek(500)
        file.write(bytes([byte[0] ^ 1]))
    # Each rank that reads the block finds it during training.
    output = place.train("flipped", 2, f"data.sources=[{{path: {flipped}}}]", expect=3)
    assert "block 0" in output and "part-00000.bin" in output and "is damaged: checksum" in output, output


def odd_text(place):
    """text with invalid bytes becomes a data set, with a warning that names file and counts; CR LF is read as LF, and
    the log says so"""
    def tokenized(name, content):
        with open(place.file(name + ".txt"), "wb") as file:
            file.write(content)
        return tokamak("data", "tokenize", "--input", place.file(name + ".txt"), "--tokenizer", place.file("tokenizer.model"),
                       "--output", place.file(name))
    unix, dos = tokenized("unix", b"one\ntwo\nthree\n"), tokenized("dos", b"one\r\ntwo\r\nthree\r\n")
    assert f"info {place.file('dos.txt')}: 3 line ends of CR LF were read as LF" in dos and "CR LF" not in unix, dos
    with open(place.file("unix/part-00000.bin"), "rb") as a, open(place.file("dos/part-00000.bin"), "rb") as b:
        assert a.read() == b.read()
    binary = tokenized("binary", bytes(range(256)) * 4)
    assert f"warning {place.file('binary.txt')}: 512 bytes are not UTF-8" in binary and "4 are NUL" in binary, binary


def other_data_on_resume(place):
    """resuming with other data is refused: exit 3, with both identities"""
    place.train("resumed", 2, "--stop-at-step", "5", expect=75)
    before = digest(place.checkpoint("resumed", 5))
    refused(place, "resumed", 3, ["another tokenizer"], f"data.sources=[{{path: {place.file('other')}/train}}]",
            "data.validation=[]")
    refused(place, "resumed", 3, ["seed", "1234", "77"], "run.seed=77")
    assert digest(place.checkpoint("resumed", 5)) == before


def other_model_on_resume(place):
    """a checkpoint of another model: exit 2 names the key; with checkpoint.allow_changes, exit 4 names a weight"""
    before = digest(place.checkpoint("resumed", 5))
    refused(place, "resumed", 2, ["differs from this config's: model.intermediate_size: 100 -> 96\n"], "model.intermediate_size=96")
    refused(place, "resumed", 4, ["model.layers", "48"], "model.intermediate_size=96",
            "checkpoint.allow_changes=[model.intermediate_size]")
    assert digest(place.checkpoint("resumed", 5)) == before


def other_batch_on_resume(place):
    """a resumed run with another global batch is refused: exit 2, both batches named, and its files are unchanged"""
    config = place.run("resumed") + "/config.yaml"
    with open(config) as file:
        before = file.read()
    refused(place, "resumed", 2, ["training.global_batch_tokens", "1536", "3840", "5 steps"],
            "training.global_batch_tokens=1536")
    with open(config) as file:
        assert file.read() == before, "the refused start has overwritten the run's config"


def other_function_on_resume(place):
    """a changed model key that no shape shows: exit 2, with both values; checkpoint.allow_changes allows a resume"""
    change = "model.rope_theta=500000"
    before = digest(place.checkpoint("resumed", 5))
    refused(place, "resumed", 2, ["model.rope_theta: 10000 -> 500000", "checkpoint.allow_changes=[model.rope_theta]"], change)
    assert digest(place.checkpoint("resumed", 5)) == before
    output = place.train("resumed", 2, change, "checkpoint.allow_changes=[model.rope_theta]", "--stop-at-step", "6", expect=75)
    assert "model.rope_theta: 10000 -> 500000" in output, output


def foreign_launcher(place):
    """one of several tasks of a launcher without a connection to the others: exit 2, not a separate run"""
    done = call([os.environ["TOKAMAK"], "train", place.config("alone")], env_more={"PMI_SIZE": "2"})
    assert done.returncode == 2 and "PMIx" in done.stdout, done.stdout


def output_errors(place):
    """an output directory that cannot be written: exit 2"""
    with open(place.file("file"), "w"):
        pass
    refused(place, "unwritable", 2, [place.file("file")], f"run.output_dir={place.file('file')}/run")


def no_memory(place):
    """a plan that does not fit: exit 5, with the numbers and the keys that would help"""
    refused(place, "huge", 5, ["activation_checkpoint.mode", "GiB"], "model.hidden_size=48000",
            "model.intermediate_size=480000", "model.num_hidden_layers=40")


def bounded_memory(place):
    """the machine has the memory, but a limit of the process forbids it: exit 5, and the limit is named"""
    mebibytes = own_address_space() // 2**20 + 300  # the run takes 375 MiB at its start, and later 273 for its snapshot
    limit = mebibytes * 2**20
    done = call([os.environ["TOKAMAK"], "train", place.config("bounded"), "model.hidden_size=1536", "model.head_dim=384"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 5 and "RLIMIT_AS (ulimit -v) allows this process" in done.stdout, (mebibytes, done.returncode, done.stdout)


def few_descriptors(place):
    """a process without a free descriptor cannot read /proc, so it prints no peak memory"""
    finished = ["train", place.config("descriptors"), "training.max_steps=2"]
    tokamak(*finished)
    outputs = []
    # Whether a descriptor is free just then depends on the threads that write: two of three such rounds show it.
    while not any("the system does not say the peak" in text for text in outputs):
        assert len(outputs) < 20 * 11, outputs
        outputs += [call([os.environ["TOKAMAK"], *finished], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))).stdout
                    for limit in range(5, 16)]
        assert "peak 0 B" not in "".join(outputs), outputs


def disk_full(place):
    """a full disk: the save fails, training continues, the older checkpoint stays; the final save exits with 4"""
    mount = place.file("small-disk")
    os.makedirs(mount)
    size = 3  # MiB; a checkpoint of the small model takes 1.2
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", mount], stderr=subprocess.DEVNULL).returncode:
        print("  SKIPPED: disk_full (mounting a tmpfs is not permitted here)")
        return
    try:
        arguments = (f"run.output_dir={mount}/run", "checkpoint.interval=5", "checkpoint.keep_latest=0",
                     "training.max_steps=20")
        output = place.train("full", 2, *arguments, expect=4)
        assert "No space" in output or "free" in output or "room" in output, output
        assert "step 20/20" in output, f"training did not go on\n{output}"
        steps = sorted(d for d in os.listdir(mount + "/run/checkpoints") if d.startswith("step-"))
        assert steps and "step-00000005" == steps[0], steps
        tokamak("checkpoint", "verify", f"{mount}/run/checkpoints/{steps[0]}")
        print("  ", steps, "stay;", [line for line in output.splitlines() if " error " in line][0])
        shutil.rmtree(f"{mount}/run/checkpoints/{steps[0]}")  # frees space
        output = place.train("full", 2, *arguments[:2], "checkpoint.keep_latest=1", "training.max_steps=20")
        assert "done" in output
    finally:
        subprocess.run(["umount", mount], check=True)


def not_finite(place):
    """non-finite gradients: updates are skipped, and after max_bad_steps in a row the run ends with exit 7"""
    output = place.train("wild", 2, "optimizer.lr=1e30", "resilience.max_bad_steps=3", expect=7)
    assert "skipped" in output and "max_bad_steps" in output, output


def usage_errors(place):
    """the command line: no subcommand, unknown option, no config: exit 2"""
    for arguments in ([], ["train", "--no-such-option"], ["train"], ["nonsense"]):
        done = call([os.environ["TOKAMAK"], *arguments])
        assert done.returncode == 2, (arguments, done.returncode, done.stdout)
    done = call(mpirun(2, "train", place.file("absent.yaml")))
    assert done.returncode == 2 and "absent.yaml" in done.stdout, done.stdout


main([config_errors, help_has_examples, wrong_words, data_errors, odd_text, other_data_on_resume, other_model_on_resume, other_batch_on_resume,
      other_function_on_resume, foreign_launcher, output_errors, no_memory, bounded_memory, few_descriptors, disk_full, not_finite, usage_errors])
