// Each rule, broken by one override of a valid config.
#include "config/validate.h"

#include <limits>

#include "config/sample.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("each value has its range") {
  const auto [override_text, sentence] = GENERATE(table<std::string, std::string>({
      {"run.name=''", "key 'run.name' is required"},
      {"run.output_dir=''", "key 'run.output_dir' is required"},
      {"run.seed=-1", "key 'run.seed' (value -1) must be at least 0"},
      {"model.hidden_size=0", "key 'model.hidden_size' is required"},
      {"model.hidden_size=-64", "key 'model.hidden_size' (value -64) must be from 1 to 1048576"},
      {"model.hidden_size=1T", "key 'model.hidden_size' (value 1000000000000) must be from 1 to 1048576"},
      {"model.intermediate_size=0", "key 'model.intermediate_size' is required"},
      {"model.num_hidden_layers=0", "key 'model.num_hidden_layers' is required"},
      {"model.num_attention_heads=0", "key 'model.num_attention_heads' is required"},
      {"model.num_key_value_heads=-1", "key 'model.num_key_value_heads' (value -1) must be from 0"},
      {"model.head_dim=-2", "key 'model.head_dim' (value -2) must be from 0"},
      {"model.sliding_window=-1", "key 'model.sliding_window' (value -1) must be from 0"},
      {"model.layer_types=[sliding]",
       "key 'model.layer_types[0]' (value 'sliding') must be one of full_attention, sliding_attention"},
      {"model.rope_local_base_freq=10", "key 'model.rope_local_base_freq' (value 10) needs sliding layers"},
      {"model.query_pre_attn_scalar=-1", "key 'model.query_pre_attn_scalar' (value -1) must be 0 or a positive number"},
      {"training.max_unit_grad_norm=-1", "key 'training.max_unit_grad_norm' (value -1) must be 0 or a positive number"},
      {"model.attn_logit_softcapping=-1",
       "key 'model.attn_logit_softcapping' (value -1) must be 0 or a positive number"},
      {"model.final_logit_softcapping=-0.5",
       "key 'model.final_logit_softcapping' (value -0.5) must be 0 or a positive number"},
      {"model={embedding_norm: true, scale_embeddings: true}",
       "key 'model.scale_embeddings' (value true) has no effect beside model.embedding_norm"},
      {"model.hidden_act=gelu", "key 'model.hidden_act' (value 'gelu') must be one of silu, gelu_pytorch_tanh"},
      {"model.norm_placement=middle", "key 'model.norm_placement' (value 'middle') must be one of pre, post, both"},
      {"model.qk_norm=heads", "key 'model.qk_norm' (value 'heads') must be one of none, head, all"},
      {"model.no_rope_layers=[1, 2]", "key 'model.no_rope_layers' (value 2) must be 1 or 0"},
      {"model.no_rope_layers=[1, 1, 1, 1, 1, 1, 1, 1, 0]",
       "key 'model.no_rope_layers' (value a list of 9) must have at most model.num_hidden_layers (2) items"},
      {"model.vocab_size=-1", "key 'model.vocab_size' (value -1) must be from 0"},
      {"model.max_position_embeddings=0", "key 'model.max_position_embeddings' (value 0) must be from 1"},
      {"model.rope_theta=0", "key 'model.rope_theta' (value 0) must be a positive number"},
      {"model.rms_norm_eps=-1", "key 'model.rms_norm_eps' (value -1) must be a positive number"},
      {"model.initializer_range=0", "key 'model.initializer_range' (value 0) must be a positive number"},
      {"data.sequence_length=0", "key 'data.sequence_length' is required"},
      {"data.sequence_length=-8", "key 'data.sequence_length' (value -8) must be at least 1"},
      {"data.sources=[]", "key 'data.sources' is required"},
      {"data.sources=[{weight: 1}]", "key 'data.sources[0].path' is required"},
      {"data.validation=[{path: a, weight: -1}]",
       "key 'data.validation[0].weight' (value -1) must be a positive number"},
      {"data.max_epochs=-1", "key 'data.max_epochs' (value -1) must be 0 or a positive number"},
      {"training.max_steps=-1", "key 'training.max_steps' (value -1) must be at least 0"},
      {"training.max_tokens=-1", "key 'training.max_tokens' (value -1) must be at least 0"},
      {"training.global_batch_tokens=0", "key 'training.global_batch_tokens' is required"},
      {"training.global_batch_tokens=-1", "key 'training.global_batch_tokens' (value -1) must be at least 1"},
      {"training.max_grad_norm=-1", "key 'training.max_grad_norm' (value -1) must be 0 or"},
      {"training.z_loss=-1", "key 'training.z_loss' (value -1) must be 0 or"},
      {"training.validation_interval=-1", "key 'training.validation_interval' (value -1) must be at least 0"},
      {"training.evals=[{task: text, path: x, by_position: true}]",
       "key 'training.evals[0].by_position' (value true) is for the task shards"},
      {"training.evals=[{task: gsm8k, path: x}]", "key 'training.evals[0].task' (value gsm8k) generates texts"},
      {"training.evals=[{task: custom, path: x}]", "key 'training.evals[0].form' is required"},
      {"training.evals=[{task: piqa, form: mine.yaml, path: x}]",
       "key 'training.evals[0].form' (value mine.yaml) is for the task custom"},
      {"training.evals=[{task: mmlu, path: x, num_fewshot: 5}]",
       "key 'training.evals[0].num_fewshot' (value 5) needs training.evals[0].fewshot_path"},
      {"training.evals=[{task: core, path: x, num_fewshot: 5, fewshot_path: y}]",
       "key 'training.evals[0].num_fewshot' (value 5) is for tasks of questions"},
      {"training.evals=[{path: x, num_fewshot: -1}]",
       "key 'training.evals[0].num_fewshot' (value -1) must be at least 0"},
      {"training.evals=[{path: x, name: \"a\\nnode_load1 99\"}]",
       "key 'training.evals[0].name' (value a\\nnode_load1 99) must be a word of letters, digits"},
      {"training.samples.interval=-1", "key 'training.samples.interval' (value -1) must be at least 0"},
      {"training.samples.interval=5", "key 'training.samples.interval' (value 5) needs training.samples.prompts"},
      {"training.samples={prompts: [It was]}",
       "key 'training.samples.interval' (value 0) must be at least 1 where there are training.samples.prompts (1)"},
      {"training.samples.tokens=0", "key 'training.samples.tokens' (value 0) must be at least 1"},
      {"training.samples.temperature=-1", "key 'training.samples.temperature' (value -1) must be 0 or"},
      {"training.samples.top_p=0", "key 'training.samples.top_p' (value 0) must be above 0 and at most 1"},
      {"training.samples.top_p=1.5", "key 'training.samples.top_p' (value 1.5) must be above 0 and at most 1"},
      {"training.samples.seed=-1", "key 'training.samples.seed' (value -1) must be at least 0"},
      {"optimizer.name=sgd", "key 'optimizer.name' (value 'sgd') must be adamw"},
      {"optimizer.lr=0", "key 'optimizer.lr' (value 0) must be a positive number"},
      {"optimizer.betas[0]=1", "key 'optimizer.betas[0]' (value 1) must be at least 0 and less than 1"},
      {"optimizer.betas[1]=-0.1", "key 'optimizer.betas[1]' (value -0.1) must be at least 0 and less than 1"},
      {"optimizer.eps=0", "key 'optimizer.eps' (value 0) must be a positive number"},
      {"optimizer.weight_decay=-1", "key 'optimizer.weight_decay' (value -1) must be 0 or"},
      {"lr_scheduler.warmup=10min", "key 'lr_scheduler.warmup' (value '10min') must be in steps or tokens"},
      {"lr_scheduler.decay_start=10min", "key 'lr_scheduler.decay_start' (value '10min') must be in steps or tokens"},
      {"lr_scheduler={decay_type: restarts, cycle_length: 10min}",
       "key 'lr_scheduler.cycle_length' (value '10min') must be in steps or tokens"},
      {"lr_scheduler={decay_type: restarts, cycle_length: none}",
       "key 'lr_scheduler.cycle_length' (value none) must be above 0"},
      {"lr_scheduler.cycle_length=10",
       "key 'lr_scheduler.cycle_length' (value 10 steps) is for lr_scheduler.decay_type: "
       "restarts, and that is cosine"},
      {"lr_scheduler.cycle_length_factor=0.5", "key 'lr_scheduler.cycle_length_factor' (value 0.5) must be at least 1"},
      {"lr_scheduler.cycle_peak_factor=0", "key 'lr_scheduler.cycle_peak_factor' (value 0) must be above 0"},
      {"lr_scheduler.cycle_peak_factor=1.1",
       "key 'lr_scheduler.cycle_peak_factor' (value 1.1) must be above 0 and at most 1"},
      {"lr_scheduler.decay_shape=sqrt",
       "key 'lr_scheduler.decay_shape' (value sqrt) is the shape of a tail, which lr_scheduler.decay_type: cosine has "
       "only with lr_scheduler.decay_start"},
      {"lr_scheduler={decay_type: wsd, decay_shape: exponential, min_lr_factor: 0}",
       "key 'lr_scheduler.min_lr_factor' (value 0) must be above 0 for lr_scheduler.decay_shape: exponential"},
      {"lr_scheduler.decay_ratio=1.1", "key 'lr_scheduler.decay_ratio' (value 1.1) must be from 0 to 1"},
      {"lr_scheduler.min_lr_factor=-5%", "key 'lr_scheduler.min_lr_factor' (value -0.05) must be from 0 to 1"},
      {"averages=[{every: 2}]", "key 'averages[0].name' is required"},
      {"averages=[{name: a/b}]", "key 'averages[0].name' (value a/b) must be a word of letters, digits, _, - and ."},
      {"averages=[{name: ema}, {name: ema}]", "key 'averages[1].name' (value ema) is the name of averages[0], too"},
      {"averages=[{name: ema, half_life: 100 steps}]",
       "key 'averages[0].half_life' (value '100 steps') must be tokens above 0"},
      {"averages=[{name: ema, every: 0}]", "key 'averages[0].every' (value 0) must be at least 1"},
      {"averages=[{name: ema, start: 10min}]", "key 'averages[0].start' (value '10min') must be in steps or tokens"},
      {"averages=[{name: ema, start: 101%}]", "key 'averages[0].start' (value '101%') is after the end of the run"},
      {"parallelism.zero_stage=0", "key 'parallelism.zero_stage' (value 0) must be from 1 to 3"},
      {"parallelism.zero_stage=4", "key 'parallelism.zero_stage' (value 4) must be from 1 to 3"},
      {"parallelism.data_parallel_replicate_degree=0",
       "key 'parallelism.data_parallel_replicate_degree' (value 0) must be at least 1"},
      {"parallelism.keep_gathered=3",
       "key 'parallelism.keep_gathered' (value 3) is more than model.num_hidden_layers (2)"},
      {"parallelism.keep_gathered=-1", "key 'parallelism.keep_gathered' (value '-1') must be auto, none or at least 1"},
      {"activation_checkpoint={mode: auto, kept_bytes: 4Ki}",
       "key 'activation_checkpoint.kept_bytes' (value 4096) is for activation_checkpoint.mode: selective, and the mode "
       "is auto"},
      {"activation_checkpoint.kept_bytes=4Ki",
       "key 'activation_checkpoint.kept_bytes' (value 4096) is for activation_checkpoint.mode: selective, and the mode "
       "is none"},
      {"activation_checkpoint={mode: full, kept_bytes: none}",
       "key 'activation_checkpoint.kept_bytes' (value none) is for activation_checkpoint.mode: selective, and the mode "
       "is full"},
      {"checkpoint.interval=5%", "key 'checkpoint.interval' (value '5%') must be in steps, tokens or time"},
      {"checkpoint.keep_latest=-1", "key 'checkpoint.keep_latest' (value -1) must be at least 0"},
      {"checkpoint.load=''", "key 'checkpoint.load' is required"},
      {"metrics.log_interval=0", "key 'metrics.log_interval' (value 0) must be at least 1"},
      {"resilience.watchdog_min=100", "key 'resilience.watchdog_min' (value '100') must be a time"},
      {"resilience.watchdog_min=0s", "key 'resilience.watchdog_min' (value 'none') must be at least 1s"},
      {"resilience.watchdog_min=1h",
       "key 'resilience.watchdog_min' (value '1h') is more than resilience.watchdog_max (30min)"},
      {"resilience.max_bad_steps=0", "key 'resilience.max_bad_steps' (value 0) must be at least 1"},
      {"resilience.recompute_interval=-1", "key 'resilience.recompute_interval' (value -1) must be at least 0"},
  }));
  CHECK_THAT(error_of(kSample, {override_text}), Contains(str("command line: ", override_text, ": ", sentence)));
}

