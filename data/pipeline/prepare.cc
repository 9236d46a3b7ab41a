#include "data/pipeline/prepare.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "data/pipeline/copies.h"
#include "data/pipeline/part_writer.h"
#include "data/pipeline/shuffle.h"
#include "data/pipeline/workspace.h"
#include "tokenizer/train.h"

namespace tokamak {

namespace {

constexpr const char* kReport = "/report.json";

// Another name for a file, or a copy of it on another file system.
void link_or_copy(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  if (!error) return;
  const InputFile input(from, Kind::kData);
  OutputFile output(to, Kind::kData);
  std::vector<std::byte> block(size_t{1} << 20);
  while (output.size() < input.size()) {
    block.resize(static_cast<size_t>(std::min<int64_t>(std::ssize(block), input.size() - output.size())));
    input.read_at(output.size(), block);
    output.write(block);
  }
  output.sync();
  output.close();
}

class Preparation {
 public:
  Preparation(Workspace& work, const PrepareContext& context) : work_(work), context_(context) {}

  void run() {
    for (size_t step = 0; step < work_.steps().size(); ++step) {
      if (work_.is_last(step) && !work_.trained_tokenizer().empty()) train_tokenizer_before(step);
      run_documents(step);
      if (work_.steps()[step].copies != nullptr) find_copies(step);
    }
    if (work_.tokenizer() != nullptr) make_shards();
    run_all("the output",
            {{without_slash(work_.options().output), [&](const std::string& staging) { write_output(staging); }}});
  }

 private:
  void run_all(const std::string& what, const std::vector<Task>& tasks, int64_t total_bytes = 0);
  void run_documents(size_t step);
  void run_part(size_t step, size_t part, const std::string& staging);
  void find_copies(size_t step);
  void train_tokenizer_before(size_t step);
  void make_shards();
  void write_shard(std::span<const RunFile> runs, KeySpan span, const std::string& staging) const;
  void write_output(const std::string& staging) const;
  std::vector<RunFile> runs_of(const char* set) const;
  Manifest collect(const char* set, int64_t left, const std::string& directory) const;

  int64_t memory_of_thread() const { return work_.options().memory / std::max<int64_t>(1, context_.share.threads); }

