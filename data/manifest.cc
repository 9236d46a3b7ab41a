#include "data/manifest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "formats/json.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;  // keeps keys sorted: a dump without indentation is canonical

constexpr const char* kFormat = "tokamak-dataset";
constexpr int64_t kVersion = 1;
constexpr int64_t kMostDocuments = int64_t{1} << 48;  // of a shard; far above any real one

Json id_or_null(int32_t id) { return id < 0 ? Json(nullptr) : Json(id); }

Json identity_json(const Manifest& m) {
  Json shards = Json::array();
  for (const ShardInfo& s : m.shards) {
    shards.push_back({{"name", s.name},
                      {"tokens", s.tokens},
                      {"documents", s.documents},
                      {"bytes", s.bytes},
                      {"index_bytes", s.index_bytes},
                      {"max_token_id", s.max_token_id},
                      {"xxh3_128", s.hash},
                      {"index_xxh3_128", s.index_hash}});
  }
  return {{"format", kFormat},
          {"version", kVersion},
          {"token_type", token_type_name(m.token_type)},
          {"vocab_size", m.vocab_size},
          {"tokenizer", {{"xxh3_128", m.tokenizer.hash}}},
          {"eos_id", id_or_null(m.eos_id)},
          {"bos_id", id_or_null(m.bos_id)},
          {"document_end", m.eos_id < 0 ? "none" : "eos"},
          {"tokens", m.tokens()},
          {"documents", m.documents()},
          {"shards", shards}};
}

int32_t id_of(const JsonValue& value) {
  return value.is_null() ? -1 : static_cast<int32_t>(value.whole(-1, INT32_MAX));
}

ShardInfo shard_from(const JsonValue& json, TokenType type) {
  ShardInfo s;
  s.name = json["name"].text();
  if (!is_file_name(s.name)) json["name"].refuse("expected a file name");
  s.tokens = json["tokens"].whole();
  s.documents = json["documents"].whole(0, kMostDocuments);
  s.bytes = json["bytes"].whole();
  s.index_bytes = json["index_bytes"].whole();
  s.max_token_id = id_of(json["max_token_id"]);
  s.hash = json["xxh3_128"].text();
  s.index_hash = json["index_xxh3_128"].text();
  const int64_t bytes = checked_multiply(s.tokens, token_bytes(type), json.source().kind,
                                         str(json.source().where, ": the bytes of shard '", printable(s.name), "'"));
  if (s.bytes != bytes) json["bytes"].refuse(str("expected ", bytes, " for ", s.tokens, " tokens"));
  return s;
}

Manifest manifest_from(const JsonValue& json) {
  if (json["format"].text() != kFormat) json["format"].refuse(str("expected ", kFormat));
  if (json["version"].whole() != kVersion) json["version"].refuse(str("expected ", kVersion, " by this program"));
  Manifest m;
  const std::string type = json["token_type"].text();
  m.token_type = type == "uint16" ? TokenType::kUint16 : TokenType::kInt32;
  if (type != token_type_name(m.token_type)) json["token_type"].refuse("expected uint16 or int32");
  m.vocab_size = json["vocab_size"].whole(1);
  const JsonValue tokenizer = json["tokenizer"];
  m.tokenizer = {tokenizer["name"].text(), tokenizer["xxh3_128"].text(), tokenizer["file"].text()};
  // Commands and runs open this file, so it must not lie in another directory.
  if (!m.tokenizer.file.empty() && !is_file_name(m.tokenizer.file)) tokenizer["file"].refuse("expected a file name");
  m.eos_id = id_of(json["eos_id"]);
  m.bos_id = id_of(json["bos_id"]);
  m.text_bytes = json["text_bytes"].whole_or(0);
  if (m.text_bytes < 0) json["text_bytes"].refuse("expected a count");
  m.tool = json["tool"].text();
  m.created = json["created"].text();
  for (const JsonValue& shard : json["shards"].items()) m.shards.push_back(shard_from(shard, m.token_type));
  if (m.shards.empty()) json["shards"].refuse("expected at least one shard");
  const auto check_sum = [&](const char* key, int64_t ShardInfo::*count) {
    int64_t sum = 0;
    for (const ShardInfo& s : m.shards) {
      sum = checked_add(sum, s.*count, json.source().kind, str(json.source().where, ": the sum of '", key, "'"));
    }
    if (json[key].whole() != sum) json[key].refuse(str("expected ", sum, ", the sum of its shards"));
  };
  check_sum("tokens", &ShardInfo::tokens);
  check_sum("documents", &ShardInfo::documents);
  return m;
}

}  // namespace

std::string TokenizerIdentity::path_in(const std::string& directory) const {
  return file.empty() ? "" : (std::filesystem::path(directory) / file).string();  // `file` itself if it is absolute
}

int64_t Manifest::tokens() const {
  int64_t sum = 0;
  for (const ShardInfo& s : shards) sum += s.tokens;
  return sum;
}

int64_t Manifest::documents() const {
  int64_t sum = 0;
  for (const ShardInfo& s : shards) sum += s.documents;
  return sum;
}

int32_t Manifest::max_token_id() const {
  int32_t largest = -1;
  for (const ShardInfo& s : shards) largest = std::max(largest, s.max_token_id);
  return largest;
}

std::optional<double> Manifest::bits_per_byte(double nats_per_token) const {
  if (text_bytes == 0) return std::nullopt;
  return nats_per_token * double(tokens()) / double(text_bytes) / std::log(2.0);
}

std::string Manifest::id() const {
  const std::string text = identity_json(*this).dump();
  return xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size())));
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kDatasetManifest;
  if (!exists(directory)) {
    std::error_code ignored;
    const std::string place = std::filesystem::path(directory).is_relative()
                                  ? str(" (looked in ", std::filesystem::current_path(ignored).string(), ")")
                                  : "";
    fail(Kind::kData, str(directory, " does not exist", place), "`tokamak data tokenize` makes data sets");
  }
  if (!exists(path)) {
    const bool parts = exists(directory + "/train/" + kDatasetManifest);
    fail(Kind::kData, str(directory, " is not a data set: it has no ", kDatasetManifest),
         parts ? str("its parts are data sets: ", directory, "/train and ", directory, "/validation")
               : "`tokamak data tokenize` makes data sets; one that was interrupted has no manifest");
  }
  return manifest_from(JsonDocument(read_text(path, Kind::kData), {path, Kind::kData}).root());
}

void write_manifest(const std::string& directory, const Manifest& manifest) {
  Json json = identity_json(manifest);
  json["tokenizer"]["name"] = manifest.tokenizer.name;
  json["tokenizer"]["file"] = manifest.tokenizer.file;
  if (manifest.text_bytes > 0) json["text_bytes"] = manifest.text_bytes;
  json["tool"] = manifest.tool;
  json["created"] = manifest.created;
  write_text_atomically(directory + "/" + kDatasetManifest, json.dump(2) + "\n", Kind::kData);
}

}  // namespace tokamak
