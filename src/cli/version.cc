#include "cli/version.h"

#include "backend/backend.h"
#include "base/strings.h"
#include "cli/build_info.h"  // generated: kVersion, kGitCommit, kBuildType, kMarch

namespace tokamak::cli {

std::string program_name() { return str("tokamak ", kVersion, ", commit ", kGitCommit); }

std::string version_text() {
  return str("tokamak ", kVersion, "\ncommit   ", kGitCommit, "\ncompiler ", __VERSION__, " (", kBuildType,
             ", -march=", kMarch, ")\nbackends cpu", cuda_presence().built_in ? ", cuda" : " (built without cuda)");
}

}  // namespace tokamak::cli
