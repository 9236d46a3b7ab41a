#include "serve/completion.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "infer/requests.h"
#include "infer/text_stream.h"

namespace tokamak {

namespace {

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// The prompt's ids. One without tokens is BOS, else EOS: a text from the start.
std::vector<int32_t> encode_prompt(const RequestPrompt& prompt, bool wants_bos, const PromptEncoding& source) {
  const Tokenizer& tokenizer = *source.tokenizer;
  std::vector<int32_t> ids = prompt.ids;
  if (!prompt.text.empty()) {
    if (wants_bos && source.add_bos) ids.push_back(tokenizer.bos_id());
    tokenizer.make_encoder()->encode(prompt.text, ids);
  }
  if (ids.empty()) ids.push_back(tokenizer.bos_id() >= 0 ? tokenizer.bos_id() : tokenizer.eos_id());
  for (const int32_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    throw RequestError{400, str("token id ", id, " is not in the vocabulary of ", tokenizer.vocab_size()), "prompt"};
  }
  return ids;
}

}  // namespace

class Completion::Choice final : public TextReceiver {
 public:
  Choice(Completion& whole, int64_t index, const CompletionRequest& request, const Tokenizer& tokenizer,
         const std::string& prompt_text, TextRequest text)
      : text_(std::move(text)),
        whole_(whole),
        index_(index),
        detokenizer_(tokenizer, request.echo ? std::vector<int32_t>() : text_.prompt),
        stops_(request.stops),
        echoes_(request.echo),
        wants_tokens_(request.logprobs.has_value()) {
    if (!request.echo) return;
    ready_ = prompt_text;
    const size_t now = wants_tokens_ ? 1 : text_.prompt.size();  // the others come with their log probabilities
    for (size_t i = 0; i < now; ++i) add(text_.prompt[i], std::nullopt);
  }

  void prompt_token(const Logprobs& logprobs) override { add(logprobs.token.id, logprobs); }

  Verdict token(int32_t id, const Logprobs* logprobs) override {
    end_prompt();
    if (id == text_.eos) {  // has no text
      pending_.push_back({id, characters_, *logprobs});
      return Verdict::kContinue;
    }
    show(stops_.feed(add(id, logprobs ? std::optional(*logprobs) : std::nullopt)));
    return !emit(std::nullopt, 0) || stops_.stopped() ? Verdict::kStop : Verdict::kContinue;
  }

  void finish(Finish finish, int64_t tokens) override {
    end_prompt();
    show(stops_.feed(detokenizer_.rest()));
    show(stops_.rest());
    emit(stops_.stopped() ? Finish::kStop : finish, tokens);
  }

  TextRequest text_;

 private:
  // Returns the text that the token adds.
  std::string add(int32_t id, std::optional<Logprobs> logprobs) {
    if (wants_tokens_) pending_.push_back({id, characters_, std::move(logprobs)});
    std::string text = detokenizer_.next(id);
    characters_ += characters_of(text);
    return text;
  }
  void end_prompt() {
    if (echoes_) shown_ = characters_;
    echoes_ = false;
  }
  void show(const std::string& text) {
    shown_ += characters_of(text);
    ready_ += text;
  }

  bool emit(std::optional<Finish> finish, int64_t tokens) {
    TextPiece piece{index_, std::exchange(ready_, ""), {}, finish, tokens};
    const bool takes_all = finish && !stops_.stopped();
    while (!pending_.empty() && (takes_all || pending_.front().offset < shown_)) {
      piece.tokens.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    return piece.text.empty() && piece.tokens.empty() && !finish ? true : whole_.push(std::move(piece));
  }

  Completion& whole_;
  int64_t index_;
  Detokenizer detokenizer_;
  StopFilter stops_;
  bool echoes_, wants_tokens_;
  std::string ready_;                   // to be sent
  int64_t characters_ = 0, shown_ = 0;  // of all tokens so far; of these, those that were or will be sent
  std::deque<PieceToken> pending_;      // whose text is not sent yet
};

Completion::Completion(const CompletionRequest& request, const PromptEncoding& source, uint64_t seed) {
  StreamNames streams;
  int64_t values = 0;
  for (const RequestPrompt& prompt : request.prompts) {
    const std::vector<int32_t> ids = encode_prompt(prompt, request.add_special_tokens, source);
    if (std::ssize(ids) + std::max<int64_t>(request.max_tokens, 1) > source.context) {
      throw RequestError{400,
                         str("the prompt has ", ids.size(), " tokens and max_tokens is ", request.max_tokens,
                             "; the context has ", source.context),
                         "max_tokens", "context_length_exceeded"};
    }
    const std::string text = prompt.ids.empty() ? prompt.text : source.tokenizer->decode(ids);
    prompt_tokens_ += std::ssize(ids);
    if (request.logprobs) {
      values += ((request.echo ? std::ssize(ids) : 0) + request.max_tokens) * request.n * (*request.logprobs + 2);
    }
    if (values > kMostValues)
      throw RequestError{400, str("the reply might have more than ", kMostValues, " log probabilities"), "logprobs"};
    for (int64_t i = 0; i < request.n; ++i) {
      choices_.emplace_back(*this, choices(), request, *source.tokenizer, text,
                            TextRequest{.prompt = ids,
                                        .random = RandomStream(seed, streams.next(text)),
                                        .max_tokens = request.max_tokens,
                                        .eos = request.ignore_eos ? -1 : source.tokenizer->eos_id(),
                                        .sampling = request.sampling,
                                        .wants_logprobs = request.logprobs.has_value(),
                                        .wants_prompt_logprobs = request.echo && request.logprobs,
                                        .likeliest = request.logprobs.value_or(0)});
    }
  }
  going_ = left_ = choices();
}

// The engine's thread may be in push() still, with the last piece.
Completion::~Completion() { const std::lock_guard lock(mutex_); }

int64_t Completion::choices() const { return std::ssize(choices_); }
TextRequest Completion::request_of(int64_t choice) { return choices_[static_cast<size_t>(choice)].text_; }
TextReceiver& Completion::receiver(int64_t choice) { return choices_[static_cast<size_t>(choice)]; }

bool Completion::push(TextPiece piece) {
  const std::lock_guard lock(mutex_);
  if (piece.finish && --going_ == 0) over_();
  pieces_.push_back(std::move(piece));
  arrived_.notify_one();
  const bool takes_enough = std::ssize(pieces_) <= kMostWaiting;
  if (!takes_enough) failure_ = RequestError{408, "the client reads too slowly", "", "slow_client"};
  return takes_enough;
}

void Completion::fail(const RequestError& error) {
  const std::lock_guard lock(mutex_);
  failure_ = error;
  arrived_.notify_one();
}

std::optional<TextPiece> Completion::next(double seconds) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return failure_ || !pieces_.empty() || left_ == 0; });
  if (failure_) throw RequestError(*failure_);
  if (pieces_.empty()) return std::nullopt;
  TextPiece piece = std::move(pieces_.front());
  pieces_.pop_front();
  if (piece.finish) --left_;
  return piece;
}

bool Completion::all_taken() {
  const std::lock_guard lock(mutex_);
  return left_ == 0;
}

}  // namespace tokamak
