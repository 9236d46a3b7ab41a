// The strings of a vocabulary by id, and the ids by string: one arena and one hash table. The hash has a seed that no
// file can foresee, so no choice of strings makes a search slow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace tokamak {

class VocabTable {
 public:
  // False, and nothing changes, if the piece or the id is taken. `id` is from 0 to INT32_MAX - 1. All pieces together
  // have less than 4 GiB.
  bool add(std::string_view piece, int32_t id) { return add(piece, id, hash(piece)); }

  int32_t find(std::string_view piece) const { return find(piece, hash(piece)); }  // -1: there is none
  std::string_view operator[](int32_t id) const;                                   // "" if no piece has this id
  bool has(int32_t id) const { return id >= 0 && id < ids() && places_[static_cast<size_t>(id)].taken(); }
  int64_t ids() const { return std::ssize(places_); }  // 1 + the largest id
  int64_t count() const { return count_; }

  // The steps of add() and find(). Between those of several pieces the processor fetches what the next steps need.
  uint32_t hash(std::string_view piece) const {
    return static_cast<uint32_t>(xxh3_64(std::as_bytes(std::span(piece)), seed_));
  }
  void prefetch_slot(uint32_t hash) const { __builtin_prefetch(slots_.data() + (hash & mask_)); }
  void prefetch_piece(uint32_t hash) const {
    if (const int32_t id = slots_[hash & mask_].id; id >= 0) {
      __builtin_prefetch(bytes_.data() + places_[static_cast<size_t>(id)].begin);
    }
  }
  bool add(std::string_view piece, int32_t id, uint32_t hash);
  int32_t find(std::string_view piece, uint32_t hash) const;

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Place {
    uint32_t begin = 0;
    uint32_t length = kFree;
    bool taken() const { return length != kFree; }
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;  // -1: empty
  };
  size_t slot_of(std::string_view piece, uint32_t hash) const;  // its slot, or the empty one where it belongs
  void grow();

  uint64_t seed_ = unpredictable_seed();
  std::string bytes_;
  std::vector<Place> places_;                       // by id
  std::vector<Slot> slots_ = std::vector<Slot>(2);  // a power of two, at most half full
  size_t mask_ = 1;
  int64_t count_ = 0;
};

}  // namespace tokamak
