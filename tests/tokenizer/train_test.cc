#include "tokenizer/train.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "corpus.h"
#include "model_builder.h"
#include "support/temp_dir.h"
#include "tokenizer/model_proto.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

namespace {

TokenizerTrainReport train_on(const std::vector<std::string>& lines, const TokenizerTrainOptions& options,
                              const std::string& output) {
  size_t at = 0;
  const auto next = [&](std::string& line) {
    if (at == lines.size()) return false;
    line = lines[at++];
    return true;
  };
  return train_tokenizer(next, options, output);
}

template <class Change>
Error config_error(Change change) {
  TokenizerTrainOptions options = small_options();
  change(options);
  try {
    const TempDir dir;
    train_on({"some text"}, options, dir.file("m.model"));
  } catch (const Error& e) {
    return e;
  }
  return {Kind::kBug, "accepted"};
}

}  // namespace

TEST_CASE("a trained model has Llama's settings") {
  const TempDir dir;
  const ModelProto model = parse_model_proto(read_text(train_small(dir.file("m.model")), Kind::kData), "m");
  CHECK(model.pieces.size() == 700);
  CHECK(model.trainer.model_type == ModelType::kBpe);
  CHECK(model.trainer.byte_fallback);
  CHECK(model.trainer.split_digits);
  CHECK(model.trainer.vocab_size == 700);
  CHECK(model.trainer.character_coverage == 0.999f);
  CHECK(model.normalizer.name == "identity");
  CHECK(model.normalizer.precompiled_charsmap.empty());
  CHECK(model.normalizer.add_dummy_prefix);
  CHECK_FALSE(model.normalizer.remove_extra_whitespaces);
  CHECK(model.pieces[0].text == "<unk>");
  CHECK(model.pieces[1].text == "<s>");
  CHECK(model.pieces[2].text == "</s>");
  CHECK(model.pieces[3].text == "<0x00>");
  bool spaces = false;
  for (const Piece& piece : model.pieces) {
    spaces |= piece.text == "▁▁";
    if (piece.type != PieceType::kNormal) continue;
    const bool digit = piece.text.find_first_of("0123456789") != std::string::npos;
    CHECK_FALSE((digit && piece.text.size() > 1));
  }
  CHECK(spaces);  // allow_whitespace_only_pieces
}

TEST_CASE("no piece is longer than max_piece_length characters") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.max_piece_length = 3;
  options.vocab_size = 450;
  const ModelProto model = parse_model_proto(read_text(train_small(dir.file("m.model"), options), Kind::kData), "m");
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    CHECK(std::count_if(piece.text.begin(), piece.text.end(), is_first_byte) <= 3);
  }
}

TEST_CASE("the same text and options give the same bytes") {
  const TempDir dir;
  const std::string first = read_text(train_small(dir.file("a.model")), Kind::kData);
  CHECK(first == read_text(train_small(dir.file("b.model")), Kind::kData));
  TokenizerTrainOptions sampled = small_options();
  sampled.input_sentence_size = 300;
  const std::string few = read_text(train_small(dir.file("c.model"), sampled), Kind::kData);
  CHECK(few != first);
  CHECK(few == read_text(train_small(dir.file("d.model"), sampled), Kind::kData));
}

TEST_CASE("the report counts lines and bytes and has the model's hash, and only the model is left") {
  const TempDir dir;
  int64_t bytes = 0;
  for (const std::string& line : corpus_lines(400)) bytes += std::ssize(line);
  const TokenizerTrainReport report = train_on(corpus_lines(400), small_options(), dir.file("a.model"));
  CHECK(report.lines == 400);
  CHECK(report.bytes == bytes);
  CHECK(report.hash == load_tokenizer(dir.file("a.model"))->hash());
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"a.model"});
}

TEST_CASE("user-defined symbols are whole pieces after the special ones, for any characters") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.user_defined_symbols = {"<|a,b|>", "\"",
                                  "say \xE2\x96\x81"
                                  "no"};
  options.user_defined_symbols[2] = "x\ny";
  const auto tokenizer = load_tokenizer(train_small(dir.file("m.model"), options));
  CHECK(tokenizer->piece(3) == "<|a,b|>");
  CHECK(tokenizer->piece(4) == "\"");
  CHECK(tokenizer->piece(5) == "x\ny");
}

TEST_CASE("lines that the trainer leaves out are counted") {
  const TempDir dir;
  std::vector<std::string> lines = corpus_lines(400);
  lines.push_back(std::string(5000, 'x'));
  lines.push_back("with \xE2\x96\x85 in it");
  lines.push_back("");
  const TokenizerTrainReport report = train_on(lines, small_options(), dir.file("m.model"));
  CHECK(report.lines == 403);
  CHECK(report.too_long == 1);
  CHECK(report.with_reserved == 1);
  CHECK(report.hash == load_tokenizer(train_small(dir.file("n.model")))->hash());
}

