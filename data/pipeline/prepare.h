// tokamak data prepare: a corpus goes through the stages of a config and becomes shards, or documents.
//
// Stages that look at one document are run together, part by part. A search for copies needs all parts, and cuts the
// stages into steps. A step is tasks whose results are directories (tasks.h), named by a hash of all that decides them
// (workspace.h). So a stopped run continues, and a run with another last stage takes what the first stages have made.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "data/manifest.h"
#include "data/pipeline/counts.h"
#include "data/pipeline/prepare_options.h"
#include "data/pipeline/tasks.h"

namespace tokamak {

struct PrepareProgress {
  std::string step;  // "documents, step 1 of 2", "copies by minhash", "shards"
  TaskProgress tasks;
  // By this process in the step:
  int64_t bytes = 0;        // read from the inputs
  int64_t total_bytes = 0;  // that are to be read; 0: the step reads no documents
  int64_t documents = 0;    // read
};

struct PrepareReport {
  std::string identity;                       // hash of inputs and config
  std::string tool;                           // that made it
  int64_t files = 0, bytes = 0;               // of the inputs
  std::map<std::string, int64_t> inputs;      // bytes of each file
  std::map<std::string, std::string> models;  // files that stages read, with a hash of each
  PrepareCounts counts;
  std::optional<Manifest> train, validation;  // none if documents were written

  std::string json() const;
};

struct PrepareContext {
  Share share;
  std::string tool;    // recorded in manifests
  std::string config;  // the resolved config, written beside the output
  std::function<void(const PrepareProgress&)> progress;
  // Adds files to the finished output, before it appears.
  std::function<void(const std::string& staging, const PrepareReport& report)> add_files;
};

// Writes options.output, unless an equal run has written it:
//
//   train/ validation/    data sets; or documents/ without a tokenizer
//   dropped/              documents with their reasons, if asked for
//   config.yaml  report.json
//
// Error(kConfig) if the output is something else, Error(kData) for a damaged input.
PrepareReport prepare(const PrepareOptions& options, const PrepareContext& context);

}  // namespace tokamak
