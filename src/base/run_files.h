// The names of the files that a run leaves in its directory (run.output_dir): the one list. FORMATS: data/README.md,
// src/checkpoint/README.md, src/monitor/README.md, src/resilience/README.md.
#pragma once

#include <string>

namespace tokamak::run_files {

inline constexpr const char* kConfig = "config.yaml";         // resolved, of the latest start
inline constexpr const char* kTokenizer = "tokenizer.model";  // a copy, so that checkpoints outlive the data set
inline constexpr const char* kLog = "train.log";
inline constexpr const char* kMetrics = "metrics.jsonl";    // records and events of all starts
inline constexpr const char* kStatus = "status.json";       // of the latest start
inline constexpr const char* kCheckpoints = "checkpoints";  // a directory for each step
inline constexpr const char* kSuspects = "suspects.txt";    // hosts to exclude from the next start, one a line
inline constexpr const char* kHangPrefix = "hang-";         // hang-<UTC time>.txt: a hang, rank by rank

inline std::string at(const std::string& directory, const char* name) { return directory + "/" + name; }

}  // namespace tokamak::run_files
