#include "data/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;  // keeps keys sorted: a dump without indentation is canonical

constexpr const char* kFormat = "tokamak-dataset";
constexpr int64_t kVersion = 1;

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

// Takes values out of a JSON object; a missing key or a wrong type is an error with the file and the key's full name.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::string prefix = "")
      : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!object_.is_object()) fail(Kind::kData, str(where_, ": ", prefix_, " is not an object"));
  }
  const Json& at(const char* key) const {
    const auto it = object_.find(key);
    if (it == object_.end()) fail(Kind::kData, str(where_, ": key '", prefix_, key, "' is missing"));
    return *it;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) wrong(key, value, "a string");
    return value.get<std::string>();
  }
  int64_t count(const char* key, int64_t lowest = 0) const {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < lowest) {
      wrong(key, value, str("a whole number of at least ", lowest));
    }
    return value.get<int64_t>();
  }
  int32_t id(const char* key) const {
    if (at(key).is_null()) return -1;
    const int64_t value = count(key, -1);
    if (value > INT32_MAX) wrong(key, at(key), "a token id");
    return static_cast<int32_t>(value);
  }
  [[noreturn]] void wrong(const char* key, const Json& value, const std::string& expected) const {
    fail(Kind::kData, str(where_, ": '", prefix_, key, "' is ", value.dump(), "; expected ", expected));
  }

 private:
  const Json& object_;
  std::string where_;
  std::string prefix_;
};

ShardInfo shard_from(const Fields& f, TokenType type) {
  ShardInfo s;
  s.name = f.text("name");
  if (s.name.empty() || s.name.find('/') != std::string::npos) f.wrong("name", f.at("name"), "a file name");
  s.tokens = f.count("tokens");
  s.documents = f.count("documents");
  s.bytes = f.count("bytes");
  s.index_bytes = f.count("index_bytes");
  s.max_token_id = f.id("max_token_id");
  s.hash = f.text("xxh3_128");
  s.index_hash = f.text("index_xxh3_128");
  if (s.bytes != s.tokens * token_bytes(type)) {
    f.wrong("bytes", f.at("bytes"), str(s.tokens * token_bytes(type), " for ", s.tokens, " tokens"));
  }
  return s;
}

Manifest manifest_from(const Json& json, const std::string& path) {
  const Fields f(json, path);
  if (f.text("format") != kFormat) f.wrong("format", f.at("format"), kFormat);
  if (f.count("version") != kVersion) f.wrong("version", f.at("version"), str(kVersion, " by this program"));
  Manifest m;
  const std::string type = f.text("token_type");
  m.token_type = type == "uint16" ? TokenType::kUint16 : TokenType::kInt32;
  if (type != token_type_name(m.token_type)) f.wrong("token_type", f.at("token_type"), "uint16 or int32");
  m.vocab_size = f.count("vocab_size", 1);
  const Fields tokenizer(f.at("tokenizer"), path, "tokenizer.");
  m.tokenizer = {tokenizer.text("name"), tokenizer.text("xxh3_128"), tokenizer.text("file")};
  m.eos_id = f.id("eos_id");
  m.bos_id = f.id("bos_id");
  m.tool = f.text("tool");
  m.created = f.text("created");
  const Json& shards = f.at("shards");
  if (!shards.is_array() || shards.empty()) f.wrong("shards", shards, "a list of at least one shard");
  for (size_t i = 0; i < shards.size(); ++i) {
    m.shards.push_back(shard_from(Fields(shards[i], path, str("shards[", i, "].")), m.token_type));
  }
  if (f.count("tokens") != m.tokens()) f.wrong("tokens", f.at("tokens"), str(m.tokens(), ", the sum of its shards"));
  if (f.count("documents") != m.documents()) {
    f.wrong("documents", f.at("documents"), str(m.documents(), ", the sum of its shards"));
  }
  return m;
}

}  // namespace

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

std::string Manifest::id() const {
  const std::string text = identity_json(*this).dump();
  return xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size())));
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kDatasetManifest;
  if (!exists(path)) {
    const bool parts = exists(directory + "/train/" + kDatasetManifest);
    fail(Kind::kData, str(directory, " is not a data set: it has no ", kDatasetManifest),
         parts ? str("its parts are data sets: ", directory, "/train and ", directory, "/validation")
               : "`tokamak data tokenize` makes data sets; one that was interrupted has no manifest");
  }
  try {
    return manifest_from(Json::parse(read_text(path, Kind::kData)), path);
  } catch (const Json::exception& e) {
    fail(Kind::kData, str(path, " is not valid JSON: ", e.what()));
  }
}

void write_manifest(const std::string& directory, const Manifest& manifest) {
  Json json = identity_json(manifest);
  json["tokenizer"]["name"] = manifest.tokenizer.name;
  json["tokenizer"]["file"] = manifest.tokenizer.file;
  json["tool"] = manifest.tool;
  json["created"] = manifest.created;
  write_text_atomically(directory + "/" + kDatasetManifest, json.dump(2) + "\n", Kind::kData);
}

}  // namespace tokamak
