// Moments in BF16: what a checkpoint has, and what a run with the other moment dtype loads from it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/bf16.h"
#include "checkpoint/inspect.h"
#include "checkpoint/toy_run.h"
#include "support/captured_log.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// The toy model's slices of one rank, with moments in `dtype`. Each element of each kind has a different value.
class State {
 public:
  State(ShardPlace place, DType dtype, std::vector<std::string> kinds = toy_kinds(), DType master = DType::kF32,
        ParamTable table = toy_table())
      : place_(place), dtype_(dtype), master_(master), kinds_(std::move(kinds)), table_(std::move(table)) {
    for (const Unit& unit : table_.units) {
      for (const std::string& kind : kinds_) {
        const int64_t slice = UnitLayout(unit).slice(place_.count);
        memory_.emplace_back(static_cast<size_t>(slice * size_of(dtype_of(kind))), std::byte{0x55});
      }
    }
  }

  std::vector<UnitSlices> units() {
    std::vector<UnitSlices> units;
    size_t next = 0;
    for (const Unit& unit : table_.units) {
      units.push_back({&unit, {}});
      for (const std::string& kind : kinds_) {
        const Shape shape{UnitLayout(unit).slice(place_.count)};
        units.back().slices.push_back({kind, {Tensor(memory_[next++].data(), dtype_of(kind), shape)}});
      }
    }
    return units;
  }

  static float value(const std::string& kind, const std::string& param, int64_t element) {
    const uint64_t key = name_hash(kind) ^ name_hash(param);
    return static_cast<float>(mix64(key + static_cast<uint64_t>(element))) * 0x1p-64f - 0.5f;
  }

  // Padding is zero. `stored` is the dtype in which the checkpoint has stored the moments.
  void fill(DType stored) {
    each([&](const std::string& kind, Tensor slice, int64_t at, float value) {
      const float kept = kind != "master" && stored == DType::kBF16 ? to_float(bf16(value)) : value;
      if (slice.dtype() == DType::kF32) slice.as<float>()[at] = kept;
      if (slice.dtype() == DType::kBF16) slice.as<bf16>()[at] = bf16(kept);
    });
  }

  bool operator==(const State& other) const { return memory_ == other.memory_; }
  const ShardPlace& place() const { return place_; }

 private:
  DType dtype_of(const std::string& kind) const { return kind == "master" ? master_ : dtype_; }

  template <class Body>
  void each(const Body& body) {
    for (auto& memory : memory_) std::fill(memory.begin(), memory.end(), std::byte{0});
    for (const UnitSlices& unit : units()) {
      for (const auto& [kind, parts, weights] : unit.slices) {
        const Tensor slice = parts.at(0);
        for (const FlatParam& flat : flat_params(*unit.unit)) {
          const int64_t before = slice.count() * place_.index;
          for (int64_t i = std::max(flat.begin, before); i < std::min(flat.end, before + slice.count()); ++i) {
            body(kind, slice, i - before, value(kind, flat.param->name, i - flat.begin));
          }
        }
      }
    }
  }

  ShardPlace place_;
  DType dtype_, master_;
  std::vector<std::string> kinds_;
  ParamTable table_;
  std::vector<std::vector<std::byte>> memory_;
};

void save(const std::string& directory, State& state, int64_t step) {
  const auto comm = make_single_comm();
  Checkpointer checkpointer(*comm, directory, toy_setup());
  checkpointer.resume();
  REQUIRE(save_and_wait(checkpointer, step, state.place(), state.units()).committed);
}

std::string path_of(const TempDir& dir, DType dtype) { return dir.file(std::string(name_of(dtype))); }

// Returns the log of a load by one rank.
std::string said_by_load(const std::string& step, State& state) {
  const auto comm = make_single_comm();
  CheckpointReader reader = CheckpointReader::open(step);
  CapturedLog captured;
  load(*comm, reader, state.place(), state.units());
  return captured.text();
}

constexpr DType kBoth[] = {DType::kF32, DType::kBF16};

}  // namespace

