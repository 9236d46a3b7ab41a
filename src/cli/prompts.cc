#include "cli/prompts.h"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "formats/json.h"

namespace tokamak::cli {

namespace {

std::string read_all(const std::string& path) {
  if (path != "-") return read_text(path, Kind::kData);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void without_line_break(std::string& text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
}

void append_lines(const std::string& path, std::vector<std::string>& prompts) {
  const std::vector<std::string> lines = split(read_all(path), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const JsonSource source{str(path, ":", i + 1), Kind::kData, R"(a line is {"prompt": "text to continue"})"};
    prompts.push_back(JsonDocument(lines[i], source, JsonRules::kLenient)["prompt"].text());
  }
}

}  // namespace

std::vector<std::string> read_prompts(const PromptOptions& options) {
  const auto is_input = [](const std::string& path) { return path == "-"; };
  if (std::count_if(options.files.begin(), options.files.end(), is_input) +
          std::count_if(options.jsonl.begin(), options.jsonl.end(), is_input) >
      1) {
    fail(Kind::kConfig, "standard input, '-', is given twice");
  }
  std::vector<std::string> prompts = options.texts;
  for (const std::string& path : options.files) {
    prompts.push_back(read_all(path));
    without_line_break(prompts.back());
  }
  for (const std::string& path : options.jsonl) append_lines(path, prompts);
  if (prompts.empty()) {
    fail(Kind::kConfig, "there is no prompt",
         "--prompt TEXT, --prompt-file FILE or --prompts FILE.jsonl; '-' reads standard input");
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) fail(Kind::kConfig, str("prompt ", i + 1, " of ", prompts.size(), " is empty"));
  }
  return prompts;
}

}  // namespace tokamak::cli
