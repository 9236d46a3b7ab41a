// Reads any range of any parameter of a checkpoint, whatever the number of ranks that saved it. Verification is a
// separate pass (file_problem, find_problem) that comes before any read.
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

enum class ReadFrom { kAnywhere, kDisk };  // kDisk bypasses the page cache, which may hide damage on the disk

class CheckpointReader {
 public:
  // Reads the manifest and checks the size of every file. Error(kCheckpoint), naming the file, if it is damaged.
  static CheckpointReader open(const std::string& directory);

  // Reads only the manifest, for ranks that share the checks of the files.
  static CheckpointReader open_manifest(const std::string& directory);

  // For ranks that received the manifest's text from the rank that opened it.
  CheckpointReader(std::string directory, std::string_view manifest_text);

  const std::string& directory() const { return directory_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }

  void on_progress(Tick tick) { tick_ = std::move(tick); }  // called as files are read

  // Reads all of file `index`; returns "" if its size and checksum match the manifest, else the problem.
  std::string file_problem(int64_t index, ReadFrom from = ReadFrom::kAnywhere) const;

  // The parameter in the manifest; nullptr if there is none.
  const SavedParam* find(const std::string& param) const;

  // The stored dtype of a kind's slices, from the header of the first file: "F32", "BF16". Error(kCheckpoint) if that
  // cannot be read.
  std::string stored_dtype(const std::string& kind) const;

  // From now on, reads of "master" read this average of the weights. Error(kCheckpoint), naming those that the
  // checkpoint has, if it has none of this name, or that has not begun.
  void use_average(const std::string& name);
  const std::string& average() const { return average_; }  // "": the masters themselves

  // Elements [first, first + out.size()) of the parameter, row-major, from whichever files hold them, as f32.
  // Error(kCheckpoint) if the checkpoint has no such parameter, the parameter no such kind, a file cannot be read, or
  // masters are not F32.
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
  std::string average_;                      // the one that is read as "master"; "": none
  Tick tick_;
};

// Verifies this rank's share: every size-th file from the rank-th on. Returns the first damaged one.
struct FileProblem {
  int64_t file = 0;
  std::string text;
};
std::optional<FileProblem> find_problem_of_share(const CheckpointReader& reader, const Comm& comm,
                                                 ReadFrom from = ReadFrom::kAnywhere);

// Collective: each rank reads its share of the files. All return "", or the problem of the first damaged file.
std::string find_problem(Comm& comm, const CheckpointReader& reader);

// Error(kCheckpoint), naming the differences, unless the checkpoint holds exactly these units' parameters and shapes.
void check_same_model(const CheckpointReader& reader, const std::vector<const Unit*>& units);

// Names a kind of a weight that this run needs and the checkpoint lacks, as "has no 'exp_avg' of 'lm_head.weight', only
// master, momentum"; "" if it lacks none.
std::string missing_state(const CheckpointReader& reader, const std::vector<UnitSlices>& units);

// kMasters: all kinds but masters and averages become zero.
enum class LoadKinds { kAll, kMasters };

// Fills this rank's slices of every unit, for any number of slices, and zeroes their padding, and the elements of
// weights that do not have the kind. At step 0, kinds other than masters become zero if the checkpoint lacks some: an
// imported model has weights alone. Rounds F32 to nearest for bf16 slices, and logs it; BF16 becomes f32 exactly.
// Collective. SharedError(kCheckpoint) as check_same_model.
void load(Comm& comm, CheckpointReader& reader, const ShardPlace& place, const std::vector<UnitSlices>& units,
          LoadKinds kinds = LoadKinds::kAll);

}  // namespace tokamak
