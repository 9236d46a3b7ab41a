#include "data/pipeline/stages.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strings.h"
#include "data/dedup/simplified_text.h"
#include "data/pipeline/option_text.h"
#include "data/rules/values.h"
#include "data/text/text_reader.h"
#include "data/web/main_content.h"
#include "data/web/whole_content.h"

namespace tokamak {

namespace {

bool drop(Document& document, std::string reason) {
  document.reason = std::move(reason);
  return false;
}

class ExtractStage final : public Stage {
 public:
  explicit ExtractStage(const ExtractOptions& options)
      : extractor_(options.extractor), limits_{.nodes = options.nodes, .depth = options.depth} {}

  bool run(Document& document) override {
    if (!document.is_page) return true;
    document.is_page = false;
    Page::Problem problem{};
    const std::optional<Page> page = Page::parse(document.text, limits_, problem);
    if (!page) {
      constexpr const char* kReasons[] = {"extract.too_many_nodes", "extract.too_deep", "extract.too_much_memory"};
      return drop(document, kReasons[static_cast<size_t>(problem)]);
    }
    switch (extractor_) {
      case Extractor::kMain:
        document.text = main_.extract(*page);
        break;
      case Extractor::kWhole:
        document.text = whole_.extract(*page);
        break;
      case Extractor::kUnion:
        document.text = union_of_lines(main_.extract(*page), whole_.extract(*page));
        break;
    }
    return trim(document.text).empty() ? drop(document, "extract.no_text") : true;
  }

 private:
  Extractor extractor_;
  HtmlLimits limits_;
  MainContent main_;
  WholeContent whole_;
};

class LabelLanguage final : public Stage {
 public:
  LabelLanguage(const LanguageStage& options, const TextClassifier& model) : options_(options), model_(model) {}

  bool run(Document& document) override {
    const Label label = model_.best(document.text);
    document.language = label.name;
    set_value(document, "language_score", label.score);
    if (options_.keep.empty()) return true;
    if (std::find(options_.keep.begin(), options_.keep.end(), label.name) == options_.keep.end())
      return drop(document, "language.other");
    return label.score >= options_.least ? true : drop(document, "language.score");
  }

 private:
  const LanguageStage& options_;
  const TextClassifier& model_;
};

// A limit by the name under which the value is stored.
struct NamedRule {
  std::string reason;
  std::string value;
  ValueLimits limits;
};

void apply(const LimitOptions& change, ValueLimits& limits) {
  if (!change.least.is_auto()) limits.least = change.least.value;
  if (!change.most.is_auto()) limits.most = change.most.value;
}

std::vector<NamedRule> rules_of(const RulesStage& options) {
  std::vector<NamedRule> rules;
  for (const RuleSet set : options.sets)
    for (const Rule& rule : published_rules(set))
      rules.push_back({rule_name(set, rule.value), std::string(value_name(rule.value)), rule.limits});
  for (const LimitOptions& change : options.limits) {
    bool is_known = false;
    for (NamedRule& rule : rules) {
      if (rule.value != change.value) continue;
      is_known = true;
      apply(change, rule.limits);
    }
    if (is_known) continue;
    rules.push_back({"rules." + change.value, change.value, {}});
    apply(change, rules.back().limits);
  }
  return rules;
}

class JudgeByRules final : public Stage {
 public:
  explicit JudgeByRules(const RulesStage& options) : options_(options), rules_(rules_of(options)) {
    for (const RuleSet set : options.sets)
      for (const ValueGroup group : groups_of(set)) need(group);
    for (const LimitOptions& limit : options.limits)
      if (const std::optional<Value> value = value_of_name(limit.value)) need(group_of(*value));
  }

  bool run(Document& document) override {
    if (!options_.languages.empty() &&
        std::find(options_.languages.begin(), options_.languages.end(), document.language) == options_.languages.end())
      return true;
    if (trim(document.text).empty()) return drop(document, "rules.empty");
    if (options_.values == StoredValues::kMeasure) measure(document);
    if (!options_.drop) return true;
    for (const NamedRule& rule : rules_) {
      const double* value = find_value(document, rule.value);
      if (value == nullptr) {
        fail(Kind::kData, str("document ", document.id, " has no value '", rule.value, "'"),
             value_of_name(rule.value) ? "let an earlier run store it, or set values: measure"
                                       : "no rule measures it, and neither an earlier stage nor the input stores it");
      }
      if (!rule.limits.hold(*value)) return drop(document, rule.reason);
    }
    return true;
  }

