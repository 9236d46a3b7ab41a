// Options of the run itself: length and batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "train/eval_options.h"
#include "train/sample_options.h"
#include "train/stage_options.h"

namespace tokamak {

struct RunOptions {
  std::string name = "run";
  std::string output_dir = "runs/${run.name}";
  int64_t seed = 1234;
  Duration stop_after;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "name of the run in logs");
    v("output_dir", output_dir,
      "directory of the run's checkpoints, metrics and config; a start resumes from what it finds there");
    v("seed", seed, "seed of the initial weights and of the data order; the same seed gives the same run");
    v("stop_after", stop_after,
      "time since the process started, after which the current step ends, the run saves and exits 75; leave time for "
      "the save");
  }
};

struct TrainingOptions {
  int64_t max_steps = 0;
  int64_t max_tokens = 0;
  int64_t global_batch_tokens = 0;
  AutoInt micro_batch_size;
  WarmupOptions batch_warmup;
  WarmupOptions length_warmup;
  double max_grad_norm = 1.0;
  double max_unit_grad_norm = 0.0;
  double z_loss = 0.0;
  int64_t validation_interval = 0;
  AutoInt validation_sequences;
  std::vector<EvalOptions> evals;
  int64_t evals_interval = 0;
  SampleOptions samples;

  template <class Visitor>
  void fields(Visitor& v) {
    v("max_steps", max_steps,
      "optimizer steps, at whose end the learning rate schedule ends; give either max_steps or max_tokens, "
      "or stages");
    v("max_tokens", max_tokens, "tokens to train on, rounded up to whole steps");
    v("global_batch_tokens", global_batch_tokens,
      "tokens per step over all ranks, a multiple of sequence_length; larger batches use hardware better and need "
      "more tokens; required");
    v("micro_batch_size", micro_batch_size,
      "sequences that one rank computes at once; more use more memory and the GPU better; auto: the most that fit, "
      "or the fastest with other auto keys");
    v("batch_warmup", batch_warmup,
      "smaller batches at the beginning, in tokens: more steps on the same tokens, while gradients agree anyway");
    v("length_warmup", length_warmup,
      "shorter sequences at the beginning, in tokens, at the same tokens a step: cheaper and steadier early steps");
    v("max_grad_norm", max_grad_norm,
      "scale gradients down to this global norm; lower values damp loss spikes and slow learning; 0: no clipping");
    v("max_unit_grad_norm", max_unit_grad_norm,
      "before that, scale the embedding, each layer, the head and all norms down to this norm each; the logged norm is "
      "of what is left; one more pass; 0: off");
    v("z_loss", z_loss, "weight of log(Z)^2 in the loss (PaLM, 1e-4); keeps logits from drifting; 0: off");
    v("validation_interval", validation_interval,
      "steps between validations, each of which stalls training; one always runs at the end; 0: only then");
    v("validation_sequences", validation_sequences,
      "held-out sequences per validation, always the same; more give a less noisy loss and take longer; auto: about "
      "5 % of the time, at least 64");
    v("evals", evals,
      "evaluations to run during training; their time is logged separately and excluded from throughput");
    v("evals_interval", evals_interval, "steps between evaluations; they always run at the end; 0: only then");
    v("samples", samples, "texts that the model generates from fixed prompts during training");
  }
};

}  // namespace tokamak
