#include "eval/rolling_text.h"

#include <cmath>
#include <numeric>

#include "eval/python_text.h"

namespace tokamak {

RollingText::RollingText(std::span<const std::string> texts, EvalEncoder& encoder)
    : texts_(static_cast<int64_t>(texts.size())) {
  for (size_t item = 0; item < texts.size(); ++item) {
    words_ += python_count_words(texts[item]);
    bytes_ += static_cast<int64_t>(texts[item].size());
    for (ScoredSequence& window : encoder.windows(texts[item])) {
      window.item = static_cast<int64_t>(item);
      tokens_ += window.scored;
      sequences_.push_back(std::move(window));
    }
  }
}

std::vector<NamedValue> RollingText::results(std::span<const double> log_likelihoods) const {
  const double nats = -std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0);
  const auto per = [nats](int64_t count) { return nats / static_cast<double>(count); };
  return {{"word_perplexity", std::exp(per(words_))},
          {"byte_perplexity", std::exp(per(bytes_))},
          {"bits_per_byte", per(bytes_) / std::log(2.0)},
          {"token_perplexity", std::exp(per(tokens_))}};
}

}  // namespace tokamak