 private:
  void need(ValueGroup group) {
    if (std::find(groups_.begin(), groups_.end(), group) == groups_.end()) groups_.push_back(group);
  }
  void measure(Document& document) {
    Values values;
    TextMeter& meter = meter_of(word_rules_of(document));
    meter.begin(document.text);
    for (const ValueGroup group : groups_) meter.measure(group, values);
    for (size_t i = 0; i < kValues; ++i) {
      const auto value = static_cast<Value>(i);
      if (values[value] == values[value]) set_value(document, value_name(value), values[value]);
    }
  }

  TextMeter& meter_of(WordRules words) {
    std::unique_ptr<TextMeter>& meter = meters_[static_cast<size_t>(words)];
    if (!meter)
      meter = std::make_unique<TextMeter>(words, options_.stop_words.empty() ? kEnglishStopWords : options_.stop_words);
    return *meter;
  }

  const RulesStage& options_;
  std::vector<NamedRule> rules_;
  std::vector<ValueGroup> groups_;
  std::unique_ptr<TextMeter> meters_[2];  // by WordRules
};

class CleanByC4 final : public Stage {
 public:
  explicit CleanByC4(const C4Options& options)
      : cleaners_{C4Lines(options, WordRules::kAny), C4Lines(options, WordRules::kEnglish)} {}

  bool run(Document& document) override {
    const C4Verdict verdict = cleaners_[static_cast<size_t>(word_rules_of(document))].clean(document.text, cleaned_);
    if (verdict != C4Verdict::kKept) return drop(document, str("c4.", c4_verdict_name(verdict)));
    document.text.swap(cleaned_);
    return true;
  }

 private:
  C4Lines cleaners_[2];  // by WordRules
  std::string cleaned_;
};

class Classify final : public Stage {
 public:
  Classify(const ClassifyStage& options, const TextClassifier& model, const TextClassifier& paragraph_model)
      : options_(options), model_(model), paragraph_model_(paragraph_model) {}

  bool run(Document& document) override {
    const double score = model_.probability(document.text, options_.label);
    set_value(document, options_.name, score);
    if (score < options_.red) return drop(document, options_.name + ".red");
    if (score >= options_.green) return true;
    std::string kept;
    for (const std::string& paragraph : split(document.text, '\n')) {
      const bool is_good = trim(paragraph).empty() ||
                           paragraph_model_.probability(paragraph, options_.label) >= options_.paragraph_least;
      if (is_good) kept += paragraph + "\n";
    }
    const double left = double(trim(kept).size()) / double(std::max<size_t>(1, trim(document.text).size()));
    set_value(document, options_.name + ".left", left);
    if (left < options_.least_left) return drop(document, options_.name + ".paragraphs");
    document.text = trim(kept);
    return true;
  }

 private:
  const ClassifyStage& options_;
  const TextClassifier& model_;
  const TextClassifier& paragraph_model_;
};

class MaskData final : public Stage {
 public:
  explicit MaskData(const PersonalDataOptions& options) : options_(options) {}

  bool run(Document& document) override {
    const PersonalDataCounts counts = mask_personal_data(document.text, options_, masked_);
    document.text.swap(masked_);
    if (const int64_t all = counts.mails + counts.ips + counts.phones; all > 0)
      set_value(document, "masked", double(all));
    return true;
  }

 private:
  const PersonalDataOptions& options_;
  std::string masked_;
};

// Calls take(hash) for each n-gram of the text's simplified words.
template <class Take>
void for_ngrams(std::string_view text, int64_t words, std::string& simplified, const Take& take) {
  simplify_text(text, simplified);
  std::vector<size_t> begins;
  if (!simplified.empty()) begins.push_back(0);
  for (size_t at = 0; (at = simplified.find(' ', at)) != std::string::npos;) begins.push_back(++at);
  begins.push_back(simplified.size() + 1);
  const auto n = static_cast<size_t>(words);
  for (size_t i = 0; i + n < begins.size(); ++i)
    if (!take(xxh3_64(std::as_bytes(std::span(simplified).subspan(begins[i], begins[i + n] - begins[i] - 1))))) return;
}

class Decontaminate final : public Stage {
 public:
  Decontaminate(const DecontaminateStage& options, const std::unordered_set<uint64_t>& ngrams)
      : options_(options), ngrams_(ngrams) {}

  bool run(Document& document) override {
    bool is_clean = true;
    for_ngrams(document.text, options_.words, simplified_,
               [&](uint64_t hash) { return is_clean = !ngrams_.contains(hash); });
    return is_clean ? true : drop(document, "decontaminate.ngram");
  }

