#include "checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "formats/json.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tokamak-checkpoint";
constexpr std::string_view kHead = "{\"xxh3_128\":\"";
constexpr std::string_view kMiddle = "\",\"manifest\":";
constexpr std::string_view kTail = "}\n";
constexpr size_t kDigits = 32;

std::string checksum_of(std::string_view body) { return xxh3_128_hex(std::as_bytes(std::span(body))); }

void require(const JsonValue& in, bool holds, const std::string& what) {
  if (!holds) fail(in.source().kind, str(in.source().where, " cannot be used: ", what));
}

// Whether the text has the form that xxh3_128_hex writes.
bool is_checksum(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string name_in(const JsonValue& in, const char* what, const std::string& name) {
  return str(in.source().where, ": ", what, " '", printable(name), "'");
}

SavedParam parse_param(const JsonValue& json) {
  SavedParam param{json["name"].text(), {}, json["begin"].whole(), {}};
  if (json["kinds"].present()) param.kinds = json["kinds"].texts();
  const std::string name = name_in(json, "parameter", param.name);
  int64_t elements = 1;
  for (const JsonValue& extent : json["shape"].items()) {
    param.shape.push_back(extent.whole());
    elements = checked_multiply(elements, param.shape.back(), json.source().kind, name);
  }
  return param;
}

SavedUnit parse_unit(const JsonValue& json, int64_t shards) {
  SavedUnit unit{json["name"].text(), json["slice"].whole(), {}};
  int64_t end = 0;
  for (const JsonValue& entry : json["params"].items()) {
    unit.params.push_back(parse_param(entry));
    const SavedParam& param = unit.params.back();
    require(entry, param.begin >= end, str("'", printable(param.name), "' overlaps the parameter before it"));
    end = checked_add(param.begin, param.count(), json.source().kind, name_in(json, "parameter", param.name));
  }
  const int64_t held = checked_multiply(unit.slice, shards, json.source().kind, name_in(json, "unit", unit.name));
  require(json, end <= held,
          str("the ", shards, " slices of unit '", printable(unit.name), "' do not hold its ", end, " elements"));
  return unit;
}

std::vector<AverageProgress> parse_averages(const JsonValue& json) {
  std::vector<AverageProgress> averages;
  if (!json.present()) return averages;
  for (const JsonValue& one : json.items()) {
    averages.push_back({one["name"].text(), one["updates"].whole(1), one["step"].whole(1)});
  }
  return averages;
}

std::vector<double> parse_numbers(const JsonValue& json) {
  std::vector<double> numbers;
  for (const JsonValue& one : json.items()) numbers.push_back(one.number());
  return numbers;
}

// `step`: that of the checkpoint.
OutcomeWindow parse_outcomes(const JsonValue& json, int64_t step) {
  if (!json.present()) return {};
  OutcomeWindow window;
  window.losses = parse_numbers(json["losses"]);
  window.log_norms = parse_numbers(json["log_norms"]);
  window.spiking = json["spiking"].whole();
  window.spike_step = json["spike_step"].whole_or(step - window.spiking + 1);  // absent in the first such checkpoints
  window.spike_sample = json["spike_sample"].whole();
  require(json, window.losses.size() == window.log_norms.size(), "it has not as many log_norms as losses");
  return window;
}

constexpr int64_t kMostSamples = int64_t{1} << 50;  // sums of them do not overflow

std::vector<LeftOut> parse_left_out(const JsonValue& json) {
  std::vector<LeftOut> ranges;
  if (!json.present()) return ranges;
  for (const JsonValue& one : json.items()) {
    ranges.push_back({one["step"].whole(1), one["first_sample"].whole(0, kMostSamples),
                      one["samples"].whole(1, kMostSamples), one["reason"].text()});
  }
  return ranges;
}

CheckpointManifest parse_body(const JsonValue& json) {
  if (json["format"].text() != kFormat) json["format"].refuse(str("expected ", kFormat));
  const int64_t version = json["version"].whole(1);
  CheckpointManifest manifest;
  manifest.tool = json["tool"].text();
  require(json, version <= kManifestVersion,
          str("it has format version ", version, ", written by Tokamak ", printable(manifest.tool),
              "; this one reads up to ", kManifestVersion));
  manifest.created = json["created"].text();
  manifest.incarnation = json["incarnation"].text();
  manifest.point = {.state = {.step = json["step"].whole(),
                              .tokens = json["tokens"].whole(),
                              .next_sample = json["next_sample"].whole(),
                              .optimizer_start = json["optimizer_start"].whole_or(0),
                              .averages = parse_averages(json["averages"]),
                              .owes_evaluation = json["owes_evaluation"].truth_or(false),
                              .outcomes = parse_outcomes(json["outcomes"], json["step"].whole()),
                              .left_out = parse_left_out(json["left_out"])},
                    .seed = json["seed"].whole(INT64_MIN),
                    .config = json["config"].text(),
                    .data = json["data"].text()};
  manifest.world_size = json["world_size"].whole(1);
  manifest.kinds = json["kinds"].texts();
  for (const JsonValue& file : json["files"].items()) {
    manifest.files.push_back({file["name"].text(), file["bytes"].whole(), file["xxh3_128"].text()});
    const std::string& name = manifest.files.back().name;
    require(file, is_file_name(name) && name[0] != '.', str("'", printable(name), "' is not a file name"));
    if (!is_checksum(manifest.files.back().xxh3_128)) file["xxh3_128"].refuse("expected 32 hexadecimal digits");
  }
  require(json, !manifest.files.empty(), "it names no files");
  int64_t bytes = 0;
  for (const SavedFile& file : manifest.files) {
    bytes = checked_add(bytes, file.bytes, json.source().kind, name_in(json, "file", file.name));
  }
  std::set<std::string> names;
  int64_t elements = 0;
  for (const JsonValue& unit : json["units"].items()) {
    manifest.units.push_back(parse_unit(unit, std::ssize(manifest.files)));
    for (const SavedParam& param : manifest.units.back().params) {
      for (const std::string& kind : param.kinds) {
        const bool known = std::find(manifest.kinds.begin(), manifest.kinds.end(), kind) != manifest.kinds.end();
        require(unit, known, str("'", printable(param.name), "' has '", printable(kind), "', the checkpoint has not"));
      }
      require(unit, names.insert(param.name).second, str("'", printable(param.name), "' comes twice"));
      elements = checked_add(elements, param.count(), json.source().kind, name_in(json, "parameter", param.name));
    }
  }
  return manifest;
}

int64_t version_of(const CheckpointManifest& m) {
  if (m.point.state.optimizer_start > 0 || !m.point.state.left_out.empty()) return kManifestVersion;
  for (const SavedUnit& unit : m.units) {
    for (const SavedParam& param : unit.params) {
      if (!param.kinds.empty()) return kManifestVersion;
    }
  }
  return 1;
}

Json body_of(const CheckpointManifest& m) {
  Json units = Json::array();
  for (const SavedUnit& unit : m.units) {
    Json params = Json::array();
    for (const SavedParam& param : unit.params) {
      params.push_back({{"name", param.name}, {"shape", param.shape}, {"begin", param.begin}});
      if (!param.kinds.empty()) params.back()["kinds"] = param.kinds;
    }
    units.push_back({{"name", unit.name}, {"slice", unit.slice}, {"params", params}});
  }
  Json files = Json::array();
  for (const SavedFile& file : m.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
  }
  Json body = {{"format", kFormat},
               {"version", version_of(m)},
               {"tool", m.tool},
               {"created", m.created},
               {"incarnation", m.incarnation},
               {"step", m.point.state.step},
               {"tokens", m.point.state.tokens},
               {"next_sample", m.point.state.next_sample},
               {"seed", m.point.seed},
               {"world_size", m.world_size},
               {"kinds", m.kinds},
               {"units", units},
               {"files", files},
               {"config", m.point.config},
               {"data", m.point.data}};
  if (m.point.state.optimizer_start > 0) body["optimizer_start"] = m.point.state.optimizer_start;
  if (m.point.state.owes_evaluation) body["owes_evaluation"] = true;
  if (const OutcomeWindow& window = m.point.state.outcomes; !window.losses.empty()) {
    body["outcomes"] = {{"losses", window.losses},
                        {"log_norms", window.log_norms},
                        {"spiking", window.spiking},
                        {"spike_step", window.spike_step},
                        {"spike_sample", window.spike_sample}};
  }
  for (const auto& [step, first_sample, samples, reason] : m.point.state.left_out) {
    body["left_out"].push_back(
        {{"step", step}, {"first_sample", first_sample}, {"samples", samples}, {"reason", reason}});
  }
  for (const auto& [name, updates, step] : m.point.state.averages) {
    body["averages"].push_back({{"name", name}, {"updates", updates}, {"step", step}});
  }
  return body;
}

}  // namespace

