// The plan of a run of `tokamak data prepare`, and where each of its results lies in the work directory. Ranks that
// have the same plan share the work.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/pipeline/corpus.h"
#include "data/pipeline/corpus_reader.h"
#include "data/pipeline/prepare_options.h"
#include "data/pipeline/stages.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

// Stages that look at one document, and the search for copies after them; none after the last step.
struct PrepareStep {
  size_t first = 0, end = 0;
  const PrepareStage* copies = nullptr;
};

// The files of a part's task.
namespace part_files {
inline constexpr const char* kKept = "/kept.jsonl.zst";  // of all steps but the last, unless documents are written
inline constexpr const char* kDropped = "/dropped.jsonl.zst";
inline constexpr const char* kCounts = "/counts.json";
inline constexpr const char* kKeys = "/keys";  // for the search that follows
}  // namespace part_files

// The data sets of a run.
inline constexpr const char* kSets[] = {"train", "validation"};

class Workspace {
 public:
  // Finds the inputs and reads models and tokenizer. `tool`: the program's version, which is part of the identity.
  Workspace(const PrepareOptions& options, const std::string& tool);

  const PrepareOptions& options() const { return options_; }
  const std::vector<CorpusFile>& files() const { return files_; }
  const std::vector<CorpusPart>& parts() const { return parts_; }
  const std::vector<PrepareStep>& steps() const { return steps_; }
  bool is_last(size_t step) const { return step + 1 == steps_.size(); }
  const StageMaker& maker() const { return maker_; }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // nullptr: documents are written
  // The path of a tokenizer that is trained before the last step, and then opened; "": none is.
  const std::string& trained_tokenizer() const { return trained_tokenizer_; }
  void open_tokenizer(const std::string& path);
  const std::string& identity() const { return identity_; }  // of the whole run
  const std::string& source_of(size_t part) const;           // the input that named its file

  // The documents of a part before a step.
  std::unique_ptr<CorpusReader> open(size_t step, size_t part) const;

  // Folders of tasks. Their names end in a hash of all that decides what is in them.
  const std::string& documents(size_t step) const { return folders_[step].documents; }
  const std::string& pairs(size_t step) const { return folders_[step].pairs; }
  const std::string& copies(size_t step) const { return folders_[step].copies; }
  const std::string& shards() const { return shards_; }
  std::string part(size_t step, size_t part) const;            // the result of a part's task
  std::string copies_of_part(size_t step, size_t part) const;  // the list that the search of a step has made

 private:
  void name_folders();

  struct Folders {
    std::string documents, pairs, copies;
  };
  const PrepareOptions& options_;
  const std::string tool_;
  const std::vector<CorpusFile> files_;
  const std::vector<CorpusPart> parts_;
  const std::vector<PrepareStep> steps_;
  const StageMaker maker_;
  const std::string work_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string trained_tokenizer_;
  std::string identity_;
  std::vector<Folders> folders_;  // by step
  std::string shards_;
};

}  // namespace tokamak
