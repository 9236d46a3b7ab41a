// Merges a pretoken that no cache knows: the part of an encoder that differs between models.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tokamak {

// It may keep scratch, so each thread has its own.
class PretokenMerger {
 public:
  virtual ~PretokenMerger() = default;
  // Whether a pretoken may become more ids than it has bytes.
  virtual bool may_grow() const { return false; }
  // Appends the ids of `pretoken`, which is not empty. The same pretoken always has the same ids.
  virtual void merge(std::string_view pretoken, std::vector<int32_t>& ids) = 0;
};

}  // namespace tokamak
