#include "data/dataset_writer.h"

#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace tokamak {

namespace {

std::string shard_name(size_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "part-%05zu", number);
  return name;
}

}  // namespace

DatasetWriter::DatasetWriter(DatasetWriterOptions options) : options_(std::move(options)) {
  TOKAMAK_CHECK(options_.vocab_size > 0 && options_.shard_tokens > 0, options_.directory);
  manifest_.token_type = token_type_for(options_.vocab_size);
  manifest_.vocab_size = options_.vocab_size;
  manifest_.tokenizer = options_.tokenizer;
  manifest_.eos_id = options_.eos_id;
  manifest_.bos_id = options_.bos_id;
  manifest_.tool = options_.tool;
}

void DatasetWriter::append(std::span<const int32_t> document, int64_t text_bytes) {
  for (const int32_t id : document) {
    if (id < 0 || id >= options_.vocab_size) {
      fail(Kind::kData, str("document ", documents_, " for ", options_.directory, " has token id ", id,
                            "; the vocabulary has ", options_.vocab_size));
    }
  }
  if (shard_ && shard_->tokens() >= options_.shard_tokens) {
    manifest_.shards.push_back(shard_->finish());
    shard_.reset();
  }
  if (!shard_) shard_.emplace(options_.directory, shard_name(manifest_.shards.size()), manifest_.token_type);
  shard_->append(document);
  manifest_.text_bytes += text_bytes;
  tokens_ += static_cast<int64_t>(document.size());
  ++documents_;
}

Manifest DatasetWriter::finish() {
  if (tokens_ == 0) fail(Kind::kData, str("there are no tokens for ", options_.directory));
  manifest_.shards.push_back(shard_->finish());
  shard_.reset();
  manifest_.created = utc_timestamp();
  sync_directory(options_.directory, Kind::kData);  // the manifest refers to the names in it
  write_manifest(options_.directory, manifest_);
  return manifest_;
}

}  // namespace tokamak
