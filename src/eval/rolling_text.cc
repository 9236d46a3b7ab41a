// Perplexities of whole texts.
#include <cmath>

#include "eval/python_text.h"
#include "eval/task_kinds.h"

namespace tokamak {

EvalTask rolling_text_task(std::span<const std::string> texts, EvalEncoder& encoder) {
  EvalTask task{.items = std::ssize(texts)};
  int64_t words = 0, bytes = 0, tokens = 0;
  for (int64_t item = 0; item < task.items; ++item) {
    words += python_count_words(texts[item]);
    bytes += std::ssize(texts[item]);
    for (ScoredSequence& window : encoder.windows(texts[item])) {
      window.item = item;
      tokens += window.scored;
      task.sequences.push_back(std::move(window));
    }
  }
  task.results = [words, bytes, tokens](std::span<const SequenceScore> scores) -> EvalFigures {
    const double nats = nats_of(scores);
    return {{{"word_perplexity", std::exp(nats / double(words))},
             {"byte_perplexity", std::exp(nats / double(bytes))},
             {"bits_per_byte", nats / double(bytes) / std::log(2.0)},
             {"token_perplexity", std::exp(nats / double(tokens))}},
            {}};
  };
  return task;
}

}  // namespace tokamak
