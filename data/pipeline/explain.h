// One document on its way through every stage of a config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/pipeline/prepare_options.h"
#include "data/text/document.h"

namespace tokamak {

struct StageVerdict {
  std::string stage;
  bool is_kept = true;
  std::string reason;                 // why it is dropped
  std::vector<DocumentValue> values;  // new and changed ones
  int64_t bytes = 0;                  // of its text after the stage
  bool is_known = true;               // a search for copies is known once the run has got so far
};

struct Explanation {
  std::string file;
  Document document;  // after the last stage
  std::vector<StageVerdict> stages;
};

// Runs the stages on the document `id`, and those after one that drops it, too. A search for copies has the verdict of
// the run, if its results are in the work directory. `id` may be an address. Nothing if no input has the document.
std::optional<Explanation> explain(const PrepareOptions& options, const std::string& tool, const std::string& id);

}  // namespace tokamak
