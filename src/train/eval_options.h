// Evaluations during training (src/eval).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

enum class EvalKind { kHellaSwag, kArc, kMmlu, kPiqa, kWinoGrande, kText, kShards };
inline const std::vector<std::string>& enum_names(EvalKind) {
  static const std::vector<std::string> names = {"hellaswag", "arc", "mmlu", "piqa", "winogrande", "text", "shards"};
  return names;
}

struct EvalOptions {
  EvalKind task = EvalKind::kHellaSwag;
  std::string path;
  std::string name;
  int64_t limit = 0;
  bool by_position = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("task", task,
      "benchmark, zero-shot as in lm-evaluation-harness, from JSON lines; text: perplexity of texts (.jsonl, .txt); "
      "shards: of a tokenized data set");
    v("path", path, "the file, or the data set's directory; required");
    v("name", name, "name in the results, for example arc_easy; default: the task's name");
    v("limit", limit, "only the first items: quicker and less precise; 0: all");
    v("by_position", by_position,
      "shards: also the loss at positions 0 to 127, 128 to 255, 256 to 511, ... of documents, in twice the time: whether "
      "the model uses a long context");
  }

  std::string display_name() const { return name.empty() ? enum_names(task)[static_cast<size_t>(task)] : name; }
};

}  // namespace tokamak
