// The config of `tokamak data prepare`: inputs, stages in their order, and the output.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "data/dedup/near_keys.h"
#include "data/rules/c4_lines.h"
#include "data/rules/personal_data.h"
#include "data/rules/rules.h"
#include "data/web/page.h"

namespace tokamak {

enum class Extractor { kMain, kWhole, kUnion };
inline const std::vector<std::string>& enum_names(Extractor) {
  static const std::vector<std::string> names = {"main", "whole", "union"};
  return names;
}

enum class DamagedFiles { kStop, kSkip };
inline const std::vector<std::string>& enum_names(DamagedFiles) {
  static const std::vector<std::string> names = {"stop", "skip"};
  return names;
}

enum class StoredValues { kMeasure, kStored };
inline const std::vector<std::string>& enum_names(StoredValues) {
  static const std::vector<std::string> names = {"measure", "stored"};
  return names;
}

enum class CopyUnit { kDocuments, kParagraphs };
inline const std::vector<std::string>& enum_names(CopyUnit) {
  static const std::vector<std::string> names = {"documents", "paragraphs"};
  return names;
}

// The text of a page, before the first stage.
struct ExtractOptions {
  Extractor extractor = Extractor::kMain;
  int64_t nodes = HtmlLimits{}.nodes;
  int64_t depth = HtmlLimits{}.depth;

  template <class Visitor>
  void fields(Visitor& v) {
    v("extractor", extractor,
      "main: articles; whole: all but the page's frame; union: main's lines and those of whole");
    v("nodes", nodes, "drop pages of more elements and texts; more takes more time and memory for one page");
    v("depth", depth, "drop pages that nest deeper; browsers stop at 512");
  }
};

struct LanguageStage {
  static constexpr const char* kName = "language";
  std::string model;
  std::vector<std::string> keep;
  double least = 0.65;

  template <class Visitor>
  void fields(Visitor& v) {
    v("model", model, "fastText model of languages, such as lid.176.bin; required");
    v("keep", keep, "keep only documents in these languages, by the model's names; []: all, and label them");
    v("least", least,
      "drop documents whose language is less probable; more drops mixed and short texts. 0.65: FineWeb");
  }
};

// The limits of one value, in place of a set's. Values are never negative.
struct LimitOptions {
  std::string value;
  AutoNumber least;
  AutoNumber most;

  template <class Visitor>
  void fields(Visitor& v) {
    v("value", value, "value that the limits are for: duplicate_lines, or any that a stage has stored; required");
    v("least", least, "keep a document from this value on; auto: as the sets say, or no limit");
    v("most", most, "keep a document up to this value; auto: as the sets say, or no limit");
  }
};

struct RulesStage {
  static constexpr const char* kName = "rules";
  std::vector<RuleSet> sets = {RuleSet::kGopherRepetition, RuleSet::kGopherQuality, RuleSet::kFineWeb};
  std::vector<LimitOptions> limits;
  std::vector<std::string> languages;
  std::vector<std::string> stop_words;
  StoredValues values = StoredValues::kMeasure;
  bool drop = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("sets", sets, "published rules, in their order; the first that a document breaks is its reason");
    v("limits", limits, "other limits, by value; those of values that no set has are applied last");
    v("languages", languages, "judge only documents in these languages; []: all");
    v("stop_words", stop_words, "words of which a text must have two, in lower case; []: Gopher's, which are English");
    v("values", values, "measure: from the text; stored: as an earlier run has stored them, which takes no time");
    v("drop", drop, "false stores the values and keeps all, so that later runs can try limits");
  }
};

struct C4Stage {
  static constexpr const char* kName = "c4";
  C4Options options;

  template <class Visitor>
  void fields(Visitor& v) {
    options.fields(v);
  }
};

// Two steps (design: spec, section 8.7): a model sorts documents into green, yellow and red. Another cleans the yellow.
struct ClassifyStage {
  static constexpr const char* kName = "classify";
  std::string name = "quality";
  std::string model;
  std::string label = "good";
  double green = 0.7;
  double red = 0.3;
  std::string paragraph_model;
  double paragraph_least = 0.5;
  double least_left = 0.3;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "name of the stored score and of the reasons");
    v("model", model, "fastText model that scores documents (tokamak data classifier train); required");
    v("label", label, "label whose probability is the score");
    v("green", green, "keep documents as they are from this score on; more sends more of them to the second step");
    v("red", red, "drop documents below this score; more drops more. Those between are yellow");
    v("paragraph_model", paragraph_model, "fastText model that scores the paragraphs of yellow documents; \"\": model");
    v("paragraph_least", paragraph_least, "remove paragraphs of a yellow document below this score");
    v("least_left", least_left, "drop a yellow document if less of its bytes is left");
  }
};

struct MaskStage {
  static constexpr const char* kName = "mask";
  PersonalDataOptions options;

