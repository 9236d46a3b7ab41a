#include "data/dataset_writer.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace tokamak {

std::string part_name(size_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "part-%05zu", number);
  return name;
}

DatasetWriter::DatasetWriter(std::string directory, Manifest head, int64_t shard_tokens)
    : directory_(std::move(directory)), manifest_(std::move(head)), shard_tokens_(shard_tokens) {
  TOKAMAK_CHECK(manifest_.vocab_size > 0 && shard_tokens_ > 0, directory_);
  manifest_.token_type = token_type_for(manifest_.vocab_size);
}

void DatasetWriter::append(std::span<const int32_t> document, int64_t text_bytes) {
  add(document);
  end_document();
  manifest_.text_bytes += text_bytes;
}

void DatasetWriter::open_shard() {
  if (in_document_) return;
  if (shard_ && shard_->tokens() >= shard_tokens_) {
    manifest_.shards.push_back(shard_->finish());
    shard_.reset();
  }
  if (!shard_) shard_.emplace(directory_, part_name(manifest_.shards.size()), manifest_.token_type);
}

void DatasetWriter::add(std::span<const int32_t> ids) {
  uint32_t largest = 0;
  for (const int32_t id : ids) largest = std::max(largest, static_cast<uint32_t>(id));  // negative ids wrap
  if (!ids.empty() && largest >= static_cast<uint64_t>(manifest_.vocab_size)) {
    const auto bad =
        std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= manifest_.vocab_size; });
    fail(Kind::kData, str("document ", documents_, " for ", directory_, " has token id ", *bad, "; the vocabulary has ",
                          manifest_.vocab_size));
  }
  open_shard();
  in_document_ = true;
  shard_->add(ids);
  tokens_ += std::ssize(ids);
}

void DatasetWriter::end_document() {
  open_shard();
  in_document_ = false;
  shard_->end_document();
  ++documents_;
}

Manifest DatasetWriter::finish() {
  if (tokens_ == 0) fail(Kind::kData, str("there are no tokens for ", directory_));
  manifest_.shards.push_back(shard_->finish());
  shard_.reset();
  manifest_.created = utc_timestamp();
  sync_directory(directory_, Kind::kData);  // the manifest refers to the names in it
  write_manifest(directory_, manifest_);
  return manifest_;
}

}  // namespace tokamak
