// The bundle of CORE (DCLM, 2406.11794): a directory with core.yaml, eval_meta_data.csv and eval_data/. The order of
// items and the choice of examples are nanochat's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

// The scored tokens of an item's prompts: those behind a common beginning, a common end, or the continuation.
enum class CoreKind { kMultipleChoice, kSchema, kLanguageModeling };

// A task of core.yaml.
struct CorePart {
  std::string label, path, delimiter = " ";
  int64_t shots = 0;
  CoreKind kind = CoreKind::kMultipleChoice;
  double baseline = 0;  // accuracy of a guess
};

// A prompt is a context, the delimiter and a continuation. Multiple choice has one context, schema one continuation,
// language modeling one of each.
struct CoreItem {
  std::vector<std::pair<std::string, std::string>> options;
  size_t gold = 0;
  std::string where;  // file:line
};

// Error(kData) naming file and line of anything else than such a bundle.
std::vector<CorePart> read_core_parts(const std::string& directory);

// The items in nanochat's order, the first `limit` of them; 0: all.
std::vector<CoreItem> read_core_items(const CorePart& part, int64_t limit);

// The solved examples before items[item].
std::string core_examples(const CorePart& part, const std::vector<CoreItem>& items, size_t item);

}  // namespace tokamak
