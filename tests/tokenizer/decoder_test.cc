#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/file.h"
#include "corpus.h"
#include "model_builder.h"
#include "oracle.h"
#include "support/temp_dir.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

TEST_CASE("valid UTF-8 comes back byte for byte") {
  const TempDir dir;
  const auto tokenizer = load_tokenizer(train_small(dir.file("m.model")));
  const auto encoder = tokenizer->make_encoder();
  for (const char* text :
       {"", " ", "  two  spaces ", "tab\tnew\nline\r\n", "磁场 поле 😀 e\u0301", "<s></s><unk>", "0 1"}) {
    std::vector<int32_t> ids;
    encoder->encode(text, ids);
    CHECK(tokenizer->decode(ids) == text);
  }
}

TEST_CASE("ids decode as SentencePiece decodes them, whether they came from text or not") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.user_defined_symbols = {"<|x|>", "▁▁"};
  const std::string path = train_small(dir.file("m.model"), options);
  const auto tokenizer = load_tokenizer(path);
  const auto encoder = tokenizer->make_encoder();
  const Oracle oracle(read_text(path, Kind::kData));
  for (const HardText& hard : hard_texts()) {
    INFO(hard.name);
    std::vector<int32_t> ids = {tokenizer->bos_id()};
    encoder->encode(hard.text, ids);
    ids.push_back(tokenizer->eos_id());
    CHECK(tokenizer->decode(ids) == oracle.decode(ids));
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::vector<int32_t> ids(random() % 8);
    // Mostly bytes and special pieces, where the corner cases are.
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % (random() % 2 == 0 ? 264 : 700));
    if (tokenizer->decode(ids) != oracle.decode(ids))
      FAIL("decoded differently: " << Catch::StringMaker<std::vector<int32_t>>::convert(ids));
  }
}

TEST_CASE("without a dummy prefix the first space is kept") {
  const TempDir dir;
  ModelBuilder model;
  model.add_dummy_prefix = false;
  const std::string path = model.add("▁").add("a").add("▁a", -1).write(dir.file("m.model"));
  const auto tokenizer = load_tokenizer(path);
  const Oracle oracle(model.build());
  const std::vector<int32_t> ids = {5, 3, 5};
  CHECK(tokenizer->decode(ids) == " a  a");
  CHECK(oracle.decode(ids) == " a  a");
}

TEST_CASE("an id outside the vocabulary is an error that names the range") {
  const TempDir dir;
  const auto tokenizer = load_tokenizer(ModelBuilder().add("a").write(dir.file("m.model")));
  CHECK_THROWS_WITH(tokenizer->decode(std::vector<int32_t>{4}),
                    Catch::Contains("token id 4") && Catch::Contains("0 to 3"));
  CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{-1}), Error);
}
