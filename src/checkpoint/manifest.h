// manifest.json describes a checkpoint. It is written last, so a checkpoint that has one is whole.
//
//   manifest.json := {"xxh3_128":"<32 hex digits>","manifest":BODY}\n      the checksum is of BODY's bytes
//   BODY          := one JSON object, see CheckpointManifest
//
// A flipped bit in any file, this one included, is detected. The other files follow safetensors_header.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/run_state.h"

namespace tokamak {

inline constexpr const char* kManifestName = "manifest.json";
// In version 2 a weight may lack some kinds, the optimizer may have started over, and samples may be left out. Without
// these the version is 1, which earlier programs read.
inline constexpr int64_t kManifestVersion = 2;

// The run's state that the trainer saves and loads, with its seed, config and data.
struct TrainingPoint {
  RunState state;
  int64_t seed = 0;
  std::string config;  // the resolved config, YAML
  std::string data;    // the data module's state, as text that only it reads
};

struct SavedParam {
  std::string name;
  std::vector<int64_t> shape;
  int64_t begin = 0;               // first element in the unit's flat buffer
  std::vector<std::string> kinds;  // that it has; empty: all of the manifest

  int64_t count() const;
  std::string shape_text() const;  // "(1024, 768)"
};

struct SavedUnit {
  std::string name;
  int64_t slice = 0;  // elements of each rank's slice; rank r holds [r slice, (r + 1) slice) of the flat buffer
  std::vector<SavedParam> params;
};

struct SavedFile {
  std::string name;
  int64_t bytes = 0;
  std::string xxh3_128;
};

struct CheckpointManifest {
  TrainingPoint point;
  std::string tool;                // version of the program that wrote it
  std::string created;             // "2026-01-31T12:34:56Z"
  std::string incarnation;         // the start that wrote it
  int64_t world_size = 0;          // ranks of that run
  std::vector<std::string> kinds;  // "master", then the optimizer's; a file holds "<kind>/<unit>" if a weight has it
  std::vector<SavedUnit> units;
  std::vector<SavedFile> files;  // one for each rank's slices, in order

  int64_t total_bytes() const;  // of the files
  int64_t param_elements() const;
  bool has(const SavedParam& param, const std::string& kind) const;
};

std::string encode_manifest(const CheckpointManifest& manifest);  // the file's text

// Error(kCheckpoint) naming `path` if the text is damaged, inconsistent, or of a newer version.
CheckpointManifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace tokamak
