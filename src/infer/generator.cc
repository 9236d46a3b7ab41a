#include "infer/generator.h"

#include "base/error.h"

namespace tokamak {

namespace {

class RequestReceiver final : public TextReceiver {
 public:
  RequestReceiver(size_t request, const Generator::OnToken& on_token, const Generator::OnFinish& on_finish)
      : request_(request), on_token_(on_token), on_finish_(on_finish) {}

  Verdict token(int32_t id, const Logprobs*) override { return on_token_(request_, id); }
  void finish(Finish finish, int64_t tokens) override { on_finish_(request_, finish, tokens); }

 private:
  size_t request_;
  const Generator::OnToken& on_token_;
  const Generator::OnFinish& on_finish_;
};

}  // namespace

GenerationTimes Generator::run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                               const OnToken& on_token, const OnFinish& on_finish) {
  TOKAMAK_CHECK(options.max_tokens > 0);
  Batcher batcher(model_, cache_, device_, compute_,
                  {.vocab_size = options.vocab_size,
                   .prefill_step = options.prefill_step,
                   .between = options.between,
                   .choose = options.choose});
  std::deque<RequestReceiver> receivers;
  for (const GenerationRequest& request : requests) {
    batcher.add({.prompt = request.prompt,
                 .random = RandomStream(options.seed, request.stream),
                 .max_tokens = options.max_tokens,
                 .eos = options.eos,
                 .sampling = options.sampling},
                receivers.emplace_back(receivers.size(), on_token, on_finish));
  }
  while (batcher.step()) {
  }
  return batcher.times();
}

}  // namespace tokamak
