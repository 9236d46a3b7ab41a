// Writes down what is said to cuDNN, and stands in for a GPU where a plan would be made and run. The linker sends the
// calls of cuDNN's graph API here (--wrap); all but those two go on to the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

// From now on a target with any handle is the GPU of this description (cuDNN's JSON).
void pretend_gpu(const std::string& description);

// What was asked since the last call of this: operation graphs, modes of the heuristics, chosen engines. Tensors have
// numbers in the order in which operations name them, so that two graphs are the same text if they are the same graph,
// whatever ids their inner tensors have.
std::string take_recorded_text();

// What the last execution of the last graph was given.
struct RecordedRun {
  struct Given {  // one for each tensor that does not stay inside the graph
    int64_t id = 0;
    int64_t elements = 0;
    bool by_value = false;
    char* address = nullptr;  // null: none was given
    float value = 0;          // there, of one by value
  };
  std::vector<Given> tensors;
  size_t addresses = 0;  // how many were given
  char* workspace = nullptr;
  int64_t workspace_bytes = 0;    // that the plan said it needs
  bool handle_for_graph = false;  // as one for a GPU that is here must have
  bool plan_was_finalized = false;
};
RecordedRun recorded_run();

}  // namespace tokamak
