// Merges a word by the rules of bpe_rules.h. A character that is no piece becomes the pieces of its bytes. In a model
// without them it becomes <unk>.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/pretoken_merger.h"
#include "tokenizer/bpe/symbol_merge.h"
#include "tokenizer/bpe_rules.h"

namespace tokamak {

class BpeWord final : public PretokenMerger {
 public:
  // The ids of characters without a piece. byte_ids: nullptr in a model without pieces of bytes.
  struct Unknown {
    const std::array<int32_t, 256>* byte_ids = nullptr;
    int32_t unk_id = -1;
  };
  BpeWord(const BpeRules& rules, Unknown unknown)
      : rules_(rules), unknown_(unknown), merger_(rules.pairs(), rules.last_equals()) {}

  void merge(std::string_view word, std::vector<int32_t>& ids) override;  // valid UTF-8

 private:
  void merge_known(size_t count, std::vector<int32_t>& ids);
  void add_unknown(std::string_view character, std::vector<int32_t>& ids) const;

  const BpeRules& rules_;
  Unknown unknown_;
  SymbolMerger merger_;
  std::vector<uint32_t> known_, ranks_;  // symbols that may merge, and the ranks of each with the next
};

}  // namespace tokamak
