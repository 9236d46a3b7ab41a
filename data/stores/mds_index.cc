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

// Sets the type and has_shape of a column that can hold tokens.
bool read_token_column(const std::string& encoding, TokenElement type, MdsColumns& columns) {
  const std::vector<std::string> parts = split(encoding, ':');
  if (encoding == "bytes" && type != TokenElement::kAuto) {
    columns.type = type;
    columns.has_shape = false;
    return true;
  }
  const std::optional<TokenElement> element = parts.size() < 2 ? std::nullopt : element_named(parts[1]);
  if (parts[0] != "ndarray" || !element || parts.size() > 3) return false;
  columns.type = *element;
  columns.has_shape = parts.size() == 2;
  return true;
}

MdsColumns read_columns(const JsonValue& json, TokenElement type) {
  const std::vector<std::string> names = json["column_names"].texts(), encodings = json["column_encodings"].texts();
  const std::vector<JsonValue> sizes = json["column_sizes"].items();
  if (names.size() != encodings.size() || names.size() != sizes.size()) {
    json["column_names"].refuse(str("there are ", encodings.size(), " encodings and ", sizes.size(), " sizes"));
  }
  MdsColumns columns;
  std::vector<size_t> found;
  for (size_t i = 0; i < names.size(); ++i) {
    columns.sizes.push_back(sizes[i].present() ? sizes[i].whole(0, kLargestMdsFile) : -1);
    if (encodings[i].starts_with("pkl")) {
      json["column_encodings"].refuse("an encoding of Python objects can run any program and is not read");
    }
    if (read_token_column(encodings[i], type, columns)) found.push_back(i);
  }
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
  if (fixed % element_bytes(columns.type) != 0 && fixed >= 0) {
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

std::vector<MdsShard> parse_mds_index(std::string_view text, const std::string& where, TokenElement type) {
  const JsonDocument json(text, {where});
  json["version"].whole(2, 2);
  std::vector<MdsShard> shards;
  for (const JsonValue& shard : json["shards"].items()) shards.push_back(read_mds_shard(shard, type));
  if (shards.empty()) json["shards"].refuse("there are no shards");
  return shards;
}

}  // namespace tokamak
