// A model's state small enough to look at. Every element of every parameter and moment has its own bits, which depend
// on the step, so any element in a wrong place shows.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "checkpoint/shard_file.h"
#include "tensor/unit_layout.h"

namespace tokamak {

inline Param toy_param(std::string name, Shape shape) {
  Param param;
  param.name = std::move(name);
  param.shape = shape;
  return param;
}

// Sizes leave gaps between matrices (they begin at multiples of 64 elements) and padding at the ends.
inline ParamTable toy_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embed", {toy_param("embed.weight", {37, 9})}}}});
  table.units.push_back({UnitKind::kLayer,
                         "layer.0",
                         {{"qkv", {toy_param("q", {9, 9}), toy_param("k", {3, 9}), toy_param("v", {3, 9})}},
                          {"down", {toy_param("down", {9, 21})}}}});
  table.units.push_back(
      {UnitKind::kNorms, "norms", {{"norm_0", {toy_param("norm_0", {9})}}, {"norm_1", {toy_param("norm_1", {9})}}}});
  return table;
}

inline std::vector<std::string> toy_kinds() { return {"master", "exp_avg", "exp_avg_sq"}; }

inline uint32_t toy_bits(int64_t step, const std::string& kind, const std::string& param, int64_t element) {
  return RandomStream(static_cast<uint64_t>(step), kind + "/" + param).word(static_cast<uint64_t>(element));
}

inline TrainingPoint toy_point(int64_t step) {
  return {{step, step * 1000, step * 8}, 1234, "run:\n  name: \"toy\"\n", R"({"epoch":1})"};
}

// The slices of one rank of `count`.
class ToyState {
 public:
  explicit ToyState(ShardPlace place, ParamTable table = toy_table()) : place_(place), table_(std::move(table)) {
    for (const Unit& unit : table_.units) {
      const int64_t slice = UnitLayout(unit).slice(place.count);
      for (size_t k = 0; k < toy_kinds().size(); ++k) memory_.emplace_back(static_cast<size_t>(slice), kGarbage);
    }
  }

  std::vector<UnitSlices> units() {
    std::vector<UnitSlices> units;
    size_t next = 0;
    for (const Unit& unit : table_.units) {
      UnitSlices& slices = units.emplace_back();
      slices.unit = &unit;
      for (const std::string& kind : toy_kinds()) {
        std::vector<float>& memory = memory_[next++];
        const Tensor whole(memory.data(), DType::kF32, Shape{static_cast<int64_t>(memory.size())});
        slices.slices.push_back({kind, {whole}});
      }
    }
    return units;
  }

  // Every parameter as of `step`, zero elsewhere.
  void fill(int64_t step) { memory_ = expected(step); }
  void forget() {
    for (auto& memory : memory_) std::fill(memory.begin(), memory.end(), kGarbage);
  }

  bool is(int64_t step) const {
    const auto wanted = expected(step);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (std::memcmp(wanted[i].data(), memory_[i].data(), wanted[i].size() * sizeof(float)) != 0) return false;
    }
    return true;
  }

  const ShardPlace& place() const { return place_; }

 private:
  static constexpr float kGarbage = -77.0f;

  std::vector<std::vector<float>> expected(int64_t step) const {
    std::vector<std::vector<float>> values;
    for (const Unit& unit : table_.units) {
      const int64_t slice = UnitLayout(unit).slice(place_.count);
      for (const std::string& kind : toy_kinds()) {
        std::vector<float>& out = values.emplace_back(static_cast<size_t>(slice), 0.0f);
        for (const FlatParam& flat : flat_params(unit)) {
          for (int64_t i = flat.begin; i < flat.end; ++i) {
            const int64_t at = i - slice * place_.index;
            if (at < 0 || at >= slice) continue;
            const uint32_t bits = toy_bits(step, kind, flat.param->name, i - flat.begin);
            std::memcpy(&out[static_cast<size_t>(at)], &bits, sizeof(bits));  // any bits, NaN included
          }
        }
      }
    }
    return values;
  }

  ShardPlace place_;
  ParamTable table_;
  std::vector<std::vector<float>> memory_;
};

}  // namespace tokamak
