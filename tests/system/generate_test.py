"""tokamak generate by the real program: the effect of its options on the text, and its errors."""
import json
import subprocess

from harness import ENV, TOKAMAK, call, generated, main, tokamak

LENGTH = 64  # tokens of context: model.max_position_embeddings


def source(place, *more):
    if not hasattr(source, "directory"):
        place.train("model", 1, "training.max_steps=30")
        source.directory = place.run("model") + "/checkpoints"
    length = [] if "--max-tokens" in more else ["--max-tokens", "12"]
    return ["--checkpoint", source.directory, *length, *more]


def prompts_of(place):
    return [document[:12 + 5 * i] for i, document in enumerate(list(place.documents())[:5])]


def given(prompts):
    return [word for prompt in prompts for word in ("--prompt", prompt)]


def raw(*arguments, stdin=None):
    return subprocess.run([TOKAMAK, "generate", "--threads", "1", *arguments], env=ENV, text=True, capture_output=True,
                          input=stdin)


def batches(place):
    """a prompt's text, sampled or greedy, does not depend on batch or order; a prompt given twice gets two samples"""
    prompts = prompts_of(place)
    for choice in (["--temperature", "0"], ["--temperature", "1", "--top-p", "1", "--seed", "5"]):
        together = generated(*source(place, *choice), "--batch", "3", *given(prompts))
        assert [one["prompt"] for one in together] == prompts
        for dtype in ("f32", "bf16"):
            whole = generated(*source(place, *choice), "--dtype", dtype, *given(prompts))
            alone = [generated(*source(place, *choice), "--dtype", dtype, "--prompt", p)[0] for p in prompts[:2]]
            assert whole[:2] == alone, (whole, alone)
        backwards = generated(*source(place, *choice), "--batch", "2", *given(prompts[::-1]))
        assert backwards[::-1] == together, (backwards, together)
    drawn = ["--temperature", "1.5", "--top-p", "1"]
    first, second = generated(*source(place, *drawn), *given([prompts[0]] * 2))
    assert first["text"] != second["text"] and [first] == generated(*source(place, *drawn), "--prompt", prompts[0])
    assert [first] != generated(*source(place, *drawn), "--prompt", prompts[0], "--seed", "2")


def forms(place):
    """prompts from the line, files, JSON lines and standard input; text with the prompt, without it, and as JSON"""
    prompt, other = prompts_of(place)[:2]
    options = source(place, "--temperature", "0")
    (one,) = generated(*options, "--prompt", prompt)
    with open(place.file("prompt.txt"), "w") as file:
        file.write(prompt + "\n")
    with open(place.file("prompts.jsonl"), "w") as file:
        file.writelines(json.dumps({"prompt": p}) + "\n" for p in (prompt, other))
    assert generated(*options, "--prompt-file", place.file("prompt.txt")) == [one]
    several = generated(*options, "--prompts", place.file("prompts.jsonl"))
    assert several[0] == one and several[1]["prompt"] == other
    assert raw(*options, "--prompt-file", "-", stdin=prompt + "\n").stdout == prompt + one["text"] + "\n"
    done = raw(*options, "--no-echo", "--prompt", prompt)
    assert done.stdout == one["text"] + "\n" and "tokens, " in done.stderr and "/s" in done.stderr, done
    assert raw(*options, *given([prompt, other])).stdout == \
        f"{prompt}{one['text']}\n\n{other}{several[1]['text']}\n"


def ends(place):
    """a text ends before a stop string, at its maximum length, and at the end of the context"""
    prompt = prompts_of(place)[0]
    options = source(place, "--temperature", "0", "--ignore-eos", "--prompt", prompt)
    endless = source(place, "--temperature", "0", "--ignore-eos", "--prompt", prompt, "--max-tokens", "1000")
    (free,) = generated(*options)
    assert free["finish_reason"] == "length" and free["tokens"] == 12, free
    stop = free["text"][4:7]
    (stopped,) = generated(*options, "--stop", "not in it", "--stop", stop)
    assert stopped["finish_reason"] == "stop" and stopped["tokens"] < 12, stopped
    assert stopped["text"] == free["text"][:free["text"].index(stop)], (stopped, free)
    assert raw(*options, "--no-echo", "--stop", stop).stdout == stopped["text"] + "\n"
    (full,) = generated(*endless)
    tokens = len(call([TOKAMAK, "tokenizer", "encode", "--model", place.file("tokenizer.model"), prompt]).stdout.split())
    assert full["finish_reason"] == "length" and full["tokens"] == LENGTH - tokens, (full, tokens)
    (short,) = generated(*endless, "--context", str(tokens + 3))
    assert short["tokens"] == 3 and full["text"].startswith(short["text"]), short


def refusals(place):
    """empty and too long prompts, contradictory and invalid options: exit 2 with the reason, before any work"""
    prompt = ["--prompt", "ab"]
    for words, arguments in (
            (["no prompt"], []),
            (["prompt 2 of 2 is empty"], [*prompt, "--prompt", ""]),
            (["tokens", "context of 64", "max_position_embeddings"], ["--prompt", "ab " * 200]),
            (["context of 3"], ["--prompt", "ab cd ef gh", "--context", "3"]),
            (["--echo and --jsonl"], [*prompt, "--echo", "--jsonl"]),
            (["--top-p 0"], [*prompt, "--top-p", "0"]),
            (["--temperature -1"], [*prompt, "--temperature", "-1"]),
            (["--repetition-penalty 0"], [*prompt, "--repetition-penalty", "0"]),
            (["--max-tokens 0"], [*prompt, "--max-tokens", "0"]),
            (["--stop"], [*prompt, "--stop", ""]),
            (["--checkpoint and --model"], [*prompt, "--model", "elsewhere"])):
        done = raw(*source(place, *arguments))
        assert done.returncode == 2 and done.stdout == "", (arguments, done)
        for word in words:
            assert word in done.stderr, (word, done.stderr)
    done = raw("--model", place.file("nowhere"), *prompt)
    assert done.returncode == 4 and "nowhere" in done.stderr, done
    done = raw(*source(place), *prompt, "--tokenizer", place.file("none.model"))
    assert done.returncode == 3 and "none.model" in done.stderr, done
    other = place.file("other.model")
    tokamak("tokenizer", "train", "--input", place.file("text.jsonl"), "--vocab-size", "350", "--output", other)
    done = raw(*source(place), *prompt, "--tokenizer", other)
    assert done.returncode == 3 and done.stdout == "" and "was made with tokenizer" in done.stderr and other in done.stderr, done
    done = raw(*source(place), *prompt, "--tokenizer", place.file("tokenizer.model"))
    assert done.returncode == 0, done


main([batches, forms, ends, refusals])
