// Tasks whose answers a model writes: texts that are compared, or programs that are run.
#include <algorithm>

#include "base/error.h"
#include "comm/rank_zero.h"
#include "eval/task_kinds.h"
#include "eval/text_answers.h"
#include "infer/requests.h"

namespace tokamak {

namespace {

// A question without its texts, for the metrics.
struct Expected {
  std::vector<std::string> references;
  std::string program_before, program_after;
};

// The value of each text: 1 if any reference is its answer.
std::vector<double> matches(TaskMetric metric, const std::vector<Expected>& expected,
                            std::span<const std::string> texts) {
  std::vector<double> values;
  for (size_t item = 0; item < expected.size(); ++item) {
    const std::string answer = extracted_answer(metric, texts[item]);
    const std::vector<std::string>& references = expected[item].references;
    values.push_back(std::any_of(references.begin(), references.end(),
                                 [&](const std::string& reference) { return is_right(metric, answer, reference); }));
  }
  return values;
}

// 1 for each text whose program passes. The ranks share the programs.
std::vector<double> passes(const std::vector<Expected>& expected, std::span<const std::string> texts, Comm& comm,
                           const RunPrograms& run) {
  const size_t samples = texts.size() / expected.size();
  std::vector<std::string> own;
  for (size_t i = static_cast<size_t>(comm.rank()); i < texts.size(); i += static_cast<size_t>(comm.size())) {
    const Expected& item = expected[i / samples];
    own.push_back(str(item.program_before, texts[i], item.program_after));
  }
  const std::vector<char> verdicts = run(own);
  const std::vector<std::string> all = comm.gather_all(bytes_of_values(std::span<const char>(verdicts)));
  std::vector<double> values;
  for (size_t i = 0; i < texts.size(); ++i) {
    values.push_back(all[i % static_cast<size_t>(comm.size())].at(i / static_cast<size_t>(comm.size())) != 0);
  }
  return values;
}

// pass@k of n samples for each item, for k = 1, 2, 4, ..., and n.
void add_passes(std::span<const double> passed, int64_t n, std::vector<NamedValue>& out) {
  for (int64_t k = 1;; k = std::min(2 * k, n)) {
    std::vector<double> items;
    for (size_t at = 0; at < passed.size(); at += static_cast<size_t>(n)) {
      const std::span<const double> of_item = passed.subspan(at, static_cast<size_t>(n));
      items.push_back(pass_at(k, n, std::count(of_item.begin(), of_item.end(), 1.0)));
    }
    add_figure(str("pass@", k), mean_figure(items), out);
    if (k == n) return;
  }
}

}  // namespace

EvalTask generative_task(std::vector<Question> questions, const EvalOptions& options, const TaskForm& form,
                         EvalEncoder& encoder, const RunPrograms& run) {
  const bool is_program = form.metrics[0] == TaskMetric::kPassAtK;
  if (options.num_samples > 1 && !is_program) {
    fail(Kind::kConfig, str(options.display_name(), ": ", options.num_samples, " samples are for programs"));
  }
  EvalTask task{.items = std::ssize(questions)};
  TextsToGenerate& wanted = task.texts.emplace();
  wanted.max_tokens = form.max_gen_toks;
  // One text is the likeliest; several are sampled as for the harness's humaneval_64.
  wanted.sampling = {.temperature = options.num_samples > 1 ? 0.2 : 0.0, .top_p = 0.95};
  wanted.stops = form.until;
  wanted.tokenizer = &encoder.tokenizer();
  std::vector<Expected> expected;
  StreamNames streams;
  for (const Question& question : questions) {
    Expected& one = expected.emplace_back();
    for (const Choice& choice : question.choices) one.references.push_back(choice.text);
    one.program_before = question.program_before;
    one.program_after = question.program_after;
    const std::string prompt = question.before + question.choices[0].context;
    for (int64_t sample = 0; sample < options.num_samples; ++sample) {
      wanted.requests.push_back({encoder.prompt(prompt, form.max_gen_toks, question.where), streams.next(prompt)});
    }
  }
  task.judge = [expected = std::move(expected), metrics = form.metrics, is_program, n = options.num_samples, run](
                   std::span<const std::string> texts, Comm& comm) {
    TextVerdicts verdicts;
    for (const TaskMetric metric : metrics) {
      const std::vector<double> values =
          is_program ? passes(expected, texts, comm, run) : matches(metric, expected, texts);
      verdicts.right.emplace_back(is_program ? "passed" : enum_name(metric), values);
      if (is_program) add_passes(values, n, verdicts.figures.values);
      if (!is_program) add_figure(enum_name(metric), mean_figure(values), verdicts.figures.values);
    }
    return verdicts;
  };
  task.questions = std::move(questions);
  return task;
}

}  // namespace tokamak
