#!/usr/bin/env python3
"""Writes tests/golden/*.safetensors: results of Hugging Face's classes (FAMILIES below) on tiny models, and the
frequencies of the rotary embedding under every kind of rope_scaling.

The numbers must be those of the published implementation: this script only chooses weights and data, calls the model
and records. tests/golden/README.md describes every tensor. The same machine and the same versions
(requirements-goldens.txt) give the same bytes; another processor may differ in the last bits. Longer than 400 lines, as
its cases share the models and the way they are recorded.

    python scripts/dev/make_goldens.py [output directory, default tests/golden] [only these cases ...]
"""
import copy
import json
import platform
import sys
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
import transformers

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2
LENGTHS = (16, 37)  # the second is not a multiple of any tile size
ADAMW = {"steps": 20, "sequence_length": 16, "lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
         "max_grad_norm": 1.0}

# Names as in src/model/model_config.h. Heads are wider than hidden_size / num_attention_heads; 88 and 101 are awkward.
# With five times the usual initializer_range, attention is far from uniform and no gradient is tiny. A larger one would
# give a bf16 run more rounding noise than a test can allow.
BASE = {"hidden_size": 32, "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
        "vocab_size": 101, "max_position_embeddings": 64, "rope_theta": 10000.0, "rms_norm_eps": 1e-5,
        "initializer_range": 0.1}
CASES = {
    "llama_mha_untied": {"num_key_value_heads": 4, "tie_word_embeddings": False},
    "llama_mha_tied": {"num_key_value_heads": 4, "tie_word_embeddings": True},
    "llama_gqa_untied": {"num_key_value_heads": 2, "tie_word_embeddings": False},
    "llama_gqa_tied": {"num_key_value_heads": 2, "tie_word_embeddings": True},
}
# Tiny, since only the angles differ. Sequences of 37 exceed the original context, if there is one; those of 16 do not.
# Theta is small, so that 16 elements of a head see every branch of a formula.
ROPE = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 29, "tie_word_embeddings": True, "rope_theta": 100.0}
YARN16 = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 4.0, "beta_slow": 0.25,
          "original_max_position_embeddings": 16}
