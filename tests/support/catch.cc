#include "support/catch.h"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

namespace tokamak {

int run_catch(int argc, char** argv, const std::string& skip_because) {
  Catch::Session session;
  if (const int code = session.applyCommandLine(argc, argv); code != 0) return code;
  const auto& config = session.configData();
  const bool lists = config.listTests || config.listTestNamesOnly || config.listTags || config.listReporters;
  if (lists || skip_because.empty()) return session.run();
  Catch::cout() << "skipped: " << skip_because;
  for (const std::string& name : config.testsOrTags) Catch::cout() << "\n  " << name;
  Catch::cout() << std::endl;
  constexpr int kSkipped = 77;
  return kSkipped;
}

}  // namespace tokamak
