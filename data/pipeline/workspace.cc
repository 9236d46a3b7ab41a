#include "data/pipeline/workspace.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strings.h"
#include "data/dataset_writer.h"
#include "data/pipeline/copies.h"
#include "data/pipeline/option_text.h"

namespace tokamak {

namespace {

constexpr int64_t kAnyLength = int64_t{1} << 40;

std::vector<PrepareStep> steps_of(const PrepareOptions& options) {
  const std::vector<PrepareStage>& stages = options.stages;
  std::vector<PrepareStep> steps(1);
  for (size_t i = 0; i < stages.size(); ++i) {
    if (!finds_copies(stages[i])) {
      steps.back().end = i + 1;
      continue;
    }
    steps.back().copies = &stages[i];
    steps.push_back({i + 1, i + 1, nullptr});
  }
  // A tokenizer is trained on the documents of the last stage, and encodes them in a step of its own.
  if (options.tokens.train_vocab_size > 0) steps.push_back({stages.size(), stages.size(), nullptr});
  return steps;
}

std::string work_of(const PrepareOptions& options) {
  return options.work.empty() ? without_slash(options.output) + ".work" : options.work;
}

bool is_inside(const std::string& path, const std::string& directory) {
  namespace fs = std::filesystem;
  const std::string inner = fs::weakly_canonical(path).string() + "/";
  return inner.starts_with(without_slash(fs::weakly_canonical(directory).string()) + "/");
}

// Another run over the same input would read what this one has written.
void check_places(const PrepareOptions& options, const std::string& work) {
  if (is_inside(work, options.output)) {
    fail(Kind::kConfig, str("the work directory ", work, " is inside of the output ", options.output),
         "name another work");
  }
  for (const std::string& input : options.inputs)
    for (const std::string& place : {options.output, work})
      if (is_directory(input) && is_inside(place, input))
        fail(Kind::kConfig, str(place, " is inside of the input ", input), "name another output and work");
}

// Changes with every edit of the file, as far as its size and times tell.
std::string state_of(const CorpusFile& file) {
  struct stat status {};
  if (stat(file.path.c_str(), &status) != 0) fail(Kind::kData, "cannot read the time of " + file.path);
  return str(file.path, "\n", file.bytes, " ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, "\n");
}

}  // namespace

Workspace::Workspace(const PrepareOptions& options, const std::string& tool)
    : options_(options),
      tool_(tool),
      files_(find_corpus(options.inputs)),
      parts_(parts_of(files_, options.part_bytes)),
      steps_(steps_of(options)),
      maker_(options),
      work_(work_of(options)) {
  check_places(options, work_);
  if (parts_.empty()) fail(Kind::kData, "the input files are empty");
  if (parts_.size() >= UINT32_MAX) fail(Kind::kConfig, "there are too many parts; set a larger part_bytes");
  if (!options.tokens.tokenizer.empty()) open_tokenizer(options.tokens.tokenizer);
  name_folders();
}

void Workspace::open_tokenizer(const std::string& path) {
  tokenizer_ = load_tokenizer(path, {.eos = options_.tokens.eos});
  if (tokenizer_->eos_id() >= 0) return;
  fail(Kind::kData, str("tokenizer ", path, " has no token that ends documents"), "name it by tokens.eos");
}

void Workspace::name_folders() {
  std::string all = str(tool_, "\n", options_.text_key, "\n", options_.part_bytes, " ", options_.document_bytes, " ",
                        enum_name(options_.damaged), " ", options_.keep_dropped, "\n", option_text(options_.extract));
  for (const CorpusFile& file : files_) all += state_of(file);
  const auto hash = [&] { return xxh3_128_hex(std::as_bytes(std::span(all))); };
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (size_t stage = steps_[i].first; stage < steps_[i].end; ++stage) all += maker_.identity(stage);
    if (steps_[i].copies != nullptr) all += maker_.identity(steps_[i].end);
    if (is_last(i) && options_.tokens.train_vocab_size > 0) {
      all += str(" ", options_.tokens.train_vocab_size);
      trained_tokenizer_ = str(work_, "/tokenizer-", hash().substr(0, 12), "/tokenizer.model");
    }
    if (is_last(i) && tokenizer_ != nullptr) all += str(tokenizer_->hash(), " ", tokenizer_->eos_id());
    if (is_last(i)) all += str(" ", options_.seed, " ", option_text(options_.tokens));
    const auto folder = [&](const char* name) { return str(work_, "/", i, "-", name, "-", hash().substr(0, 12)); };
    folders_.push_back({folder("documents"), folder("pairs"), folder("copies")});
  }
  identity_ = hash();
  shards_ = str(work_, "/shards-", identity_.substr(0, 12));
}

const std::string& Workspace::source_of(size_t part) const { return options_.inputs[files_[parts_[part].file].source]; }

std::unique_ptr<CorpusReader> Workspace::open(size_t step, size_t part) const {
  if (step == 0) {
    const CorpusPart& its = parts_[part];
    return open_corpus_part(files_[its.file], its.bytes, {options_.text_key, options_.document_bytes});
  }
  return open_corpus_part({.path = this->part(step - 1, part) + part_files::kKept}, {}, {.document_bytes = kAnyLength});
}

std::string Workspace::part(size_t step, size_t part) const { return str(documents(step), "/", part_name(part)); }

std::string Workspace::copies_of_part(size_t step, size_t part) const {
  return copies_file(copies(step) + "/all", part);
}

}  // namespace tokamak
