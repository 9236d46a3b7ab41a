#include "checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/hash.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead = "{\"xxh3_128\":\"";
constexpr std::string_view kMiddle = "\",\"manifest\":";
constexpr std::string_view kTail = "}\n";
constexpr size_t kDigits = 32;

std::string checksum_of(std::string_view body) { return xxh3_128_hex(std::as_bytes(std::span(body))); }

// Typed access, so that a wrong type is an error and never converted.
int64_t whole_number(const Json& value, const std::string& what, int64_t least) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits || value.get<int64_t>() < least) {
    fail(Kind::kCheckpoint, str("'", what, "' is ", value.dump(), ", no whole number from ", least));
  }
  return value.get<int64_t>();
}

int64_t whole(const Json& json, const char* key, int64_t least = 0) { return whole_number(json.at(key), key, least); }

std::string text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

void require(bool holds, const std::string& what) {
  if (!holds) fail(Kind::kCheckpoint, what);
}

SavedParam parse_param(const Json& json) {
  SavedParam param{text(json, "name"), {}, whole(json, "begin")};
  int64_t elements = 1;
  for (const Json& extent : json.at("shape")) {
    param.shape.push_back(whole_number(extent, "shape of " + param.name, 0));
    require(!__builtin_mul_overflow(elements, param.shape.back(), &elements), "'" + param.name + "' is too large");
  }
  return param;
}

SavedUnit parse_unit(const Json& json, int64_t shards) {
  SavedUnit unit{text(json, "name"), whole(json, "slice"), {}};
  int64_t end = 0;
  for (const Json& entry : json.at("params")) {
    unit.params.push_back(parse_param(entry));
    const SavedParam& param = unit.params.back();
    require(param.begin >= end, str("'", param.name, "' overlaps what lies before it"));
    require(!__builtin_add_overflow(param.begin, param.count(), &end), "'" + param.name + "' is too large");
  }
  int64_t held = 0;
  require(!__builtin_mul_overflow(unit.slice, shards, &held) && end <= held,
          str("the ", shards, " slices of unit '", unit.name, "' do not hold its ", end, " elements"));
  return unit;
}

CheckpointManifest parse_body(const Json& json) {
  require(json.at("format") == "tokamak-checkpoint", "its format is not tokamak-checkpoint");
  const int64_t version = whole(json, "version", 1);
  require(version <= kManifestVersion, str("it has format version ", version, ", written by Tokamak ",
                                           text(json, "tool"), "; this one reads up to ", kManifestVersion));
  CheckpointManifest manifest;
  manifest.tool = text(json, "tool");
  manifest.created = text(json, "created");
  manifest.incarnation = text(json, "incarnation");
  manifest.point = {.state = {.step = whole(json, "step"),
                              .tokens = whole(json, "tokens"),
                              .next_sample = whole(json, "next_sample")},
                    .seed = whole(json, "seed", INT64_MIN),
                    .config = text(json, "config"),
                    .data = text(json, "data")};
  manifest.world_size = whole(json, "world_size", 1);
  manifest.kinds = json.at("kinds").get<std::vector<std::string>>();
  for (const Json& entry : json.at("files")) {
    manifest.files.push_back({text(entry, "name"), whole(entry, "bytes"), text(entry, "xxh3_128")});
    const std::string& name = manifest.files.back().name;
    require(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos, "'" + name + "' is no file name");
  }
  require(!manifest.files.empty(), "it names no files");
  std::set<std::string> names;
  for (const Json& entry : json.at("units")) {
    manifest.units.push_back(parse_unit(entry, static_cast<int64_t>(manifest.files.size())));
    for (const SavedParam& param : manifest.units.back().params) {
      require(names.insert(param.name).second, "'" + param.name + "' comes twice");
    }
  }
  return manifest;
}

Json body_of(const CheckpointManifest& m) {
  Json units = Json::array();
  for (const SavedUnit& unit : m.units) {
    Json params = Json::array();
    for (const SavedParam& param : unit.params) {
      params.push_back({{"name", param.name}, {"shape", param.shape}, {"begin", param.begin}});
    }
    units.push_back({{"name", unit.name}, {"slice", unit.slice}, {"params", params}});
  }
  Json files = Json::array();
  for (const SavedFile& file : m.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
  }
  return {{"format", "tokamak-checkpoint"},
          {"version", kManifestVersion},
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

EncodedManifest encode_manifest(const CheckpointManifest& manifest) {
  const std::string body = body_of(manifest).dump();
  const std::string checksum = checksum_of(body);
  return {str(kHead, checksum, kMiddle, body, kTail), checksum};
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& path) {
  const size_t body_begin = kHead.size() + kDigits + kMiddle.size();
  const bool framed = text.size() >= body_begin + kTail.size() && text.substr(0, kHead.size()) == kHead &&
                      text.substr(kHead.size() + kDigits, kMiddle.size()) == kMiddle &&
                      text.substr(text.size() - kTail.size()) == kTail;
  if (!framed) fail(Kind::kCheckpoint, str(path, " is damaged: it is cut short or is no manifest of a checkpoint"));
  const std::string_view body = text.substr(body_begin, text.size() - kTail.size() - body_begin);
  const std::string_view expected = text.substr(kHead.size(), kDigits);
  const std::string found = checksum_of(body);
  if (found != expected) {
    fail(Kind::kCheckpoint, str(path, " is damaged: its checksum is ", found, ", it should be ", expected));
  }
  try {
    return parse_body(Json::parse(body));
  } catch (const nlohmann::json::exception& error) {
    fail(Kind::kCheckpoint, str(path, " is no manifest of a checkpoint: ", error.what()));
  } catch (const Error& error) {
    fail(Kind::kCheckpoint, str(path, " cannot be used: ", error.what()));
  }
}

}  // namespace tokamak
