// The strings of a vocabulary by id, and the ids by string: one arena and one hash table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class VocabTable {
 public:
  // False, and nothing changes, if the piece or the id is taken. `id` is from 0 to INT32_MAX - 1.
  bool add(std::string_view piece, int32_t id);

  int32_t find(std::string_view piece) const;     // -1: there is none
  std::string_view operator[](int32_t id) const;  // "" if no piece has this id
  bool has(int32_t id) const { return id >= 0 && id < ids() && places_[static_cast<size_t>(id)].taken; }
  int64_t ids() const { return std::ssize(places_); }  // 1 + the largest id
  int64_t count() const { return count_; }

 private:
  struct Place {
    int64_t begin = 0;
    int32_t length = 0;
    bool taken = false;
  };
  size_t slot_of(std::string_view piece) const;  // its slot, or the empty one where it belongs
  void grow();

  std::string bytes_;
  std::vector<Place> places_;   // by id
  std::vector<int32_t> slots_;  // ids; -1: empty; a power of two, at most half full
  int64_t count_ = 0;
};

}  // namespace tokamak
