// Checkpoints for people: what is in one, and whether it is whole. PATH is one step's directory, a directory of them, or
// that of a run.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/reader.h"

namespace tokamak {

// A table of one checkpoint: where the run stood, its files, its parameters.
std::string describe_checkpoint(const CheckpointReader& reader);

// describe_checkpoint of a step's directory; else a line for each checkpoint in PATH, and what else lies there.
// Error(kCheckpoint) if PATH holds none.
std::string inspect_checkpoints(const std::string& path);

// Reads every file of every checkpoint in PATH and calls `line` for each: "FILE  ok", or what is wrong. After the last,
// Error(kCheckpoint) with all that is wrong.
void verify_checkpoints(const std::string& path, const std::function<void(const std::string&)>& line);

}  // namespace tokamak
