#include "eval/rolling_text.h"

#include <cmath>
#include <numeric>

#include "eval/python_text.h"

namespace tokamak {

RollingText::RollingText(std::span<const std::string> texts, EvalEncoder& encoder)
    : texts_(static_cast<int64_t>(texts.size())) {
  for (const std::string& text : texts) {
    words_ += python_count_words(text);
    bytes_ += static_cast<int64_t>(text.size());
    for (ScoredSequence& window : encoder.windows(text)) {
      tokens_ += window.scored;
      sequences_.push_back(std::move(window));
    }
  }
}

std::vector<Figure> RollingText::figures(std::span<const double> log_likelihoods) const {
  const double nats = -std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0);
  const auto per = [nats](int64_t count) { return nats / static_cast<double>(count); };
  return {{"word_perplexity", std::exp(per(words_))},
          {"byte_perplexity", std::exp(per(bytes_))},
          {"bits_per_byte", per(bytes_) / std::log(2.0)},
          {"token_perplexity", std::exp(per(tokens_))}};
}

}  // namespace tokamak