TEST_CASE("settings of the stages that contradict each other are refused, with both values") {
  CHECK_THAT(error_of(kSample, {"parallelism.zero_stage=1", "parallelism.reduce=every_microbatch"}),
             Contains("key 'parallelism.reduce' (value every_microbatch) contradicts parallelism.zero_stage 1"));
  for (const int stage : {1, 2}) {
    CHECK_THAT(error_of(kSample, {str("parallelism.zero_stage=", stage), "parallelism.keep_gathered=1"}),
               Contains(str("key 'parallelism.keep_gathered' (value 1) contradicts parallelism.zero_stage ", stage)));
    CHECK_THAT(
        error_of(kSample, {str("parallelism.zero_stage=", stage), "parallelism.keep_gathered=auto"}),
        Contains(str("key 'parallelism.keep_gathered' (value auto) contradicts parallelism.zero_stage ", stage)));
  }
  CHECK_NOTHROW(parse_config(kSample, "c", {"parallelism.zero_stage=1"}));
  CHECK_NOTHROW(parse_config(kSample, "c", {"parallelism.zero_stage=1", "parallelism.reduce=last_microbatch"}));
  CHECK_NOTHROW(parse_config(kSample, "c", {"parallelism.zero_stage=2", "parallelism.reduce=every_microbatch"}));
  CHECK_NOTHROW(parse_config(kSample, "c", {"parallelism.keep_gathered=2", "parallelism.reduce=last_microbatch"}));
}

