// Takes the documents of a part after a step: for the next step, or for shards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/pipeline/copies.h"
#include "data/pipeline/counts.h"
#include "data/pipeline/shuffle.h"
#include "data/pipeline/workspace.h"
#include "formats/zstd_writer.h"

namespace tokamak {

class PartWriter {
 public:
  // Writes into the directory `staging`; holds at most about `memory` bytes of tokens.
  PartWriter(const Workspace& work, size_t step, size_t part, int64_t memory, const std::string& staging);

  void keep(const Document& document, PrepareCounts& counts);
  void drop(const Document& document);
  void finish(const PrepareCounts& counts);

 private:
  void write(const Document& document, ZstdWriter& file);

  const Workspace& work_;
  size_t part_;
  std::string staging_;
  std::optional<CopyKeys> keys_;
  std::optional<ZstdWriter> kept_, dropped_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<RunWriter> runs_;  // by kSets
  int64_t number_ = 0;           // of the next document, among those that are left of the part
  std::vector<int32_t> ids_;
  std::string line_;
};

}  // namespace tokamak