 private:
  const DecontaminateStage& options_;
  const std::unordered_set<uint64_t>& ngrams_;
  std::string simplified_;
};

std::unordered_set<uint64_t> evaluation_ngrams(const DecontaminateStage& options) {
  std::unordered_set<uint64_t> ngrams;
  const std::vector<TextFile> files = find_text_files(options.against);
  TextReader reader(files, 0);
  TextParser parser(options.text_key);
  Document document;
  std::string simplified;
  while (reader.next(document)) {
    parser.parse(document);
    for_ngrams(document.text, options.words, simplified, [&](uint64_t hash) { return ngrams.insert(hash), true; });
  }
  if (ngrams.empty()) {
    fail(Kind::kData, str("the evaluation files have no sequence of ", options.words, " words"),
         "set a smaller 'words' of decontaminate");
  }
  return ngrams;
}

// The sum does not depend on the order of the set.
std::string hash_of(const std::unordered_set<uint64_t>& ngrams) {
  uint64_t sum = 0;
  for (const uint64_t hash : ngrams) sum += hash * (hash | 1);
  return hex64(sum);
}

}  // namespace

void set_value(Document& document, std::string_view name, double value) {
  for (DocumentValue& known : document.values) {
    if (known.name != name) continue;
    known.value = value;
    return;
  }
  document.values.push_back({std::string(name), value});
}

const double* find_value(const Document& document, std::string_view name) {
  for (const DocumentValue& value : document.values)
    if (value.name == name) return &value.value;
  return nullptr;
}

WordRules word_rules_of(const Document& document) {
  return document.language.empty() || document.language == "en" ? WordRules::kEnglish : WordRules::kAny;
}

StageMaker::StageMaker(const PrepareOptions& options) : options_(options), shared_(options.stages.size()) {
  for (size_t i = 0; i < options.stages.size(); ++i) {
    Shared& shared = shared_[i];
    std::string files;
    const auto load = [&](const std::string& path) {
      auto model = std::make_unique<TextClassifier>(path);
      files += model->hash() + "\n";
      read_files_[path] = model->hash();
      return model;
    };
    const PrepareStage& stage = options.stages[i];
    if (const auto* language = std::get_if<LanguageStage>(&stage)) {
      shared.model = load(language->model);
      for (const std::string& label : language->keep) shared.model->expect_label(label);
    } else if (const auto* classify = std::get_if<ClassifyStage>(&stage)) {
      shared.model = load(classify->model);
      shared.model->expect_label(classify->label);
      if (!classify->paragraph_model.empty()) {
        shared.paragraph_model = load(classify->paragraph_model);
        shared.paragraph_model->expect_label(classify->label);
      }
    } else if (const auto* decontaminate = std::get_if<DecontaminateStage>(&stage)) {
      shared.ngrams = evaluation_ngrams(*decontaminate);
      files += hash_of(shared.ngrams);
      for (const std::string& path : decontaminate->against) read_files_[path] = "n-grams of all: " + files;
    }
    identities_.push_back(
        str(name_of(stage), "\n", std::visit([](const auto& kind) { return option_text(kind); }, stage), files));
  }
}

struct StageMaker::Make {
  const Shared& shared;

  std::unique_ptr<Stage> operator()(const LanguageStage& options) const {
    return std::make_unique<LabelLanguage>(options, *shared.model);
  }
  std::unique_ptr<Stage> operator()(const RulesStage& options) const { return std::make_unique<JudgeByRules>(options); }
  std::unique_ptr<Stage> operator()(const C4Stage& options) const {
    return std::make_unique<CleanByC4>(options.options);
  }
  std::unique_ptr<Stage> operator()(const ClassifyStage& options) const {
    const auto& paragraphs = shared.paragraph_model ? shared.paragraph_model : shared.model;
    return std::make_unique<Classify>(options, *shared.model, *paragraphs);
  }
  std::unique_ptr<Stage> operator()(const MaskStage& options) const {
    return std::make_unique<MaskData>(options.options);
  }
  std::unique_ptr<Stage> operator()(const DecontaminateStage& options) const {
    return std::make_unique<Decontaminate>(options, shared.ngrams);
  }
  template <class Other>
  std::unique_ptr<Stage> operator()(const Other&) const {
    TOKAMAK_UNREACHABLE(Other::kName);
  }
};

std::unique_ptr<Stage> StageMaker::make(size_t stage) const {
  return std::visit(Make{shared_[stage]}, options_.stages[stage]);
}

std::unique_ptr<Stage> StageMaker::make_extraction() const { return std::make_unique<ExtractStage>(options_.extract); }

}  // namespace tokamak
