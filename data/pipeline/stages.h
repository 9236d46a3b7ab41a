// The stages that look at one document alone. Deduplication is in copies.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "data/classify/text_classifier.h"
#include "data/pipeline/prepare_options.h"
#include "data/prepare/stage.h"
#include "data/rules/words.h"

namespace tokamak {

// Replaces the value of that name, or appends it.
void set_value(Document& document, std::string_view name, double value);
const double* find_value(const Document& document, std::string_view name);  // nullptr: none

// Texts without a language count as English, as in datatrove.
WordRules word_rules_of(const Document& document);

// All stages of a config, with what they share: models and lists of words, read once.
class StageMaker {
 public:
  // Error(kData) for a model or a list that cannot be read. Error(kConfig) for a label that a model has not.
  explicit StageMaker(const PrepareOptions& options);

  // For one thread. The stage is none that finds copies.
  std::unique_ptr<Stage> make(size_t stage) const;
  std::unique_ptr<Stage> make_extraction() const;  // it comes before all

  // Models and lists of the stages, with a hash of each.
  const std::map<std::string, std::string>& read_files() const { return read_files_; }

  // Text that changes with everything that decides the stage's results.
  const std::string& identity(size_t stage) const { return identities_[stage]; }

 private:
  struct Make;
  struct Shared {
    std::unique_ptr<TextClassifier> model, paragraph_model;
    std::unordered_set<uint64_t> ngrams;
  };
  const PrepareOptions& options_;
  std::vector<Shared> shared_;  // by stage
  std::vector<std::string> identities_;
  std::map<std::string, std::string> read_files_;
};

}  // namespace tokamak
