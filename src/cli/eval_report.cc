#include "cli/eval_report.h"

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/strings.h"

namespace tokamak::cli {

using Json = nlohmann::ordered_json;

std::string eval_table(const EvalReport& report) {
  std::ostringstream out;
  const auto row = [&](const std::string& task, const std::string& items, const std::string& metric,
                       const std::string& value) {
    out << std::left << std::setw(24) << task << std::right << std::setw(8) << items << "  " << std::left
        << std::setw(18) << metric << std::right << std::setw(14) << value << "\n";
  };
  row("task", "items", "metric", "value");
  for (const EvalResult& result : report.results) {
    for (const NamedValue& one : result.values) {
      row(result.options.display_name(), str(result.samples.size()), one.name, significant(one.value, 6));
    }
  }
  return out.str();
}

std::string eval_json(const EvalReport& report) {
  Json results = Json::object();
  for (const EvalResult& result : report.results) {
    Json& task = results[result.options.display_name()];
    for (const NamedValue& one : result.values) task[one.name] = one.value;
    task["items"] = result.samples.size();
    task["file"] = result.options.path;
    task["limit"] = result.options.limit;
    task["seconds"] = result.seconds;
  }
  return Json{{"weights", report.weights}, {"tokenizer", report.tokenizer}, {"dtype", report.dtype},
              {"context", report.context}, {"add_bos", report.add_bos},     {"ranks", report.ranks},
              {"results", results}}
             .dump(2) +
         "\n";
}

std::string eval_samples(const std::vector<EvalResult>& results) {
  std::string out;
  for (const EvalResult& result : results) {
    for (size_t item = 0; item < result.samples.size(); ++item) {
      out += Json{{"task", result.options.display_name()}, {"item", item}, {"log_likelihoods", result.samples[item]}}
                 .dump() +
             "\n";
    }
  }
  return out;
}

}  // namespace tokamak::cli
