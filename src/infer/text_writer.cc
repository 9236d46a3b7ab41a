#include "infer/text_writer.h"

#include <nlohmann/json.hpp>

namespace tokamak {

namespace {

std::string name_of(Finish finish) {
  switch (finish) {
    case Finish::kEos:
      return "eos";
    case Finish::kStop:
      return "stop";
    default:
      return "length";
  }
}

}  // namespace

TextWriter::TextWriter(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                       const std::vector<GenerationRequest>& requests, const TextOptions& options, std::ostream& out)
    : prompts_(prompts), options_(options), out_(out), streams_(prompts.size() == 1 && !options.jsonl) {
  for (const GenerationRequest& request : requests) {
    texts_.push_back({Detokenizer(tokenizer, request.prompt), StopFilter(options.stops), "", {}, 0});
  }
  if (streams_ && options.echo) out_ << prompts[0] << std::flush;
}

Generator::Verdict TextWriter::token(size_t request, int32_t id) {
  Text& text = texts_[request];
  add(text, text.stops.feed(text.detokenizer.next(id)));
  return text.stops.stopped() ? Generator::Verdict::kStop : Generator::Verdict::kContinue;
}

void TextWriter::finish(size_t request, Finish finish, int64_t tokens) {
  Text& text = texts_[request];
  add(text, text.stops.feed(text.detokenizer.rest()));
  add(text, text.stops.rest());
  text.finish = text.stops.stopped() ? Finish::kStop : finish;
  text.tokens = tokens;
  // A text is written as soon as all earlier ones are.
  for (; written_ < texts_.size() && texts_[written_].finish; ++written_) write(written_);
}

void TextWriter::add(Text& text, const std::string& shown) {
  text.text += shown;
  if (streams_) out_ << shown << std::flush;
}

void TextWriter::write(size_t request) {
  const Text& text = texts_[request];
  if (options_.jsonl) {
    const nlohmann::ordered_json line = {{"prompt", prompts_[request]},
                                         {"text", text.text},
                                         {"tokens", text.tokens},
                                         {"finish_reason", name_of(*text.finish)}};
    out_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else if (!streams_) {
    if (request > 0) out_ << "\n";
    out_ << (options_.echo ? prompts_[request] : "") << text.text;
  }
  out_ << "\n" << std::flush;
}

}  // namespace tokamak