TEST_CASE(
    "moments of either dtype are loaded into either, by any number of ranks; only F32 into BF16 rounds, and says so") {
  const TempDir dir;
  for (const DType stored : kBoth) {
    State saved({}, stored);
    saved.fill(stored);
    save(path_of(dir, stored), saved, 10);
  }
  for (const DType stored : kBoth) {
    for (const DType wanted : kBoth) {
      for (int count = 1; count <= 5; ++count) {
        for (int index = 0; index < count; ++index) {
          INFO(name_of(stored) << " into " << name_of(wanted) << ", rank " << index << " of " << count);
          State loaded({index, count}, wanted), expected({index, count}, wanted);
          const std::string said = said_by_load(path_of(dir, stored) + "/step-00000010", loaded);
          expected.fill(stored);
          CHECK((loaded == expected));
          if (stored == DType::kF32 && wanted == DType::kBF16) {
            CHECK_THAT(said, Contains("exp_avg and exp_avg_sq: F32 in ") && Contains("rounded to the nearest BF16"));
          } else {
            CHECK_THAT(said, !Contains("rounded"));
          }
        }
      }
    }
  }
}

TEST_CASE("moments of more elements than are read at once are loaded whole, from any rank's place") {
  const ParamTable large = {
      {{UnitKind::kEmbedding, "embedding", {{"embed", {toy_param("embed.weight", {1103, 2900})}}}}}};
  const TempDir dir;
  State saved({}, DType::kF32, toy_kinds(), DType::kF32, large);
  saved.fill(DType::kF32);
  save(dir.file("c"), saved, 10);
  for (const ShardPlace& place : {ShardPlace{0, 1}, ShardPlace{0, 2}, ShardPlace{1, 2}}) {
    State loaded(place, DType::kBF16, toy_kinds(), DType::kF32, large);
    State expected = loaded;
    said_by_load(dir.file("c/step-00000010"), loaded);
    expected.fill(DType::kF32);
    CHECK((loaded == expected));
  }
}

TEST_CASE("BF16 moments take half of their bytes, and inspect, verify and the file's header name them") {
  const TempDir dir;
  int64_t data[2];
  for (const DType stored : kBoth) {
    State saved({}, stored);
    saved.fill(stored);
    save(path_of(dir, stored), saved, 10);
    const std::string step = path_of(dir, stored) + "/step-00000010";
    const SafetensorsFile file(step + "/" + kOnlyFile, Kind::kBug);
    data[stored == DType::kBF16] = 0;
    for (const SafetensorsEntry& entry : file.tensors()) {
      CHECK(entry.dtype == (starts_with(entry.name, "master/") ? "F32" : name_of(stored)));
      data[stored == DType::kBF16] += entry.bytes();
    }
    CHECK_THAT(inspect_checkpoints(step),
               Contains(stored == DType::kBF16 ? "state        master, exp_avg (BF16), exp_avg_sq (BF16)\n"
                                               : "state        master, exp_avg, exp_avg_sq\n"));
    std::vector<std::string> lines;
    verify_checkpoints(step, [&](const std::string& line) { lines.push_back(line); });
    CHECK(lines.size() == 2);
  }
  CHECK(3 * data[1] == 2 * data[0]);  // 8 bytes an element instead of 12
  flip_bit(path_of(dir, DType::kBF16) + "/step-00000010/" + kOnlyFile, data[1]);
  CHECK_THROWS_WITH(verify_checkpoints(path_of(dir, DType::kBF16), [](const std::string&) {}), Contains("is damaged"));
}

TEST_CASE("masters in BF16 are refused: a checkpoint keeps them in F32") {
  const TempDir dir;
  State saved({}, DType::kBF16, toy_kinds(), DType::kBF16);
  saved.fill(DType::kF32);
  save(dir.file("c"), saved, 10);
  State loaded({}, DType::kBF16);
  CHECK_THROWS_WITH(said_by_load(dir.file("c/step-00000010"), loaded), Contains("is BF16, expected F32"));
}

TEST_CASE("BF16 moments of a model that was imported are zero") {
  const TempDir dir;
  State saved({}, DType::kF32, {"master"});
  saved.fill(DType::kF32);
  save(dir.file("c"), saved, 0);
  for (const DType wanted : kBoth) {
    State loaded({}, wanted);
    CHECK_THAT(said_by_load(dir.file("c/step-00000000"), loaded), !Contains("rounded"));
    for (const UnitSlices& unit : loaded.units()) {
      for (const auto& [kind, parts, weights] : unit.slices) {
        const Tensor slice = parts.at(0);
        const auto bytes = std::span(static_cast<const std::byte*>(slice.data()), static_cast<size_t>(slice.bytes()));
        const bool zero = std::all_of(bytes.begin(), bytes.end(), [](std::byte x) { return x == std::byte{0}; });
        CHECK(zero == (kind != "master"));
      }
    }
  }
}
