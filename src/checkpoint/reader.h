// Reads a checkpoint: any range of any parameter, whatever the number of ranks that saved it. Verification is a pass of
// its own (file_problem, find_problem), and comes before any read that matters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tick.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_file.h"
#include "comm/comm.h"
#include "formats/safetensors.h"

namespace tokamak {

// Whether the system's copy of a file in memory, which may be sounder than the disk, serves as well.
enum class ReadFrom { kAnywhere, kDisk };

class CheckpointReader {
 public:
  // Reads the manifest and looks at the size of every file. Error(kCheckpoint), naming the file, if it is damaged.
  static CheckpointReader open(const std::string& directory);

  // Reads the manifest alone, for ranks that share the work of looking at the files.
  static CheckpointReader open_manifest(const std::string& directory);

  // For ranks that were sent the text of a manifest that another rank has opened.
  CheckpointReader(std::string directory, std::string_view manifest_text);

  const std::string& directory() const { return directory_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }

  void on_progress(Tick tick) { tick_ = std::move(tick); }  // called as files are read

  // Reads file `index` whole; empty if its size and checksum are those of the manifest, else what is wrong.
  std::string file_problem(int64_t index, ReadFrom from = ReadFrom::kAnywhere) const;

  // The parameter in the manifest; nullptr if there is none.
  const SavedParam* find(const std::string& param) const;

  // The dtype in which the slices of a kind are stored, by the header of the first file: "F32", "BF16".
  // Error(kCheckpoint) if that cannot be read.
  std::string stored_dtype(const std::string& kind) const;

  // Elements [first, first + out.size()) of the parameter, row-major, from whichever files hold them, as f32.
  // Error(kCheckpoint) if the checkpoint has no such kind or parameter, a file cannot be read, or masters are not F32.
  void read(const std::string& kind, const std::string& param, int64_t first, std::span<float> out);

 private:
  struct Location {
    size_t unit = 0;
    size_t param = 0;
  };
  std::string path_of(int64_t file) const;
  const SafetensorsFile& shard(int64_t index);

  std::string directory_;
  std::string manifest_text_;
  CheckpointManifest manifest_;
  std::map<std::string, Location> params_;
  std::map<int64_t, SafetensorsFile> open_;  // by shard
  Tick tick_;
};

// One rank's share of a verification: every size-th file from the rank-th on. The first that is damaged, if one is.
struct FileProblem {
  int64_t file = 0;
  std::string text;
};
std::optional<FileProblem> find_problem_of_share(const CheckpointReader& reader, const Comm& comm,
                                                 ReadFrom from = ReadFrom::kAnywhere);

// Collective: each rank reads its share of the files. The same answer everywhere: empty, or what is wrong with the
// first damaged file.
std::string find_problem(Comm& comm, const CheckpointReader& reader);

// Error(kCheckpoint), naming what differs, unless the checkpoint holds these units' parameters in these shapes, and no
// others.
void check_same_model(const CheckpointReader& reader, const std::vector<const Unit*>& units);

// Fills this rank's slices of every unit, for any number of slices; what belongs to no parameter becomes zero. F32 that is
// loaded into bf16 slices is rounded to nearest, and the log says so; BF16 becomes f32 exactly. Errors of one rank are
// thrown by all: SharedError(kCheckpoint). The checkpoint's parameters and their shapes must be the units'.
void load(Comm& comm, CheckpointReader& reader, const ShardPlace& place, const std::vector<UnitSlices>& units);

}  // namespace tokamak
