#include "train/batch_shape.h"

#include <algorithm>

#include "base/error.h"
#include "zero/sharding_policy.h"

namespace tokamak {

GlobalBatch make_global_batch(const RunConfig& config, int all_ranks, int readers) {
  replicas_of(config.parallelism, all_ranks);
  const int ranks = all_ranks / readers;
  const TrainingOptions& training = config.training;
  const DataOptions& data = config.data;
  GlobalBatch batch;
  batch.length = data.sequence_length;
  batch.sequences_per_step = training.global_batch_tokens / data.sequence_length;
  if (batch.sequences_per_step * data.sequence_length != training.global_batch_tokens) {
    fail(Kind::kConfig,
         str("training.global_batch_tokens is ", training.global_batch_tokens,
             ", which is no multiple of data.sequence_length (", data.sequence_length, ")"),
         "a larger training.batch_warmup.from, or other lengths");
  }
  if (batch.sequences_per_step % ranks != 0) {
    const int64_t unit = data.sequence_length * ranks;
    const int64_t below = training.global_batch_tokens / unit * unit;
    fail(Kind::kConfig,
         str("training.global_batch_tokens is ", training.global_batch_tokens, ": ", batch.sequences_per_step,
             " sequences of data.sequence_length ", data.sequence_length, ", which ", ranks,
             " ranks cannot share equally"),
         str("use ", below > 0 ? str(below, " or ") : "", below + unit, ", or another number of ranks"));
  }
  batch.sequences_per_rank = batch.sequences_per_step / ranks;
  const AutoInt micro_batch = training.micro_batch_size;
  if (!micro_batch.is_auto() && micro_batch.value > batch.sequences_per_rank) {
    fail(Kind::kConfig,
         str("training.micro_batch_size is ", micro_batch.value, ", but each of ", ranks, " ranks has only ",
             batch.sequences_per_rank, " sequences a step (training.global_batch_tokens ", training.global_batch_tokens,
             ", data.sequence_length ", data.sequence_length, ")"),
         "lower training.micro_batch_size or set it to auto");
  }
  const int64_t tokens = batch.tokens_per_step();
  batch.total_steps = training.max_steps > 0 ? training.max_steps : (training.max_tokens + tokens - 1) / tokens;
  return batch;
}

GlobalBatch make_row_batch(const RunConfig& run, const StageRow& row, int ranks) {
  try {
    return make_global_batch(config_of_row(run, row), ranks);
  } catch (const Error& error) {
    if (!has_rows(run)) throw;
    throw Error(error.kind(), str("stage '", row.options.name, "': ", error.what()), error.hint());
  }
}

}  // namespace tokamak
