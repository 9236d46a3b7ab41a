#include "eval/task.h"

#include "base/error.h"
#include "base/strings.h"
#include "config/options_file.h"
#include "data/text/text_reader.h"
#include "eval/task_kinds.h"

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
  return question_task(read_questions(options, form), form, encoder);
}

}  // namespace tokamak
