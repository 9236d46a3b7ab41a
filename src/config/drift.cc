#include "config/drift.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/strings.h"
#include "config/load.h"
#include "config/options_tree.h"
#include "config/print.h"
#include "config/units.h"
#include "config/yaml.h"
#include "train/stages.h"

namespace tokamak {

namespace {

// Keys that belong to one start and do not affect training.
constexpr const char* kOfEachStart[] = {"run.name", "run.output_dir", "checkpoint.load", "checkpoint.allow_changes"};

bool alters_the_function(const std::string& key) {
  const bool initial = key == "model.initializer_range" || key == "model.output_init";
  return (starts_with(key, "model.") && !initial) || key == "data.document_masking";
}

// With the values of the stage that a step belongs to as those of the run.
std::string text_at_step(const std::string& saved, const std::string& checkpoint, int64_t step) {
  return print_config(config_at_step(parse_saved_config(saved, checkpoint), step));
}

// By key; empty if the text is damaged.
std::map<std::string, std::string> values_of(const std::string& saved) {
  std::map<std::string, std::string> values;
  try {
    std::vector<Problem> problems;
    for (ConfigLine& line : config_lines(parse_yaml(saved, "the checkpoint's config", problems))) {
      values[line.key] = std::move(line.value);
    }
  } catch (const Error&) {
    return {};
  }
  return values;
}

bool has_stages(const std::string& saved) {
  const auto values = values_of(saved);
  return std::any_of(values.begin(), values.end(), [](const auto& one) { return starts_with(one.first, "stages["); });
}

std::vector<std::string> texts_of(const std::vector<ConfigChange>& changes) {
  std::vector<std::string> texts;
  for (const ConfigChange& change : changes) texts.push_back(str(change.key, ": ", change.was, " -> ", change.is));
  return texts;
}

// An exponential average that became a plain mean, or the reverse, would be neither of the two.
void expect_same_averages(const std::string& saved, const RunConfig& config, const std::string& checkpoint) {
  if (config.averages.empty() || values_of(saved).empty()) return;
  for (const AverageOptions& was : parse_saved_config(saved, checkpoint).averages) {
    for (size_t i = 0; i < config.averages.size(); ++i) {
      const AverageOptions& is = config.averages[i];
      if (is.name != was.name || is.is_exponential() == was.is_exponential()) continue;
      fail(Kind::kConfig,
           str("averages[", i, "].half_life is ", print_training_length(is.half_life), ", but the average ", is.name,
               " of ", checkpoint, " has ", print_training_length(was.half_life), ": only one of them is exponential"),
           "give the new average another name; it then begins anew");
    }
  }
}

}  // namespace

ConfigChanges compare_configs(const std::string& saved, const RunConfig& config) {
  std::map<std::string, std::string> was = values_of(saved);
  if (was.empty()) return {};
  // An older version computed what a newer one's defaults do.
  for (const auto& [key, value] : config_lines(tree_of(RunConfig()))) {
    if (alters_the_function(key)) was.emplace(key, value);
  }
  ConfigChanges changes;
  for (const auto& [key, value] : config_lines(tree_of(config))) {
    const auto before = was.find(key);
    if (before == was.end() || before->second == value) continue;
    if (std::find(std::begin(kOfEachStart), std::end(kOfEachStart), key) != std::end(kOfEachStart)) continue;
    (alters_the_function(key) ? changes.refused : changes.harmless).push_back({key, printable(before->second), value});
  }
  return changes;
}

std::vector<std::string> check_changes(const std::string& saved, const RunConfig& config, const std::string& checkpoint,
                                       int64_t step) {
  expect_same_averages(saved, config, checkpoint);
  ConfigChanges changes = compare_configs(saved, config);
  if (has_rows(config) || has_stages(saved)) {
    // The run's own keys may hold in no stage, or only in some.
    changes.harmless.insert(changes.harmless.end(), changes.refused.begin(), changes.refused.end());
    changes.refused = compare_configs(text_at_step(saved, checkpoint, step), config_at_step(config, step)).refused;
    std::erase_if(changes.harmless, [&](const ConfigChange& change) {
      return std::any_of(changes.refused.begin(), changes.refused.end(),
                         [&](const ConfigChange& other) { return other.key == change.key; });
    });
  }
  const std::vector<std::string>& allowed = config.checkpoint.allow_changes;
  std::vector<ConfigChange> refused;
  for (const ConfigChange& change : changes.refused) {
    const bool wanted = std::find(allowed.begin(), allowed.end(), change.key) != allowed.end();
    (wanted ? changes.harmless : refused).push_back(change);
  }
  if (!refused.empty()) {
    std::vector<std::string> keys;
    for (const ConfigChange& change : refused) keys.push_back(change.key);
    fail(Kind::kConfig,
         str("the model of ", checkpoint, " differs from this config's: ", join(texts_of(refused), "; ")),
         str("use the checkpoint's values; or, if the change is meant and keeps all shapes, checkpoint.allow_changes=[",
             join(keys, ", "), "]"));
  }
  return texts_of(changes.harmless);
}

}  // namespace tokamak
