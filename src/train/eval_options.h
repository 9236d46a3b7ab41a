// Evaluations during training (src/eval).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

// The tasks of questions first, in the order of eval/task_form.cc's table.
enum class EvalKind {
  kHellaSwag,
  kArc,
  kMmlu,
  kMmluRu,
  kPiqa,
  kWinoGrande,
  kBoolQ,
  kOpenBookQa,
  kCommonsenseQa,
  kLambada,
  kGsm8k,
  kTriviaQa,
  kHumanEval,
  kMbpp,
  kCustom,
  kText,
  kShards,
  kCore
};
inline const std::vector<std::string>& enum_names(EvalKind) {
  static const std::vector<std::string> names = {
      "hellaswag", "arc",   "mmlu",     "mmlu_ru",   "piqa", "winogrande", "boolq", "openbookqa", "commonsense_qa",
      "lambada",   "gsm8k", "triviaqa", "humaneval", "mbpp", "custom",     "text",  "shards",     "core"};
  return names;
}
inline bool has_questions(EvalKind kind) { return kind <= EvalKind::kCustom; }
// Whether a known task's answers are texts that the model writes.
inline bool generates_texts(EvalKind kind) { return EvalKind::kGsm8k <= kind && kind <= EvalKind::kMbpp; }

struct EvalOptions {
  EvalKind task = EvalKind::kHellaSwag;
  std::string form;
  std::string path;
  std::string name;
  int64_t limit = 0;
  int64_t num_fewshot = 0;
  std::string fewshot_path;
  int64_t fewshot_seed = 1234;
  bool by_position = false;
  // Only of `tokamak eval`: samples of each problem that programs solve, and whether these may run.
  int64_t num_samples = 1;
  bool allow_code_execution = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("task", task,
      "benchmark, from JSON lines; custom: of your own form; text: perplexity (.jsonl, .txt); shards: of a tokenized data "
      "set; core: CORE's directory");
    v("form", form, "custom: the YAML file that says how a record becomes a question");
    v("path", path, "the file, or the data set's directory; required");
    v("name", name, "name in the results, for example arc_easy; default: the task's name");
    v("limit", limit,
      "only the first items, of each subject of MMLU and task of CORE: quicker and less precise; 0: all");
    v("num_fewshot", num_fewshot, "solved examples before each question");
    v("fewshot_path", fewshot_path, "the file that examples are taken from: like path, of another split");
    v("fewshot_seed", fewshot_seed, "seed of their choice; the default is the harness's");
    v("by_position", by_position,
      "shards: also the loss at positions 0 to 127, 128 to 255, 256 to 511, ... of documents, in twice the time: whether "
      "the model uses a long context");
  }

  std::string display_name() const { return name.empty() ? enum_names(task)[static_cast<size_t>(task)] : name; }
};

}  // namespace tokamak
