// The index.json of a directory of MosaicML's MDS shards, version 2.
//
//   index := {"shards": [{"column_encodings": [text], "column_names": [text], "column_sizes": [bytes or null],
//             "compression": text or null, "format": "mds", "raw_data": file, "samples": count, "version": 2,
//             "zip_data": file or null}], "version": 2}
//   file  := {"basename": text, "bytes": count, "hashes": {algorithm: hexadecimal}}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/options.h"
#include "formats/compressed_stream.h"

namespace tokamak {

struct MdsFile {
  std::string name;  // of a file in the directory
  int64_t bytes = 0;
  std::map<std::string, std::string> hashes;  // algorithm -> hexadecimal digits
};

// How the tokens lie in a sample, whose columns follow the u32 sizes of those that have no fixed size.
struct MdsColumns {
  std::vector<int64_t> sizes;               // of each column, in bytes; -1: the sample says
  size_t tokens = 0;                        // index of the column of tokens
  TokenElement type = TokenElement::kAuto;  // kAuto: has_type
  bool has_type = false;                    // a byte with the type's code precedes the shape
  bool has_shape = false;  // a byte (dimensions << 2 | type of a dimension) and the dimensions precede the tokens

  bool operator==(const MdsColumns&) const = default;
};

struct MdsShard {
  MdsColumns columns;
  int64_t samples = 0;
  MdsFile raw;
  Compression compression = Compression::kNone;
  MdsFile zip;  // if it is compressed
};

inline constexpr int64_t kMdsShardBytes = int64_t{1} << 30;  // of a shard that has to be decompressed

// The type with this code in the bytes of an `ndarray`, whose encoding names no type; kAuto: no type of tokens.
TokenElement mds_element(uint8_t code);

// Error(kData), naming `where` and the key, for anything outside the grammar, and for encodings of Python objects,
// which are unsafe. Also if no column, or several, can hold tokens. `type`: of the tokens in a column of bytes.
std::vector<MdsShard> parse_mds_index(std::string_view text, const std::string& where, TokenElement type);

}  // namespace tokamak
