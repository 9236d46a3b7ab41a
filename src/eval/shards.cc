// The loss on a tokenized data set.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "data/sample_source.h"
#include "eval/task_kinds.h"

namespace tokamak {

namespace {

constexpr int64_t kFirstRange = 128;  // positions; each later range ends at twice the position of the one before

// A sequence scores positions [begin, end) of a part of a document.
struct Range {
  int64_t begin = 0, end = 0;
};

std::vector<Range> ranges_of(int64_t length, bool by_position) {
  if (!by_position) return {{0, length}};
  std::vector<Range> ranges;
  for (int64_t begin = 0, end = kFirstRange; begin < length; begin = end, end *= 2) {
    ranges.push_back({begin, std::min(end, length)});
  }
  return ranges;
}

// "loss_from_256" of each range that has tokens.
std::vector<NamedValue> losses_by_position(std::span<const SequenceScore> scores, const std::vector<Range>& scored) {
  std::map<int64_t, std::pair<double, int64_t>> sums;  // by the first position: nats, tokens
  for (size_t i = 0; i < scored.size(); ++i) {
    auto& [nats, tokens] = sums[scored[i].begin];
    nats -= scores[i].log_likelihood;
    tokens += scored[i].end - scored[i].begin;
  }
  std::vector<NamedValue> losses;
  for (const auto& [begin, sum] : sums) losses.push_back({str("loss_from_", begin), sum.first / double(sum.second)});
  return losses;
}

}  // namespace

EvalTask shards_task(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context) {
  const DataOptions in_order{
      .sequence_length = context, .sources = {}, .validation = {}, .order = SampleOrder::kSequential};
  const std::vector<SourceOptions> sources = {{.path = options.path}};
  const SampleSource data(in_order, sources, 0, tokenizer.vocab_size());
  expect_tokenizer_of(options.path, data.tokenizer().hash, tokenizer);
  EvalTask task;
  task.items = options.limit > 0 ? std::min(options.limit, data.windows(0)) : data.windows(0);
  int64_t tokens = 0;
  std::vector<Range> scored;  // by each sequence
  Sample sample;
  for (int64_t window = 0; window < task.items; ++window) {
    data.read(window, sample);
    sample.document_starts.push_back(static_cast<int32_t>(context));
    for (size_t d = 0; d + 1 < sample.document_starts.size(); ++d) {
      const auto first = sample.tokens.begin() + sample.document_starts[d];
      const int64_t length = sample.document_starts[d + 1] - sample.document_starts[d];
      for (const Range range : ranges_of(length, options.by_position)) {
        task.sequences.push_back({{first, first + range.end + 1}, range.end - range.begin, window});  // and a target
        scored.push_back(range);
      }
      tokens += length;
    }
  }
  if (!options.by_position) scored.clear();
  task.results = [manifest = data.dataset(0).manifest(), tokens,
                  scored](std::span<const SequenceScore> scores) -> EvalFigures {
    const double loss = nats_of(scores) / double(tokens);
    std::vector<NamedValue> values = {{"loss", loss}, {"token_perplexity", std::exp(loss)}};
    if (const auto bits = manifest.bits_per_byte(loss)) values.push_back({"bits_per_byte", *bits});
    for (NamedValue& one : losses_by_position(scores, scored)) values.push_back(std::move(one));
    return {values, {}};
  };
  return task;
}

}  // namespace tokamak
