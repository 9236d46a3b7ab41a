#include "data/pipeline/part_writer.h"

#include "base/file.h"
#include "base/strings.h"
#include "data/pipeline/document_line.h"

namespace tokamak {

PartWriter::PartWriter(const Workspace& work, size_t step, size_t part, int64_t memory, const std::string& staging)
    : work_(work), part_(part), staging_(staging) {
  const PrepareOptions& options = work.options();
  if (work.steps()[step].copies != nullptr) keys_.emplace(*work.steps()[step].copies);
  if (options.keep_dropped) dropped_.emplace(staging + part_files::kDropped, Kind::kData);
  if (!work.is_last(step) || work.tokenizer() == nullptr) {
    kept_.emplace(staging + part_files::kKept, Kind::kData);
    return;
  }
  encoder_ = work.tokenizer()->make_encoder();
  for (const char* set : kSets)
    runs_.emplace_back(str(staging, "/", set), token_type_for(work.tokenizer()->vocab_size()), memory / 2);
}

void PartWriter::keep(const Document& document, PrepareCounts& counts) {
  if (keys_) keys_->add(document);
  if (kept_) write(document, *kept_);
  if (!encoder_) return;
  ids_.clear();
  encoder_->encode(document.text, ids_);
  ids_.push_back(work_.tokenizer()->eos_id());
  const uint64_t key = shuffle_key(work_.options().seed, part_, number_++);
  const bool is_validation = is_held_out(key, work_.options().tokens.validation);
  runs_[is_validation ? 1 : 0].add(key, ids_, std::ssize(document.text));
  counts.tokens(std::ssize(ids_));
}

void PartWriter::drop(const Document& document) {
  if (dropped_) write(document, *dropped_);
}

void PartWriter::finish(const PrepareCounts& counts) {
  if (kept_) kept_->finish();
  if (dropped_) dropped_->finish();
  if (keys_) keys_->write(staging_ + part_files::kKeys);
  for (RunWriter& run : runs_) run.finish();
  write_text_atomically(staging_ + part_files::kCounts, counts.json(), Kind::kData);
}

void PartWriter::write(const Document& document, ZstdWriter& file) {
  line_.clear();
  append_document_line(document, line_);
  file.write(line_ += '\n');
}

}  // namespace tokamak
