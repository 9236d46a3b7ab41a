#include "infer/batcher.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace tokamak {

Batcher::Batcher(Transformer& model, KvCache& cache, Device& device, Stream& compute, BatcherOptions options)
    : model_(model),
      cache_(cache),
      device_(device),
      compute_(compute),
      options_(std::move(options)),
      free_slots_(static_cast<size_t>(cache.slots())) {
  TOKAMAK_CHECK(0 < options_.vocab_size && options_.vocab_size <= model.config().vocab_size &&
                options_.prefill_step > 0);
  std::iota(free_slots_.rbegin(), free_slots_.rend(), 0);
}

int64_t Batcher::add(TextRequest request, TextReceiver& receiver) {
  const auto length = std::ssize(request.prompt);
  TOKAMAK_CHECK(0 < length && length < cache_.capacity() && request.max_tokens >= 0, "text ", added_, " has ", length,
                " prompt tokens, a slot ", cache_.capacity());
  waiting_.push_back({added_, std::move(request), &receiver});
  return added_++;
}

void Batcher::cancel(int64_t text) {
  const auto is_it = [&](const Text& other) { return other.number == text; };
  const auto drop = [&](const Text& dropped) { free_slots_.push_back(dropped.slot); };
  std::erase_if(waiting_, is_it);
  if (entering_ && is_it(*entering_)) {
    drop(*entering_);
    entering_.reset();
  }
  const auto found = std::find_if(running_.begin(), running_.end(), is_it);
  if (found == running_.end()) return;
  drop(*found);
  running_.erase(found);
}

void Batcher::cancel_all() {
  waiting_.clear();
  entering_.reset();
  running_.clear();
  free_slots_.resize(static_cast<size_t>(cache_.slots()));
  std::iota(free_slots_.rbegin(), free_slots_.rend(), 0);
}

bool Batcher::step() {
  prefill();
  // Each group's texts leave `running_`, and those that go on come back.
  std::vector<Text> texts = std::exchange(running_, {});
  const auto most = static_cast<size_t>(model_.rows_with_equal_bits());
  for (size_t at = 0; at < texts.size(); at += most) {
    decode(std::span(texts).subspan(at, std::min(most, texts.size() - at)));
  }
  return !waiting_.empty() || running() > 0;
}

void Batcher::prefill() {
  int64_t budget = options_.prefill_budget > 0 ? options_.prefill_budget : std::numeric_limits<int64_t>::max();
  while (budget > 0) {
    if (!entering_) {
      if (waiting_.empty() || free_slots_.empty()) return;
      entering_ = std::move(waiting_.front());
      waiting_.pop_front();
      entering_->slot = free_slots_.back();
      free_slots_.pop_back();
      cache_.clear(entering_->slot);
    }
    const int64_t before = entering_->prefilled;
    const Stopwatch watch;
    const std::span<const float> logits = prefill_chunk(*entering_);
    times_.prompt_seconds += watch.seconds();
    times_.prompt_tokens += entering_->prefilled - before;
    budget -= entering_->prefilled - before;
    if (entering_->prefilled < std::ssize(entering_->request.prompt)) continue;
    Text text = std::move(*entering_);
    entering_.reset();
    if (text.request.max_tokens == 0) {
      finish(text, Finish::kLength);
    } else {
      advance(std::span(&text, 1), logits);
    }
  }
}

std::span<const float> Batcher::prefill_chunk(Text& text) {
  const std::span<const int32_t> prompt = text.request.prompt;
  const auto length = static_cast<int32_t>(prompt.size());
  const int64_t count = std::min(options_.prefill_step, length - text.prefilled);
  const int32_t bounds[] = {0, static_cast<int32_t>(count)};
  LogitRows see;
  if (text.request.wants_prompt_logprobs) {
    see = [&](int64_t first_row, Tensor logits) { deliver_prompt(text, first_row, logits); };
  }
  const std::span<const float> logits =
      logits_of({prompt.subspan(static_cast<size_t>(text.prefilled), static_cast<size_t>(count)), bounds,
                 std::span(&text.slot, 1), std::span(&length, 1)},
                see);
  text.prefilled += count;
  return logits;
}

