#include "eval/task.h"

#include "base/error.h"
#include "base/parallel_for.h"
#include "base/strings.h"
#include "config/options_file.h"
#include "data/text/text_reader.h"
#include "eval/task_kinds.h"
#include "sandbox/sandbox.h"

namespace tokamak {

namespace {

std::vector<std::string> read_texts(const EvalOptions& options) {
  const std::vector<TextFile> files = find_text_files({options.path});
  TextReader reader(files, 0);
  std::vector<std::string> texts;
  Document document;
  while (reader.next(document)) {
    parse_text(document, "text");
    texts.push_back(std::move(document.text));
    if (options.limit > 0 && std::ssize(texts) == options.limit) break;
  }
  return texts;
}

TaskForm load_form(const std::string& path) {
  return load_options<TaskForm>(path, {}, [](const TaskForm& form) { return problems_of(form); });
}

// Runs programs that a model has written, if this is allowed: as many at once as the rank has cores.
RunPrograms programs(const EvalOptions& options, const TaskForm& form) {
  if (form.metrics[0] != TaskMetric::kPassAtK) return {};
  if (!options.allow_code_execution) {
    fail(Kind::kConfig, str(options.display_name(), " runs programs that the model writes"),
         "--allow-code-execution allows it, in a sandbox without network and files");
  }
  return [sandbox = Sandbox()](std::span<const std::string> texts) {
    std::vector<char> passed;
    for (const ProgramVerdict& verdict : sandbox.run_all(texts, thread_count())) {
      passed.push_back(verdict.outcome == ProgramVerdict::Outcome::kPassed);
    }
    return passed;
  };
}

}  // namespace

EvalTask make_eval_task(const EvalOptions& options, const Tokenizer& tokenizer, const EncodingOptions& encoding) {
  if (options.task == EvalKind::kShards) return shards_task(options, tokenizer, encoding.context);
  if (options.task == EvalKind::kCore) return core_task(options, tokenizer, encoding.context);
  EvalEncoder encoder(tokenizer, encoding);
  if (options.task == EvalKind::kText) {
    EvalTask task = rolling_text_task(read_texts(options), encoder);
    if (task.sequences.empty()) fail(Kind::kData, str(options.path, " holds no text"));
    return task;
  }
  const TaskForm form = options.task == EvalKind::kCustom ? load_form(options.form) : form_of(options.task);
  if (form.generates())
    return generative_task(read_questions(options, form), options, form, encoder, programs(options, form));
  return question_task(read_questions(options, form), form, encoder);
}

}  // namespace tokamak