TEST_CASE("an error shows 80 characters of a value") {
  CHECK_THAT(error_of(kSample, {"metrics.trace=" + std::string(1000, 'v')}),
             Contains("key 'metrics.trace' (value '" + std::string(79, 'v') + "...) names no steps"));
}

TEST_CASE("NaN passes no rule") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RunConfig config = parse_config(kSample, "c.yaml", {});
  CHECK(find_problems(config).empty());
  config.optimizer.lr = config.optimizer.eps = config.optimizer.weight_decay = config.optimizer.betas[0] = nan;
  config.model.rope_theta = config.model.initializer_range = config.data.sources[0].weight = nan;
  config.training.max_grad_norm = config.lr_scheduler.decay_ratio = config.lr_scheduler.min_lr_factor = nan;
  CHECK(find_problems(config).size() == 10);
}

TEST_CASE("the heads of a model fit each other") {
  CHECK_THAT(error_of(kSample, {"model.num_attention_heads=5"}),
             Contains("key 'model.num_attention_heads' (value 5) must divide model.hidden_size (64)"));
  CHECK_THAT(error_of(kSample, {"model.num_key_value_heads=3"}),
             Contains("key 'model.num_key_value_heads' (value 3) must divide model.num_attention_heads (4)"));
  CHECK_THAT(error_of(kSample, {"model.num_key_value_heads=8"}), Contains("must divide model.num_attention_heads (4)"));
  CHECK_THAT(error_of(kSample, {"model.layer_types=[sliding_attention]"}),
             Contains("key 'model.sliding_window' (value 0) must be positive, as model.layer_types has"));
  CHECK_THAT(error_of(kSample, {"model.head_dim=15"}), Contains("key 'model.head_dim' (value 15) must be even"));
  CHECK_THAT(error_of(kSample, {"model.num_attention_heads=64"}),
             Contains("key 'model.num_attention_heads' (value 64) makes a head 1 wide (model.hidden_size 64 / 64)"));
  CHECK_NOTHROW(parse_config(kSample, "c", {"model.num_attention_heads=5", "model.head_dim=16"}));
  CHECK_NOTHROW(parse_config(kSample, "c", {"model.num_key_value_heads=2"}));
}

