"""Models of Hugging Face whose tokenizer exists as tokenizer.json only: from transformers into Tokamak and back:
way_home_test.py [case]. TOKAMAK_LONG=1 trains 50 steps instead of a few."""
import json
import os

from reference import expect_equal_logits, our_logits, their_logits  # first: enters the right Python
import gguf
import numpy as np
import tokenizers
import torch
import transformers
from harness import Workplace, call, generated, main, mpirun, tokamak
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

STEPS = 50 if os.environ.get("TOKAMAK_LONG") else 6
CONTRACTIONS, LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ eos_token }}{% endfor %}"
SIZES = {"hidden_size": 48, "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 64, "initializer_range": 0.1}
STYLES = {  # name: pattern, digits; special tokens; model
    "llama3": (r"\p{N}{1,3}", ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>"], "Llama", "llama-bpe"),
    "qwen": (r"\p{N}", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], "Qwen3", "qwen2"),
}
TEXTS = ["It was the best of times.", "  x\n\n\n  y\t12345 don't DON'T", "caf\u00e9 cafe\u0301 \u4e2d\u6587, \U0001F600!",
         "<|im_start|>user\nhi", "", " Vi\u1ec7t \u0645\u0631\u062d\u0628\u0627"]


def train_tokenizer(name, documents):
    """Trained here by their trainer; some entries are added that no merge produces, as Llama 3 has them."""
    digits, special, _, _ = STYLES[name]
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    pattern = "|".join([CONTRACTIONS, LETTERS, digits, TAIL])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    if name == "qwen":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=[], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents, trainer)
    if name == "llama3":
        made = json.loads(tokenizer.to_str())
        made["model"]["vocab"]["\u0120Vi\u00e1\u00bb\u0129t"] = len(made["model"]["vocab"])
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(made))
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([tokenizers.AddedToken("<think>", special=False, normalized=False)])
    if name == "llama3":
        bos = special[0]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
    return tokenizer


def make(place, name):
    """A random model and its tokenizer, saved by transformers."""
    out = place.file("made-" + name)
    if os.path.exists(out):
        return out
    _, special, kind, _ = STYLES[name]
    made = train_tokenizer(name, list(place.documents()))
    names = {"eos_token": special[1 if name == "llama3" else 0]}
    if name == "llama3":
        names["bos_token"] = special[0]
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, chat_template=CHAT, **names)
    tokenizer.save_pretrained(out)
    ids = {key.replace("token", "token_id"): made.token_to_id(text) for key, text in names.items()}
    config = getattr(transformers, kind + "Config")(vocab_size=448, **{"bos_token_id": None, **ids}, **SIZES)
    torch.manual_seed(3)
    getattr(transformers, kind + "ForCausalLM")(config).save_pretrained(out)
    assert "tokenizer.json" in os.listdir(out) and "tokenizer.model" not in os.listdir(out), os.listdir(out)
    return out


def trained(place, name):
    """Imported, with data tokenized by its tokenizer, and trained."""
    run = place.file("run-" + name)
    if os.path.exists(run):
        return run
    made, data = make(place, name), place.file("data-" + name)
    tokamak("checkpoint", "import", "--from", "hf", made, run)
    bos = ["--bos"] if name == "llama3" else []
    tokamak("data", "tokenize", "--input", place.file("text.jsonl"), "--tokenizer", made, "--output", data,
            "--validation", "10%", *bos)
    samples = json.dumps({"prompts": [next(place.documents())[:12]], "interval": STEPS, "tokens": 12, "temperature": 0})
    done = call(mpirun(1, "train", run + "/config.yaml", f"data.sources=[{{path: {data}/train}}]",
                       f"data.validation=[{{path: {data}/validation}}]", f"training.max_steps={STEPS}",
                       "training.global_batch_tokens=256", "data.sequence_length=32", "precision.compute=f32",
                       "optimizer.lr=3e-3", "training.samples=" + samples, "training.validation_sequences=4",
                       "runtime.threads_per_rank=1"))
    assert done.returncode == 0, done.stdout
    with open(run + "/metrics.jsonl") as lines:
        (sample,) = [record["samples"] for record in map(json.loads, lines) if "samples" in record]
    (again,) = generated("--checkpoint", run + "/checkpoints", "--prompt", sample[0]["prompt"], "--max-tokens", "12",
                         "--temperature", "0", "--dtype", "f32", *bos)
    assert sample[0]["text"] == again["text"] != "", (sample, again)
    return run


