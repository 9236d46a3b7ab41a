#include "train/run_data.h"

#include "base/error.h"

namespace tokamak {

RunData::RunData(const RunConfig& config, const GlobalBatch& batch)
    : train(config.data, config.data.sources, config.run.seed, config.model.vocab_size) {
  train.check_epochs(batch.total_steps * batch.sequences_per_step, config.data.max_epochs);
  if (config.data.validation.empty()) return;

  DataOptions in_order = config.data;
  in_order.order = SampleOrder::kSequential;
  validation.emplace(in_order, config.data.validation, config.run.seed, config.model.vocab_size);
  if (validation->tokenizer().hash != train.tokenizer().hash) {
    fail(Kind::kData,
         str("data.validation ", config.data.validation[0].path, " was made with tokenizer ",
             validation->tokenizer().hash, ", data.sources ", config.data.sources[0].path, " with ",
             train.tokenizer().hash),
         "tokenize both with the same tokenizer.model");
  }
}

}  // namespace tokamak
