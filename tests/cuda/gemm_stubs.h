// Stubs of cuBLASLt's GPU part and CUDA's runtime for the tests of CudaGemm's calls. They record the calls and return
// set answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

inline constexpr uint64_t kFails = 66;  // an algorithm that does not run
inline constexpr size_t kCacheBytes = 4096;

struct Library {
  std::vector<uint64_t> algorithms = {77};  // the heuristic's answers, the best guess first
  int asked = 0;                            // calls of the heuristic
  int most = 0;                             // the number of algorithms that a call asked for
  std::array<uint32_t, 4> alignments = {};  // left, right, added, output
  uint32_t reductions = 0;
  int sms = 0;                // SMs that the heuristic was asked for; 0: all
  std::vector<uint64_t> run;  // the algorithm of each product
  int compute_type = 0;
  double clock = 0;  // ms; algorithm i takes |i - 80| with a cold cache, |i - 90| with a warm one
  bool cold = true;
  double slower = 0;  // ms more of each product than of the one before
  int busy = 20;      // products that another stream's work makes slower, unless the host waits for it
  bool no_memory = false;
  std::vector<size_t> allocated;  // bytes of each
  void reset() { *this = Library(); }
};
extern Library library;
