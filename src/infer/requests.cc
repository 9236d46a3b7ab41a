#include "infer/requests.h"

#include <memory>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

std::string StreamNames::next(const std::string& prompt) { return str("generate/", times_[prompt]++, "/", prompt); }

std::vector<GenerationRequest> make_requests(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                             bool bos) {
  TOKAMAK_CHECK(!bos || tokenizer.bos_id() >= 0, tokenizer.path(), " has no BOS token");
  const std::unique_ptr<Encoder> encoder = tokenizer.make_encoder();
  std::vector<GenerationRequest> requests;
  StreamNames streams;
  for (const std::string& prompt : prompts) {
    GenerationRequest request;
    if (bos) request.prompt.push_back(tokenizer.bos_id());
    encoder->encode(prompt, request.prompt);
    request.stream = streams.next(prompt);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace tokamak