TEST_CASE("qk_norm, which was a bool, still takes one") {
  const auto of = [](const std::string& value) {
    return parse_config(kSample, "c", {"model.qk_norm=" + value}).model.qk_norm;
  };
  CHECK(of("true") == QkNormKind::kHead);
  CHECK(of("false") == QkNormKind::kNone);
  CHECK(of("all") == QkNormKind::kAll);
}

TEST_CASE("a model's own validation ends with its first problem") {
  ModelConfig model;
  CHECK_THROWS_WITH(model.validate(), "key 'model.hidden_size' is required");
  model = parse_config(kSample, "c.yaml", {}).model;
  CHECK_NOTHROW(model.validate());
}

TEST_CASE("the length of a run is given once") {
  CHECK_THAT(error_of(kSample, {"training.max_tokens=1M"}),
             Contains("key 'training.max_tokens' (value 1000000) contradicts training.max_steps (100)"));
  CHECK_THAT(error_of(kSample, {"training.max_steps=0"}), Contains("give training.max_steps or training.max_tokens"));
  CHECK_NOTHROW(parse_config(kSample, "c", {"training.max_steps=0", "training.max_tokens=1M"}));
}

TEST_CASE("a batch is whole sequences, and the two nearest batches are named") {
  CHECK_THAT(
      error_of(kSample, {"training.global_batch_tokens=1000"}),
      Contains("key 'training.global_batch_tokens' (value 1000) must be a multiple of data.sequence_length (128)") &&
          Contains("nearest: 896 and 1024"));
  CHECK_THAT(error_of(kSample, {"training.global_batch_tokens=100"}), Contains("nearest: 128)"));
  CHECK_THAT(error_of(kSample, {"training.global_batch_tokens=9223372036854775807"}),
             Contains("nearest: 9223372036854775680)"));
}

