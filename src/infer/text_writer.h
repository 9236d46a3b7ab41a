// Writes generated texts to standard output: a single prompt's text as it is generated, several prompts' texts in
// prompt order, or all as JSON lines.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "infer/generator.h"
#include "infer/text_stream.h"

namespace tokamak {

struct TextOptions {
  std::vector<std::string> stops;
  bool jsonl = false;
  bool echo = true;  // write the prompt before its text
};

class TextWriter {
 public:
  // All arguments outlive this; requests[r] is that of prompts[r].
  TextWriter(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
             const std::vector<GenerationRequest>& requests, const TextOptions& options, std::ostream& out);

  Generator::Verdict token(size_t request, int32_t id);
  void finish(size_t request, Finish finish, int64_t tokens);

 private:
  struct Text {
    Detokenizer detokenizer;
    StopFilter stops;
    std::string text;
    std::optional<Finish> finish;
    int64_t tokens = 0;
  };

  void add(Text& text, const std::string& shown);
  void write(size_t request);

  const std::vector<std::string>& prompts_;
  const TextOptions& options_;
  std::ostream& out_;
  std::vector<Text> texts_;
  bool streams_;
  size_t written_ = 0;  // texts
};

}  // namespace tokamak
