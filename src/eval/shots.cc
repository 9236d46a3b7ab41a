#include "eval/shots.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

void expect_at_least(size_t needed, const EvalOptions& options, size_t found) {
  if (found >= needed || options.num_fewshot == 0) return;
  fail(Kind::kConfig,
       str(options.display_name(), ": ", options.num_fewshot, " examples for each question need ", needed,
           " records of a part in ", options.fewshot_path.empty() ? "the form's samples" : options.fewshot_path,
           ", which has ", found),
       "give fewer examples, or the file of a larger split");
}

}  // namespace

Shots::Shots(const EvalOptions& options, ShotRule rule, std::vector<JsonValue> pool)
    : count_(static_cast<size_t>(options.num_fewshot)),
      rule_(rule),
      pool_(std::move(pool)),
      random_(static_cast<uint64_t>(options.fewshot_seed)) {
  expect_at_least(rule == ShotRule::kRandomOther ? count_ + 1 : count_, options, pool_.size());
}

std::vector<JsonValue> Shots::drawn(const std::vector<JsonValue>& from, size_t count) {
  std::vector<JsonValue> out;
  for (const size_t at : random_.sample(from.size(), count)) out.push_back(from[at]);
  return out;
}

std::vector<JsonValue> Shots::next(const JsonValue& question) {
  if (count_ == 0) return {};
  if (rule_ == ShotRule::kFirst) return {pool_.begin(), pool_.begin() + static_cast<std::ptrdiff_t>(count_)};
  if (rule_ == ShotRule::kRandom) return drawn(pool_, count_);
  const auto without_question = [&](std::vector<JsonValue> records) {
    std::erase_if(records, [&](const JsonValue& record) { return record == question; });
    return records;
  };
  // One more than needed, so that the question can be left out; of a pool that has it several times, again.
  std::vector<JsonValue> examples = without_question(drawn(pool_, count_ + 1));
  if (examples.size() < count_) {
    const std::vector<JsonValue> others = without_question(pool_);
    if (others.size() < count_) question.refuse("expected a question that its examples do not consist of");
    examples = drawn(others, count_);
  }
  examples.resize(count_, question);
  return examples;
}

}  // namespace tokamak
