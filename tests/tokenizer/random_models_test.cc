// Models that no trainer would make: random pieces with random, often equal scores; pieces across spaces; pieces whose
// own characters are not in the vocabulary. The encoder must agree with SentencePiece on each.
#include <catch2/catch.hpp>
#include <set>

#include "model_builder.h"
#include "oracle.h"
#include "support/temp_dir.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

namespace {

const std::vector<std::string> kLetters = {"a", "b", "c", "▁", "é", "中", "😀"};

std::string random_string(std::mt19937_64& random, uint64_t longest, uint64_t letters) {
  std::string text;
  for (uint64_t n = 1 + random() % longest; n > 0; --n) text += kLetters[random() % letters];
  return text;
}

ModelBuilder random_model(std::mt19937_64& random) {
  ModelBuilder model;
  if (random() % 2 == 0) model.add_bytes();
  model.add_dummy_prefix = random() % 2 == 0;
  const uint64_t letters = 2 + random() % (kLetters.size() - 1);
  const uint64_t scores = random() % 2 == 0 ? 3 : 1000;  // few: many ties
  const bool symbols = random() % 3 == 0;
  std::set<std::string> seen;
  for (uint64_t n = random() % 60; n > 0; --n) {
    const std::string piece = random_string(random, 1 + random() % 6, letters);
    if (!seen.insert(piece).second) continue;
    const bool symbol = symbols && random() % 8 == 0;
    model.add(piece, -static_cast<float>(random() % scores), symbol ? PieceType::kUserDefined : PieceType::kNormal);
  }
  return model;
}

std::string random_input(std::mt19937_64& random) {
  std::string text;
  for (uint64_t n = random() % 40; n > 0; --n) {
    const uint64_t kind = random() % 12;
    if (kind == 0) text += ' ';
    if (kind == 1) text += static_cast<char>(random() % 256);
    if (kind > 1) text += kLetters[random() % kLetters.size()];
  }
  return text;
}

}  // namespace

TEST_CASE("random models encode and decode random text as SentencePiece does") {
  const TempDir dir;
  std::mt19937_64 random(11);
  for (int m = 0; m < 600; ++m) {
    const ModelBuilder model = random_model(random);
    const Oracle oracle(model.build());
    REQUIRE(oracle.loaded());
    const auto tokenizer = load_tokenizer(model.write(dir.file("m.model")));
    const auto encoder = tokenizer->make_encoder();
    for (int t = 0; t < 40; ++t) {
      const std::string text = random_input(random);
      std::vector<int32_t> ids;
      encoder->encode(text, ids);
      if (ids != oracle.encode(text)) FAIL("model " << m << " encodes differently: " << text);
      if (tokenizer->decode(ids) != oracle.decode(ids)) FAIL("model " << m << " decodes differently: " << text);
    }
  }
}