  template <class Visitor>
  void fields(Visitor& v) {
    options.fields(v);
  }
};

struct DecontaminateStage {
  static constexpr const char* kName = "decontaminate";
  std::vector<std::string> against;
  int64_t words = 13;
  std::string text_key = "text";

  template <class Visitor>
  void fields(Visitor& v) {
    v("against", against, "evaluation files, .jsonl or .txt: drop documents that share an n-gram with one; required");
    v("words", words, "words of an n-gram; fewer finds more, and more by chance. 13: GPT-3 (arXiv 2005.14165)");
    v("text_key", text_key, "member of each .jsonl line that holds the evaluation's text");
  }
};

struct ExactStage {
  static constexpr const char* kName = "exact";
  CopyUnit unit = CopyUnit::kDocuments;
  int64_t least_bytes = 0;
  std::string best_by = "bytes";

  template <class Visitor>
  void fields(Visitor& v) {
    v("unit", unit, "documents, or paragraphs (lines): a repeated one is removed from all documents but the first");
    v("least_bytes", least_bytes, "shorter units are not compared; for paragraphs: headings and names may repeat");
    v("best_by", best_by, "keep the copy with most of this: bytes, or a stored value; of equals the first");
  }
};

struct MinHashStage {
  static constexpr const char* kName = "minhash";
  MinHashOptions options;
  std::string best_by = "bytes";

  template <class Visitor>
  void fields(Visitor& v) {
    options.fields(v);
    v("best_by", best_by, "keep the copy with most of this: bytes, or a stored value; of equals the first");
  }
};

struct SimHashStage {
  static constexpr const char* kName = "simhash";
  SimHashOptions options;
  std::string best_by = "bytes";

  template <class Visitor>
  void fields(Visitor& v) {
    options.fields(v);
    v("best_by", best_by, "keep the copy with most of this: bytes, or a stored value; of equals the first");
  }
};

using PrepareStage = std::variant<LanguageStage, RulesStage, C4Stage, ClassifyStage, MaskStage, DecontaminateStage,
                                  ExactStage, MinHashStage, SimHashStage>;

inline std::string name_of(const PrepareStage& stage) {
  return std::visit([](const auto& kind) { return std::string(kind.kName); }, stage);
}

struct TokensOptions {
  std::string tokenizer;
  int64_t train_vocab_size = 0;
  std::string eos;
  double validation = 0;
  int64_t shard_tokens = 1'000'000'000;

  template <class Visitor>
  void fields(Visitor& v) {
    v("tokenizer", tokenizer, "file of the tokenizer; \"\": documents (.jsonl.zst) are written, unless one is trained");
    v("train_vocab_size", train_vocab_size, "train a SentencePiece BPE of so many pieces on the documents; 0: none");
    v("eos", eos, "token that ends each document; \"\": as the tokenizer's files say");
    v("validation", validation, "share of the documents to hold out, like 2%; by a hash, so copies may be in both");
    v("shard_tokens", shard_tokens, "tokens of a shard, about; fewer makes more files");
  }
};

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string work;
  std::string text_key = "text";
  int64_t seed = 1234;
  int64_t threads = 0;
  int64_t memory = int64_t{2} << 30;
  int64_t part_bytes = int64_t{64} << 20;
  int64_t document_bytes = int64_t{8} << 20;
  DamagedFiles damaged = DamagedFiles::kStop;
  bool keep_dropped = false;
  ExtractOptions extract;
  std::vector<PrepareStage> stages;
  TokensOptions tokens;

  template <class Visitor>
  void fields(Visitor& v) {
    v("inputs", inputs, "files, patterns (*) and directories: .warc, .wet, .jsonl, .txt, plain, .gz or .zst; required");
    v("output", output, "directory to write; required");
    v("work", work, "directory of intermediate files, which a stopped run continues from; \"\": OUTPUT.work");
    v("text_key", text_key, "member of each .jsonl line that holds the text");
    v("seed", seed, "decides the order of documents in shards, and which are held out");
    v("threads", threads, "documents processed at the same time in each process; 0: all cores");
    v("memory", memory, "bytes that a process's searches and sorts may take in all; less makes them slower");
    v("part_bytes", part_bytes,
      "cut inputs that allow it into parts of this size, one task each; less balances better");
    v("document_bytes", document_bytes, "drop longer documents and pages; more needs more memory for each thread");
    v("damaged", damaged, "stop at a file that is cut or damaged, or skip its rest and count it");
    v("keep_dropped", keep_dropped, "write dropped documents with their reasons into OUTPUT/dropped");
    v("extract", extract, "how the text of a page is found");
    v("stages", stages, "steps that documents go through, in order");
    v("tokens", tokens, "how documents become shards");
  }
};

// Everything that is wrong with them, without opening a file.
std::vector<FieldError> problems_of(const PrepareOptions& options);

}  // namespace tokamak
