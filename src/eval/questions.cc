#include "eval/questions.h"

#include <algorithm>

#include "base/error.h"
#include "base/lines.h"
#include "base/strings.h"
#include "eval/python_text.h"
#include "formats/compressed_stream.h"
#include "formats/json.h"

namespace tokamak {

namespace {

// Index of a choice, if the `count` choices are numbered from `first`. Some data sets store the number as text.
size_t index(const JsonValue& value, int64_t first, size_t count) {
  const std::string digits = value.is_whole() ? str(value.whole(INT64_MIN)) : value.text();
  for (size_t i = 0; i < count; ++i) {
    if (digits == str(first + static_cast<int64_t>(i))) return i;
  }
  value.refuse(str("expected one of the ", count, " choices from ", first, " on"));
}

// Makes a question of one context. Each continuation is a space and a choice.
Question ask(const std::string& context, const std::vector<std::string>& choices, size_t answer) {
  Question question{.choices = {}, .answer = answer};
  for (const std::string& choice : choices) question.choices.push_back({context, " " + choice, choice});
  return question;
}

// re.sub("\\[.*?\\]", "", text): a dot does not match a newline.
std::string without_brackets(std::string_view text) {
  std::string out;
  size_t close = 0;  // the next ] or line break; sought once, however many [ stand before it
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') {
      if (close <= at) close = std::min(text.find_first_of("]\n", at + 1), text.size());
      if (close < text.size() && text[close] == ']') {
        at = close;
        continue;
      }
    }
    out += text[at];
  }
  return out;
}

// The brackets are artefacts of WikiHow, a part of HellaSwag.
std::string hellaswag_text(const std::string& text) {
  return replace_all(without_brackets(replace_all(python_strip(text), " [title]", ". ")), "  ", " ");
}

Question hellaswag(const JsonDocument& record) {
  const std::string context = record["ctx_a"].text() + " " + python_capitalize(record["ctx_b"].text());
  std::vector<std::string> endings = record["endings"].texts();
  std::transform(endings.begin(), endings.end(), endings.begin(), hellaswag_text);
  const size_t answer = index(record["label"], 0, endings.size());
  return ask(hellaswag_text(record["activity_label"].text() + ": " + context), endings, answer);
}

Question arc(const JsonDocument& record) {
  const std::vector<std::string> labels = record["choices"]["label"].texts();
  const std::vector<std::string> texts = record["choices"]["text"].texts();
  if (labels.size() != texts.size()) record["choices"]["label"].refuse("expected as many as choices.text has");
  const auto answer = std::find(labels.begin(), labels.end(), record["answerKey"].text());
  if (answer == labels.end()) record["answerKey"].refuse("expected one of choices.label");
  return ask("Question: " + record["question"].text() + "\nAnswer:", texts,
             static_cast<size_t>(answer - labels.begin()));
}

Question mmlu(const JsonDocument& record) {
  const std::vector<std::string> letters = {"A", "B", "C", "D"};
  const std::vector<std::string> choices = record["choices"].texts();
  if (choices.size() != letters.size()) record["choices"].refuse("expected four strings");
  std::string context = "The following are multiple choice questions (with answers) about " +
                        replace_all(record["subject"].text(), "_", " ") + ".\n\n" +
                        std::string(python_strip(record["question"].text()));
  for (size_t i = 0; i < letters.size(); ++i) context += "\n" + letters[i] + ". " + choices[i];
  return ask(context + "\nAnswer:", letters, index(record["answer"], 0, letters.size()));
}

Question piqa(const JsonDocument& record) {
  return ask("Question: " + record["goal"].text() + "\nAnswer:", {record["sol1"].text(), record["sol2"].text()},
             index(record["label"], 0, 2));
}

// The choice is part of the context; the text after it is scored (Trinh and Le 2018).
Question winogrande(const JsonDocument& record) {
  const std::string sentence = record["sentence"].text();
  const size_t gap = sentence.find('_');
  if (gap == std::string::npos) record["sentence"].refuse("expected a text with a gap, \"_\"");
  const std::string rest(python_strip(std::string_view(sentence).substr(gap + 1)));
  Question question{.choices = {}, .answer = index(record["answer"], 1, 2)};
  for (const char* option : {"option1", "option2"}) {
    const std::string context = sentence.substr(0, gap) + record[option].text();
    question.choices.push_back({context, " " + rest, context});
  }
  return question;
}

Question read_question(EvalKind kind, const JsonDocument& record) {
  switch (kind) {
    case EvalKind::kHellaSwag:
      return hellaswag(record);
    case EvalKind::kArc:
      return arc(record);
    case EvalKind::kMmlu:
      return mmlu(record);
    case EvalKind::kPiqa:
      return piqa(record);
    case EvalKind::kWinoGrande:
      return winogrande(record);
    case EvalKind::kText:
    case EvalKind::kShards:
      break;
  }
  TOKAMAK_UNREACHABLE("not a task of questions");
}

}  // namespace

std::vector<Question> read_questions(const EvalOptions& options) {
  std::vector<Question> questions;
  LineReader reader(open_stream(options.path, Kind::kData));
  std::string line;
  while (reader.next(line)) {
    if (trim(line).empty()) continue;
    const std::string where = str(options.path, ":", reader.line_number());
    questions.push_back(read_question(options.task, JsonDocument(line, {where}, JsonRules::kLenient)));
    questions.back().where = where;
    if (options.limit > 0 && std::ssize(questions) == options.limit) break;
  }
  if (questions.empty()) fail(Kind::kData, str(options.path, " holds no question"));
  return questions;
}

}  // namespace tokamak
