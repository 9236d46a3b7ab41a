#include "infer/requests.h"

#include <map>
#include <memory>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

std::vector<GenerationRequest> make_requests(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                             bool bos) {
  TOKAMAK_CHECK(!bos || tokenizer.bos_id() >= 0, tokenizer.path(), " has no BOS token");
  const std::unique_ptr<Encoder> encoder = tokenizer.make_encoder();
  std::vector<GenerationRequest> requests;
  std::map<std::string, int64_t> times;  // how often each prompt was given before
  for (const std::string& prompt : prompts) {
    GenerationRequest request;
    if (bos) request.prompt.push_back(tokenizer.bos_id());
    encoder->encode(prompt, request.prompt);
    request.stream = str("generate/", times[prompt]++, "/", prompt);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace tokamak
