#include "eval/questions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strings.h"
#include "eval/python_text.h"
#include "tokenizer/text_lines.h"
#include "tokenizer/utf8.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;

// One line of the file, whose members are asked for by name and kind.
class Record {
 public:
  Record(const std::string& line, std::string where)
      : json_(Json::parse(line, nullptr, false)), where_(std::move(where)) {
    if (!json_.is_object() || !is_valid_utf8(line)) fail(Kind::kData, str(where_, " is not a JSON object in UTF-8"));
  }

  std::string text(const char* key) const { return as_text(member(json_, key), key); }

  std::vector<std::string> texts(const char* key) const { return as_texts(member(json_, key), key); }
  std::vector<std::string> texts(const char* outer, const char* key) const {
    const Json& object = member(json_, outer);
    if (!object.is_object()) wrong(outer, "an object");
    return as_texts(member(object, key), str(outer, ".", key));
  }

  // A number from `first` on that counts `count` choices; some sets write it as text.
  size_t index(const char* key, int64_t first, size_t count) const {
    const Json& value = member(json_, key);
    const std::string digits = value.is_number_integer() ? str(value.get<int64_t>()) : as_text(value, key);
    for (size_t i = 0; i < count; ++i) {
      if (digits == str(first + static_cast<int64_t>(i))) return i;
    }
    wrong(key, str("one of the ", count, " choices from ", first, " on, not ", digits));
  }

  [[noreturn]] void wrong(const std::string& key, const std::string& expected) const {
    fail(Kind::kData, str(where_, ": ", key, " must be ", expected));
  }

 private:
  const Json& member(const Json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail(Kind::kData, str(where_, " has no member ", key));
    return *found;
  }
  std::string as_text(const Json& value, const std::string& key) const {
    if (!value.is_string()) wrong(key, "a string");
    return value.get<std::string>();
  }
  std::vector<std::string> as_texts(const Json& value, const std::string& key) const {
    if (!value.is_array() || value.empty()) wrong(key, "a list of strings");
    std::vector<std::string> out;
    for (const Json& item : value) out.push_back(as_text(item, key));
    return out;
  }

  Json json_;
  std::string where_;
};

// One context, and each choice after a space.
Question ask(const std::string& context, const std::vector<std::string>& choices, size_t answer) {
  Question question{.choices = {}, .answer = answer};
  for (const std::string& choice : choices) question.choices.push_back({context, " " + choice, choice});
  return question;
}

// re.sub("\\[.*?\\]", "", text): a dot is no newline.
std::string without_brackets(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t close = text.front() == '[' ? text.find_first_of("]\n", 1) : std::string_view::npos;
    if (close != std::string_view::npos && text[close] == ']') {
      text.remove_prefix(close + 1);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

// Brackets are left over from WikiHow, a part of HellaSwag.
std::string hellaswag_text(const std::string& text) {
  return replace_all(without_brackets(replace_all(python_strip(text), " [title]", ". ")), "  ", " ");
}

Question hellaswag(const Record& record) {
  const std::string context = record.text("ctx_a") + " " + python_capitalize(record.text("ctx_b"));
  std::vector<std::string> endings = record.texts("endings");
  std::transform(endings.begin(), endings.end(), endings.begin(), hellaswag_text);
  const size_t answer = record.index("label", 0, endings.size());
  return ask(hellaswag_text(record.text("activity_label") + ": " + context), endings, answer);
}

Question arc(const Record& record) {
  const std::vector<std::string> labels = record.texts("choices", "label");
  const std::vector<std::string> texts = record.texts("choices", "text");
  if (labels.size() != texts.size()) record.wrong("choices.label", "as long as choices.text");
  const auto answer = std::find(labels.begin(), labels.end(), record.text("answerKey"));
  if (answer == labels.end()) record.wrong("answerKey", "one of choices.label");
  return ask("Question: " + record.text("question") + "\nAnswer:", texts, static_cast<size_t>(answer - labels.begin()));
}

Question mmlu(const Record& record) {
  const std::vector<std::string> letters = {"A", "B", "C", "D"};
  const std::vector<std::string> choices = record.texts("choices");
  if (choices.size() != letters.size()) record.wrong("choices", "four strings");
  std::string context = "The following are multiple choice questions (with answers) about " +
                        replace_all(record.text("subject"), "_", " ") + ".\n\n" +
                        std::string(python_strip(record.text("question")));
  for (size_t i = 0; i < letters.size(); ++i) context += "\n" + letters[i] + ". " + choices[i];
  return ask(context + "\nAnswer:", letters, record.index("answer", 0, letters.size()));
}

Question piqa(const Record& record) {
  return ask("Question: " + record.text("goal") + "\nAnswer:", {record.text("sol1"), record.text("sol2")},
             record.index("label", 0, 2));
}

// The choice stands in the context, and what follows it is asked for (Trinh and Le 2018).
Question winogrande(const Record& record) {
  const std::string sentence = record.text("sentence");
  const size_t gap = sentence.find('_');
  if (gap == std::string::npos) record.wrong("sentence", "a text with a gap, \"_\"");
  const std::string rest(python_strip(std::string_view(sentence).substr(gap + 1)));
  Question question{.choices = {}, .answer = record.index("answer", 1, 2)};
  for (const char* option : {"option1", "option2"}) {
    const std::string context = sentence.substr(0, gap) + record.text(option);
    question.choices.push_back({context, " " + rest, context});
  }
  return question;
}

Question read_question(EvalKind kind, const Record& record) {
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
  TOKAMAK_CHECK(false, "not a task of questions");
}

}  // namespace

std::vector<Question> read_questions(const EvalOptions& options) {
  std::vector<Question> questions;
  LineReader reader(options.path);
  std::string line;
  while (reader.next(line)) {
    if (trim(line).empty()) continue;
    const std::string where = str(options.path, ":", reader.line_number());
    questions.push_back(read_question(options.task, Record(line, where)));
    questions.back().where = where;
    if (options.limit > 0 && static_cast<int64_t>(questions.size()) == options.limit) break;
  }
  if (questions.empty()) fail(Kind::kData, str(options.path, " holds no question"));
  return questions;
}

}  // namespace tokamak
