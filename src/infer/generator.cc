#include "infer/generator.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "infer/forward_cached.h"

namespace tokamak {

// A prompt that has a slot in the batch.
struct Generator::Active {
  size_t request;
  int32_t slot;
  RandomStream random;
  std::vector<int32_t> ids;  // prompt and new tokens
  int64_t made = 0;          // new tokens
};

Generator::Generator(Transformer& model, KvCache& cache, Device& device, Stream& compute)
    : model_(model), cache_(cache), device_(device), compute_(compute) {}

// On the host: row s belongs to the batch's sequence s.                                                  (S, V)
std::span<float> Generator::logits_of(const CachedBatch& batch) {
  const Tensor logits = forward_cached(model_, compute_, batch, cache_);
  logits_.resize(static_cast<size_t>(logits.count()));
  device_.copy_to_host(compute_, logits, logits_.data());
  compute_.synchronize();
  return logits_;
}

std::span<float> Generator::prefill(const Active& entry, int64_t step) {
  cache_.clear(entry.slot);
  const std::span<const int32_t> prompt = entry.ids;
  const auto length = static_cast<int32_t>(prompt.size());
  std::span<float> logits;
  for (size_t at = 0; at < prompt.size(); at += static_cast<size_t>(step)) {
    const size_t count = std::min(static_cast<size_t>(step), prompt.size() - at);
    const int32_t bounds[] = {0, static_cast<int32_t>(count)};
    logits = logits_of({prompt.subspan(at, count), bounds, std::span(&entry.slot, 1), std::span(&length, 1)});
  }
  return logits;
}

std::span<float> Generator::decode(const std::vector<Active>& active) {
  std::vector<int32_t> tokens, bounds(active.size() + 1), slots;
  std::iota(bounds.begin(), bounds.end(), 0);
  for (const Active& entry : active) {
    tokens.push_back(entry.ids.back());
    slots.push_back(entry.slot);
  }
  return logits_of({tokens, bounds, slots, {}});
}

std::optional<Finish> Generator::choose_token(Active& entry, std::span<float> logits, const GenerationOptions& options,
                                              const OnToken& on_token) const {
  const std::span<float> row = logits.first(static_cast<size_t>(options.vocab_size));
  penalise_repetition(row, entry.ids, options.sampling.repetition_penalty);
  const int32_t id = sample_token(row, options.sampling, entry.random.uniform(static_cast<uint64_t>(entry.made)));
  ++entry.made;
  if (id == options.eos) return Finish::kEos;
  entry.ids.push_back(id);
  if (on_token(entry.request, id) == Verdict::kStop) return Finish::kStop;
  const bool full = static_cast<int64_t>(entry.ids.size()) >= cache_.capacity();
  return full || entry.made == options.max_tokens ? std::optional(Finish::kLength) : std::nullopt;
}

GenerationTimes Generator::run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                               const OnToken& on_token, const OnFinish& on_finish) {
  const int64_t vocab = model_.config().vocab_size;
  TOKAMAK_CHECK(0 < options.vocab_size && options.vocab_size <= vocab && options.prefill_step > 0 &&
                options.max_tokens > 0);
  GenerationTimes times;
  std::vector<Active> active;
  std::vector<int32_t> places(static_cast<size_t>(cache_.slots()));  // free slots; the last is used first
  std::iota(places.rbegin(), places.rend(), 0);

  // Samples the next token of a prompt from its logits; returns whether the prompt is finished.
  const auto finished = [&](Active& entry, std::span<float> logits) {
    const std::optional<Finish> finish = choose_token(entry, logits, options, on_token);
    if (!finish) return false;
    on_finish(entry.request, *finish, entry.made);
    places.push_back(entry.slot);
    return true;
  };

  size_t next = 0;
  while (next < requests.size() || !active.empty()) {
    while (next < requests.size() && !places.empty()) {
      const GenerationRequest& request = requests[next];
      const auto length = static_cast<int64_t>(request.prompt.size());
      TOKAMAK_CHECK(0 < length && length < cache_.capacity(), "prompt ", next, " has ", length, " tokens, a place ",
                    cache_.capacity());
      Active entry{next++, places.back(), RandomStream(options.seed, request.stream), request.prompt};
      places.pop_back();
      const Stopwatch watch;
      const std::span<float> logits = prefill(entry, options.prefill_step);
      times.prompt_tokens += length;
      times.prompt_seconds += watch.seconds();
      if (!finished(entry, logits)) active.push_back(std::move(entry));
    }
    if (active.empty()) continue;
    const Stopwatch watch;
    const std::span<float> logits = decode(active);
    times.decoded_tokens += static_cast<int64_t>(active.size());
    times.decode_seconds += watch.seconds();
    std::vector<Active> going;
    for (size_t i = 0; i < active.size(); ++i) {
      const std::span<float> row = logits.subspan(i * static_cast<size_t>(vocab), static_cast<size_t>(vocab));
      if (!finished(active[i], row)) going.push_back(std::move(active[i]));
    }
    active = std::move(going);
  }
  return times;
}

}  // namespace tokamak
