// One search for copies among the documents of a run, or among their paragraphs:
//
//   each part        CopyKeys: the keys of its documents                           a file of bands
//   band by band     write_pairs: documents with equal keys, by ranges of keys     a file of pairs
//   once             write_copies: clusters; all but one document are dropped      a list for each part
//   each part        CopyFilter: drops what the list says                          the next step's documents
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dedup/bands.h"
#include "data/dedup/clusters.h"
#include "data/dedup/near_keys.h"
#include "data/pipeline/counts.h"
#include "data/pipeline/prepare_options.h"

namespace tokamak {

bool finds_copies(const PrepareStage& stage);

// Documents are numbered in the order of add(); paragraphs, which are lines, too.
class CopyKeys {
 public:
  explicit CopyKeys(const PrepareStage& stage);  // of a kind that finds copies

  void add(const Document& document);
  void write(const std::string& path) { bands_.write(path); }
  BandRule rule() const { return keys_.front()->rule(); }
  int64_t bands() const { return keys_.front()->bands(); }

 private:
  void add_unit(std::string_view text, const Document& document);

  const PrepareStage& stage_;
  std::vector<std::unique_ptr<NearKeys>> keys_;  // one, or by WordRules
  BandWriter bands_;
  std::vector<BandKey> found_;
};

void write_pairs(std::span<const BandFile> parts, int64_t band, KeyRange range, const BandRule& rule,
                 const std::string& path);

// Joins the pairs of all files. Writes DIRECTORY/part-00000.copies of each part. Error(kConfig) if no document has the
// stage's best_by.
void write_copies(const PrepareStage& stage, std::span<const BandFile> parts, std::span<const std::string> pair_files,
                  const std::string& directory);
std::string copies_file(const std::string& directory, size_t part);

// The members of clusters in a part, by number.
std::vector<ClusterMember> read_copies(const std::string& path);

// Takes the documents of a part in their order.
class CopyFilter {
 public:
  CopyFilter(const PrepareStage& stage, const std::string& copies);

  // False, with the reason, for a document that goes. Notes the size of the cluster of one that stays, as the value
  // STAGE.copies. Removed paragraphs are counted.
  bool keep(Document& document, PrepareCounts& counts);

 private:
  const ClusterMember* next_member();  // of the next unit, if it is in a cluster

  std::string name_;
  CopyUnit unit_;
  std::vector<ClusterMember> members_;
  size_t at_ = 0;
  uint32_t number_ = 0;  // of the next unit
};

}  // namespace tokamak
