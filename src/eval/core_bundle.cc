#include "eval/core_bundle.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/printable.h"
#include "base/strings.h"
#include "config/units.h"
#include "config/yaml.h"
#include "eval/python_random.h"
#include "eval/python_text.h"
#include "formats/compressed_stream.h"
#include "formats/json.h"

namespace tokamak {

namespace {

constexpr uint64_t kOrderSeed = 1337, kShotSeed = 1234;  // nanochat's

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"multiple_choice", "schema", "language_modeling"};
  return names;
}

// Fields of a line of CSV; a quoted field may hold commas, quotes ("") and line breaks.
std::vector<std::vector<std::string>> parse_csv(std::string_view text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back({""});
    } else if (quoted || c != '\r') {
      rows.back().back() += c;
    }
  }
  return rows;
}

// Baselines in percent, by the task's label.
std::map<std::string, double> read_baselines(const std::string& path) {
  const std::vector<std::vector<std::string>> rows = parse_csv(read_text(path, Kind::kData));
  const auto column = [&](const char* name) {
    const auto found = std::find(rows[0].begin(), rows[0].end(), name);
    if (found == rows[0].end()) fail(Kind::kData, str(path, " has no column \"", name, "\""));
    return static_cast<size_t>(found - rows[0].begin());
  };
  const size_t label = column("Eval Task"), baseline = column("Random baseline");
  std::map<std::string, double> baselines;
  for (const std::vector<std::string>& row : rows) {
    if (&row == &rows[0] || row.size() <= std::max(label, baseline)) continue;
    const Parsed<double> percent = parse_number(row[baseline]);
    if (!percent.value || *percent.value < 0 || *percent.value >= 100) {
      fail(Kind::kData, str(path, ": the baseline of ", printable(row[label]), " is \"", printable(row[baseline]),
                            "\"; expected percent, from 0 to below 100"));
    }
    baselines[row[label]] = *percent.value;
  }
  return baselines;
}

CoreItem read_item(CoreKind kind, const JsonDocument& record) {
  CoreItem item;
  item.where = record.root().source().where;
  if (kind == CoreKind::kLanguageModeling) {
    item.options = {{std::string(python_strip(record["context"].text())), record["continuation"].text()}};
    return item;
  }
  const bool schema = kind == CoreKind::kSchema;
  for (const std::string& option : record[schema ? "context_options" : "choices"].texts()) {
    item.options.push_back(schema ? std::pair(option, record["continuation"].text())
                                  : std::pair(record["query"].text(), option));
  }
  item.gold = static_cast<size_t>(record["gold"].whole(0, std::ssize(item.options) - 1));
  return item;
}

}  // namespace

std::vector<CorePart> read_core_parts(const std::string& directory) {
  const std::string path = directory + "/core.yaml";
  std::vector<Problem> problems;
  ConfigNode root = parse_yaml(read_text(path, Kind::kData), path, problems);
  const ConfigNode* tasks = root.child("icl_tasks");
  if (!problems.empty() || tasks == nullptr) fail(Kind::kData, str(path, " has no list icl_tasks"));
  const std::map<std::string, double> baselines = read_baselines(directory + "/eval_meta_data.csv");
  std::vector<CorePart> parts;
  for (ConfigNode task : tasks->children) {
    const auto text = [&](const char* key) {
      ConfigNode* node = task.child(key);
      if (node != nullptr && node->type == ConfigNode::Type::kList && node->children.size() == 1) {
        node = &node->children[0];
      }
      if (node == nullptr || node->type != ConfigNode::Type::kScalar) {
        fail(Kind::kData, str(task.place, ": a task has no ", key));
      }
      return node->text;
    };
    CorePart part{.label = text("label"), .path = str(directory, "/eval_data/", text("dataset_uri"))};
    if (task.child("continuation_delimiter") != nullptr) part.delimiter = text("continuation_delimiter");
    const Parsed<int64_t> shots = parse_count(text("num_fewshot"));
    const std::string kind = text("icl_task_type");
    const std::vector<std::string>& kinds = kind_names();
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    const auto baseline = baselines.find(part.label);
    if (!shots.value || found == kinds.end() || baseline == baselines.end()) {
      fail(Kind::kData, str(task.place, ": ", printable(part.label),
                            !shots.value           ? " has no number num_fewshot"
                            : found == kinds.end() ? str(" has the icl_task_type '", printable(kind), "'")
                                                   : " has no row in eval_meta_data.csv"));
    }
    part.shots = *shots.value;
    part.kind = static_cast<CoreKind>(found - kinds.begin());
    part.baseline = baseline->second / 100;
    parts.push_back(part);
  }
  return parts;
}

std::vector<CoreItem> read_core_items(const CorePart& part, int64_t limit) {
  std::vector<CoreItem> items;
  LineReader reader(open_stream(part.path, Kind::kData));
  std::string line;
  while (reader.next(line)) {
    if (trim(line).empty()) continue;
    items.push_back(
        read_item(part.kind, JsonDocument(line, {str(part.path, ":", reader.line_number())}, JsonRules::kLenient)));
  }
  PythonRandom(kOrderSeed).shuffle(items);
  if (limit > 0 && std::ssize(items) > limit) items.resize(static_cast<size_t>(limit));
  if (std::ssize(items) <= part.shots) {
    fail(Kind::kData, str(part.path, " has ", items.size(), " items", limit > 0 ? " within the limit" : "", ", but ",
                          part.label, " puts ", part.shots, " others before each"));
  }
  return items;
}

std::string core_examples(const CorePart& part, const std::vector<CoreItem>& items, size_t item) {
  std::string text;
  for (const size_t drawn : PythonRandom(kShotSeed + item).sample(items.size() - 1, static_cast<size_t>(part.shots))) {
    const CoreItem& example = items[drawn < item ? drawn : drawn + 1];  // of all others
    const auto& [context, continuation] = example.options[example.gold];
    text += context + part.delimiter + continuation + "\n\n";
  }
  return text;
}

}  // namespace tokamak
