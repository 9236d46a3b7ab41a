#include "oracle.h"

#include <sentencepiece_processor.h>

#include <stdexcept>

namespace tokamak {

struct Oracle::Processor {
  sentencepiece::SentencePieceProcessor it;
  bool loaded = false;
};

namespace {

void check(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw std::runtime_error("SentencePiece: " + status.ToString());
}

}  // namespace

Oracle::Oracle(const std::string& model_bytes) : processor_(std::make_unique<Processor>()) {
  processor_->loaded = processor_->it.LoadFromSerializedProto(model_bytes).ok();
}

Oracle::~Oracle() = default;
bool Oracle::loaded() const { return processor_->loaded; }

std::vector<int32_t> Oracle::encode(std::string_view text) const {
  std::vector<int> ids;
  check(processor_->it.Encode(text, &ids));
  return {ids.begin(), ids.end()};
}

std::string Oracle::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  check(processor_->it.Decode(std::vector<int>(ids.begin(), ids.end()), &text));
  return text;
}

int32_t Oracle::bos_id() const { return processor_->it.bos_id(); }
int32_t Oracle::eos_id() const { return processor_->it.eos_id(); }
int32_t Oracle::unk_id() const { return processor_->it.unk_id(); }

}  // namespace tokamak