def hf_and_back(place):
    """tokenizer.json only: imported, tokenized, trained, evaluated, exported; transformers says the same greedy text"""
    for name in STYLES:
        run, out = trained(place, name), place.file("home-" + name)
        bos = ["--bos"] if name == "llama3" else []
        results = place.file(name + ".json")
        tokamak("eval", "--checkpoint", run + "/checkpoints", *bos, "--task", "text=" + place.file("text.jsonl"), "--limit",
                "3", "--output", results, "--threads", "1")
        with open(results) as file:
            assert "text" in json.dumps(json.load(file))
        tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", run + "/checkpoints", out)
        made = make(place, name)
        for file in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]:
            assert open(f"{out}/{file}", "rb").read() == open(f"{made}/{file}", "rb").read(), file
        tokenizer = transformers.AutoTokenizer.from_pretrained(out)
        assert tokenizer.chat_template == CHAT
        for text in TEXTS:
            theirs = tokenizer(text, add_special_tokens=False)["input_ids"]
            ours = call([os.environ["TOKAMAK"], "tokenizer", "encode", "--model", run + "/tokenizer.json", text]).stdout
            assert [int(word) for word in ours.split()] == theirs, (name, text, ours, theirs)
        config = json.load(open(out + "/config.json"))
        assert config["eos_token_id"] == tokenizer.eos_token_id
        assert config.get("bos_token_id") == tokenizer.bos_token_id
        ids = np.array([tokenizer(next(place.documents()))["input_ids"][:40]])
        theirs, model = their_logits(out, ids)
        expect_equal_logits(our_logits(place, run + "/checkpoints", ids), theirs, name)
        for document in list(place.documents())[:2]:
            prompt = document[:30]
            begun = tokenizer(prompt, return_tensors="pt")["input_ids"]
            said = model.generate(begun, do_sample=False, max_new_tokens=24, pad_token_id=0,
                                  suppress_tokens=list(range(len(tokenizer), 448)))[0]  # rows without a token
            expected = tokenizer.decode(said[begun.shape[1]:], skip_special_tokens=True)
            for source in [("--checkpoint", run + "/checkpoints", *bos), ("--model", out)]:
                (ours,) = generated(*source, "--prompt", prompt, "--max-tokens", "24", "--temperature", "0", "--dtype", "f32")
                assert ours["text"] == expected != "", (name, source, ours, expected)
        print(f"  {name}: {STEPS} steps, greedy text equal: {expected[:50]!r}")


def gguf_reader(place):
    """the gguf package sees the vocabulary, its types, the merges, the pre-tokenizer's name and the special ids"""
    for name, (_, special, _, pre) in STYLES.items():
        out, made = place.file(name + ".gguf"), make(place, name)
        said = tokamak("checkpoint", "export", "--to", "gguf", "--dtype", "f32", trained(place, name) + "/checkpoints", out)
        assert ("NFC" in said) == (name == "qwen"), said
        reader = gguf.GGUFReader(out)
        value = lambda key: reader.get_field("tokenizer." + key).contents()  # noqa: E731
        with open(made + "/tokenizer.json", encoding="utf-8") as file:
            written = json.load(file)
        theirs = transformers.AutoTokenizer.from_pretrained(made)
        expected = {id: (text, 1) for text, id in written["model"]["vocab"].items()}
        expected.update({token["id"]: (token["content"], 3 if token["special"] else 4) for token in written["added_tokens"]})
        expected = [expected.get(id, (f"[PAD{id}]", 5)) for id in range(448)]
        assert list(zip(value("ggml.tokens"), value("ggml.token_type"))) == expected
        assert value("ggml.merges") == [" ".join(merge) for merge in written["model"]["merges"]]
        assert value("ggml.model") == "gpt2" and value("ggml.pre") == pre, value("ggml.pre")
        assert value("ggml.eos_token_id") == theirs.eos_token_id
        assert value("ggml.bos_token_id") == (theirs.bos_token_id if name == "llama3" else theirs.eos_token_id)
        assert value("ggml.add_bos_token") == (name == "llama3") and value("ggml.add_eos_token") is False
        assert value("chat_template") == CHAT
        vocabulary = gguf.SpecialVocab(made, load_merges=True, n_vocab=448)  # as convert_hf_to_gguf reads the directory
        assert vocabulary.merges == value("ggml.merges"), "the merges of gguf's own reader"


def refusals(place):
    """GGUF refuses what llama.cpp would do otherwise, by name"""
    run = trained(place, "llama3")
    def refused(what, change):
        directory = place.file("changed")
        os.makedirs(directory, exist_ok=True)
        with open(make(place, "llama3") + "/tokenizer.json", encoding="utf-8") as file:
            written = json.load(file)
        change(written)
        for name, text in [("tokenizer.json", json.dumps(written)), ("tokenizer_config.json", '{"eos_token": "<|end_of_text|>"}')]:
            with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        done = call([os.environ["TOKAMAK"], "checkpoint", "export", "--to", "gguf", "--tokenizer", directory,
                     run + "/checkpoints", place.file("refused.gguf")])
        assert done.returncode == 2 and what in done.stdout and not os.path.exists(place.file("refused.gguf")), (what, done.stdout)
    split = lambda written: written["pre_tokenizer"]["pretokenizers"][0]  # noqa: E731
    refused("the pattern", lambda w: split(w)["pattern"].update(Regex="\\p{L}+|\\s+"))
    refused("ignore_merges=true", lambda w: split(w)["pattern"].update(
        Regex="|".join([CONTRACTIONS, LETTERS, r"\p{N}", TAIL])))
    refused("add_prefix_space", lambda w: w["pre_tokenizer"]["pretokenizers"][1].update(add_prefix_space=True))
    refused("its normalizer", lambda w: w.update(normalizer={"type": "Prepend", "prepend": "x"}))


if __name__ == "__main__":
    main([hf_and_back, gguf_reader, refusals])
