#include "data/prepare/text_sources.h"

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "data/stores/token_file.h"
#include "data/text/text_files.h"
#include "formats/compressed_stream.h"

namespace tokamak {

bool is_text_source(const SourceOptions& source) {
  if (source.format == SourceFormat::kJsonl) return true;
  return source.format == SourceFormat::kAuto && without_compression(source.path).ends_with(".jsonl");
}

std::string cached_data_set(const SourceOptions& source, const std::string& cache) {
  if (source.tokenizer.empty()) {
    fail(Kind::kConfig, str("source ", source.path, " is text and has no tokenizer"),
         "set its tokenizer, or make a data set of it: tokamak data tokenize");
  }
  Hasher hasher;
  const auto add = [&](const std::string& text) {
    hasher.update(std::as_bytes(std::span(text)));
    hasher.update(std::as_bytes(std::span("", 1)));  // a NUL ends each text
  };
  add(load_tokenizer(source.tokenizer)->hash());
  for (const TextFile& text : find_text_files({source.path})) {
    const auto changed = std::filesystem::last_write_time(text.path).time_since_epoch().count();
    add(str(std::filesystem::path(text.path).filename().string(), " ", changed));
    hash_sampled(InputFile(text.path, Kind::kData), hasher);
  }
  return cache + "/" + hasher.hex128();
}

void tokenize_source(const SourceOptions& source, const std::string& data_set, const std::string& tool,
                     const std::function<void(const TokenizeProgress&)>& progress) {
  if (exists(data_set + "/" + kDatasetManifest)) return;
  TokenizeOptions options;
  options.inputs = {source.path};
  options.output = data_set;
  options.existing = Existing::kReplace;  // by the same tokens, if another run was faster
  options.tool = tool;
  tokenize(*load_tokenizer(source.tokenizer), options, progress);
}

}  // namespace tokamak