  Workspace& work_;
  const PrepareContext& context_;
  std::atomic<int64_t> bytes_ = 0, documents_ = 0;  // of this process in the current step
};

void Preparation::run_all(const std::string& what, const std::vector<Task>& tasks, int64_t total_bytes) {
  for (const Task& task : tasks) make_directories(parent_directory(task.output), Kind::kData);
  bytes_ = documents_ = 0;
  run_tasks(tasks, context_.share, [&](const TaskProgress& progress) {
    if (context_.progress) context_.progress({what, progress, bytes_, total_bytes, documents_});
  });
}

void Preparation::run_part(size_t step, size_t part, const std::string& staging) {
  struct MadeStage {
    std::unique_ptr<Stage> stage;
    std::string name;
    bool removes_text;
  };
  std::vector<MadeStage> stages;
  if (step == 0) stages.push_back({work_.maker().make_extraction(), "extract", false});
  for (size_t i = work_.steps()[step].first; i < work_.steps()[step].end; ++i) {
    const PrepareStage& stage = work_.options().stages[i];
    const bool removes_text = std::holds_alternative<C4Stage>(stage) || std::holds_alternative<ClassifyStage>(stage);
    stages.push_back({work_.maker().make(i), name_of(stage), removes_text});
  }
  std::optional<CopyFilter> filter;
  if (step > 0 && work_.steps()[step - 1].copies != nullptr)
    filter.emplace(*work_.steps()[step - 1].copies, work_.copies_of_part(step - 1, part));
  PartWriter writer(work_, step, part, memory_of_thread(), staging);
  const std::unique_ptr<CorpusReader> reader = work_.open(step, part);
  const std::string& source = work_.source_of(part);
  PrepareCounts counts;
  Document document;

  const auto next = [&] {
    try {
      return reader->next(document);
    } catch (const Error& error) {
      if (step > 0 || error.kind() != Kind::kData || work_.options().damaged == DamagedFiles::kStop) throw;
      counts.damaged_file(error.what());
      return false;
    }
  };
  const auto is_kept = [&] {
    if (document.dropped && step > 0) {  // a search counts documents, so none may be missing
      fail(Kind::kData, str(work_.part(step - 1, part), ": document ", document.id, " is damaged: ", document.reason),
           "remove the directory, and run again");
    }
    if (document.dropped || (filter && !filter->keep(document, counts))) return false;
    for (const MadeStage& made : stages) {
      const int64_t before = std::ssize(document.text);
      if (!made.stage->run(document)) return false;
      if (made.removes_text && std::ssize(document.text) < before)
        counts.removed(made.name, before - std::ssize(document.text));
    }
    return true;
  };
  int64_t position = step == 0 ? work_.parts()[part].bytes.begin : 0;
  while (next()) {
    if (step == 0) counts.read(source, document.text_bytes);
    if (is_kept()) {
      if (work_.is_last(step)) counts.wrote(source, document);
      writer.keep(document, counts);
    } else {
      counts.dropped(source, document, document.text_bytes);
      writer.drop(document);
    }
    ++documents_;
    bytes_ += reader->file_position() - position;
    position = reader->file_position();
  }
  writer.finish(counts);
}

void Preparation::run_documents(size_t step) {
  std::vector<Task> tasks;
  int64_t bytes = 0;  // of this process's tasks that are to be done
  for (size_t part = 0; part < work_.parts().size(); ++part) {
    tasks.push_back({work_.part(step, part), [=, this](const std::string& staging) { run_part(step, part, staging); }});
    if (static_cast<int64_t>(part) % context_.share.ranks != context_.share.rank || exists(tasks.back().output))
      continue;
    bytes += step == 0 ? work_.parts()[part].bytes.size()
                       : InputFile(work_.part(step - 1, part) + part_files::kKept, Kind::kData).size();
  }
  run_all(str("documents, step ", step + 1, " of ", work_.steps().size()), tasks, bytes);
}

void Preparation::find_copies(size_t step) {
  const PrepareStage& stage = *work_.steps()[step].copies;
  const CopyKeys keys(stage);
  std::vector<BandFile> files;
  for (size_t part = 0; part < work_.parts().size(); ++part)
    files.emplace_back(work_.part(step, part) + part_files::kKeys);
  const BandRule rule = keys.rule();
  const uint64_t most = uint64_t{1} << std::min<int64_t>(rule.prefix_bits, 32);
  // The number of ranges depends on the memory of a thread, and ranks may have more or fewer threads. So one decides.
  const std::string decision = work_.pairs(step) + "/ranges";
  run_all(str("the plan of ", name_of(stage)), {{decision, [&](const std::string& staging) {
                                                   const uint64_t wanted = ranges_for(files, memory_of_thread());
                                                   write_text_atomically(staging + "/count",
                                                                         str(std::min(wanted, most)), Kind::kData);
                                                 }}});
  const uint64_t ranges = std::strtoull(read_text(decision + "/count", Kind::kData).c_str(), nullptr, 10);
  if (!std::has_single_bit(ranges) || ranges > most)
    fail(Kind::kData, decision + "/count is damaged", "remove its directory, and run again");

  std::vector<Task> tasks;
  std::vector<std::string> pair_files;
  for (int64_t band = 0; band < keys.bands(); ++band) {
    for (uint64_t range = 0; range < ranges; ++range) {
      const std::string path = str(work_.pairs(step), "/band-", band, "-", range, "-of-", ranges);
      pair_files.push_back(path + "/pairs");
      tasks.push_back({path, [&files, &rule, band, range, ranges](const std::string& staging) {
                         write_pairs(files, band, {range, ranges}, rule, staging + "/pairs");
                       }});
    }
  }
  run_all(str("pairs by ", name_of(stage)), tasks);
  const auto join = [&](const std::string& staging) { write_copies(stage, files, pair_files, staging); };
  run_all(str("copies by ", name_of(stage)), {{parent_directory(work_.copies_of_part(step, 0)), join}});
}

void Preparation::train_tokenizer_before(size_t step) {
  const std::string& path = work_.trained_tokenizer();
  const auto train = [&](const std::string& staging) {
    size_t part = 0;
    std::unique_ptr<CorpusReader> reader;
    Document document;
    size_t at = std::string::npos;  // of the next line in its text
    const auto next = [&](std::string& line) {
      while (at == std::string::npos || at > document.text.size()) {
        while (!reader || !reader->next(document)) {
          if (part == work_.parts().size()) return false;
          reader = work_.open(step, part++);
        }
        at = 0;
      }
      const size_t end = std::min(document.text.find('\n', at), document.text.size());
      line.assign(document.text, at, end - at);
      at = end + 1;
      return true;
    };
    train_tokenizer(next, {.vocab_size = work_.options().tokens.train_vocab_size}, staging + "/tokenizer.model");
  };
  run_all("the tokenizer", {{parent_directory(path), train}});
  work_.open_tokenizer(path);
}

std::vector<RunFile> Preparation::runs_of(const char* set) const {
  std::vector<RunFile> runs;
  for (size_t part = 0; part < work_.parts().size(); ++part) {
    const std::string directory = work_.part(work_.steps().size() - 1, part);
    for (const std::string& name : list_directory(directory, Kind::kData))
      if (starts_with(name, str(set, "-"))) runs.emplace_back(str(directory, "/", name));
  }
  return runs;
}

void Preparation::make_shards() {
  const int64_t shard_tokens = work_.options().tokens.shard_tokens;
  std::vector<RunFile> runs[std::size(kSets)];
  std::vector<Task> tasks;
  for (size_t set = 0; set < std::size(kSets); ++set) {
    runs[set] = runs_of(kSets[set]);
    int64_t tokens = 0;
    for (const RunFile& run : runs[set]) tokens += run.tokens();
    const auto shards = static_cast<uint64_t>(tokens / shard_tokens + (tokens % shard_tokens > 0 ? 1 : 0));
    for (uint64_t shard = 0; shard < shards; ++shard)
      tasks.push_back({str(work_.shards(), "/", kSets[set], "-", part_name(shard)),
                       [this, &of_set = runs[set], shard, shards](const std::string& staging) {
                         write_shard(of_set, key_span(shard, shards), staging);
                       }});
  }
  run_all("shards", tasks);
}

// A data set of one shard, or nothing if the span has no document.
void Preparation::write_shard(std::span<const RunFile> runs, KeySpan span, const std::string& staging) const {
  const Tokenizer& tokenizer = *work_.tokenizer();
  Manifest head;
  head.vocab_size = tokenizer.vocab_size();
  head.tokenizer = {std::filesystem::path(tokenizer.path()).filename(), tokenizer.hash(), ""};
  head.eos_id = tokenizer.eos_id();
  head.tool = context_.tool;
  DatasetWriter writer(staging, head, INT64_MAX);
  merge_runs(runs, span, memory_of_thread(), writer);
  if (writer.documents() > 0) writer.finish();
}

// Gathers the shards of a set under `directory`, as one data set. `left`: documents of all sets.
Manifest Preparation::collect(const char* set, int64_t left, const std::string& directory) const {
  make_directories(directory, Kind::kData);
  Manifest all;
  const std::vector<std::string> names =
      exists(work_.shards()) ? list_directory(work_.shards(), Kind::kData) : std::vector<std::string>{};
  for (const std::string& name : names) {
    const std::string shard = str(work_.shards(), "/", name);
    if (!starts_with(name, str(set, "-part-")) || name.find('.') != name.npos) continue;  // "." : left by a killed run
    if (!exists(str(shard, "/", kDatasetManifest))) continue;
    const Manifest one = read_manifest(shard);
    std::vector<ShardInfo> shards = std::move(all.shards);
    const int64_t text_bytes = all.text_bytes;
    all = one;
    all.shards = std::move(shards);
    all.shards.push_back(one.shards.front());
    all.shards.back().name = part_name(all.shards.size() - 1);
    all.text_bytes += text_bytes;
    for (const char* extension : {".bin", ".idx", ".sum"})
      link_or_copy(str(shard, "/", one.shards.front().name, extension),
                   str(directory, "/", all.shards.back().name, extension));
  }
  if (all.shards.empty()) {
    fail(Kind::kData, str("the ", set, " set would be empty: ", left, " documents are left, and none is for it"),
         left > 0 ? str("tokens.validation is ", work_.options().tokens.validation)
                  : str("the counts in ", work_.documents(0), " tell what dropped them"));
  }
  all.tokenizer.file = work_.tokenizer()->copy_files(directory);
  sync_directory(directory, Kind::kData);
  write_manifest(directory, all);
  return all;
}

void Preparation::write_output(const std::string& staging) const {
  PrepareReport report;
  report.identity = work_.identity();
  report.tool = context_.tool;
  report.models = work_.maker().read_files();
  report.files = std::ssize(work_.files());
  for (const CorpusFile& file : work_.files()) report.bytes += file.bytes, report.inputs[file.path] = file.bytes;
  const auto each_part = [&](const auto& take) {
    for (size_t step = 0; step < work_.steps().size(); ++step)
      for (size_t part = 0; part < work_.parts().size(); ++part) take(step, part);
  };
  each_part([&](size_t step, size_t part) {
    const std::string path = work_.part(step, part) + part_files::kCounts;
    report.counts += PrepareCounts::parse(read_text(path, Kind::kData), path);
  });
  const int64_t left = sum_of(report.counts.written()).documents;
  if (left == 0) log::warning("no document is left; the report tells what dropped them");
  if (work_.tokenizer() != nullptr) {
    report.train = collect("train", left, staging + "/train");
    if (work_.options().tokens.validation > 0) report.validation = collect("validation", left, staging + "/validation");
  } else {
    make_directories(staging + "/documents", Kind::kData);
    for (size_t part = 0; part < work_.parts().size(); ++part)
      link_or_copy(work_.part(work_.steps().size() - 1, part) + part_files::kKept,
                   str(staging, "/documents/", part_name(part), ".jsonl.zst"));
    sync_directory(staging + "/documents", Kind::kData);
  }
  if (work_.options().keep_dropped) {
    make_directories(staging + "/dropped", Kind::kData);
    each_part([&](size_t step, size_t part) {
      link_or_copy(work_.part(step, part) + part_files::kDropped,
                   str(staging, "/dropped/step-", step + 1, "-", part_name(part), ".jsonl.zst"));
    });
    sync_directory(staging + "/dropped", Kind::kData);
  }
  write_text_atomically(staging + "/config.yaml", context_.config, Kind::kData);
  write_text_atomically(staging + kReport, report.json(), Kind::kData);
  if (context_.add_files) context_.add_files(staging, report);
}

nlohmann::json read_report_json(const std::string& output) {
  const std::string path = output + kReport;
  return exists(path) ? nlohmann::json::parse(read_text(path, Kind::kData), nullptr, false) : nlohmann::json();
}

// Whether `output` is what this run would write. An empty directory goes: tasks take what exists for done.
bool is_made(const std::string& output, const std::string& identity) {
  std::error_code ignored;
  if (is_empty_directory(output)) std::filesystem::remove(output, ignored);
  if (!exists(output)) return false;
  const nlohmann::json report = read_report_json(output);
  if (report.is_object() && report.contains("identity") && report["identity"] == identity) return true;
  fail(Kind::kConfig, str("the output ", output, " exists, and another config, input or version made it"),
       "name another output, or remove it");
}

PrepareReport read_report(const std::string& output) {
  PrepareReport report;
  const nlohmann::json json = read_report_json(output);
  try {
    json.at("identity").get_to(report.identity), json.at("tool").get_to(report.tool);
    json.at("files").get_to(report.files), json.at("bytes").get_to(report.bytes);
    json.at("inputs").get_to(report.inputs), json.at("models").get_to(report.models);
    report.counts = PrepareCounts::parse(json.at("counts").dump(), output + kReport);
  } catch (const nlohmann::json::exception& e) {
    fail(Kind::kData, str(output, kReport, " is damaged: ", e.what()), "remove the output, and run again");
  }
  if (exists(output + "/train")) report.train = read_manifest(output + "/train");
  if (exists(output + "/validation")) report.validation = read_manifest(output + "/validation");
  return report;
}

}  // namespace

std::string PrepareReport::json() const {
  const nlohmann::json out = {{"identity", identity},
                              {"tool", tool},
                              {"files", files},
                              {"bytes", bytes},
                              {"inputs", inputs},
                              {"models", models},
                              {"counts", nlohmann::json::parse(counts.json())}};
  return out.dump(1) + "\n";
}

PrepareReport prepare(const PrepareOptions& options, const PrepareContext& context) {
  Workspace work(options, context.tool);
  if (is_made(options.output, work.identity()))
    log::info(options.output, " is finished already");
  else
    Preparation(work, context).run();
  return read_report(options.output);
}

}  // namespace tokamak