void Batcher::deliver_prompt(const Text& text, int64_t first_row, Tensor logits) {
  const std::span<const float> values = to_host(logits);
  const std::span<const int32_t> prompt = text.request.prompt;
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  const int64_t next = text.prefilled + first_row + 1;  // the prompt token that the first row predicts
  for (int64_t row = 0; row < logits.dim(0) && next + row < std::ssize(prompt); ++row) {
    const auto of_row = values.subspan(static_cast<size_t>(row) * vocab, vocab);
    text.receiver->prompt_token(
        logprobs_of(of_row, options_.vocab_size, prompt[static_cast<size_t>(next + row)], text.request.likeliest));
  }
}

void Batcher::decode(std::span<Text> texts) {
  std::vector<int32_t> tokens, bounds(texts.size() + 1), slots;
  std::iota(bounds.begin(), bounds.end(), 0);
  for (const Text& text : texts) {
    tokens.push_back(text.request.prompt.back());
    slots.push_back(text.slot);
  }
  const Stopwatch watch;
  const std::span<const float> logits = logits_of({tokens, bounds, slots, {}});
  times_.decoded_tokens += std::ssize(texts);
  times_.decode_seconds += watch.seconds();
  advance(texts, logits);
}

std::span<const float> Batcher::to_host(Tensor logits) {
  logits_.resize(logits.count());
  device_.copy_to_host(compute_, logits, logits_.data());
  compute_.synchronize();
  return logits_;
}

std::span<const float> Batcher::logits_of(const CachedBatch& batch, const LogitRows& see) {
  if (options_.between) options_.between();
  return to_host(forward_cached(model_, compute_, batch, cache_, see));
}

void Batcher::advance(std::span<Text> texts, std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  const Choose own = [&] {
    std::vector<int32_t> ids;
    for (const Text& text : texts) ids.push_back(sample(text, logits.subspan(ids.size() * vocab, vocab)));
    return ids;
  };
  const std::vector<int32_t> ids = options_.choose ? options_.choose(own) : own();
  TOKAMAK_CHECK(ids.size() == texts.size(), ids.size(), " tokens for ", texts.size(), " sequences");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (const std::optional<Finish> ended = append(texts[i], ids[i], logits.subspan(i * vocab, vocab))) {
      finish(texts[i], *ended);
    } else {
      running_.push_back(std::move(texts[i]));
    }
  }
}

int32_t Batcher::sample(const Text& text, std::span<const float> logits) {
  const TextRequest& request = text.request;
  std::span<const float> candidates = logits.first(static_cast<size_t>(options_.vocab_size));
  if (request.sampling.repetition_penalty != 1) {
    penalised_.assign(candidates.begin(), candidates.end());
    penalise_repetition(penalised_, request.prompt, request.sampling.repetition_penalty);
    candidates = penalised_;
  }
  return sample_token(candidates, request.sampling, request.random.uniform(static_cast<uint64_t>(text.made)));
}

std::optional<Finish> Batcher::append(Text& text, int32_t id, std::span<const float> logits) {
  TextRequest& request = text.request;
  ++text.made;
  const bool is_eos = id == request.eos;
  std::optional<Logprobs> logprobs;
  if (request.wants_logprobs) logprobs = logprobs_of(logits, options_.vocab_size, id, request.likeliest);
  if (!is_eos) request.prompt.push_back(id);
  if (!is_eos || logprobs) {
    const TextReceiver::Verdict verdict = text.receiver->token(id, logprobs ? &*logprobs : nullptr);
    if (!is_eos && verdict == TextReceiver::Verdict::kStop) return Finish::kStop;
  }
  if (is_eos) return Finish::kEos;
  const bool full = std::ssize(request.prompt) >= cache_.capacity();
  return full || text.made == request.max_tokens ? std::optional(Finish::kLength) : std::nullopt;
}

void Batcher::finish(Text& text, Finish finish) {
  free_slots_.push_back(text.slot);
  text.receiver->finish(finish, text.made);
}

}  // namespace tokamak
