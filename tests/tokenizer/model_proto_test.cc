#include "tokenizer/model_proto.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "corpus.h"
#include "model_builder.h"
#include "oracle.h"
#include "support/temp_dir.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

namespace {

std::string refusal(const std::string& bytes) {
  try {
    check_supported(parse_model_proto(bytes, "m.model"), "m.model");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kData);
    CHECK_THAT(e.what(), Catch::Contains("m.model"));
    return e.what();
  }
  return "accepted";
}

template <class Change>
std::string refusal_of(Change change) {
  ModelBuilder model;
  model.add("a");
  change(model);
  return refusal(model.build());
}

}  // namespace

TEST_CASE("a model's fields are read, and absent ones have protobuf's defaults") {
  ModelBuilder builder;
  builder.more_trainer_fields = wire_number(4, 321) + wire_bytes(44, "?") + wire_number(99, 1) + wire_bytes(200, "new");
  builder.add("▁ж", -2.5f);
  const ModelProto model = parse_model_proto(builder.build(), "m");
  REQUIRE(model.pieces.size() == 4);
  CHECK(model.pieces[3].text == "▁ж");
  CHECK(model.pieces[3].score == -2.5f);
  CHECK(model.pieces[0].type == PieceType::kUnknown);
  CHECK(model.trainer.model_type == ModelType::kBpe);
  CHECK(model.trainer.vocab_size == 321);
  CHECK(model.trainer.unk_surface == "?");
  CHECK(model.normalizer.name == "identity");
  CHECK_FALSE(model.normalizer.remove_extra_whitespaces);

  const ModelProto empty = parse_model_proto(wire_bytes(1, wire_bytes(1, "x")), "m");
  CHECK(empty.pieces[0].type == PieceType::kNormal);
  CHECK(empty.pieces[0].score == 0);
  CHECK_FALSE(empty.trainer.present);
  CHECK(empty.trainer.model_type == ModelType::kUnigram);
  CHECK(empty.normalizer.remove_extra_whitespaces);
  CHECK(empty.normalizer.add_dummy_prefix);
}

TEST_CASE("models that cannot be reproduced exactly are refused by name") {
  using Catch::Contains;
  CHECK(refusal_of([](ModelBuilder&) {}) == "accepted");
  CHECK_THAT(refusal_of([](auto& m) { m.model_type = 1; }), Contains("unigram"));
  CHECK_THAT(refusal_of([](auto& m) { m.model_type = 3; }), Contains("word"));
  CHECK_THAT(refusal_of([](auto& m) { m.model_type = 4; }), Contains("char"));
  CHECK_THAT(refusal_of([](auto& m) { m.model_type = 9; }), Contains("unknown"));
  CHECK_THAT(refusal_of([](auto& m) { m.charsmap = "xyz"; }), Contains("normaliser"));
  CHECK_THAT(refusal_of([](auto& m) { m.denormalizer_charsmap = "xyz"; }), Contains("denormaliser"));
  CHECK_THAT(refusal_of([](auto& m) { m.remove_extra_whitespaces = true; }), Contains("remove_extra_whitespaces=true"));
  CHECK_THAT(refusal_of([](auto& m) { m.treat_whitespace_as_suffix = true; }), Contains("treat_whitespace_as_suffix"));
  CHECK_THAT(refusal_of([](auto& m) { m.escape_whitespaces = false; }), Contains("escape_whitespaces=false"));
}

TEST_CASE("vocabularies that make no sense are refused with the piece") {
  using Catch::Contains;
  CHECK_THAT(refusal_of([](auto& m) { m.add("a"); }), Contains("'a' twice"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("<s>"); }), Contains("'<s>' twice"));
  CHECK_THAT(refusal_of([](auto& m) { m.add(""); }), Contains("piece 4 '' which is empty"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("\xC3"); }), Contains("'\\xc3' which is not UTF-8"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("b", NAN); }), Contains("nan"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("b", 0, PieceType::kUnused); }), Contains("unused"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("b", 0, static_cast<PieceType>(7)); }), Contains("type 7"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("b", 0, PieceType::kControl); }), Contains("control symbol of one"));
  CHECK_THAT(refusal_of([](auto& m) { m.add(std::string("b\0c", 3), 0, PieceType::kUserDefined); }),
             Contains("'b\\x00c'") && Contains("NUL"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("<unk2>", 0, PieceType::kUnknown); }),
             Contains("2 pieces of type unknown"));
  CHECK_THAT(refusal_of([](auto& m) { m.pieces.erase(m.pieces.begin()); }), Contains("0 pieces of type unknown"));
  CHECK_THAT(refusal_of([](auto& m) { m.add("<0x41>", 0, PieceType::kByte); }), Contains("byte_fallback is false"));
}

