// The account of a run's documents: how many were read, written and dropped, by source and reason, how their values
// are distributed, and examples. Tasks count for themselves; sums do not depend on the order of the tasks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/document.h"

namespace tokamak {

struct Tally {
  int64_t documents = 0;
  int64_t bytes = 0;  // of text
  void add(int64_t its_bytes) { ++documents, bytes += its_bytes; }
  void operator+=(const Tally& other) { documents += other.documents, bytes += other.bytes; }
};

// Values by size: bucket b has those from 2^(b/4) on, below the next. Zero and less are in kZero.
class Histogram {
 public:
  static constexpr int kZero = -1000;
  static double least_of(int bucket);

  void add(double value);
  void operator+=(const Histogram& other);
  const std::map<int, int64_t>& buckets() const { return buckets_; }
  int64_t count() const;

 private:
  friend class PrepareCounts;
  std::map<int, int64_t> buckets_;
};

struct DropExample {
  std::string id;
  std::string text;  // its begin
};

// Values and languages have names from the input, so that their number is bounded: further ones count under "(others)".
class PrepareCounts {
 public:
  static constexpr size_t kMostNames = 200;
  using BySource = std::map<std::string, Tally>;

  void read(const std::string& source, int64_t bytes) { read_[source].add(bytes); }
  void wrote(const std::string& source, const Document& document);
  // `bytes`: of the text before. Keeps the first examples of each reason.
  void dropped(const std::string& source, const Document& document, int64_t bytes);
  void removed(const std::string& what, int64_t bytes) { removed_[what].add(bytes); }  // of a document that stays
  void tokens(int64_t count) { tokens_ += count; }
  void damaged_file(const std::string& problem) { damaged_.push_back(problem); }

  void operator+=(const PrepareCounts& other);  // of the task after this one

  const BySource& read() const { return read_; }
  const BySource& written() const { return written_; }
  const std::map<std::string, BySource>& drops() const { return dropped_; }  // by reason
  const std::map<std::string, Tally>& removals() const { return removed_; }
  const std::map<std::string, Tally>& languages() const { return languages_; }  // of written documents
  const std::map<std::string, Histogram>& values() const { return values_; }    // of all documents that have them
  const std::map<std::string, std::vector<DropExample>>& examples() const { return examples_; }
  const std::vector<std::string>& damaged() const { return damaged_; }
  int64_t tokens() const { return tokens_; }

  std::string json() const;
  static PrepareCounts parse(std::string_view text, const std::string& where);  // Error(kData), naming `where`

 private:
  void see_values(const Document& document);

  BySource read_, written_;
  std::map<std::string, BySource> dropped_;
  std::map<std::string, Tally> removed_, languages_;
  std::map<std::string, Histogram> values_;
  std::map<std::string, std::vector<DropExample>> examples_;
  std::vector<std::string> damaged_;
  int64_t tokens_ = 0;
};

Tally sum_of(const PrepareCounts::BySource& tallies);

}  // namespace tokamak