int64_t SavedParam::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::string SavedParam::shape_text() const {
  std::vector<std::string> extents;
  for (const int64_t extent : shape) extents.push_back(str(extent));
  return str("(", join(extents, ", "), ")");
}

int64_t CheckpointManifest::total_bytes() const {
  int64_t sum = 0;
  for (const SavedFile& file : files) sum += file.bytes;
  return sum;
}

int64_t CheckpointManifest::param_elements() const {
  int64_t sum = 0;
  for (const SavedUnit& unit : units) {
    for (const SavedParam& param : unit.params) sum += param.count();
  }
  return sum;
}

bool CheckpointManifest::has(const SavedParam& param, const std::string& kind) const {
  const std::vector<std::string>& held = param.kinds.empty() ? kinds : param.kinds;
  return std::find(held.begin(), held.end(), kind) != held.end();
}

std::string encode_manifest(const CheckpointManifest& manifest) {
  const std::string body = body_of(manifest).dump();
  return str(kHead, checksum_of(body), kMiddle, body, kTail);
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& path) {
  const size_t body_begin = kHead.size() + kDigits + kMiddle.size();
  const bool framed = text.size() >= body_begin + kTail.size() && text.substr(0, kHead.size()) == kHead &&
                      text.substr(kHead.size() + kDigits, kMiddle.size()) == kMiddle &&
                      text.substr(text.size() - kTail.size()) == kTail;
  if (!framed) fail(Kind::kCheckpoint, str(path, " is damaged: it is cut short, or not a checkpoint's manifest"));
  const std::string_view body = text.substr(body_begin, text.size() - kTail.size() - body_begin);
  const std::string_view expected = text.substr(kHead.size(), kDigits);
  const std::string found = checksum_of(body);
  if (found != expected) {
    fail(Kind::kCheckpoint, str(path, " is damaged: its checksum is ", found, ", it should be ", printable(expected)));
  }
  return parse_body(JsonDocument(body, {path, Kind::kCheckpoint}).root());
}

}  // namespace tokamak