TEST_CASE("micro-batches divide the batch") {
  CHECK_THAT(error_of(kSample, {"training.micro_batch_size=3"}),
             Contains("key 'training.micro_batch_size' (value 3) must divide the 8 sequences of a step"));
  CHECK_THAT(error_of(kSample, {"training.micro_batch_size=16"}), Contains("must divide the 8 sequences"));
  CHECK_NOTHROW(parse_config(kSample, "c", {"training.micro_batch_size=4"}));
}

TEST_CASE("sequences fit the model's positions") {
  CHECK_THAT(error_of(kSample, {"model.max_position_embeddings=100"}),
             Contains("key 'data.sequence_length' (value 128) is longer than model.max_position_embeddings (100)"));
  CHECK_NOTHROW(parse_config(kSample, "c", {"model.max_position_embeddings=128"}));
}

TEST_CASE("validation needs something to validate on") {
  CHECK_THAT(error_of(kSample, {"training.validation_interval=10"}), Contains("data.validation is empty"));
  CHECK_NOTHROW(parse_config(kSample, "c", {"training.validation_interval=10", "data.validation=[{path: v}]"}));
}

TEST_CASE("warm-up and decay must fit into the run, in any unit") {
  for (const char* warmup : {"101 steps", "102401 tokens", "101%"}) {
    CHECK_THAT(error_of(kSample, {str("lr_scheduler.warmup=", warmup)}), Contains("is longer than the run"));
  }
  for (const char* warmup : {"100 steps", "102400 tokens", "100%", "0", "none"}) {
    CHECK_NOTHROW(parse_config(kSample, "c", {str("lr_scheduler.warmup=", warmup)}));
  }
  CHECK_THAT(error_of(kSample, {"training.max_steps=0", "training.max_tokens=10240", "lr_scheduler.warmup=11"}),
             Contains("is longer than the run (110% of it)"));
  const std::vector<std::string> wsd = {"lr_scheduler.decay_type=wsd", "lr_scheduler.decay_ratio=0.6"};
  CHECK_THAT(error_of(kSample, {wsd[0], wsd[1], "lr_scheduler.warmup=41%"}), Contains("together exceed the run"));
  CHECK_NOTHROW(parse_config(kSample, "c", {wsd[0], wsd[1], "lr_scheduler.warmup=39%"}));
  const std::string start = "lr_scheduler.decay_start=";
  for (const char* early : {"40", "40960 tokens", "40%"}) {
    CHECK_THAT(
        error_of(kSample, {start + early, "lr_scheduler.warmup=41"}),
        Contains("key 'lr_scheduler.decay_start'") && Contains("is before the end of lr_scheduler.warmup (41 steps)"));
    CHECK_NOTHROW(parse_config(kSample, "c", {start + early, "lr_scheduler.warmup=40"}));
  }
  for (const char* late : {"100", "102400 tokens", "100%"}) {
    CHECK_THAT(error_of(kSample, {start + late}), Contains("leaves no steps for the tail: it is at 100% of the run"));
  }
  CHECK_NOTHROW(parse_config(kSample, "c", {wsd[0], wsd[1], start + "99", "lr_scheduler.warmup=99"}));
}

