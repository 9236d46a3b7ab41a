#include "checkpoint/inspect.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/file.h"
#include "base/printable.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"

namespace tokamak {

namespace {

// Recognizes a step's directory by its manifest or, if that is lost, by its name.
bool is_step(const std::string& path) {
  const std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
  return exists(path + "/" + kManifestName) || parse_step_name(trimmed.substr(trimmed.rfind('/') + 1)).has_value();
}

CheckpointStore store_with_steps(const std::string& path) {
  CheckpointStore store = store_at(path);
  if (store.steps().empty()) {
    fail(Kind::kCheckpoint, "there is no checkpoint in " + path,
         "Give a directory step-NNNNNNNN, the directory 'checkpoints' that holds them, or a run's.");
  }
  return store;
}

// "KIND (BF16)", or the name alone for F32. Ignores unreadable files, which verify reports.
std::vector<std::string> kinds_with_dtypes(const CheckpointReader& reader) {
  std::vector<std::string> kinds = reader.manifest().kinds;
  try {
    for (std::string& kind : kinds) {
      const std::string dtype = reader.stored_dtype(kind);
      if (dtype != "F32") kind += str(" (", dtype, ")");
    }
  } catch (const Error&) {
    return reader.manifest().kinds;
  }
  return kinds;
}

void verify_one(const std::function<CheckpointReader()>& open, const std::function<void(const std::string&)>& line,
                std::vector<std::string>& problems) {
  const auto found = [&](const std::string& problem) {
    line(problem);
    problems.push_back(problem);
  };
  try {
    const CheckpointReader reader = open();
    const CheckpointManifest& manifest = reader.manifest();
    line(str(reader.directory(), "/", kManifestName, "  ok"));
    for (size_t i = 0; i < manifest.files.size(); ++i) {
      const std::string problem = reader.file_problem(i);
      if (!problem.empty()) {
        found(problem);
      } else {
        line(str(reader.directory(), "/", manifest.files[i].name, "  ok  ", human_bytes(manifest.files[i].bytes)));
      }
    }
  } catch (const Error& error) {  // its manifest is damaged
    found(error.what());
  }
}

std::string describe_checkpoint(const CheckpointReader& reader) {
  const CheckpointManifest& m = reader.manifest();
  std::ostringstream out;
  size_t params = 0, widest = 0;
  for (const SavedUnit& unit : m.units) {
    params += unit.params.size();
    for (const SavedParam& param : unit.params) widest = std::max(widest, printable(param.name).size());
  }
  out << reader.directory() << "\n"
      << "  step         " << m.point.state.step << "\n"
      << "  tokens       " << m.point.state.tokens << "\n"
      << "  next sample  " << m.point.state.next_sample << "\n";
  for (const LeftOut& range : m.point.state.left_out) out << "  left out     " << printable(range.text(), 200) << "\n";
  out << "  seed         " << m.point.seed << "\n"
      << "  written      " << printable(m.created) << " by Tokamak " << printable(m.tool) << ", "
      << printable(m.incarnation) << "\n"
      << "  world size   " << m.world_size << "\n"
      << "  files        " << m.files.size() << ", " << human_bytes(m.total_bytes()) << "\n"
      << "  state        " << printable(join(kinds_with_dtypes(reader), ", ")) << "\n"
      << "  parameters   " << m.param_elements() << " (" << human_count(double(m.param_elements())) << ") in " << params
      << " tensors\n";
  for (const SavedUnit& unit : m.units) {
    for (const SavedParam& param : unit.params) {
      out << "    " << std::left << std::setw(static_cast<int>(widest) + 2) << printable(param.name) << std::right
          << std::setw(16) << param.shape_text() << std::setw(14) << param.count() << "\n";
    }
  }
  return out.str();
}

}  // namespace

std::string inspect_checkpoints(const std::string& path) {
  if (is_step(path)) return describe_checkpoint(CheckpointReader::open(path));
  const CheckpointStore store = store_with_steps(path);
  std::ostringstream out;
  out << std::left << std::setw(16) << "checkpoint" << std::right << std::setw(16) << "tokens" << std::setw(8)
      << "files" << std::setw(13) << "size"
      << "  written\n";
  for (const int64_t step : store.steps()) {
    out << std::left << std::setw(16) << step_name(step) << std::right;
    try {
      const CheckpointReader reader = store.open(step);
      const CheckpointManifest& m = reader.manifest();
      out << std::setw(16) << m.point.state.tokens << std::setw(8) << m.files.size() << std::setw(13)
          << human_bytes(m.total_bytes()) << "  " << printable(m.created) << "\n";
    } catch (const Error& error) {
      out << "  damaged: " << error.what() << "\n";
    }
  }
  for (const std::string& name : store.unfinished()) out << name << "  (unfinished save)\n";
  for (const std::string& name : store.set_aside()) out << name << "  (set aside)\n";
  return out.str();
}

void verify_checkpoints(const std::string& path, const std::function<void(const std::string&)>& line) {
  std::vector<std::string> problems;
  if (is_step(path)) {
    verify_one([&] { return CheckpointReader::open(path); }, line, problems);
  } else {
    const CheckpointStore store = store_with_steps(path);
    for (const int64_t step : store.steps()) {
      verify_one([&] { return store.open(step); }, line, problems);
    }
  }
  if (!problems.empty()) fail(Kind::kCheckpoint, join(problems, "; "));
}

}  // namespace tokamak
