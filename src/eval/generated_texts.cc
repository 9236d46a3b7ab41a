#include "eval/generated_texts.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "comm/rank_zero.h"
#include "eval/text_answers.h"

namespace tokamak {

namespace {

constexpr double kProgressInterval = 30;  // seconds

// A text while it grows.
class GrowingText {
 public:
  explicit GrowingText(const TextsToGenerate& wanted)
      : stops_(wanted.stops), decoder_(wanted.tokenizer->make_stream_decoder()) {}

  // Returns whether the text has a stop now.
  bool push(int32_t id) {
    const size_t before = text_.size();
    text_ += decoder_->push(id);
    return std::any_of(stops_.begin(), stops_.end(), [&](const std::string& stop) {
      const size_t from = before - std::min(before, stop.size());
      return text_.find(stop, from) != std::string::npos;
    });
  }

  std::string finish() { return cut_at_stops(text_ + decoder_->finish(), stops_); }

 private:
  std::span<const std::string> stops_;
  std::unique_ptr<StreamDecoder> decoder_;
  std::string text_;
};

// The ranks' forward passes in step: weight gathers are collective, so a rank whose texts are done computes a token as
// long as another one goes on.
class InStep {
 public:
  InStep(Engine& engine, const std::function<void()>& between) : engine_(engine), between_(between) {}

  void before_pass() { any_goes_on(true); }

  void wait_for_others() {
    const int32_t token = 0, slot = 0, bounds[] = {0, 1};
    while (any_goes_on(false)) {
      engine_.cache().clear(0);
      forward_cached(engine_.model(), engine_.compute(), {std::span(&token, 1), bounds, std::span(&slot, 1), {}},
                     engine_.cache());
    }
  }

 private:
  bool any_goes_on(bool goes_on) {
    between_();
    Comm& data = engine_.mesh().data();
    if (data.size() == 1) return goes_on;
    const std::vector<char> all = gather_values(data, static_cast<char>(goes_on));
    return std::count(all.begin(), all.end(), 1) > 0;
  }

  Engine& engine_;
  const std::function<void()>& between_;
};

// This rank's requests: the longest prompts first, in turn with the other ranks.
std::vector<size_t> share_of(const Comm& comm, const std::vector<GenerationRequest>& requests) {
  std::vector<size_t> order(requests.size()), own;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].prompt.size() > requests[b].prompt.size(); });
  for (size_t i = static_cast<size_t>(comm.rank()); i < order.size(); i += static_cast<size_t>(comm.size())) {
    own.push_back(order[i]);
  }
  return own;
}

// The texts of all ranks, at their requests' places.
void share_texts(Comm& comm, const std::vector<size_t>& own, std::vector<std::string>& texts) {
  if (comm.size() == 1) return;
  std::vector<int64_t> places;  // request and length of each text
  std::string bytes;
  for (const size_t request : own) {
    places.push_back(static_cast<int64_t>(request));
    places.push_back(std::ssize(texts[request]));
    bytes += texts[request];
  }
  const std::vector<std::string> all_places = comm.gather_all(bytes_of_values(std::span<const int64_t>(places)));
  const std::vector<std::string> all_bytes = comm.gather_all(bytes);
  for (size_t rank = 0; rank < all_places.size(); ++rank) {
    const std::vector<int64_t> of_rank = values_of_bytes<int64_t>(all_places[rank]);
    size_t at = 0;
    for (size_t i = 0; i < of_rank.size(); i += 2) {
      const auto length = static_cast<size_t>(of_rank[i + 1]);
      texts[static_cast<size_t>(of_rank[i])] = all_bytes[rank].substr(at, length);
      at += length;
    }
  }
}

}  // namespace

int64_t TextsToGenerate::longest() const {
  int64_t longest = 0;
  for (const GenerationRequest& request : requests) longest = std::max(longest, std::ssize(request.prompt));
  return longest + max_tokens;
}

std::vector<std::string> generate_texts(Engine& engine, const TextsToGenerate& wanted,
                                        const std::function<void()>& between) {
  Comm& data = engine.mesh().data();
  const std::vector<size_t> own = share_of(data, wanted.requests);
  std::vector<GenerationRequest> requests;
  std::vector<GrowingText> growing;
  for (const size_t i : own) {
    requests.push_back(wanted.requests[i]);
    growing.emplace_back(wanted);
  }
  std::vector<std::string> texts(wanted.requests.size());
  InStep in_step(engine, between);
  Stopwatch since_start, since_line;
  int64_t done = 0;
  Generator generator(engine.model(), engine.cache(), *engine.backend().device, engine.compute());
  const GenerationOptions options{.max_tokens = wanted.max_tokens,
                                  .vocab_size = wanted.tokenizer->vocab_size(),
                                  .eos = wanted.tokenizer->eos_id(),
                                  .prefill_step = std::min(kPrefillStep, engine.model().max_tokens()),
                                  .sampling = wanted.sampling,
                                  .between = [&] { in_step.before_pass(); },
                                  .choose = {}};
  generator.run(
      requests, options,
      [&](size_t request, int32_t id) {
        return growing[request].push(id) ? Generator::Verdict::kStop : Generator::Verdict::kContinue;
      },
      [&](size_t request, Finish, int64_t) {
        texts[own[request]] = growing[request].finish();
        ++done;
        if (engine.comm().rank() != 0 || since_line.seconds() < kProgressInterval) return;
        since_line.restart();
        const double left = since_start.seconds() / double(done) * double(std::ssize(own) - done);
        log::info("generated ", done, " of ", own.size(), " texts, ", human_duration(left), " left");
      });
  in_step.wait_for_others();
  share_texts(data, own, texts);
  return texts;
}

}  // namespace tokamak
