#include "support/catch.h"

#define CATCH_CONFIG_RUNNER
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/facts.h"
#include "support/started_threads.h"

namespace tokamak {

namespace {

std::string error_kind;  // of the running case's last error

void tell(const nlohmann::ordered_json& fact) {
  if (const char* file = std::getenv("TOKAMAK_FACTS"); file != nullptr)
    std::ofstream(file, std::ios::app) << fact << std::endl;
}

std::string name_of(Kind kind) {
  if (kind == Kind::kDeviceFault) return "device fault";
  return kind == Kind::kDevice ? "no device or out of memory" : "error " + std::to_string(static_cast<int>(kind));
}

class FactWriter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    case_ = {{"fact", "case"}, {"name", info.name}, {"family", family_of(info.lineInfo.file)}};
    message_ = error_kind = "";
    worst_share() = 0;
    threads_ = started_threads();
    tell(with("started"));
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (!result.isOk() && message_.empty()) {
      message_ = result.hasMessage() ? result.getMessage() : result.getExpandedExpression();
    }
    return true;
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const bool passed = stats.totals.assertions.allOk();
    if (passed) error_kind = "";  // the case expected the error
    nlohmann::ordered_json fact = with(passed ? "passed" : "failed");
    if (std::isfinite(worst_share())) fact["worst_share"] = worst_share();
    if (!message_.empty()) fact["message"] = message_.substr(0, 300);
    if (!error_kind.empty()) fact["error_kind"] = error_kind;
    tell(fact);
    if (has_tag(stats.testInfo, "one-thread") && started_threads() != threads_) {
      Catch::cerr() << "FAILED: [one-thread], but it starts a thread: " << stats.testInfo.name << std::endl;
      std::_Exit(1);
    }
    // The CUDA context is lost, so every later case would fail, too, for no reason of its own.
    if (error_kind == name_of(Kind::kDeviceFault)) {
      Catch::cout() << std::flush;
      std::_Exit(static_cast<int>(Kind::kDeviceFault));
    }
  }

 private:
  static std::string family_of(const char* file) {
    const std::string stem = std::filesystem::path(file).stem();
    return stem.substr(0, stem.rfind("_test"));
  }
  static bool has_tag(const Catch::TestCaseInfo& info, const char* tag) {
    return std::find(info.lcaseTags.begin(), info.lcaseTags.end(), tag) != info.lcaseTags.end();
  }
  nlohmann::ordered_json with(const char* result) const {
    nlohmann::ordered_json fact = case_;
    fact["result"] = result;
    return fact;
  }

  nlohmann::ordered_json case_;
  std::string message_;
  int64_t threads_ = 0;  // started before the case
};

CATCH_REGISTER_LISTENER(FactWriter)
CATCH_TRANSLATE_EXCEPTION(const Error& error) {
  error_kind = name_of(error.kind());
  return error.what();
}

}  // namespace

void tell_measured(const std::string& name, double value, const std::string& unit) {
  tell({{"fact", "measured"}, {"name", name}, {"value", value}, {"unit", unit}});
}

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
