#include "eval/shards.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"
#include "data/sample_source.h"

namespace tokamak {

Shards::Shards(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context) {
  const DataOptions in_order{
      .sequence_length = context, .sources = {}, .validation = {}, .order = SampleOrder::kSequential};
  const std::vector<SourceOptions> sources = {{.path = options.path}};
  const SampleSource data(in_order, sources, 0, tokenizer.vocab_size());
  expect_tokenizer_of(options.path, data.tokenizer().hash, tokenizer);
  manifest_ = data.dataset(0).manifest();
  windows_ = options.limit > 0 ? std::min(options.limit, data.windows(0)) : data.windows(0);
  Sample sample;
  for (int64_t window = 0; window < windows_; ++window) {
    data.read(window, sample);
    sample.document_starts.push_back(static_cast<int32_t>(context));
    for (size_t d = 0; d + 1 < sample.document_starts.size(); ++d) {
      const auto first = sample.tokens.begin() + sample.document_starts[d];
      const auto last = sample.tokens.begin() + sample.document_starts[d + 1];  // the last token's target
      sequences_.push_back({{first, last + 1}, last - first, window});
      tokens_ += last - first;
    }
  }
}

std::vector<NamedValue> Shards::results(std::span<const double> log_likelihoods) const {
  const double nats = -std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0);
  const double loss = nats / static_cast<double>(tokens_);
  std::vector<NamedValue> values = {{"loss", loss}, {"token_perplexity", std::exp(loss)}};
  if (const auto bits = manifest_.bits_per_byte(loss)) values.push_back({"bits_per_byte", *bits});
  return values;
}

}  // namespace tokamak
