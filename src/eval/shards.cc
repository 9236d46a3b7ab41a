// The loss on a tokenized data set.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"
#include "data/sample_source.h"
#include "eval/task_kinds.h"

namespace tokamak {

EvalTask shards_task(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context) {
  const DataOptions in_order{
      .sequence_length = context, .sources = {}, .validation = {}, .order = SampleOrder::kSequential};
  const std::vector<SourceOptions> sources = {{.path = options.path}};
  const SampleSource data(in_order, sources, 0, tokenizer.vocab_size());
  expect_tokenizer_of(options.path, data.tokenizer().hash, tokenizer);
  EvalTask task;
  task.items = options.limit > 0 ? std::min(options.limit, data.windows(0)) : data.windows(0);
  int64_t tokens = 0;
  Sample sample;
  for (int64_t window = 0; window < task.items; ++window) {
    data.read(window, sample);
    sample.document_starts.push_back(static_cast<int32_t>(context));
    for (size_t d = 0; d + 1 < sample.document_starts.size(); ++d) {
      const auto first = sample.tokens.begin() + sample.document_starts[d];
      const auto last = sample.tokens.begin() + sample.document_starts[d + 1];  // the last token's target
      task.sequences.push_back({{first, last + 1}, last - first, window});
      tokens += last - first;
    }
  }
  task.results = [manifest = data.dataset(0).manifest(), tokens](std::span<const double> log_likelihoods) {
    const double nats = -std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0);
    const double loss = nats / double(tokens);
    std::vector<NamedValue> values = {{"loss", loss}, {"token_perplexity", std::exp(loss)}};
    if (const auto bits = manifest.bits_per_byte(loss)) values.push_back({"bits_per_byte", *bits});
    return values;
  };
  return task;
}

}  // namespace tokamak
