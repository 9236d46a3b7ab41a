// Shows the contents of checkpoints and verifies them. PATH is one step's directory, a directory of them, or a run's.
#pragma once

#include <functional>
#include <string>

namespace tokamak {

// For a step's directory, returns a table of its run state, files and parameters. For another directory, returns a line
// for each checkpoint and each other entry in it. Error(kCheckpoint) if PATH holds no checkpoint.
std::string inspect_checkpoints(const std::string& path);

// Reads every file of every checkpoint in PATH and calls `line` for each: "FILE  ok", or the problem. Then throws
// Error(kCheckpoint) with all problems, if there are any.
void verify_checkpoints(const std::string& path, const std::function<void(const std::string&)>& line);

}  // namespace tokamak
