#include "data/prepare/stages.h"

#include "base/strings.h"
#include "data/text/text_reader.h"

namespace tokamak {

namespace {

class ParseStage final : public Stage {
 public:
  explicit ParseStage(std::string json_key) : json_key_(std::move(json_key)) {}
  std::string_view name() const override { return "parse"; }
  bool run(Document& document) override {
    parse_text(document, json_key_);
    return true;
  }

 private:
  std::string json_key_;
};

class BlankStage final : public Stage {
 public:
  std::string_view name() const override { return "blank"; }
  bool run(Document& document) override { return !trim(document.text).empty(); }
};

class EncodeStage final : public Stage {
 public:
  EncodeStage(const Tokenizer& tokenizer, int32_t bos_id, int32_t eos_id)
      : encoder_(tokenizer.make_encoder()), bos_id_(bos_id), eos_id_(eos_id) {}
  std::string_view name() const override { return "encode"; }
  bool run(Document& document) override {
    if (bos_id_ >= 0) document.ids.push_back(bos_id_);
    encoder_->encode(document.text, document.ids);
    if (eos_id_ >= 0) document.ids.push_back(eos_id_);
    return true;
  }

 private:
  std::unique_ptr<Encoder> encoder_;
  int32_t bos_id_;
  int32_t eos_id_;
};

}  // namespace

std::unique_ptr<Stage> parse_stage(std::string json_key) { return std::make_unique<ParseStage>(std::move(json_key)); }

std::unique_ptr<Stage> blank_stage() { return std::make_unique<BlankStage>(); }

std::unique_ptr<Stage> encode_stage(const Tokenizer& tokenizer, int32_t bos_id, int32_t eos_id) {
  return std::make_unique<EncodeStage>(tokenizer, bos_id, eos_id);
}

}  // namespace tokamak
