#include "infer/generator.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"

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

// Runs the model and copies the logits to the host. Row s is of the batch's sequence s.                  (S, V)
std::span<float> Generator::logits_of(const CachedBatch& batch, const GenerationOptions& options) {
  if (options.between) options.between();
  const Tensor logits = forward_cached(model_, compute_, batch, cache_);
  logits_.resize(logits.count());
  device_.copy_to_host(compute_, logits, logits_.data());
  compute_.synchronize();
  return logits_;
}

std::span<float> Generator::prefill(const Active& entry, const GenerationOptions& options) {
  cache_.clear(entry.slot);
  const std::span<const int32_t> prompt = entry.ids;
  const auto length = static_cast<int32_t>(prompt.size());
  std::span<float> logits;
  const auto step = static_cast<size_t>(options.prefill_step);
  for (size_t at = 0; at < prompt.size(); at += step) {
    const size_t count = std::min(step, prompt.size() - at);
    const int32_t bounds[] = {0, static_cast<int32_t>(count)};
    logits = logits_of({prompt.subspan(at, count), bounds, std::span(&entry.slot, 1), std::span(&length, 1)}, options);
  }
  return logits;
}

std::span<float> Generator::decode(std::span<const Active> active, const GenerationOptions& options) {
  std::vector<int32_t> tokens, bounds(active.size() + 1), slots;
  std::iota(bounds.begin(), bounds.end(), 0);
  for (const Active& entry : active) {
    tokens.push_back(entry.ids.back());
    slots.push_back(entry.slot);
  }
  return logits_of({tokens, bounds, slots, {}}, options);
}

std::vector<int32_t> Generator::choose_tokens(std::span<const Active> entries, std::span<float> logits,
                                              const GenerationOptions& options) const {
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  const Choose own = [&] {
    std::vector<int32_t> ids;
    for (const Active& entry : entries) {
      const std::span<float> row = logits.subspan(ids.size() * vocab, static_cast<size_t>(options.vocab_size));
      penalise_repetition(row, entry.ids, options.sampling.repetition_penalty);
      ids.push_back(sample_token(row, options.sampling, entry.random.uniform(static_cast<uint64_t>(entry.made))));
    }
    return ids;
  };
  std::vector<int32_t> ids = options.choose ? options.choose(own) : own();
  TOKAMAK_CHECK(ids.size() == entries.size(), ids.size(), " tokens for ", entries.size(), " sequences");
  return ids;
}

std::optional<Finish> Generator::append(Active& entry, int32_t id, const GenerationOptions& options,
                                        const OnToken& on_token) const {
  ++entry.made;
  if (id == options.eos) return Finish::kEos;
  entry.ids.push_back(id);
  if (on_token(entry.request, id) == Verdict::kStop) return Finish::kStop;
  const bool full = std::ssize(entry.ids) >= cache_.capacity();
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

  // Takes the next token of a prompt; returns whether the prompt is finished.
  const auto finished = [&](Active& entry, int32_t id) {
    const std::optional<Finish> finish = append(entry, id, options, on_token);
    if (!finish) return false;
    on_finish(entry.request, *finish, entry.made);
    places.push_back(entry.slot);
    return true;
  };

  size_t next = 0;
  while (next < requests.size() || !active.empty()) {
    while (next < requests.size() && !places.empty()) {
      const GenerationRequest& request = requests[next];
      const auto length = std::ssize(request.prompt);
      TOKAMAK_CHECK(0 < length && length < cache_.capacity(), "prompt ", next, " has ", length, " tokens, a place ",
                    cache_.capacity());
      Active entry{next++, places.back(), RandomStream(options.seed, request.stream), request.prompt};
      places.pop_back();
      const Stopwatch watch;
      const std::span<float> logits = prefill(entry, options);
      times.prompt_tokens += length;
      times.prompt_seconds += watch.seconds();
      const std::vector<int32_t> ids = choose_tokens(std::span(&entry, 1), logits, options);
      if (!finished(entry, ids[0])) active.push_back(std::move(entry));
    }
    if (active.empty()) continue;
    const Stopwatch watch;
    const std::span<float> logits = decode(active, options);
    times.decoded_tokens += std::ssize(active);
    times.decode_seconds += watch.seconds();
    const std::vector<int32_t> ids = choose_tokens(active, logits, options);
    std::vector<Active> going;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!finished(active[i], ids[i])) going.push_back(std::move(active[i]));
    }
    active = std::move(going);
  }
  return times;
}

}  // namespace tokamak
