#include "data/prepare/tokenize.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel_for.h"
#include "base/rng.h"
#include "base/strings.h"
#include "data/dataset_writer.h"
#include "data/prepare/stage_pool.h"
#include "data/text/text_batches.h"

namespace tokamak {

namespace {

void check_options(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const auto range = [](bool good, const std::string& what) {
    if (!good) fail(Kind::kConfig, what);
  };
  range(!options.inputs.empty(), "there is no input");
  range(options.validation_fraction >= 0 && options.validation_fraction < 1,
        str("the validation share is ", options.validation_fraction, "; it must be at least 0 and below 1"));
  range(options.shard_tokens > 0, str("a shard of ", options.shard_tokens, " tokens: there must be at least one"));
  range(options.max_document_bytes >= 0, str("documents of at most ", options.max_document_bytes, " bytes"));
  range(options.threads >= 0, str(options.threads, " threads"));
  if (tokenizer.eos_id() < 0) {
    fail(Kind::kData, str("tokenizer ", tokenizer.path(), " has no end-of-text token, which has to end each document"),
         "name it with --eos, if it is a token whose role the files do not say");
  }
  if (options.begin == DocumentBegin::kBos && tokenizer.bos_id() < 0) {
    fail(Kind::kData, str("tokenizer ", tokenizer.path(), " has no begin-of-text token to begin documents with"));
  }
}

bool holds_data_set(const std::string& path) {
  for (const std::string part : {"/", "/train/", "/validation/"}) {
    if (exists(path + part + kDatasetManifest)) return true;
  }
  return false;
}

void check_output(const std::string& path, Existing existing) {
  if (!exists(path)) return;
  if (!is_directory(path)) fail(Kind::kConfig, str("output ", path, " is not a directory"));
  if (list_directory(path, Kind::kData).empty()) return;
  if (existing == Existing::kRefuse) {
    fail(Kind::kConfig, str("output directory ", path, " is not empty"),
         holds_data_set(path) ? "choose another, or pass --overwrite" : "choose another");
  }
  if (!holds_data_set(path)) {
    fail(Kind::kConfig, str("output directory ", path, " holds something other than a data set"),
         "--overwrite replaces data sets only; remove the directory yourself if that is meant");
  }
}

// Turns the bytes of a document into text. Drops texts of white space.
class ParseStage final : public Stage {
 public:
  explicit ParseStage(std::string json_key) : parser_(std::move(json_key)) {}
  bool run(Document& document) override {
    parser_.parse(document);
    return !trim(document.text).empty();
  }

 private:
  TextParser parser_;
};

// Turns text into ids, with BOS before and EOS after. If bos_id is -1, there is no BOS.
class EncodeStage final : public Stage {
 public:
  EncodeStage(const Tokenizer& tokenizer, int32_t bos_id)
      : encoder_(tokenizer.make_encoder()), bos_id_(bos_id), eos_id_(tokenizer.eos_id()) {}
  bool run(Document& document) override {
    if (bos_id_ >= 0) document.ids.push_back(bos_id_);
    encoder_->encode(document.text, document.ids);
    document.ids.push_back(eos_id_);
    return true;
  }

 private:
  std::unique_ptr<Encoder> encoder_;
  int32_t bos_id_;
  int32_t eos_id_;
};

// One of the data sets being written.
DatasetWriter open_part(const std::string& directory, const Tokenizer& tokenizer, const TokenizeOptions& options) {
  make_directories(directory, Kind::kData);
  Manifest head;
  head.vocab_size = tokenizer.vocab_size();
  head.tokenizer = {std::filesystem::path(tokenizer.path()).filename(), tokenizer.hash(),
                    tokenizer.copy_files(directory)};
  head.eos_id = tokenizer.eos_id();
  head.bos_id = options.begin == DocumentBegin::kBos ? tokenizer.bos_id() : -1;
  head.tool = options.tool;
  return {directory, std::move(head), options.shard_tokens};
}

void check_part(const DatasetWriter& part, const char* name, const TokenizeOptions& options, int64_t documents) {
  if (part.documents() > 0) return;
  fail(Kind::kData,
       str("the ", name, " part would be empty: of ", documents, " documents a share of ", options.validation_fraction,
           " is held out, each by its number and seed ", options.seed),
       "hold out another share, take another seed, or cut .txt files into more documents: --max-document-bytes");
}

}  // namespace

bool held_out(int64_t seed, int64_t number, double fraction) {
  const uint64_t hash =
      mix64(mix64(static_cast<uint64_t>(seed) + 0x9e3779b97f4a7c15ull) + static_cast<uint64_t>(number));
  return static_cast<double>(hash >> 11) * 0x1p-53 < fraction;
}

TokenizeReport tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                        const std::function<void(const TokenizeProgress&)>& progress) {
  check_options(tokenizer, options);
  const std::vector<TextFile> files = find_text_files(options.inputs);
  TokenizeReport report;
  report.files = std::ssize(files);
  for (const TextFile& file : files) report.bytes += file.bytes;

  check_output(options.output, options.existing);
  make_directories(parent_directory(options.output), Kind::kData);
  StagedOutput output(options.output, StagedOutput::What::kDirectory, Kind::kData, options.existing);
  const bool split = options.validation_fraction > 0;
  DatasetWriter train = open_part(split ? output.staging() + "/train" : output.staging(), tokenizer, options);
  std::optional<DatasetWriter> validation;
  if (split) validation.emplace(open_part(output.staging() + "/validation", tokenizer, options));

  const int32_t bos_id = options.begin == DocumentBegin::kBos ? tokenizer.bos_id() : -1;
  const auto make_stages = [&] {
    Stages stages;
    stages.push_back(std::make_unique<ParseStage>(options.text_key));
    stages.push_back(std::make_unique<EncodeStage>(tokenizer, bos_id));
    return stages;
  };
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  StagePool pool(make_stages, threads);
  TextBatches batches(files, options.max_document_bytes, options.batch_bytes);
  int64_t number = 0;  // number of the next document to write; includes dropped documents
  const auto note = [&](const Document& document) {
    if (!document.faults.any()) return;
    const std::string& path = document.file->path;
    if (report.faults.empty() || report.faults.back().path != path) report.faults.push_back({path, {}});
    report.faults.back().faults += document.faults;
  };
  const auto write = [&](const Batch& batch) {
    for (const Document& document : batch) {
      note(document);
      const bool hold = held_out(options.seed, number++, options.validation_fraction);
      if (document.dropped) {
        ++report.empty;
        continue;
      }
      ++report.documents;
      (hold ? *validation : train).append(document.ids, std::ssize(document.text));
    }
    const int64_t tokens = train.tokens() + (validation ? validation->tokens() : 0);
    if (progress && !batch.empty())
      progress({std::min(batches.bytes_read(), report.bytes), report.bytes, report.documents, tokens});
  };
  for (bool more = true; more;) {
    ReadBatch read = batches.next();
    more = static_cast<bool>(read);
    if (more) pool.submit(std::move(read));
    while (pool.pending() > (more ? 2 * threads + 2 : 0)) write(pool.take());
  }

  if (report.documents == 0) fail(Kind::kData, str("the ", report.files, " input files hold no text"));
  if (split) check_part(train, "training", options, report.documents);
  if (split) check_part(*validation, "validation", options, report.documents);
  report.train = train.finish();
  if (validation) report.validation = validation->finish();
  output.commit();
  return report;
}

}  // namespace tokamak
