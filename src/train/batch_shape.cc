#include "train/batch_shape.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

BatchShape make_batch_shape(const TrainingOptions& training, const DataOptions& data, int ranks) {
  BatchShape shape;
  shape.length = data.sequence_length;
  shape.sequences_per_step = training.global_batch_tokens / data.sequence_length;
  if (shape.sequences_per_step % ranks != 0) {
    const int64_t unit = data.sequence_length * ranks;
    const int64_t below = training.global_batch_tokens / unit * unit;
    fail(Kind::kConfig,
         str("training.global_batch_tokens is ", training.global_batch_tokens, ": ", shape.sequences_per_step,
             " sequences of data.sequence_length ", data.sequence_length, ", which ", ranks,
             " ranks cannot share equally"),
         str("use ", below > 0 ? str(below, " or ") : "", below + unit, ", or another number of ranks"));
  }
  shape.sequences_per_rank = shape.sequences_per_step / ranks;
  if (!training.micro_batch_size.is_auto()) {
    shape.micro_batch = training.micro_batch_size.value;
    if (shape.micro_batch > shape.sequences_per_rank) {
      fail(Kind::kConfig,
           str("training.micro_batch_size is ", shape.micro_batch, ", but each of ", ranks, " ranks has only ",
               shape.sequences_per_rank, " sequences a step (training.global_batch_tokens ",
               training.global_batch_tokens, ", data.sequence_length ", data.sequence_length, ")"),
           "lower training.micro_batch_size or set it to auto");
    }
  }
  const int64_t tokens = shape.tokens_per_step();
  shape.total_steps = training.max_steps > 0 ? training.max_steps : (training.max_tokens + tokens - 1) / tokens;
  return shape;
}

}  // namespace tokamak
