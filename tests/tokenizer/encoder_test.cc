#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "corpus.h"
#include "model_builder.h"
#include "oracle.h"
#include "support/temp_dir.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

namespace {

std::vector<int32_t> encode(Encoder& encoder, const std::string& text) {
  std::vector<int32_t> ids;
  encoder.encode(text, ids);
  return ids;
}

// Both encoders of the model at `path`, on all kinds of text.
void compare(const std::string& path, const std::vector<std::string>& symbols = {}) {
  const auto tokenizer = load_tokenizer(path);
  const auto encoder = tokenizer->make_encoder();
  const Oracle oracle(read_text(path, Kind::kData));
  REQUIRE(oracle.loaded());
  for (const HardText& hard : hard_texts()) {
    INFO(hard.name);
    CHECK(encode(*encoder, hard.text) == oracle.encode(hard.text));
    CHECK(encode(*encoder, hard.text) == oracle.encode(hard.text));  // now out of the cache
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random, static_cast<int64_t>(random() % 200), symbols);
    const std::vector<int32_t> expected = oracle.encode(text);
    if (encode(*encoder, text) != expected) FAIL("text " << i << " is encoded differently: " << text);
  }
}

}  // namespace

TEST_CASE("the encoder gives the ids of SentencePiece for every kind of text") {
  const TempDir dir;
  compare(train_small(dir.file("m.model")));
}

TEST_CASE("the encoder gives the ids of SentencePiece with user-defined symbols") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.vocab_size = 600;
  options.user_defined_symbols = {"<|im_start|>", "<|im_end|>", "<|im", "\n", "\t",
                                  "▁▁▁",          "токам",      "a",    "é",  "<\"q\",>"};
  compare(train_small(dir.file("m.model"), options), options.user_defined_symbols);
}

TEST_CASE("a word of 300 KB without a space is encoded like SentencePiece does, and not in quadratic time") {
  const TempDir dir;
  const std::string path = train_small(dir.file("m.model"));
  const auto tokenizer = load_tokenizer(path);
  const auto encoder = tokenizer->make_encoder();
  const Oracle oracle(read_text(path, Kind::kData));
  std::mt19937_64 random(3);
  std::string letters;
  while (letters.size() < 300'000) letters += "aeinorst"[random() % 8];
  CHECK(encode(*encoder, letters) == oracle.encode(letters));
  const std::string same(300'000, 't');
  CHECK(encode(*encoder, same) == oracle.encode(same));
  const std::string spaces(300'000, ' ');
  CHECK(encode(*encoder, spaces) == oracle.encode(spaces));
}

TEST_CASE("encoding appends to the ids already there, and they do not change the result") {
  const TempDir dir;
  ModelBuilder model;  // no bytes: unknown characters in a row are one <unk>
  const auto tokenizer = load_tokenizer(model.add("a").write(dir.file("m.model")));
  const auto encoder = tokenizer->make_encoder();
  std::vector<int32_t> ids = {9, 0};
  encoder->encode("?? ?a", ids);
  CHECK(ids == std::vector<int32_t>{9, 0, 0, 3});
}

TEST_CASE("two encoders of one tokenizer agree") {
  const TempDir dir;
  const auto tokenizer = load_tokenizer(train_small(dir.file("m.model")));
  CHECK(encode(*tokenizer->make_encoder(), "magnetic field") == encode(*tokenizer->make_encoder(), "magnetic field"));
}

TEST_CASE("the special ids and the identity of a tokenizer are those of its file") {
  const TempDir dir;
  const std::string path = train_small(dir.file("m.model"));
  const auto tokenizer = load_tokenizer(path);
  const Oracle oracle(read_text(path, Kind::kData));
  CHECK(tokenizer->vocab_size() == 700);
  CHECK(tokenizer->unk_id() == oracle.unk_id());
  CHECK(tokenizer->bos_id() == oracle.bos_id());
  CHECK(tokenizer->eos_id() == oracle.eos_id());
  CHECK(tokenizer->piece(0) == "<unk>");
  CHECK(tokenizer->piece(3 + 0x41) == "<0x41>");
  CHECK(tokenizer->hash().size() == 32);
  CHECK_THROWS_AS(tokenizer->piece(700), Error);
  CHECK_THROWS_AS(tokenizer->piece(-1), Error);

  ModelBuilder other;
  other.more_trainer_fields = wire_bytes(46, "[BOS]") + wire_bytes(47, "[NONE]");
  other.add("[BOS]", 0, PieceType::kControl);
  const auto renamed = load_tokenizer(other.write(dir.file("o.model")));
  CHECK(renamed->bos_id() == 3);
  CHECK(renamed->eos_id() == -1);
  CHECK(renamed->hash() != tokenizer->hash());

  ModelBuilder nameless;  // an empty name means the usual one
  nameless.more_trainer_fields = wire_bytes(46, "") + wire_bytes(47, "");
  CHECK(load_tokenizer(nameless.write(dir.file("n.model")))->bos_id() == Oracle(nameless.build()).bos_id());
  CHECK(load_tokenizer(nameless.write(dir.file("n.model")))->eos_id() == 2);
}