CASES |= {
    "llama_rope_linear": {**ROPE, "rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "llama_rope_dynamic": {**ROPE, "max_position_embeddings": 24,
                           "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    "llama_rope_yarn": {**ROPE, "rope_scaling": YARN16},
    "llama_rope_llama3": {**ROPE, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.5,
                                                   "high_freq_factor": 2.0, "original_max_position_embeddings": 16}},
}
# Other families differ from Llama by keys of our config that theirs lack.
SMALL = {"intermediate_size": 40, "num_key_value_heads": 2, "vocab_size": 61}
CASES |= {
    "qwen2_gqa_tied": {**SMALL, "head_dim": 8, "tie_word_embeddings": True, "qkv_bias": True},
    "qwen3_gqa_untied": {**SMALL, "head_dim": 12, "tie_word_embeddings": False, "qk_norm": True},
}
# Windows are shorter than both lengths. `hf`: what transformers calls the switches.
FULL, SLIDING = "full_attention", "sliding_attention"
WINDOW = {"intermediate_size": 40, "head_dim": 12, "num_key_value_heads": 2, "vocab_size": 61}
CASES |= {
    "mistral_window": {**WINDOW, "num_hidden_layers": 3, "tie_word_embeddings": True, "sliding_window": 5,
                       "hf": {"sliding_window": 5}},
    "qwen3_window": {**WINDOW, "num_hidden_layers": 3, "tie_word_embeddings": False, "qk_norm": True,
                     "sliding_window": 7, "layer_types": [FULL, SLIDING],
                     "hf": {"use_sliding_window": True, "sliding_window": 7,
                            "layer_types": [FULL, SLIDING, FULL]}},
    "smollm3": {**WINDOW, "num_hidden_layers": 4, "tie_word_embeddings": True, "rope_theta": 100.0,
                "no_rope_layers": [1, 0, 0, 1], "hf": {"no_rope_layers": [1, 0, 0, 1], "use_sliding_window": False}},
}
CASES |= {
    "olmo2": {**SMALL, "head_dim": 12, "tie_word_embeddings": False, "norm_placement": "post", "qk_norm": "all"},
    # yarn with its attention factor in full layers alone; sliding layers have another theta.
    "olmo3": {**WINDOW, "tie_word_embeddings": False, "norm_placement": "post",
              "qk_norm": "all", "sliding_window": 7, "layer_types": [SLIDING, FULL], "rope_theta": 100.0,
              "rope_local_base_freq": 20.0, "rope_scaling": YARN16,
              "hf": {"sliding_window": 7, "layer_types": [SLIDING, FULL]}},
    "gemma3": {**WINDOW, "tie_word_embeddings": True, "norm_placement": "both", "norm_zero_centered": True,
               "hidden_act": "gelu_pytorch_tanh", "scale_embeddings": True, "qk_norm": "head",
               "query_pre_attn_scalar": 24, "sliding_window": 7, "layer_types": [SLIDING, FULL], "rope_theta": 100.0,
               "rope_local_base_freq": 30.0, "rope_scaling": {"rope_type": "linear", "factor": 4.0},
               "hf": {"sliding_window": 7, "layer_types": [SLIDING, FULL], "query_pre_attn_scalar": 24}},
}
CASES |= {
    # Scores and logits are large enough that both caps bend them.
    "gemma2": {**WINDOW, "tie_word_embeddings": True, "norm_placement": "both", "norm_zero_centered": True,
               "hidden_act": "gelu_pytorch_tanh", "scale_embeddings": True, "qkv_bias": True, "o_bias": True,
               "query_pre_attn_scalar": 6, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 2.0,
               "sliding_window": 7, "layer_types": [SLIDING, FULL],
               "hf": {"sliding_window": 7, "layer_types": [SLIDING, FULL], "query_pre_attn_scalar": 6,
                      "attention_bias": True}},
    "llama_biases": {**SMALL, "head_dim": 12, "tie_word_embeddings": False, "qkv_bias": True, "o_bias": True,
                     "mlp_bias": True, "hf": {"attention_bias": True}},
}
FAMILIES = {family: (getattr(transformers, f"{name}Config"), getattr(transformers, f"{name}ForCausalLM"))
            for family, name in [("llama", "Llama"), ("qwen2", "Qwen2"), ("qwen3", "Qwen3"), ("mistral", "Mistral"),
                                 ("smollm3", "SmolLM3"), ("olmo2", "Olmo2"), ("olmo3", "Olmo3"), ("gemma2", "Gemma2")]}
FAMILIES["gemma3"] = (transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM)
OURS_ALONE = ("rope_theta", "rope_scaling", "qkv_bias", "o_bias", "qk_norm", "norm_placement", "sliding_window", "layer_types",
              "no_rope_layers", "rope_local_base_freq", "norm_zero_centered", "hidden_act", "scale_embeddings",
              "query_pre_attn_scalar", "hf")
