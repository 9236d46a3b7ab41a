// The calls to the emulator's NCCL in this process, in order, for tests to check.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace emulator {

struct NcclCommunicator {
  std::string name;  // its config's commName
  int ranks = 0;
  int max_ctas = 0, split_share = 0, cta_policy = 0;  // of its config
  std::string parent;                                 // the one that it was split from; "": made by a unique id
  bool shares = false;                                // its resources with the parent
  bool lives = true, aborted = false;
};

struct NcclCall {
  std::string communicator;
  std::string what;  // "all_gather"
  size_t bytes = 0;  // of this rank's contribution
  bool on_copy_engines = false;
  const void* stream = nullptr;
};

struct NcclRegistration {
  std::string communicator;
  bool window = false;
};

struct NcclRecord {
  std::vector<NcclCommunicator> communicators;
  std::vector<NcclCall> calls;
  std::vector<NcclRegistration> registrations;  // all that were ever made
  size_t registered = 0, allocated = 0;         // at present
};

const NcclRecord& nccl_record();

}  // namespace emulator
