// The bands of documents: keys that near copies share. A document has one key in each band. Two documents are a
// candidate pair if they have equal keys in one.
//
//   exact copies   one band: a hash of the text
//   MinHash        a band of the signature each
//   SimHash        a permutation of the fingerprint each: keys need to agree in a prefix, and the distance decides
//
// Parts of the input are read independently, and each writes a file of its documents' keys. The search then takes one
// band at a time, and one range of its keys, from the files of all parts. So memory is bounded for any number of
// documents.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace tokamak {

using BandKey = std::array<uint64_t, 2>;  // compared as 128 bits, the first word first

// A document by its part and its number there.
struct DocumentId {
  uint32_t part = 0, number = 0;
  auto operator<=>(const DocumentId&) const = default;
};

struct DocumentPair {
  DocumentId first, second;  // first < second
};

// Writes a part's file. Documents without keys (texts too short for an n-gram) count, but match none.
//
//   "TKBANDS1", u32 bands, u32 documents, u64 keys, u32 weight of each document, then for each band
//   (u64, u64, u32 document) of each document with keys, ascending; all little-endian
class BandWriter {
 public:
  explicit BandWriter(int64_t bands) : bands_(static_cast<size_t>(bands)) {}

  // `keys`: one for each band, or none. A cluster keeps its document of the greatest weight.
  void add(std::span<const BandKey> keys, uint32_t weight);
  void write(const std::string& path);

 private:
  struct Record {
    BandKey key;
    uint32_t document;
  };
  std::vector<std::vector<Record>> bands_;
  std::vector<uint32_t> weights_;
};

// A part's file. It is open only while it is read, as there may be more of them than a process may open. Error(kData)
// if it is damaged.
class BandFile {
 public:
  explicit BandFile(const std::string& path);

  int64_t documents() const { return documents_; }
  int64_t keys() const { return keys_; }  // of each band
  std::vector<uint32_t> weights() const;

  struct Record {
    BandKey key;
    DocumentId document;
  };
  // Appends the records of a band whose key's first word is in [low, high].
  void append(int64_t band, uint64_t low, uint64_t high, uint32_t part, std::vector<Record>& out) const;

 private:
  // The first record at least so great.
  int64_t lower_bound(const InputFile& file, int64_t band, uint64_t first_word) const;
  int64_t offset_of(int64_t band, int64_t record) const;

  std::string path_;
  int64_t bands_ = 0, documents_ = 0, keys_ = 0;
};

// When two documents are a pair.
struct BandRule {
  int64_t prefix_bits = 128;  // equal ones
  int64_t distance = 0;       // differing bits of the whole keys, at most; with all bits in the prefix there are none
  // A longer run of equal prefixes is not compared pair by pair, but each with this many after it.
  int64_t longest_run = 4096;
};

// The keys that one search looks at: range `index` of `count` equal ranges of the first word. `count` is a power of two
// and at most 2^prefix_bits, so that equal prefixes are in one range.
struct KeyRange {
  uint64_t index = 0, count = 1;
};

// The pairs of a band, those of each group of equal keys as (first, another): so a group of n has n - 1 pairs.
void find_pairs(std::span<const BandFile> parts, int64_t band, KeyRange range, const BandRule& rule,
                const std::function<void(DocumentPair)>& take);

// The least power of two of ranges with which a search of one range holds at most `bytes`.
uint64_t ranges_for(std::span<const BandFile> parts, int64_t bytes);

}  // namespace tokamak
