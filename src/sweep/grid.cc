#include "sweep/grid.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/listed.h"
#include "base/run_files.h"
#include "config/drift.h"
#include "config/load.h"
#include "config/print.h"
#include "model/flops.h"
#include "train/batch_shape.h"
#include "train/run_plan.h"
#include "train/run_table.h"

namespace tokamak {

namespace {

constexpr const char* kSeed = "run.seed";
constexpr size_t kLongestWords = 120;  // of an ID
constexpr size_t kHashDigits = 8;

// Keys that a move of files changes. Text as a source becomes the data set that it is tokenized into.
bool is_path(const std::string& key) {
  const bool is_of_data = starts_with(key, "data.") || starts_with(key, "stages[");
  for (const char* suffix : {".path", ".format", ".tokenizer"}) {
    if (is_of_data && key.ends_with(suffix)) return true;
  }
  return key == "run.name" || key == "run.output_dir" || key == "data.cache";
}

std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
      if (c == ',' && depth == 0) {
        values.emplace_back();
        continue;
      }
    }
    values.back() += c;
  }
  for (std::string& value : values) value = trim(value);
  return values;
}

// Values by key, as the printer writes them: 1e-3 and 0.001 are one value.
std::map<std::string, std::string> values_of(const RunConfig& config) {
  std::map<std::string, std::string> values;
  for (ConfigLine& line : config_values(config)) values[line.key] = std::move(line.value);
  return values;
}

std::string fit_for_file_names(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '+' && c != '_'; },
      '-');
  return text;
}

// Defaults are not part of the hash, so a key that a later version adds changes no ID.
std::string id_of(const std::map<std::string, std::string>& config, const std::vector<NamedText>& overrides) {
  static const std::map<std::string, std::string> kDefaults = values_of(RunConfig{});
  std::string hashed;
  for (const auto& [key, value] : config) {
    const auto standard = kDefaults.find(key);
    if (is_path(key) || (standard != kDefaults.end() && standard->second == value)) continue;
    hashed += str(key, ": ", value, "\n");
  }
  std::string words;
  for (const auto& [key, value] : overrides) {
    hashed += str(key, "=", value, "\n");
    words += str(fit_for_file_names(key.substr(key.rfind('.') + 1)), "=", fit_for_file_names(value), "_");
  }
  if (words.size() > kLongestWords) words = words.substr(0, kLongestWords) + "_";
  return words + xxh3_128_hex(std::as_bytes(std::span(hashed))).substr(0, kHashDigits);
}

SweepRun plan_run(const std::string& path, std::vector<std::string> words, const std::vector<GridKey>& grid,
                  const std::string& directory) {
  const std::map<std::string, std::string> values = values_of(load_config(path, words));
  std::vector<NamedText> overrides;
  for (size_t i = 0; i < grid.size(); ++i) {
    const auto value = values.find(grid[i].key);  // none: a list of mappings
    overrides.push_back({grid[i].key, value == values.end() ? words[i].substr(grid[i].key.size() + 1) : value->second});
  }
  std::sort(overrides.begin(), overrides.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  SweepRun run;
  run.row.id = id_of(values, overrides);
  std::erase_if(overrides, [](const NamedText& one) { return one.name == kSeed; });
  run.row.overrides = std::move(overrides);
  words.push_back("run.name=" + run.row.id);
  words.push_back("run.output_dir='" + run_directory(directory, run.row.id) + "'");
  run.config = load_config(path, words);
  if (run.config.data.cache.empty()) run.config.data.cache = directory + "/data";  // text is tokenized once for all
  RunConfig complete = run.config;
  complete_from_data(complete);
  describe_config(run.row, complete);
  const RunTable table(complete);
  run.steps = table.total_steps();
  run.tokens = table.tokens_after(run.steps);
  for (const StageRow& row : table.rows()) {
    const double flops_of_token = token_flops(complete.model).full(row.options.sequence_length);
    run.flops += flops_of_token * double(row.options.steps) * double(row.options.global_batch_tokens);
  }
  return run;
}

}  // namespace

std::vector<GridKey> parse_grid(const std::vector<std::string>& words) {
  std::vector<GridKey> grid;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      fail(Kind::kConfig, str("sweep: '", word, "' is not KEY=VALUE,VALUE,..."), "for example optimizer.lr=1e-3,2e-3");
    }
    GridKey key{word.substr(0, equals), split_values(std::string_view(word).substr(equals + 1))};
    if (key.key == "run.name" || key.key == "run.output_dir") {
      fail(Kind::kConfig, str("sweep: ", key.key, " is set by the sweep, for each run"), "--name names the sweep");
    }
    if (!seen.insert(key.key).second) {
      fail(Kind::kConfig, str("sweep: the key ", key.key, " is given twice"), "give all its values at once");
    }
    if (std::find(key.values.begin(), key.values.end(), "") != key.values.end()) {
      fail(Kind::kConfig, str("sweep: '", word, "' has an empty value"));
    }
    grid.push_back(std::move(key));
  }
  return grid;
}

SweepPlan plan_sweep(const std::string& config_path, const std::vector<GridKey>& grid, const std::string& name) {
  std::vector<std::vector<std::string>> combinations = {{}};
  for (const GridKey& key : grid) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& words : combinations) {
      for (const std::string& value : key.values) {
        longer.push_back(words);
        longer.back().push_back(key.key + "=" + value);
      }
    }
    combinations = std::move(longer);
  }
  const RunConfig first = load_config(config_path, combinations[0]);
  const std::string chosen = name.empty() ? first.run.name : name;
  if (!is_file_name(chosen)) fail(Kind::kConfig, str("sweep: '", chosen, "' cannot name a directory"), "--name NAME");
  SweepPlan plan{.directory = str(parent_directory(first.run.output_dir), "/sweeps/", chosen), .runs = {}};
  std::set<std::string> ids;
  for (const auto& words : combinations) {
    plan.runs.push_back(plan_run(config_path, words, grid, plan.directory));
    if (!ids.insert(plan.runs.back().row.id).second) {
      fail(Kind::kConfig, str("sweep: the run ", join(words, " "), " is given twice"), "give each value once");
    }
  }
  return plan;
}

void expect_same_config(const SweepRun& run, const std::string& directory) {
  const std::string path = run_files::at(run_directory(directory, run.row.id), run_files::kConfig);
  if (!exists(path)) return;
  RunConfig complete = run.config;
  complete_from_data(complete);
  const ConfigChanges changes = compare_configs(read_text(path, Kind::kConfig), complete);
  std::vector<std::string> differences;
  for (const auto* list : {&changes.refused, &changes.harmless}) {
    for (const ConfigChange& change : *list) {
      if (!is_path(change.key)) differences.push_back(str(change.key, ": ", change.was, " -> ", change.is));
    }
  }
  if (differences.empty()) return;
  fail(Kind::kConfig, str("the config of the run ", path, " differs from the sweep's:", listed(differences)),
       "give another --name, or remove the directory of the run");
}

}  // namespace tokamak