ANGLES_ONLY = [name for name in CASES if name.startswith("llama_rope_")]  # recorded in f32 only, without AdamW

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
# (head_dim, rope_theta, max_position_embeddings, length, rope_scaling)
FREQUENCIES = [
    (16, 10000.0, 2048, 2048, {"rope_type": "default"}),
    (16, 10000.0, 2048, 2048, {"rope_type": "linear", "factor": 3.0}),
    (16, 10000.0, 2048, 100, {"rope_type": "dynamic", "factor": 2.0}),
    (16, 10000.0, 2048, 2049, {"rope_type": "dynamic", "factor": 2.0}),
    (128, 10000.0, 2048, 4096, {"rope_type": "dynamic", "factor": 2.0}),
    (64, 500000.0, 1000, 7000, {"rope_type": "dynamic", "factor": 1.5}),
    (16, 10000.0, 8192, 8192, YARN),
    (128, 1000000.0, 131072, 131072, {**YARN, "original_max_position_embeddings": 32768}),
    (128, 1000000.0, 131072, 131072, {**YARN, "original_max_position_embeddings": 32768, "truncate": False}),
    (64, 10000.0, 8192, 8192, {**YARN, "beta_fast": 16.0, "beta_slow": 2.0}),
    (64, 10000.0, 8192, 8192, {**YARN, "attention_factor": 0.75}),
    (64, 10000.0, 8192, 8192, {**YARN, "mscale": 0.707, "mscale_all_dim": 1.5}),
    (64, 10000.0, 10240, 8192, {**YARN, "factor": None}),
    (64, 10000.0, 2048, 2048, {**YARN, "factor": 1.0}),
    (64, 10000.0, 3072, 3072, {**YARN, "factor": 1.5}),
    (64, 10000.0, 8192, 8192, {**YARN, "beta_fast": 3.0, "beta_slow": 3.0, "truncate": False}),  # low is high
    (64, 10000.0, 64, 64, {**YARN, "original_max_position_embeddings": 16}),  # no frequency makes 32 turns, so low is 0
    (16, 10000.0, 16, 16, {**YARN, "original_max_position_embeddings": 4, "beta_slow": 4.0}),  # nor 4: high < low
    (16, 10000.0, 16, 16, {**YARN, "original_max_position_embeddings": 6}),  # low and high are 0
    (16, 8.0, 2048, 2048, {**YARN, "original_max_position_embeddings": 512}),  # high is cut to the end of the head
    (16, 500000.0, 131072, 8192, LLAMA3),
    (128, 500000.0, 131072, 8192, LLAMA3),
    (64, 10000.0, 131072, 8192, {**LLAMA3, "factor": 32.0, "low_freq_factor": 2.0, "high_freq_factor": 3.0,
                                 "original_max_position_embeddings": 1024}),
]


# (A, B), adjust_lr_fn, nesterov, weight decay
MUON = {"steps": 60, "lr": 0.02, "momentum": 0.95,
        "cases": [((12, 20), "match_rms_adamw", True, 0.1), ((20, 12), "original", True, 0.1),
                  ((7, 13), "original", False, 0.0), ((15, 15), "match_rms_adamw", False, 0.1)]}

# Sizes (hidden, intermediate, heads, head_dim, layers) of a model and of its base, and what else differs. The ratios of
# a case differ. Eps and decay are large, so that a wrong factor of them shows.
MUP = {"steps": 5, "sequence_length": 16, "lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-3, "weight_decay": 0.5,
       "initializer_range": 0.3, "vocab_size": 61, "num_key_value_heads": 2, "rope_theta": 10000.0, "rms_norm_eps": 1e-5}
MUP["cases"] = [
    {"sizes": (24, 40, 4, 8, 4), "base": (8, 20, 2, 8, 2), "alpha": 1.0},
    {"sizes": (24, 40, 4, 16, 4), "base": (8, 8, 2, 4, 1), "alpha": 0.5, "tied": True, "qkv_bias": True},
    {"sizes": (16, 40, 4, 16, 3), "base": (8, 40, 4, 8, 2), "alpha": 0.75, "qk_norm": True},
    {"sizes": (16, 40, 4, 8, 2), "base": (16, 40, 4, 8, 1), "alpha": 1.0, "tied": True}]


def rope_parameters(config):
    of_all = {"rope_type": "default", **config.get("rope_scaling", {}), "rope_theta": config["rope_theta"]}
    if "rope_local_base_freq" not in config:
        return of_all
    return {FULL: of_all, SLIDING: {"rope_type": "default", "rope_theta": config["rope_local_base_freq"]}}


def build_model(name, config, rng):
    """The model with weights drawn here, so that they do not depend on how a version of transformers initialises."""
    hf = {k: v for k, v in config.items() if k not in OURS_ALONE} | config.get("hf", {})
    hf["pad_token_id"] = None  # the row of a padding token would get no gradient
    hf["rope_parameters"] = rope_parameters(config)
    config_class, model_class = FAMILIES[name.split("_")[0]]
    model = model_class(config_class(**hf, attn_implementation="eager", use_cache=False))
    assert model.config._attn_implementation == "eager" and model.dtype == torch.float32
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == config["tie_word_embeddings"]
    with torch.no_grad():
        # Norms multiply by [0.5, 1.5), biases of 0.3: a missing one must show.
        center = 0.0 if config.get("norm_zero_centered") else 1.0
        for parameter, p in model.named_parameters():
            values = (0.3 * rng.standard_normal(p.shape) if parameter.endswith(".bias")
                      else rng.uniform(center - 0.5, center + 0.5, p.shape) if p.dim() == 1
                      else config["initializer_range"] * rng.standard_normal(p.shape))
            p.copy_(torch.from_numpy(values.astype(np.float32)))
    return model


