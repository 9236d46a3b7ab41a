// Prints the contents of checkpoints and verifies them. PATH is one step's directory, a directory of them, or a run's.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/reader.h"

namespace tokamak {

// A table of one checkpoint: run state, files, parameters.
std::string describe_checkpoint(const CheckpointReader& reader);

// describe_checkpoint of a step's directory; otherwise a line for each checkpoint and each other entry in PATH.
// Error(kCheckpoint) if PATH holds no checkpoint.
std::string inspect_checkpoints(const std::string& path);

// Reads every file of every checkpoint in PATH and calls `line` for each: "FILE  ok", or the problem. Then throws
// Error(kCheckpoint) with all problems, if there are any.
void verify_checkpoints(const std::string& path, const std::function<void(const std::string&)>& line);

}  // namespace tokamak
