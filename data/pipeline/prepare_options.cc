#include "data/pipeline/prepare_options.h"

#include "base/field_checks.h"

namespace tokamak {

namespace {

struct StageChecks {
  FieldChecks& checks;
  std::string path;  // "stages[1].rules."
  bool text_changed;

  std::string key(const char* name) const { return path + name; }

  void operator()(const LanguageStage& stage) const {
    checks.given(!stage.model.empty(), key("model"), "for example lid.176.bin, which fastText's site offers");
    checks.fraction(key("least"), stage.least);
  }
  void operator()(const RulesStage& stage) const {
    for (size_t i = 0; i < stage.limits.size(); ++i) {
      const LimitOptions& limit = stage.limits[i];
      const std::string at = str(key("limits["), i, "].");
      checks.given(!limit.value.empty(), at + "value", "for example duplicate_lines");
      if (limit.least.is_auto() || limit.most.is_auto()) continue;
      checks.require(limit.least.value <= limit.most.value, at + "least", limit.least.value,
                     str("must be at most most, ", limit.most.value));
    }
    checks.require(!stage.sets.empty() || !stage.limits.empty(), key("sets"), "[]",
                   "must have a set if there are no limits");
    checks.require(stage.values == StoredValues::kMeasure || !text_changed, key("values"), "stored",
                   "must be measure after a stage that changes texts");
  }
  void operator()(const C4Stage& stage) const {
    checks.at_least(key("sentences"), stage.options.sentences, 0);
    checks.at_least(key("words"), stage.options.words, 0);
    checks.at_least(key("word_length"), stage.options.word_length, 1);
  }
  void operator()(const ClassifyStage& stage) const {
    checks.given(!stage.model.empty(), key("model"), "tokamak data classifier train makes one");
    checks.given(!stage.name.empty(), key("name"), "for example quality");
    for (const auto& [name, value] :
         {std::pair("green", stage.green), std::pair("red", stage.red),
          std::pair("paragraph_least", stage.paragraph_least), std::pair("least_left", stage.least_left)})
      checks.fraction(key(name), value);
    checks.require(stage.red <= stage.green, key("red"), stage.red, str("must be at most green, ", stage.green));
  }
  void operator()(const MaskStage&) const {}
  void operator()(const DecontaminateStage& stage) const {
    checks.given(!stage.against.empty(), key("against"), "name the files of the evaluations");
    checks.within(key("words"), stage.words, 1, 1000);
  }
  void operator()(const ExactStage& stage) const {
    checks.at_least(key("least_bytes"), stage.least_bytes, 0);
    checks.given(!stage.best_by.empty(), key("best_by"), "for example bytes");
  }
  void operator()(const MinHashStage& stage) const {
    checks.within(key("bands"), stage.options.bands, 1, 1000);
    checks.within(key("rows"), stage.options.rows, 1, 1000);
    checks.within(key("words"), stage.options.words, 1, 1000);
    checks.within(key("seed"), stage.options.seed, 0, UINT32_MAX);
  }
  void operator()(const SimHashStage& stage) const {
    checks.require(stage.options.bits == 64 || stage.options.bits == 128, key("bits"), stage.options.bits,
                   "must be 64 or 128");
    checks.within(key("distance"), stage.options.distance, 1, 32);
    checks.within(key("tables"), stage.options.tables, 1, 1000);
  }
};

}  // namespace

std::vector<FieldError> problems_of(const PrepareOptions& options) {
  FieldChecks checks;
  checks.given(!options.inputs.empty(), "inputs", "for example [crawl/*.warc.gz]");
  checks.given(!options.output.empty(), "output", "name the directory to write");
  checks.given(!options.text_key.empty(), "text_key", "for example text");
  checks.at_least("threads", options.threads, 0);
  checks.at_least("memory", options.memory, int64_t{64} << 20);
  checks.at_least("part_bytes", options.part_bytes, 1);
  checks.within("document_bytes", options.document_bytes, 1, int64_t{1} << 30);
  checks.within("extract.nodes", options.extract.nodes, 1, INT32_MAX);
  checks.within("extract.depth", options.extract.depth, 1, INT32_MAX);
  bool text_changed = false;
  for (size_t i = 0; i < options.stages.size(); ++i) {
    const PrepareStage& stage = options.stages[i];
    std::visit(StageChecks{checks, str("stages[", i, "].", name_of(stage), "."), text_changed}, stage);
    const auto* exact = std::get_if<ExactStage>(&stage);
    text_changed = text_changed || std::holds_alternative<C4Stage>(stage) ||
                   std::holds_alternative<ClassifyStage>(stage) || std::holds_alternative<MaskStage>(stage) ||
                   (exact != nullptr && exact->unit == CopyUnit::kParagraphs);
  }
  checks.require(options.tokens.validation >= 0 && options.tokens.validation < 1, "tokens.validation",
                 options.tokens.validation, "must be at least 0 and below 1");
  checks.require(
      options.tokens.validation == 0 || !options.tokens.tokenizer.empty() || options.tokens.train_vocab_size > 0,
      "tokens.validation", options.tokens.validation, "must be 0 without tokens.tokenizer or tokens.train_vocab_size");
  checks.within("tokens.train_vocab_size", options.tokens.train_vocab_size, 0, int64_t{1} << 24);
  checks.require(options.tokens.tokenizer.empty() || options.tokens.train_vocab_size == 0, "tokens.train_vocab_size",
                 options.tokens.train_vocab_size, "must be 0 where tokens.tokenizer is given");
  checks.at_least("tokens.shard_tokens", options.tokens.shard_tokens, 1);
  return checks.take();
}

}  // namespace tokamak
