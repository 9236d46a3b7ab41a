// The form of a task of questions: how a record of its file becomes a prompt, its answers and its metrics. The forms of
// known tasks are rows of one table, with the texts of lm-evaluation-harness 0.4.13. A user's own is a YAML file with
// the same keys.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"
#include "train/eval_options.h"

namespace tokamak {

// kRandomOther: where examples may come from the evaluated file itself; the question is never its own example.
enum class ShotRule { kFirst, kRandom, kRandomOther };
inline const std::vector<std::string>& enum_names(ShotRule) {
  static const std::vector<std::string> names = {"first", "random", "random_other"};
  return names;
}

// The last four judge generated texts (text_answers.h).
enum class TaskMetric { kAcc, kAccNorm, kPerplexity, kExactMatch, kStrictMatch, kFlexibleExtract, kPassAtK };
inline const std::vector<std::string>& enum_names(TaskMetric) {
  static const std::vector<std::string> names = {"acc",          "acc_norm",         "perplexity", "exact_match",
                                                 "strict_match", "flexible_extract", "pass_at_k"};
  return names;
}
inline bool judges_texts(TaskMetric metric) { return metric >= TaskMetric::kExactMatch; }

enum class TextCleaning { kNone, kWikiHow };
inline const std::vector<std::string>& enum_names(TextCleaning) {
  static const std::vector<std::string> names = {"none", "wikihow"};
  return names;
}

struct PartGroup {
  std::string name;
  std::vector<std::string> parts;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "name in the results; required");
    v("parts", parts, "its parts; required");
  }
};

// Texts are templates (text_template.h).
struct TaskForm {
  std::string description;
  std::string context;
  std::vector<std::string> choices;
  std::string continuation;
  std::string answer;
  std::vector<std::string> labels;
  TextCleaning cleaning = TextCleaning::kNone;
  std::string part;
  std::vector<PartGroup> groups;
  ShotRule shots = ShotRule::kRandomOther;
  std::string shots_from;
  std::vector<std::string> samples;
  std::vector<TaskMetric> metrics = {TaskMetric::kAcc};
  std::vector<std::string> until;
  int64_t max_gen_toks = 256;
  std::string program_before;
  std::string program_after;

  bool generates() const { return judges_texts(metrics.at(0)); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("description", description, "text before the examples and the question");
    v("context", context, "the question, for example \"Question: {question}\\nAnswer:\"; required");
    v("choices", choices, "the answers to choose from: texts, or one list, \"{choices.text}\"; none: one continuation");
    v("continuation", continuation, "the scored text; default: a space and the choice");
    v("answer", answer, "which choice is right, by its label: \"{label}\"");
    v("labels", labels, "names of the choices: texts, or one list, \"{choices.label}\"; default: 0, 1, 2, ...");
    v("cleaning", cleaning, "changes questions and choices; wikihow: as HellaSwag, removes [brackets]");
    v("part", part, "splits a task: questions and examples of one part go together, \"{subject}\"");
    v("groups", groups, "parts that have a result of their own, together");
    v("shots", shots, "how examples are chosen: the first, at random, or at random but not the question itself");
    v("shots_from", shots_from, "the split of the data set that examples usually come from, for messages");
    v("samples", samples, "examples for want of a file of them: records as JSON");
    v("metrics", metrics,
      "acc, acc_norm: by the likeliest choice; without choices acc and perplexity; of generated texts exact_match, "
      "strict_match, flexible_extract or pass_at_k");
    v("until", until, "generated texts: they end before these strings");
    v("max_gen_toks", max_gen_toks, "generated texts: maximum new tokens");
    v("program_before", program_before, "pass_at_k: the program's text before the generated one");
    v("program_after", program_after, "pass_at_k: the program's text after it; it passes if it ends without an error");
  }
};

// The row of a known task; not of custom.
const TaskForm& form_of(EvalKind kind);

// The problems of a user's form.
std::vector<FieldError> problems_of(const TaskForm& form);

}  // namespace tokamak