TEST_CASE("a constant run may name the shape of a tail that comes later, and every other one needs the tail") {
  for (const char* type : {"cosine", "linear", "inverse_sqrt", "constant", "wsd"}) {
    const std::vector<std::string> shaped = {str("lr_scheduler.decay_type=", type), "lr_scheduler.decay_shape=cosine"};
    if (type == std::string("constant") || type == std::string("wsd")) {
      CHECK_NOTHROW(parse_config(kSample, "c", shaped));
    } else {
      CHECK_THAT(error_of(kSample, shaped),
                 Contains("'lr_scheduler.decay_shape' (value cosine) is the shape of a tail"));
    }
    CHECK_NOTHROW(parse_config(kSample, "c", {shaped[0], shaped[1], "lr_scheduler.decay_start=90%"}));
  }
  CHECK_NOTHROW(
      parse_config(kSample, "c", {"lr_scheduler={decay_type: constant, decay_shape: exponential, min_lr_factor: 0}"}));
}

TEST_CASE("each rope_type has its keys, and no other's") {
  const std::string section = "model.rope_scaling.";
  const auto error = [&](const std::string& scaling) { return error_of(kSample, {"model.rope_scaling=" + scaling}); };
  const auto accepted = [&](const std::string& scaling) {
    parse_config(kSample, "c", {"model.rope_scaling=" + scaling});
  };
  const auto [scaling, sentence] = GENERATE(table<std::string, std::string>({
      {"{rope_type: longrope}", "rope_type' (value 'longrope') must be one of default, linear, dynamic, yarn, llama3"},
      {"{factor: 2}", "factor' (value 2) is of no use to rope_type default"},
      {"{rope_type: linear}", "factor' is required"},
      {"{rope_type: linear, factor: 0.5}", "factor' (value 0.5) must be a number of at least 1"},
      {"{rope_type: dynamic}", "factor' is required"},
      {"{rope_type: dynamic, factor: 2, original_max_position_embeddings: 64}",
       "original_max_position_embeddings' (value 64) is of no use to rope_type dynamic"},
      {"{rope_type: linear, factor: 2, beta_fast: 16}", "beta_fast' (value 16) is of no use to rope_type linear"},
      {"{rope_type: linear, factor: 2, truncate: false}", "truncate' (value false) is of no use to rope_type linear"},
      {"{rope_type: yarn, factor: 2}", "original_max_position_embeddings' is required"},
      {"{rope_type: yarn, factor: -1, original_max_position_embeddings: 64}", "factor' (value -1) must be a number of"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 4096}",
       "original_max_position_embeddings' (value 4096) must be from 1 to model.max_position_embeddings (2048)"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 64, beta_slow: 33}",
       "beta_fast' (value 32) must be at least beta_slow (33)"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 64, beta_fast: 0.5}",
       "beta_fast' (value 0.5) must be at least beta_slow (1)"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 64, mscale: 1}",
       "mscale' (value 1) goes with mscale_all_dim (0)"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 64, mscale: 1, mscale_all_dim: 1, "
       "attention_factor: 2}",
       "mscale' (value 1) contradicts attention_factor (2)"},
      {"{rope_type: yarn, factor: 2, original_max_position_embeddings: 64, attention_factor: -1}",
       "attention_factor' (value -1) must be 0 or a positive number"},
      {"{rope_type: llama3, factor: 8, original_max_position_embeddings: 64, high_freq_factor: 4}",
       "low_freq_factor' is required"},
      {"{rope_type: llama3, factor: 8, original_max_position_embeddings: 64, low_freq_factor: 1}",
       "high_freq_factor' is required"},
      {"{rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4}",
       "original_max_position_embeddings' is required"},
      {"{rope_type: llama3, factor: 8, original_max_position_embeddings: 64, low_freq_factor: 4, high_freq_factor: 4}",
       "high_freq_factor' (value 4) must be above low_freq_factor (4)"},
      {"{rope_type: llama3, factor: 8, original_max_position_embeddings: 64, low_freq_factor: 1, high_freq_factor: 4, "
       "mscale: 1}",
       "mscale' (value 1) is of no use to rope_type llama3"},
  }));
  CHECK_THAT(error(scaling), Contains("key '" + section + sentence));
  CHECK_NOTHROW(accepted("{rope_type: linear, factor: 1}"));
  CHECK_NOTHROW(accepted("{rope_type: yarn, original_max_position_embeddings: 2048}"));
  CHECK_NOTHROW(accepted("{rope_type: yarn, factor: 4, original_max_position_embeddings: 64, truncate: false}"));
  CHECK_NOTHROW(accepted(
      "{rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 64}"));
}

TEST_CASE("rope_theta and head_dim fit the rope_type") {
  const std::string yarn = "model.rope_scaling={rope_type: yarn, factor: 2, original_max_position_embeddings: 64}";
  CHECK_THAT(error_of(kSample, {yarn, "model.rope_theta=1"}),
             Contains("key 'model.rope_theta' (value 1) must be above 1 for rope_type yarn"));
  const std::string dynamic = "model.rope_scaling={rope_type: dynamic, factor: 2}";
  CHECK_THAT(error_of(kSample, {dynamic, "model.head_dim=2"}),
             Contains("key 'model.head_dim' (value 2) must be above 2 for rope_type dynamic"));
}

TEST_CASE("only dynamic scaling accepts sequences longer than model.max_position_embeddings") {
  const std::string shorter = "model.max_position_embeddings=100";
  CHECK_NOTHROW(parse_config(kSample, "c", {shorter, "model.rope_scaling={rope_type: dynamic, factor: 2}"}));
  CHECK_THAT(error_of(kSample, {shorter, "model.rope_scaling={rope_type: linear, factor: 2}"}),
             Contains("key 'data.sequence_length' (value 128) is longer than model.max_position_embeddings (100)"));
}
