// The samples of Megatron-LM's GPTDataset, bit for bit (megatron/core/datasets/gpt_dataset.py and helpers.cpp). It
// shuffles sequences and joins them, cuts the result into samples that share one token, and shuffles these. The order
// of a whole run depends on the number of its samples. It is the one order with arrays: planned_bytes() is their size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/order/megatron_split.h"
#include "data/order/source_order.h"

namespace tokamak {

class MegatronOrder final : public SourceOrder {
 public:
  struct Options {
    int64_t length = 0;   // T; Megatron's sequence_length
    int64_t samples = 0;  // N: at least so many samples; whole epochs are added until there are
    uint32_t seed = 0;
  };
  // `lengths` are those of all sequences, of which those of `part` are used. `first` is the position of sequence 0 in
  // the data set. Error(kData) if the part has fewer than two tokens. Error(kConfig) if 32 bits are too few.
  MegatronOrder(std::span<const int32_t> lengths, SequenceRange part, Options options);

  RangeKind kind() const override { return RangeKind::kDocuments; }
  int64_t epoch() const override { return epoch_; }
  int64_t memory_bytes() const override;
  void ranges(int64_t j, std::vector<TokenRange>& out) const override;  // j modulo samples()

  int64_t samples() const { return std::ssize(shuffle_); }  // M >= N
  int64_t epochs() const { return epochs_; }                // E

  const std::vector<int32_t>& document_index() const { return documents_; }
  const std::vector<uint32_t>& shuffle_index() const { return shuffle_; }
  struct Cut {
    uint32_t document = 0;  // position in document_index()
    int32_t offset = 0;     // token of that sequence
    bool operator==(const Cut&) const = default;
  };
  const std::vector<Cut>& sample_index() const { return cuts_; }  // (M + 1)

  // The memory of an order of all of a data set's tokens and sequences, and of the lengths it is made of. About as much
  // for a part of them.
  static int64_t planned_bytes(int64_t tokens, int64_t sequences, Options options);

 private:
  static int64_t array_bytes(double sequences, double documents, double samples);
  void cut(int64_t samples, int64_t length);

  int64_t epochs_ = 1;
  int64_t epoch_ = 0;
  std::vector<int64_t> starts_;     // (S + 1) position of each sequence's first token
  std::vector<int32_t> documents_;  // (E D) sequence numbers
  std::vector<Cut> cuts_;
  std::vector<uint32_t> shuffle_;  // (M)
};

}  // namespace tokamak
