"""Our keys for a small model of each family, as every format can hold it (harness.CONFIG with these overrides)."""
WINDOWS = ("model.sliding_window=9", "model.layer_types=[sliding_attention, full_attention]")
YARN = "model.rope_scaling={rope_type: yarn, factor: 2.0, original_max_position_embeddings: 32}"
LINEAR = "model.rope_scaling={rope_type: linear, factor: 2.0}"
TIED = "model.tie_word_embeddings=true"
ALL_BIASES = ("model.qkv_bias=true", "model.o_bias=true", "model.mlp_bias=true")
OLMO = ("model.norm_placement=post", "model.qk_norm=all")
GEMMA = ("model.norm_placement=both", "model.norm_zero_centered=true", "model.hidden_act=gelu_pytorch_tanh",
         "model.scale_embeddings=true", TIED, *WINDOWS)
FAMILIES = {
    "qwen2": ("model.qkv_bias=true",),
    "qwen3": ("model.qk_norm=head",),
    "smollm3": ("model.no_rope_layers=[1, 1, 1, 0]", "model.num_hidden_layers=4", TIED),
    "olmo2": OLMO,
    "olmo3": (*OLMO, *WINDOWS, "model.rope_local_base_freq=10000", YARN),
    "gemma2": (*GEMMA, "model.attn_logit_softcapping=50", "model.final_logit_softcapping=30"),
    "gemma3": (*GEMMA, "model.qk_norm=head", "model.rope_local_base_freq=500", LINEAR),
    "biases": ALL_BIASES,
    "embedding-norm": ("model.embedding_norm=true", TIED),
}
