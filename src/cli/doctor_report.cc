#include "cli/doctor_report.h"

#include <iomanip>

namespace tokamak::cli {

namespace {

nlohmann::ordered_json check_json(const doctor::CheckResult& check) {
  nlohmann::ordered_json notes = nlohmann::ordered_json::array(), ranks = nlohmann::ordered_json::array();
  for (const doctor::Note& note : check.notes) {
    notes.push_back({{"status", doctor::name_of(note.status)}, {"host", note.host}, {"text", note.text}});
  }
  for (const doctor::Facts& facts : check.ranks) ranks.push_back(facts.all());
  return {{"name", check.name},   {"status", doctor::name_of(check.status)},
          {"value", check.value}, {"seconds", check.seconds},
          {"notes", notes},       {"ranks", ranks}};
}

}  // namespace

void print(std::ostream& out, const doctor::CheckResult& check) {
  out << std::left << std::setw(9) << doctor::name_of(check.status) << std::setw(13) << check.name << check.value
      << "\n";
  for (const doctor::Note& note : check.notes) {
    out << "         " << std::setw(13) << "" << doctor::name_of(note.status) << ": " << note.text << "\n";
  }
  out.flush();
}

void print_end(std::ostream& out, const doctor::DoctorReport& report) {
  const std::vector<std::string> suspects = report.suspects();
  const char* const verdict = report.exit_code() != 0                    ? "do not start"
                              : report.status() == doctor::Status::kWarn ? "may start; see the warnings"
                                                                         : "may start";
  for (const std::string& library : report.gpu_libraries) {
    out << "         " << std::setw(13) << "library" << library << "\n";
  }
  out << report.ranks << " rank(s) on " << report.hosts.size() << " host(s), " << fixed(report.seconds, 1)
      << " s: " << verdict << (suspects.empty() ? "" : "; suspects: " + join(suspects, " ")) << "\n";
}

nlohmann::ordered_json as_json(const doctor::DoctorReport& report, const std::string& version) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const doctor::CheckResult& check : report.checks) checks.push_back(check_json(check));
  return {{"version", version},
          {"status", doctor::name_of(report.status())},
          {"exit_code", report.exit_code()},
          {"ranks", report.ranks},
          {"hosts", report.hosts},
          {"seconds", report.seconds},
          {"checks", checks},
          {"gpu_libraries", report.gpu_libraries},
          {"suspects", report.suspects()}};
}

}  // namespace tokamak::cli
