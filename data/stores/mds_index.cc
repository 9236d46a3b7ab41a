#include "data/stores/mds_index.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/strings.h"
#include "data/element_type.h"
#include "formats/json.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestMdsFile = std::numeric_limits<uint32_t>::max();  // its offsets are u32

MdsFile read_mds_file(const JsonValue& json) {
  MdsFile file;
  file.name = json["basename"].text();
  if (!is_file_name(file.name)) json["basename"].refuse("expected the name of a file in the directory");
  file.bytes = json["bytes"].whole(0, kLargestMdsFile);
  if (json["hashes"].present()) {
    for (const std::string& algorithm : json["hashes"].keys())
      file.hashes[algorithm] = json["hashes"][algorithm].text();
  }
  return file;
}

Compression read_compression(const JsonValue& json) {
  if (!json.present()) return Compression::kNone;
  const std::string name = split(json.text(), ':').front();  // "zstd:7": the level
  if (name == "zstd") return Compression::kZstd;
  if (name == "gz") return Compression::kGzip;
  json.refuse("shards can be read uncompressed, of zstd and of gz");
}

std::optional<TokenElement> element_named(std::string_view name) {
  const std::vector<std::string>& names = enum_names(TokenElement());
  const auto found = std::find(names.begin() + 1, names.end(), name);  // without auto
  if (found == names.end()) return std::nullopt;
  return static_cast<TokenElement>(found - names.begin());
}

// Sets how the tokens lie in a column that can hold them.
bool read_token_column(const std::string& encoding, TokenElement type, MdsColumns& columns) {
  const std::vector<std::string> parts = split(encoding, ':');
  columns.type = type;
  columns.has_type = columns.has_shape = false;
  if (encoding == "bytes") return type != TokenElement::kAuto;
  if (parts[0] != "ndarray" || parts.size() > 3) return false;
  columns.has_type = parts.size() == 1;
  columns.has_shape = parts.size() <= 2;
  const std::optional<TokenElement> element = columns.has_type ? TokenElement::kAuto : element_named(parts[1]);
  columns.type = element.value_or(TokenElement::kAuto);
  return element.has_value();
}

MdsColumns read_columns(const JsonValue& json, TokenElement type) {
  const std::vector<std::string> names = json["column_names"].texts(), encodings = json["column_encodings"].texts();
  const std::vector<JsonValue> sizes = json["column_sizes"].items();
  if (names.size() != encodings.size() || names.size() != sizes.size()) {
    json["column_names"].refuse(str("there are ", encodings.size(), " encodings and ", sizes.size(), " sizes"));
  }
  MdsColumns columns;
  std::vector<size_t> found, untyped;
  for (size_t i = 0; i < names.size(); ++i) {
    columns.sizes.push_back(sizes[i].present() ? sizes[i].whole(0, kLargestMdsFile) : -1);
    if (encodings[i].starts_with("pkl")) {
      json["column_encodings"].refuse("an encoding of Python objects can run any program and is not read");
    }
    if (!read_token_column(encodings[i], type, columns)) continue;
    (columns.has_type && names[i] != "tokens" ? untyped : found).push_back(i);
  }
  if (found.empty()) found = untyped;
  const auto named = std::find_if(found.begin(), found.end(), [&](size_t i) { return names[i] == "tokens"; });
  if (found.empty() || (found.size() > 1 && named == found.end())) {
    json["column_encodings"].refuse(
        str(found.empty() ? "no column holds" : "several columns could hold", " tokens; the columns are ",
            printable(join(names, ", "))),
        "a column `tokens` of ndarray:int32 or the like is read, and one of bytes if token_type is set");
  }
  columns.tokens = named == found.end() ? found.front() : *named;
  read_token_column(encodings[columns.tokens], type, columns);
  const int64_t fixed = columns.sizes[columns.tokens];
  if (fixed >= 0 && !columns.has_type && fixed % element_bytes(columns.type) != 0) {
    json["column_sizes"].refuse(str("tokens of ", element_name(columns.type), " do not fill ", fixed, " bytes"));
  }
  if (columns.has_shape && fixed >= 0) json["column_sizes"].refuse("an ndarray without a shape has no fixed size");
  return columns;
}

MdsShard read_mds_shard(const JsonValue& json, TokenElement type) {
  MdsShard shard;
  if (json["format"].text() != "mds") json["format"].refuse("expected mds");
  json["version"].whole(2, 2);
  shard.columns = read_columns(json, type);
  shard.samples = json["samples"].whole(0, kLargestMdsFile / 4 - 2);
  shard.raw = read_mds_file(json["raw_data"]);
  shard.compression = read_compression(json["compression"]);
  if (shard.compression == Compression::kNone) return shard;
  shard.zip = read_mds_file(json["zip_data"]);
  if (shard.raw.bytes > kMdsShardBytes) {
    json["raw_data"]["bytes"].refuse(str("a compressed shard of at most ", human_bytes(kMdsShardBytes), " is read"));
  }
  return shard;
}

}  // namespace

TokenElement mds_element(uint8_t code) {
  switch (code) {
    case 8:
      return TokenElement::kUint8;
    case 9:
      return TokenElement::kInt8;
    case 16:
      return TokenElement::kUint16;
    case 17:
      return TokenElement::kInt16;
    case 32:
      return TokenElement::kUint32;
    case 33:
      return TokenElement::kInt32;
    case 64:
      return TokenElement::kUint64;
    case 65:
      return TokenElement::kInt64;
    default:
      return TokenElement::kAuto;
  }
}

std::vector<MdsShard> parse_mds_index(std::string_view text, const std::string& where, TokenElement type) {
  const JsonDocument json(text, {where});
  json["version"].whole(2, 2);
  std::vector<MdsShard> shards;
  for (const JsonValue& shard : json["shards"].items()) shards.push_back(read_mds_shard(shard, type));
  if (shards.empty()) json["shards"].refuse("there are no shards");
  return shards;
}

}  // namespace tokamak
