// The pieces that a pretoken may become without any merge, by their bytes. Threads share it, so that no thread fills
// its cache with the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class PieceTable {
 public:
  struct Piece {
    int32_t id = -1;         // -1: none
    bool reachable = false;  // merging its bytes yields this piece
  };

  explicit PieceTable(size_t pieces);  // maximum number
  void add(std::string_view text, uint64_t hash, Piece piece);

  // `hash` is hash_text(text).
  Piece find(std::string_view text, uint64_t hash) const;

 private:
  struct Slot {
    uint32_t tag = 0;     // the upper half of the hash
    uint32_t record = 0;  // offset in records_; 0: free
  };

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  size_t mask_;
  std::string records_;  // each is {id << 1 | reachable, length, bytes}
};

}  // namespace tokamak
