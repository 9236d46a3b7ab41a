// A run of one rank on a checkpoint directory, and ways to damage what it left.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "checkpoint/checkpointer.h"
#include "checkpoint/toy_state.h"

namespace tokamak {

inline Checkpointer::Setup toy_setup(int64_t keep = 0, std::string load = "auto", std::string id = "toy.1") {
  Checkpointer::Setup setup;
  setup.options.keep_latest = keep;
  setup.options.load = std::move(load);
  setup.incarnation.id = std::move(id);
  setup.lock_timeout = 0;
  return setup;
}

inline SaveOutcome save_and_wait(Checkpointer& checkpointer, int64_t step, const ShardPlace& place,
                                 std::vector<UnitSlices> units) {
  checkpointer.begin_save(toy_point(step), place, std::move(units));
  return checkpointer.finish_save();
}

// A process from start to end: what it has resumed, and its saves.
class ToyRun {
 public:
  explicit ToyRun(const std::string& directory, Checkpointer::Setup setup = toy_setup())
      : comm_(make_single_comm()), checkpointer_(*comm_, directory, std::move(setup)) {
    auto reader = checkpointer_.resume();
    if (!reader) return;
    resumed_ = reader->manifest().point.state.step;
    load(*comm_, *reader, state_.place(), state_.units());
    whole_ = state_.is(*resumed_);
  }

  std::optional<int64_t> resumed() const { return resumed_; }  // the step
  bool whole() const { return whole_; }                        // what was loaded is what had been saved, to the bit

  SaveOutcome save(int64_t step) {
    state_.fill(step);
    return save_and_wait(checkpointer_, step, state_.place(), state_.units());
  }

  Checkpointer& checkpointer() { return checkpointer_; }
  ToyState& state() { return state_; }

 private:
  std::unique_ptr<Comm> comm_;
  Checkpointer checkpointer_;
  ToyState state_{ShardPlace{}};
  std::optional<int64_t> resumed_;
  bool whole_ = false;
};

inline const std::string kOnlyFile = "rank-00000-of-00001.safetensors";

inline void flip_bit(const std::string& path, int64_t byte) {
  std::string bytes = read_text(path, Kind::kBug);
  bytes.at(static_cast<size_t>(byte)) ^= 1;
  OutputFile file(path, Kind::kBug);
  file.write(bytes);
  file.close();
}

inline void truncate_by_one(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
}

// Every file below a directory with its contents, to see that nothing has changed. The lock is left out.
inline std::map<std::string, std::string> contents_of(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (entry.path().filename() == ".lock") continue;
    contents[path] = entry.is_directory() ? "directory" : read_text(path, Kind::kBug);
  }
  return contents;
}

}  // namespace tokamak
