#include "data/pipeline/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "data/pipeline/copies.h"
#include "data/pipeline/workspace.h"

namespace tokamak {

namespace {

// The values that `document` has beyond `before`.
std::vector<DocumentValue> new_values(const std::vector<DocumentValue>& before, const Document& document) {
  std::vector<DocumentValue> values;
  for (const DocumentValue& value : document.values) {
    const bool is_old = std::any_of(before.begin(), before.end(), [&](const DocumentValue& old) {
      return old.name == value.name && old.value == value.value;
    });
    if (!is_old) values.push_back(value);
  }
  return values;
}

// Finds the document among those that a step has kept, and does what the search after it said.
std::optional<StageVerdict> verdict_of_search(const Workspace& work, size_t step, size_t part, Document& document) {
  if (!exists(work.copies_of_part(step, part))) return std::nullopt;
  const PrepareStage& stage = *work.steps()[step].copies;
  CopyFilter filter(stage, work.copies_of_part(step, part));
  PrepareCounts counts;
  Document other;
  for (const auto reader = work.open(step + 1, part); reader->next(other);) {
    const std::vector<DocumentValue> before = other.values;
    const bool is_kept = filter.keep(other, counts);
    if (other.id != document.id) continue;
    document = std::move(other);
    return StageVerdict{name_of(stage), is_kept, document.reason, new_values(before, document),
                        std::ssize(document.text)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Explanation> explain(const PrepareOptions& options, const std::string& tool, const std::string& id) {
  const Workspace work(options, tool);
  Document document;
  size_t part = 0;
  for (; part < work.parts().size(); ++part) {
    const auto reader = work.open(0, part);
    bool is_found = false;
    try {
      while (!is_found && reader->next(document)) is_found = document.id == id || document.url == id;
    } catch (const Error& error) {
      if (error.kind() != Kind::kData || options.damaged == DamagedFiles::kStop) throw;
    }
    if (is_found) break;
  }
  if (part == work.parts().size()) return std::nullopt;

  Explanation out;
  out.file = work.files()[work.parts()[part].file].path;
  const auto run = [&](const std::string& name, Stage& stage) {
    const std::vector<DocumentValue> before = document.values;
    document.reason.clear();
    const bool is_kept = stage.run(document);
    out.stages.push_back({name, is_kept, document.reason, new_values(before, document), std::ssize(document.text)});
  };
  if (document.dropped) {
    out.stages.push_back({"input", false, document.reason, {}, document.text_bytes});
  } else {
    run("extract", *work.maker().make_extraction());
    for (size_t step = 0; step < work.steps().size(); ++step) {
      const PrepareStep& stages = work.steps()[step];
      for (size_t i = stages.first; i < stages.end; ++i) run(name_of(options.stages[i]), *work.maker().make(i));
      if (stages.copies == nullptr) continue;
      const StageVerdict unknown = {.stage = name_of(*stages.copies), .is_known = false};
      out.stages.push_back(verdict_of_search(work, step, part, document).value_or(unknown));
    }
  }
  out.document = std::move(document);
  return out;
}

}  // namespace tokamak
