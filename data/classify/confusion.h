// Labels that a classifier gave, against the true ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tokamak {

class Confusion {
 public:
  void add(const std::string& truth, const std::string& given) {
    ++counts_[truth][given], ++texts_, names_[truth], names_[given];
  }

  std::vector<std::string> labels() const;  // true or given, sorted
  int64_t count(const std::string& truth, const std::string& given) const;
  int64_t texts() const { return texts_; }
  double accuracy() const;                           // share of texts with their true label
  double precision(const std::string& label) const;  // of the texts given the label, the share that has it; NaN: none
  double recall(const std::string& label) const;     // of the texts that have it, the share given it; NaN: none

 private:
  std::map<std::string, std::map<std::string, int64_t>> counts_;  // by truth, then given
  std::map<std::string, int64_t> names_;
  int64_t texts_ = 0;
};

// A text's score for one label, and whether it has the label.
struct ScoredText {
  double score = 0;
  bool is_positive = false;
};

// If the texts from a score on are kept: the share of them that has the label, and the share of those with it.
struct Threshold {
  double score = 0;
  int64_t kept = 0;
  double precision = 0, recall = 0;
};
Threshold at_threshold(const std::vector<ScoredText>& texts, double score);

}  // namespace tokamak
