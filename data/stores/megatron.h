// A store of Megatron-LM or NeMo: PREFIX.bin and PREFIX.idx (data/index_format.h), without checksums. A document may
// have several sequences. Opening reads a few bytes, whatever the size; nothing is copied or built.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/index_format.h"
#include "data/stores/token_file.h"

namespace tokamak {

// Training reads a store as one sequence of tokens, so its sequences must follow each other in the .bin without gaps.
// Merged or sliced files, and those whose pointers overflowed 32 bits, can only be streamed: `data convert`.
enum class SequenceOrder { kContiguous, kAny };

class MegatronStore final : public TokenFile {
 public:
  // Error(kData) if the index or the .bin is no such file, their sizes do not fit, or a few places of the index show
  // that the sequences are not contiguous. Reading checks the entries that it needs, and for_each_part() all.
  MegatronStore(const std::string& prefix, SequenceOrder order, FilePool& pool);

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override;
  void for_each_part(const std::function<void(const DocumentPart&)>& visit) const override;
  int64_t sequences() const override { return header_.sequences; }
  void sequence_lengths(int64_t first, std::span<int32_t> out) const override;

 private:
  struct Opened {
    IndexHeader header;
    ShardInfo info;
    TokenLayout layout;
  };
  static Opened read_header(const std::string& prefix, SequenceOrder order, FilePool& pool);
  MegatronStore(const std::string& prefix, Opened opened, SequenceOrder order, FilePool& pool);
  void check_places() const;
  void read_starts(int64_t document, std::span<int64_t> out) const;
  void read_positions(const InputFile& idx, int64_t sequence, std::span<int64_t> out) const;

  std::string index_path_;
  IndexHeader header_;
  SequenceOrder order_;
};

}  // namespace tokamak