TEST_CASE("byte fallback needs all 256 byte pieces, written as SentencePiece writes them") {
  using Catch::Contains;
  CHECK(refusal_of([](auto& m) { m.add_bytes(); }) == "accepted");
  CHECK_THAT(refusal_of([](auto& m) { m.add_bytes().pieces.pop_back(); }), Contains("255 of the 256"));
  CHECK_THAT(refusal_of([](auto& m) { m.byte_fallback = true; }), Contains("0 of the 256"));
  CHECK_THAT(refusal_of([](auto& m) { m.add_bytes().pieces.back().text = "<0xff>"; }), Contains("not written like"));
  CHECK(byte_of_piece("<0x0A>") == 10);
  CHECK(byte_of_piece("<0xFF>") == 255);
  CHECK(byte_of_piece("<0xFG>") == -1);
  CHECK(byte_of_piece("<0xFF>>") == -1);
}

TEST_CASE("a file that is not a model is an error that names the damage") {
  using Catch::Contains;
  CHECK_THAT(refusal(""), Contains("no trainer_spec"));
  CHECK_THAT(refusal("{\"model\": {}}"), Contains("damaged"));
  const ModelBuilder model;
  CHECK_THAT(refusal(model.pieces_part() + model.trainer_part()), Contains("no normalizer_spec"));
  CHECK_THAT(refusal(model.pieces_part() + model.normalizer_part()), Contains("no trainer_spec"));
  CHECK_THAT(refusal(model.pieces_part().substr(0, 10)), Contains("needs") && Contains("byte"));
  CHECK_THAT(refusal(wire_number(1, 5)), Contains("wire type"));
  CHECK_THAT(refusal(std::string(11, '\xFF')), Contains("more than 10 bytes"));
  CHECK_THAT(refusal(wire_varint(3 << 3 | 3)), Contains("wire type 3"));
  CHECK_THAT(refusal(wire_varint(1 << 3 | 2) + wire_varint(~uint64_t{0})), Contains("18446744073709551615"));
}

TEST_CASE("a missing model file is named") {
  CHECK_THROWS_WITH(load_tokenizer("/nowhere/tokenizer.model"), Catch::Contains("/nowhere/tokenizer.model"));
}

TEST_CASE("a damaged model is refused, or is still a model on which SentencePiece agrees") {
  const TempDir dir;
  ModelBuilder builder;
  builder.add_bytes().add("<|x|>", 0, PieceType::kUserDefined);
  for (const char* piece : {"▁", "a", "b", "t", "é", "at", "▁a", "▁at", "tt", "ab"}) {
    builder.add(piece, -static_cast<float>(builder.pieces.size()));
  }
  const std::string good = builder.build();
  const std::string text = " at  abtt é at<|x|>bat 中\n<0x0A>";
  std::mt19937_64 random(13);
  int64_t accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    // The byte pieces are most of the file; the interesting parts come after them.
    const size_t from = random() % 2 == 0 ? 0 : bytes.size() - 300;
    if (random() % 4 == 0) bytes.resize(from + random() % (bytes.size() - from));
    for (uint64_t n = random() % 4; n > 0 && from < bytes.size(); --n) {
      bytes[from + random() % (bytes.size() - from)] ^= static_cast<char>(1 << (random() % 8));
    }
    write_quickly(dir.file("m.model"), bytes);
    try {
      const auto tokenizer = load_tokenizer(dir.file("m.model"));
      const Oracle oracle(bytes);
      REQUIRE(oracle.loaded());
      ++accepted;
      const auto encoder = tokenizer->make_encoder();
      std::vector<int32_t> ids;
      encoder->encode(text, ids);
      if (ids != oracle.encode(text)) FAIL("variant " << i << " encodes differently");
      if (tokenizer->decode(ids) != oracle.decode(ids)) FAIL("variant " << i << " decodes differently");
    } catch (const Error& e) {
      CHECK(e.kind() == Kind::kData);
    }
  }
  CHECK(accepted > 300);  // or the comparison above has not been made
  CHECK(accepted < 1700);
}

TEST_CASE("bytes at random are refused") {
  std::mt19937_64 random(17);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(random() % 100, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    REQUIRE(refusal(bytes) != "accepted");
  }
}
