// Tasks of questions: accuracies and perplexity.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "eval/python_text.h"
#include "eval/task_kinds.h"

namespace tokamak {

namespace {

constexpr int64_t kBootstrapDraws = 100'000;  // the harness's

// Index of the largest score; the first of equal ones.
size_t best(std::span<const double> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// A question without its texts, for the metrics.
struct Asked {
  size_t answer;
  std::vector<double> lengths;  // of the choices, in characters
  std::string part;
};

double item_value(TaskMetric metric, const Asked& asked, std::span<const SequenceScore> scores) {
  std::vector<double> sums;
  for (const SequenceScore& score : scores) sums.push_back(score.log_likelihood);
  switch (metric) {
    case TaskMetric::kPerplexity:
      return sums[0];
    case TaskMetric::kAccNorm:
      std::transform(sums.begin(), sums.end(), asked.lengths.begin(), sums.begin(), std::divides<>());
      return best(sums) == asked.answer ? 1 : 0;
    case TaskMetric::kAcc:
      if (scores.size() == 1) return scores[0].greedy ? 1 : 0;
      return best(sums) == asked.answer ? 1 : 0;
    default:  // metrics of generated texts: generative_task.cc
      TOKAMAK_UNREACHABLE("a text's metric");
  }
}

Figure figure_of(TaskMetric metric, std::span<const double> values) {
  return metric == TaskMetric::kPerplexity ? perplexity_figure(values, kBootstrapDraws) : mean_figure(values);
}

using Named = std::vector<NamedValue>;

class QuestionResults {
 public:
  QuestionResults(std::vector<Asked> asked, const TaskForm& form)
      : asked_(std::move(asked)), metrics_(form.metrics), groups_(form.groups), has_parts_(!form.part.empty()) {}

  EvalFigures operator()(std::span<const SequenceScore> scores) const {
    EvalFigures figures;
    std::map<std::string, Named> parts, groups;
    for (const TaskMetric metric : metrics_) {
      const std::string& name = enum_name(metric);
      std::map<std::string, std::vector<double>> values;  // by part
      size_t at = 0;
      for (const Asked& asked : asked_) {
        values[asked.part].push_back(item_value(metric, asked, scores.subspan(at, asked.lengths.size())));
        at += asked.lengths.size();
      }
      std::map<std::string, Figure> of_parts;
      for (const auto& [part, of_part] : values) of_parts[part] = figure_of(metric, of_part);
      add_figure(name, pooled(of_parts, nullptr), figures.values);
      if (!has_parts_) continue;
      for (const auto& [part, figure] : of_parts) add_figure(name, figure, parts[part]);
      for (const PartGroup& group : groups_) {
        const Figure figure = pooled(of_parts, &group);
        if (figure.items > 0) add_figure(name, figure, groups[group.name]);
      }
    }
    figures.parts.assign(groups.begin(), groups.end());
    figures.parts.insert(figures.parts.end(), parts.begin(), parts.end());
    return figures;
  }

 private:
  // The figure of a group's parts, or of all. A single part's figure is its own.
  static Figure pooled(const std::map<std::string, Figure>& of_parts, const PartGroup* group) {
    std::vector<Figure> chosen;
    for (const auto& [part, figure] : of_parts) {
      if (group == nullptr || std::count(group->parts.begin(), group->parts.end(), part) > 0) chosen.push_back(figure);
    }
    if (chosen.empty()) return {};
    return chosen.size() == 1 ? chosen[0] : pooled_figure(chosen);
  }

  std::vector<Asked> asked_;
  std::vector<TaskMetric> metrics_;
  std::vector<PartGroup> groups_;
  bool has_parts_;
};

}  // namespace

EvalTask question_task(std::vector<Question> questions, const TaskForm& form, EvalEncoder& encoder) {
  EvalTask task{.items = std::ssize(questions)};
  std::vector<Asked> asked;
  for (int64_t item = 0; item < task.items; ++item) {
    const Question& question = questions[static_cast<size_t>(item)];
    asked.push_back({question.answer, {}, question.part});
    for (const Choice& choice : question.choices) {
      asked.back().lengths.push_back(double(python_len(choice.text)));
      task.sequences.push_back(encoder.pair(question.before + choice.context, choice.continuation, question.where));
      task.sequences.back().item = item;
    }
  }
  task.results = QuestionResults(std::move(asked), form);
  task.questions = std::move(questions);
  return task;
}

}  // namespace tokamak