TEST_CASE(
    "a vocabulary that the text cannot fill, or has no room for its alphabet, is an error with the number to set") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.vocab_size = 30000;
  try {
    train_small(dir.file("m.model"), options);
    FAIL("trained 30000 pieces on 40 words");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kData);
    CHECK_THAT(e.what(), Catch::Contains("fewer than vocab_size=30000"));
    CHECK_THAT(e.hint(), Catch::Contains("at most "));
    // The number it names works.
    options.vocab_size = std::stoll(e.hint().substr(e.hint().find("at most ") + 8));
    CHECK_NOTHROW(train_small(dir.file("m.model"), options));
  }
  options.vocab_size = 270;
  try {
    train_small(dir.file("n.model"), options);
    FAIL("an alphabet of 100 characters in 11 pieces");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kData);
    CHECK_THAT(e.what(), Catch::Contains("vocab_size=270") && Catch::Contains("alphabet"));
    CHECK_THAT(e.hint(), Catch::Contains("character_coverage=0.999"));
  }
  CHECK(list_directory(dir.path(), Kind::kData) == std::vector<std::string>{"m.model"});  // nothing half-written
}

TEST_CASE("text without a single pair to merge is an error, not a crash") {
  const TempDir dir;
  try {
    train_on({"1", "2", "1 2"}, small_options(), dir.file("m.model"));
    FAIL("trained on digits");
  } catch (const Error& e) {
    CHECK(e.kind() == Kind::kData);
  }
}

TEST_CASE("a corpus without text is an error that names the skipped lines") {
  const TempDir dir;
  const auto message = [&](const std::vector<std::string>& lines) {
    try {
      train_on(lines, small_options(), dir.file("m.model"));
    } catch (const Error& e) {
      CHECK(e.kind() == Kind::kData);
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message({}), Catch::Contains("of 0 lines"));
  CHECK_THAT(message({"", std::string(5000, 'x')}), Catch::Contains("of 2 lines, 1 are longer"));
}

TEST_CASE("what reading the text throws comes out of the training") {
  const TempDir dir;
  int64_t calls = 0;
  const auto next = [&](std::string& line) {
    if (++calls > 50) throw std::runtime_error("disk gone");
    line = "some text";
    return true;
  };
  CHECK_THROWS_WITH(train_tokenizer(next, small_options(), dir.file("m.model")), "disk gone");
  CHECK(list_directory(dir.path(), Kind::kData).empty());
}

TEST_CASE("options out of range are refused with their value") {
  const auto contains = [](const Error& e, const std::string& text) {
    CHECK(e.kind() == Kind::kConfig);
    CHECK_THAT(e.what(), Catch::Contains(text));
  };
  contains(config_error([](auto& o) { o.vocab_size = 259; }), "vocab_size=259");
  contains(config_error([](auto& o) { o.character_coverage = 0.5; }), "character_coverage=0.5");
  contains(config_error([](auto& o) { o.max_sentence_length = 32768; }), "max_sentence_length=32768");
  contains(config_error([](auto& o) { o.input_sentence_size = 100; }), "input_sentence_size=100");
  contains(config_error([](auto& o) { o.max_piece_length = 0; }), "max_piece_length=0");
  contains(config_error([](auto& o) { o.user_defined_symbols = {"<s>"}; }), "'<s>'");
  contains(config_error([](auto& o) { o.user_defined_symbols = {"x", "x"}; }), "'x'");
  contains(config_error([](auto& o) { o.user_defined_symbols = {"a b"}; }), "has a space");
  contains(config_error([](auto& o) { o.user_defined_symbols = {""}; }), "empty");
  contains(config_error([](auto& o) { o.user_defined_symbols = {"\xFF"}; }), "not UTF-8");
  contains(config_error([](auto& o) { o.user_defined_symbols = {"<0x0A>"}; }), "byte piece");
}

TEST_CASE("training prints nothing on standard error") {
  const TempDir dir;
  const int saved = dup(STDERR_FILENO);
  const int file = open(dir.file("stderr").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDERR_FILENO);
  TokenizerTrainOptions options = small_options();
  train_small(dir.file("m.model"), options);
  options.vocab_size = 30000;
  CHECK_THROWS_AS(train_small(dir.file("m.model"), options), Error);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(file);
  CHECK(read_text(dir.file("stderr"), Kind::kData).empty());
}

TEST_CASE("lines of the greatest length allowed are trained on, not an abort") {
  const TempDir dir;
  TokenizerTrainOptions options = small_options();
  options.max_sentence_length = 32767;
  std::vector<std::string> lines = corpus_lines(400);
  std::string word;
  while (word.size() < 32767) word += "abcdefgh"[word.size() * word.size() % 7];
  lines.push_back(word);
  CHECK(train_on(lines, options, dir.file("m.model")).too_long == 0);
}
