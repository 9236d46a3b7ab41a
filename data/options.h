// What a run trains on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct SourceOptions {
  std::string path;
  double weight = 1.0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path, "directory of a tokenized data set (with manifest.json)");
    v("weight", weight, "share of the tokens that come from here, relative to the other sources");
  }
};

enum class SampleOrder { kShuffled, kSequential };
inline const std::vector<std::string>& enum_names(SampleOrder) {
  static const std::vector<std::string> names = {"shuffled", "sequential"};
  return names;
}

struct DataOptions {
  int64_t sequence_length = 0;
  std::vector<SourceOptions> sources;
  std::vector<SourceOptions> validation;
  bool document_masking = true;
  SampleOrder order = SampleOrder::kShuffled;
  double max_epochs = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("sequence_length", sequence_length, "tokens of one sequence, T; required");
    v("sources", sources, "training data sets and their weights; required");
    v("validation", validation, "held-out data sets; empty: no validation");
    v("document_masking", document_masking, "attention does not cross document boundaries");
    v("order", order, "shuffled: a keyed permutation of all windows, new in each epoch; sequential: as they lie");
    v("max_epochs", max_epochs, "refuse to start if a source would be repeated more often; 0: no limit");
  }
};

}  // namespace tokamak
