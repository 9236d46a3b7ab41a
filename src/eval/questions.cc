#include "eval/questions.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/error.h"
#include "base/lines.h"
#include "base/printable.h"
#include "base/strings.h"
#include "eval/python_text.h"
#include "eval/shots.h"
#include "eval/text_template.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

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

std::string cleaned(TextCleaning cleaning, const std::string& text) {
  if (cleaning == TextCleaning::kNone) return text;
  return replace_all(without_brackets(replace_all(python_strip(text), " [title]", ". ")), "  ", " ");
}

std::vector<TextTemplate> templates_of(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

std::vector<std::string> texts_of(const std::vector<TextTemplate>& templates, const JsonValue& record) {
  if (templates.size() == 1) return templates[0].texts(record);
  std::vector<std::string> out;
  for (const TextTemplate& one : templates) out.push_back(one.text(record));
  return out;
}

// Words the records of one task.
class Wording {
 public:
  explicit Wording(const TaskForm& form)
      : cleaning_(form.cleaning),
        description_(form.description),
        context_(form.context),
        continuation_(form.continuation.empty() ? " {choice}" : form.continuation),
        answer_(form.answer),
        part_(form.part),
        program_before_(form.program_before),
        program_after_(form.program_after),
        choices_(templates_of(form.choices)),
        labels_(templates_of(form.labels)) {}

  std::string description(const JsonValue& record) const { return description_.text(record); }
  std::string part(const JsonValue& record) const { return part_.text(record); }

  // Without examples.
  Question question(const JsonValue& record) const {
    Question question{.before = {},
                      .choices = {},
                      .program_before = program_before_.text(record),
                      .program_after = program_after_.text(record),
                      .part = part(record),
                      .where = record.source().where};
    if (choices_.empty()) {
      const std::string text = continuation_.text(record);
      question.choices.push_back({cleaned(cleaning_, context_.text(record)), text, text});
      return question;
    }
    for (const std::string& raw : texts_of(choices_, record)) {
      const std::string choice = cleaned(cleaning_, raw);
      question.choices.push_back(
          {cleaned(cleaning_, context_.text(record, choice)), continuation_.text(record, choice), choice});
    }
    question.answer = answer(record, question.choices.size());
    return question;
  }

  // A solved example. The harness puts a space before the answer, also before a continuation that begins with one.
  std::string example(const JsonValue& record) const {
    const Question solved = question(record);
    const Choice& right = solved.choices[solved.answer];
    return str(right.context, choices_.empty() ? " " : "", right.continuation, "\n\n");
  }

 private:
  size_t answer(const JsonValue& record, size_t choices) const {
    std::vector<std::string> labels = texts_of(labels_, record);
    if (labels_.empty()) {
      for (size_t i = 0; i < choices; ++i) labels.push_back(str(i));
    }
    if (labels.size() != choices) {
      fail(Kind::kData, str(record.source().where, " has ", choices, " choices, but labels for ", labels.size()));
    }
    const std::string label = answer_.text(record);
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found == labels.end()) {
      fail(Kind::kData, str(record.source().where, " has the answer \"", printable(label), "\"; expected one of ",
                            printable(join(labels, ", "))));
    }
    return static_cast<size_t>(found - labels.begin());
  }

  TextCleaning cleaning_;
  TextTemplate description_, context_, continuation_, answer_, part_, program_before_, program_after_;
  std::vector<TextTemplate> choices_, labels_;
};

using Records = std::deque<JsonDocument>;

// At most `most` of the records for which keep(record) is true; 0: all of them.
template <class Keep>
Records read_records(const std::string& path, int64_t most, const Keep& keep) {
  Records records;
  LineReader reader(open_stream(path, Kind::kData));
  std::string line;
  while (reader.next(line)) {
    if (trim(line).empty()) continue;
    records.emplace_back(line, JsonSource{str(path, ":", reader.line_number())}, JsonRules::kLenient);
    if (!keep(records.back().root())) records.pop_back();
    if (most > 0 && std::ssize(records) == most) break;
  }
  return records;
}

Records read_examples(const EvalOptions& options, const TaskForm& form) {
  if (!options.fewshot_path.empty()) {
    return read_records(options.fewshot_path, 0, [](const JsonValue&) { return true; });
  }
  Records samples;
  for (size_t i = 0; i < form.samples.size(); ++i) {
    samples.emplace_back(form.samples[i], JsonSource{str(options.display_name(), ": samples[", i, "]")},
                         JsonRules::kLenient);
  }
  return samples;
}

}  // namespace

std::vector<Question> read_questions(const EvalOptions& options, const TaskForm& form) {
  const Wording wording(form);
  if (options.num_fewshot > 0 && options.fewshot_path.empty() && form.samples.empty()) {
    fail(Kind::kConfig, str(options.display_name(), ": ", options.num_fewshot, " examples need a file of examples"),
         form.shots_from.empty() ? "" : str("lm-evaluation-harness takes them from the split ", form.shots_from));
  }
  std::map<std::string, std::vector<JsonValue>> pools;  // by part
  Records examples;
  if (options.num_fewshot > 0) {
    examples = read_examples(options, form);
    for (const JsonDocument& record : examples) pools[wording.part(record.root())].push_back(record.root());
  }
  std::map<std::string, int64_t> asked;  // by part
  const Records records = read_records(
      options.path, form.part.empty() ? options.limit : 0,
      [&](const JsonValue& record) { return ++asked[wording.part(record)] <= options.limit || options.limit == 0; });
  if (records.empty()) fail(Kind::kData, str(options.path, " holds no question"));

  std::map<std::string, Shots> shots;  // by part
  std::vector<Question> questions;
  for (const JsonDocument& document : records) {
    const JsonValue record = document.root();
    questions.push_back(wording.question(record));
    Question& question = questions.back();
    question.before = wording.description(record);
    const auto of_part = shots.try_emplace(question.part, options, form.shots, pools[question.part]).first;
    for (const JsonValue& example : of_part->second.next(record)) question.before += wording.example(example);
  }
  return questions;
}

}  // namespace tokamak