def draw_batches(count, length, vocab, rng):
    """Token ids and their successors, both (count, BATCH, length): x -> 7 x + 3 most of the time, else random, so that
    there is something to learn."""
    ids = np.empty((count, BATCH, length + 1), dtype=np.int64)
    ids[..., 0] = rng.integers(vocab, size=(count, BATCH))
    for t in range(length):
        noise = rng.integers(vocab, size=(count, BATCH))
        ids[..., t + 1] = np.where(rng.random((count, BATCH)) < 0.85, (7 * ids[..., t] + 3) % vocab, noise)
    return torch.from_numpy(ids[..., :-1].copy()), torch.from_numpy(ids[..., 1:].copy())


def forward(model, ids, targets):
    """Logits as float32 (B, T, V) and their mean cross-entropy over all B T positions; nothing is shifted here."""
    logits = model(input_ids=ids).logits.float()
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def record_run(model, ids, targets, prefix, out):
    """Logits, loss and every gradient; gradients keep the dtype of the weights."""
    model.zero_grad(set_to_none=True)
    logits, loss = forward(model, ids, targets)
    loss.backward()
    out[f"{prefix}/logits"] = logits.detach()
    out[f"{prefix}/loss"] = loss.detach()
    out.update({f"{prefix}/grad/{name}": p.grad.clone() for name, p in model.named_parameters()})


def to_bf16(model):
    """A copy with bf16 weights. The rotary frequencies are not weights and stay fp32, as in a model loaded in bf16."""
    copied = copy.deepcopy(model)
    for p in copied.parameters():
        p.data = p.data.to(torch.bfloat16)
    assert all(b.dtype == torch.float32 for b in copied.buffers())
    return copied


def record_adamw(model, ids, targets, out):
    """Trains `model` on the given batches, one step each; returns the order of the final norms."""
    decayed = [p for p in model.parameters() if p.dim() == 2]
    norm_weights = [p for p in model.parameters() if p.dim() == 1]  # has biases, too
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": ADAMW["weight_decay"]}, {"params": norm_weights, "weight_decay": 0.0}],
        lr=ADAMW["lr"], betas=tuple(ADAMW["betas"]), eps=ADAMW["eps"], foreach=False, fused=False)
    losses, grad_norms = [], []
    for step_ids, step_targets in zip(ids, targets):
        optimizer.zero_grad()
        _, loss = forward(model, step_ids, step_targets)
        loss.backward()
        grad_norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), ADAMW["max_grad_norm"]).detach())
        losses.append(loss.detach())
        optimizer.step()
    out["adamw/input_ids"], out["adamw/targets"] = ids.int(), targets.int()
    out["adamw/losses"], out["adamw/grad_norms"] = torch.stack(losses), torch.stack(grad_norms)
    named = dict(model.named_parameters())
    out["adamw/final_norms"] = torch.stack([p.detach().double().norm() for p in named.values()]).float()
    return list(named)


