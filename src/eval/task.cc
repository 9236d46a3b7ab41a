#include "eval/task.h"

#include "base/error.h"
#include "base/strings.h"
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

}  // namespace

EvalTask make_eval_task(const EvalOptions& options, const Tokenizer& tokenizer, const EncodingOptions& encoding) {
  if (options.task == EvalKind::kShards) return shards_task(options, tokenizer, encoding.context);
  EvalEncoder encoder(tokenizer, encoding);
  if (options.task == EvalKind::kText) {
    EvalTask task = rolling_text_task(read_texts(options), encoder);
    if (task.sequences.empty()) fail(Kind::kData, str(options.path, " holds no text"));
    return task;
  }
  // The harness has no acc_norm if all choices are letters, or if the choice is part of the context.
  const bool lengths_tell = options.task != EvalKind::kMmlu && options.task != EvalKind::kWinoGrande;
  return multiple_choice_task(read_questions(options), lengths_tell ? LengthNorm::kYes : LengthNorm::kNo, encoder);
}

}  // namespace tokamak
