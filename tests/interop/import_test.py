"""Models that transformers made, imported, exported again and trained on: import_test.py [case]."""
import os
import shutil

from reference import expect_equal_logits, our_logits, their_logits  # first: enters the right Python
import numpy as np
import torch
import transformers
from harness import call, main, tokamak

SIZES = {"vocab_size": 400, "hidden_size": 48, "intermediate_size": 100, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.1,
         "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
MODELS = {  # name: class, dtype, what differs
    "llama": ("Llama", torch.float32, {"num_key_value_heads": 4, "head_dim": 16}),
    "llama-tied": ("Llama", torch.bfloat16, {"tie_word_embeddings": True, "rope_parameters": LLAMA3}),
    "llama-half": ("Llama", torch.float16, {}),
    "mistral": ("Mistral", torch.bfloat16, {"sliding_window": None}),
    "qwen2": ("Qwen2", torch.float32, {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", torch.bfloat16, {"head_dim": 16, "num_key_value_heads": 1}),
    "mistral-window": ("Mistral", torch.float32, {"sliding_window": 64}),
}


def make(place, name, shard="50KB"):
    """A random model, saved by transformers, in several files."""
    kind, dtype, more = MODELS[name]
    config = getattr(transformers, kind + "Config")(**{**SIZES, **more})
    torch.manual_seed(len(name))
    model = getattr(transformers, kind + "ForCausalLM")(config)
    with torch.no_grad():
        for parameter in model.parameters():  # norm weights and biases that are left out must show
            if parameter.dim() == 1:
                parameter.copy_(torch.empty_like(parameter).uniform_(0.5, 1.5))
    out = place.file("made-" + name)
    if not os.path.exists(out):
        model.to(dtype).save_pretrained(out, max_shard_size=shard)
    return out


def imported(place, name, *options):
    out = place.file("imported-" + name)
    if not os.path.exists(out):
        print("  " + tokamak("checkpoint", "import", "--from", "hf", make(place, name), out, *options).splitlines()[-1])
    return out


def bits(directory):
    """{tensor: (dtype, shape, bytes)} of all safetensors files."""
    from safetensors import safe_open
    found = {}
    for file in sorted(os.listdir(directory)):
        if not file.endswith(".safetensors"):
            continue
        with safe_open(f"{directory}/{file}", "pt") as tensors:
            for name in tensors.keys():
                tensor = tensors.get_tensor(name)
                raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
                found[name] = (tensor.dtype, tuple(tensor.shape), raw)
    return found


def round_trip(place):
    """import, then export: the same tensors with the same bits; and our logits of the import are theirs within 1e-4"""
    rng = np.random.default_rng(4)
    for name, (kind, dtype, _) in MODELS.items():
        made, run = make(place, name), imported(place, name)
        ids = rng.integers(0, 400, (2, 64))
        theirs, _ = their_logits(made, ids)
        expect_equal_logits(our_logits(place, run + "/checkpoints", ids), theirs, name)
        expect_equal_logits(our_logits(place, made, ids), theirs, name + ", without a checkpoint")
        again = place.file("again-" + name)
        wire = "bf16" if dtype == torch.bfloat16 else "f32"
        tokamak("checkpoint", "export", "--to", "hf", "--dtype", wire, "--tokenizer", "none", run + "/checkpoints",
                again)
        expected, found = bits(made), bits(again)
        if dtype == torch.float16:  # becomes f32, exactly
            expected = {n: (torch.float32, s, np.frombuffer(raw, np.float16).astype(np.float32).tobytes())
                        for n, (_, s, raw) in expected.items()}
        assert found == expected, (name, {n for n in set(found) | set(expected) if found.get(n) != expected.get(n)})
        expect_equal_logits(their_logits(again, ids)[0], theirs, name + ", exported again", 1e-6)


STEPS, BATCH, LENGTH = 10, 4, 32
TRAINING = (f"training.max_steps={STEPS}", f"training.global_batch_tokens={BATCH * LENGTH}", "precision.compute=f32",
            f"data.sequence_length={LENGTH}", "data.order=sequential", "data.document_masking=false",
            "optimizer.lr=1e-2", "optimizer.betas=[0.9, 0.95]", "optimizer.eps=1e-8", "optimizer.weight_decay=0.1",
            "lr_scheduler.warmup=0", "lr_scheduler.decay_type=linear", "lr_scheduler.min_lr_factor=1",
            "training.max_grad_norm=1", "training.micro_batch_size=2", "metrics.log_interval=1",
            "runtime.threads_per_rank=1")


def tokens_of(place, count):
    text = tokamak("data", "inspect", "--sample", "0", "--sequence-length", str(count), place.data + "/train")
    lines = text[text.index("\nwindow "):].splitlines()
    return np.array([int(w) for line in lines[2:] if not line.startswith("---") for w in line.split()])


def torch_losses(made, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32, attn_implementation="eager")
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
                                   {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
                                  lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for step in range(STEPS):
        first = [(step * BATCH + i) * LENGTH for i in range(BATCH)]
        ids = torch.from_numpy(np.stack([tokens[f:f + LENGTH] for f in first]))
        targets = torch.from_numpy(np.stack([tokens[f + 1:f + LENGTH + 1] for f in first]))
        loss = torch.nn.functional.cross_entropy(model(input_ids=ids).logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def training(place):
    """ten steps from an import follow torch's AdamW within 1e-5, from its own config and on two ranks alike"""
    tokens = tokens_of(place, STEPS * BATCH * LENGTH + 1)
    data = f"data.sources=[{{path: {place.data}/train}}]"
    for name, (kind, dtype, _) in MODELS.items():
        if dtype == torch.float16:
            continue
        run = imported(place, name)
        expected = torch_losses(make(place, name), tokens)
        assert expected[-1] < expected[0] - 0.05, expected
        # In its own directory by its own config, alone; and from elsewhere, on two ranks.
        tokamak("train", run + "/config.yaml", data, *TRAINING)
        with open(run + "/config.yaml") as file:
            text = file.read().replace("{", "{{").replace("}", "}}")
        place.train("on-" + name, 2, f"run.output_dir={place.run('on-' + name)}",
                    f"checkpoint.load={run}/checkpoints/step-00000000", text=text)
        for where, path in (("alone", run), ("on two ranks", place.run("on-" + name))):
            losses = list(place.records(os.path.relpath(path, place.run(""))).values())
            assert len(losses) == STEPS, losses
            worst = max(abs(a - b) / b for a, b in zip(losses, expected))
            assert worst < 1e-5, (name, where, losses, expected)
            print(f"  {name}, {where}: losses {losses[0]:.4f} to {losses[-1]:.4f}, {worst:.1e} off at most")


def other_tokenizer(place):
    """an import that brings its tokenizer is not trained on data of another"""
    made = make(place, "llama")
    with_tokenizer = place.file("with-tokenizer")
    shutil.copytree(made, with_tokenizer)
    tokamak("tokenizer", "train", "--input", place.file("text.jsonl"), "--vocab-size", "390", "--output",
            with_tokenizer + "/tokenizer.model")
    run = place.file("imported-with-tokenizer")
    tokamak("checkpoint", "import", "--from", "hf", with_tokenizer, run)
    done = call([os.environ["TOKAMAK"], "train", run + "/config.yaml", f"data.sources=[{{path: {place.data}/train}}]",
                 *TRAINING])
    assert done.returncode == 3 and "another tokenizer" in done.stdout, done.stdout
    assert os.path.exists(run + "/tokenizer.model")


main([round_trip, training, other_tokenizer])