def write(path, tensors, metadata):
    """safetensors does not fix the order of the metadata; sorting makes the bytes reproducible."""
    text = {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    data = safetensors.torch.save({k: v.contiguous() for k, v in tensors.items()}, text)
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    assert len(text) == size
    path.write_bytes(data[:8] + text + data[8 + size:])


def provenance():
    versions = {"python": platform.python_version(), "torch": torch.__version__,
                "transformers": transformers.__version__, "numpy": np.__version__,
                "safetensors": safetensors.__version__}
    return {"versions": versions, "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "generator": "scripts/dev/make_goldens.py"}


def make_case(name, seed, directory):
    config = {**BASE, **CASES[name]}
    rng = np.random.Generator(np.random.PCG64(seed))
    model = build_model(name, config, rng)
    out = {n: p.detach().clone() for n, p in model.named_parameters()}  # a tied lm_head is not listed twice
    bf16_model = to_bf16(model)
    for length in LENGTHS:
        ids, targets = (b[0] for b in draw_batches(1, length, config["vocab_size"], rng))
        out[f"t{length}/input_ids"], out[f"t{length}/targets"] = ids.int(), targets.int()
        record_run(model, ids, targets, f"t{length}", out)
        if name not in ANGLES_ONLY:
            record_run(bf16_model, ids, targets, f"bf16/t{length}", out)
    metadata = {"config": config, "seed": seed, "attn_implementation": "eager", **provenance()}
    said = f"loss {' '.join(format(out[f't{t}/loss'], '.6f') for t in LENGTHS)}"
    if name not in ANGLES_ONLY:
        batches = draw_batches(ADAMW["steps"], ADAMW["sequence_length"], config["vocab_size"], rng)
        metadata |= {"adamw": ADAMW, "adamw_final_norms_order": record_adamw(model, *batches, out)}
        said += (f", adamw loss {out['adamw/losses'][0]:.4f} -> {out['adamw/losses'][-1]:.4f},"
                 f" grad norm {out['adamw/grad_norms'].min():.3f} .. {out['adamw/grad_norms'].max():.3f}")
    path = directory / f"{name}.safetensors"
    write(path, out, metadata)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(out)} tensors, {said}")


def make_frequencies(directory):
    """The rotary frequencies and attention factors that transformers computes for the settings of FREQUENCIES."""
    out, cases = {}, []
    for i, (head_dim, theta, longest, length, scaling) in enumerate(FREQUENCIES):
        case = {"head_dim": head_dim, "rope_theta": theta, "max_position_embeddings": longest, "rope_scaling": scaling}
        sizes = {"hidden_size": head_dim, "num_attention_heads": 1, "head_dim": head_dim}
        config = transformers.LlamaConfig(max_position_embeddings=longest, rope_parameters=rope_parameters(case), **sizes)
        rope = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
        rope(torch.zeros(1), torch.arange(length)[None])  # sets the length, on which "dynamic" depends
        out[f"{i}/w"] = rope.inv_freq.clone()
        cases.append({**case, "length": length, "attention_factor": rope.attention_scaling})
    path = directory / "rope_frequencies.safetensors"
    write(path, out, {"cases": cases, **provenance()})
    print(f"{path.name}: {path.stat().st_size} bytes, {len(out)} tensors")


def make_muon(directory):
    """Weights before and after MUON["steps"] steps of torch.optim.Muon, each on stored gradients."""
    rng = np.random.default_rng(11)
    out, cases = {}, []
    for i, (shape, scale, nesterov, decay) in enumerate(MUON["cases"]):
        weight = torch.nn.Parameter(torch.tensor(rng.normal(0, 0.5, shape), dtype=torch.float32))
        gradients = torch.tensor(rng.normal(0, 1, (MUON["steps"], *shape)), dtype=torch.float32)
        optimizer = torch.optim.Muon([weight], lr=MUON["lr"], weight_decay=decay, momentum=MUON["momentum"],
                                     nesterov=nesterov, ns_steps=5, adjust_lr_fn=scale)
        out[f"{i}/start"] = weight.detach().clone()
        out[f"{i}/gradients"] = gradients
        for gradient in gradients:
            weight.grad = gradient.clone()
            optimizer.step()
        out[f"{i}/end"] = weight.detach().clone()
        cases.append({"shape": shape, "scale": scale, "nesterov": nesterov, "weight_decay": decay})
    path = directory / "muon.safetensors"
    write(path, out, {**MUON, "cases": cases, **provenance()})
    print(f"{path.name}: {path.stat().st_size} bytes, {len(out)} tensors")


def mup_rules(case):
    """The multiplier after each kind of weight, and {kind: (init std, lr, decay, eps)} relative to the base. They are
    those of EleutherAI/nanoGPT-mup, branch completep, model.py, whose c_proj are o and down here."""
    (m, m_d, _, _, n), alpha = [a / b for a, b in zip(case["sizes"], case["base"])], case["alpha"]
    m_o = case["sizes"][2] * case["sizes"][3] / (case["base"][2] * case["base"][3])
    depth_lr, outer_eps, hidden_eps = n ** (alpha - 1), 1 / m, 1 / m * n ** -alpha
    hidden = {kind: (fan_in ** -0.5, depth_lr / fan_in, fan_in, hidden_eps)
              for kind, fan_in in [("in", m), ("q", m), ("o", m_o), ("down", m_d)]}
    rules = {"outer": (1, 1, 1, outer_eps), "final": (1, 1, 1, outer_eps), "head": (1, 1, 1, outer_eps),
             "vector": (1, depth_lr, 1, hidden_eps), "q_vector": (1, depth_lr, 1, hidden_eps), **hidden}
    attention = (case["base"][3] / case["sizes"][3]) ** 0.5  # 1/D instead of 1/sqrt(D), equal for the base
    multipliers = dict.fromkeys(rules, 1) | {"o": n ** -alpha, "down": n ** -alpha, "q_vector": attention,
                                             "final" if case.get("tied") else "head": 1 / m}
    if not case.get("qk_norm"):
        multipliers["q"] = attention
    return multipliers, rules


def mup_kind(name, case):
    vector = "q_vector" if ("q_norm" if case.get("qk_norm") else "q_proj.bias") in name else "vector"
    kinds = {"embed_tokens": "outer", "lm_head": "head", "model.norm": "final", "norm": vector, "bias": vector,
             "q_proj": "q", "o_proj": "o", "down_proj": "down"}
    return next((kind for part, kind in kinds.items() if part in name), "in")


def mup_shapes(case):
    (hidden, inner, heads, dim, layers), kv = case["sizes"], MUP["num_key_value_heads"] * case["sizes"][3]
    out = {"model.embed_tokens.weight": (MUP["vocab_size"], hidden)}
    for layer in (f"model.layers.{i}" for i in range(layers)):
        widths = {"q": heads * dim, "k": kv, "v": kv}
        out |= {f"{layer}.self_attn.{x}_proj.weight": (rows, hidden) for x, rows in widths.items()}
        out |= {f"{layer}.self_attn.o_proj.weight": (hidden, heads * dim)}
        out |= {f"{layer}.mlp.{x}_proj.weight": (inner, hidden) for x in ("gate", "up")}
        out |= {f"{layer}.mlp.down_proj.weight": (hidden, inner)}
        out |= {f"{layer}.{x}_layernorm.weight": (hidden,) for x in ("input", "post_attention")}
        out |= {f"{layer}.self_attn.{x}_proj.bias": (rows,) for x, rows in widths.items() if case.get("qkv_bias")}
        out |= {f"{layer}.self_attn.{x}_norm.weight": (dim,) for x in "qk" if case.get("qk_norm")}
    out["model.norm.weight"] = (hidden,)
    return out if case.get("tied") else out | {"lm_head.weight": (MUP["vocab_size"], hidden)}


def mup_logits(w, case, multipliers, ids):
    """A Llama in float64 whose multipliers stand in the forward pass."""
    _, _, heads, dim, layers = case["sizes"]
    kv, (batch, length) = MUP["num_key_value_heads"], ids.shape
    times = lambda name: multipliers[mup_kind(name, case)]
    norm = lambda x, name: (x * (x.square().mean(-1, keepdim=True) + MUP["rms_norm_eps"]).rsqrt()
                            * w[name] * times(name))
    def linear(x, name):
        y = x @ w[f"{name}.weight"].T
        return (y + w[f"{name}.bias"] if f"{name}.bias" in w else y) * times(f"{name}.weight")
    angles = torch.outer(torch.arange(length, dtype=torch.float64),
                         MUP["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim))
    cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
    rotate = lambda x: x * cos + torch.cat([-x[..., dim // 2:], x[..., :dim // 2]], -1) * sin
    hidden_future = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)
    x = w["model.embed_tokens.weight"][ids]
    for layer in (f"model.layers.{i}" for i in range(layers)):
        h, own = norm(x, f"{layer}.input_layernorm.weight"), f"{layer}.self_attn"
        q, k, v = (linear(h, f"{own}.{name}_proj").view(batch, length, count, dim).transpose(1, 2)
                   for name, count in (("q", heads), ("k", kv), ("v", kv)))
        if case.get("qk_norm"):
            q, k = norm(q, f"{own}.q_norm.weight"), norm(k, f"{own}.k_norm.weight")
        k, v = (y.repeat_interleave(heads // kv, 1) for y in (rotate(k), v))
        weights = torch.softmax(rotate(q) @ k.transpose(-1, -2) / dim ** 0.5 + hidden_future, -1)
        x = x + linear((weights @ v).transpose(1, 2).flatten(2), f"{own}.o_proj")
        h = norm(x, f"{layer}.post_attention_layernorm.weight")
        gate, up = linear(h, f"{layer}.mlp.gate_proj"), linear(h, f"{layer}.mlp.up_proj")
        x = x + linear(torch.nn.functional.silu(gate) * up, f"{layer}.mlp.down_proj")
    x = norm(x, "model.norm.weight")
    head = "model.embed_tokens.weight" if case.get("tied") else "lm_head.weight"
    return x @ w[head].T * (1 if case.get("tied") else times(head))


def make_mup(directory):
    """MUP["steps"] steps of AdamW in float64 on the published form of muP: multipliers in the forward pass. `normal`:
    initial values of matrices before their standard deviation. `end`: the last weights times their multipliers."""
    rng = np.random.default_rng(12)
    out = {}
    for i, case in enumerate(MUP["cases"]):
        multipliers, rules = mup_rules(case)
        w, groups = {}, []
        for name, shape in mup_shapes(case).items():
            std, lr, decay, eps = rules[mup_kind(name, case)]
            if len(shape) == 2:
                out[f"{i}/normal/{name}"] = torch.tensor(rng.standard_normal(shape), dtype=torch.float32)
                start = out[f"{i}/normal/{name}"].double() * MUP["initializer_range"] * std
            else:
                start = torch.full(shape, 0.0 if name.endswith(".bias") else 1.0, dtype=torch.float64)
            w[name] = torch.nn.Parameter(start)
            groups.append({"params": [w[name]], "lr": MUP["lr"] * lr, "eps": MUP["eps"] * eps,
                           "weight_decay": MUP["weight_decay"] * decay if len(shape) == 2 else 0.0})
        optimizer = torch.optim.AdamW(groups, betas=tuple(MUP["betas"]), foreach=False, fused=False)
        ids, targets = draw_batches(MUP["steps"] + 1, MUP["sequence_length"], MUP["vocab_size"], rng)
        losses = []
        for step in range(MUP["steps"] + 1):
            logits = mup_logits(w, case, multipliers, ids[step])
            losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets[step].flatten()))
            if step < MUP["steps"]:
                optimizer.zero_grad()
                losses[-1].backward()
                optimizer.step()
        out |= {f"{i}/end/{name}": (p.detach() * multipliers[mup_kind(name, case)]).float() for name, p in w.items()}
        out[f"{i}/input_ids"], out[f"{i}/targets"] = ids.int(), targets.int()
        out[f"{i}/losses"], out[f"{i}/logits"] = torch.stack(losses).detach().float(), logits.detach().float()
        print(f"mup {i}: loss", " ".join(f"{x:.6f}" for x in out[f"{i}/losses"]))
    path = directory / "mup.safetensors"
    write(path, out, {**MUP, **provenance()})
    print(f"{path.name}: {path.stat().st_size} bytes, {len(out)} tensors")


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "golden"
    only = sys.argv[2:]  # names of cases
    for seed, name in enumerate(CASES, start=1):
        if not only or name in only:
            make_case(name, seed, directory)
    if only:
        return
    make_frequencies(directory)
    make_muon(directory)
    make_mup(directory)


if __name__ == "__main__":
    main()
