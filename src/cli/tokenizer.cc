// tokamak tokenizer train | encode | decode | inspect: trains a tokenizer, tries it, and prints its contents.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "config/units.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak::cli {

namespace {

void add_model(CLI::App* parser, std::string& path) {
  parser->add_option("--model", path, "tokenizer model, as SentencePiece and `tokamak tokenizer train` write it")
      ->required()
      ->type_name("FILE");
}

// Runs `line` on the words of the command line or, without any, on each line of standard input.
template <class Line>
void for_each_line(const std::vector<std::string>& words, const Line& line) {
  if (!words.empty()) {
    line(join(words, " "));
    return;
  }
  for (std::string text; std::getline(std::cin, text);) line(text);
}

class Encode : public Command {
 public:
  explicit Encode(CLI::App* parser) {
    add_model(parser, model_);
    parser->add_option("text", text_, "text to encode; without it, each line of standard input is one");
    parser->add_flag("--pieces", pieces_, "print the pieces instead of their ids");
  }

  int run() override {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model_);
    const std::unique_ptr<Encoder> encoder = tokenizer->make_encoder();
    for_each_line(text_, [&](const std::string& text) {
      std::vector<int32_t> ids;
      encoder->encode(text, ids);
      std::vector<std::string> words;
      for (const int32_t id : ids) words.push_back(pieces_ ? std::string(tokenizer->piece(id)) : str(id));
      std::cout << join(words, " ") << "\n";
    });
    return 0;
  }

 private:
  std::string model_;
  std::vector<std::string> text_;
  bool pieces_ = false;
};

class Decode : public Command {
 public:
  explicit Decode(CLI::App* parser) {
    add_model(parser, model_);
    parser->add_option("ids", ids_, "token ids; without them, each line of standard input is one text");
  }

  int run() override {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model_);
    for_each_line(ids_, [&](const std::string& line) {
      std::vector<int32_t> ids;
      for (const std::string& word : split(line, ' ')) {
        if (!trim(word).empty()) ids.push_back(parse_id(trim(word)));
      }
      std::cout << tokenizer->decode(ids) << "\n";
    });
    return 0;
  }

 private:
  static int32_t parse_id(std::string_view word) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      fail(Kind::kData, str("'", word, "' is not a token id"));
    return id;
  }

  std::string model_;
  std::vector<std::string> ids_;
};

class InspectTokenizer : public Command {
 public:
  explicit InspectTokenizer(CLI::App* parser) {
    parser
        ->add_option("MODEL,--model", model_,
                     "tokenizer model, as SentencePiece and `tokamak tokenizer train` write it")
        ->required();
    parser->add_flag("--pieces", pieces_, "print the vocabulary: id, score, type, piece");
  }

  int run() override {
    const std::unique_ptr<SentencePieceTokenizer> tokenizer = load_sentencepiece(model_);
    if (pieces_) {
      print_pieces(tokenizer->proto());
    } else {
      print_settings(*tokenizer, tokenizer->proto());
    }
    return 0;
  }

 private:
  static void print_pieces(const ModelProto& model) {
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      const Piece& piece = model.pieces[id];
      std::cout << id << "\t" << piece.score << "\t" << name_of(piece.type) << "\t" << piece.text << "\n";
    }
  }

  static void print_settings(const Tokenizer& tokenizer, const ModelProto& model) {
    std::vector<std::string> symbols;
    for (const Piece& piece : model.pieces) {
      if (piece.type == PieceType::kUserDefined) symbols.push_back(printable(piece.text));
    }
    std::cout << "path:                 " << tokenizer.path() << "\n"
              << "hash:                 " << tokenizer.hash() << "\n"
              << "type:                 " << name_of(model.trainer.model_type) << "\n"
              << "vocab_size:           " << tokenizer.vocab_size() << "\n"
              << "unk_id:               " << tokenizer.unk_id() << "\n"
              << "bos_id:               " << tokenizer.bos_id() << "\n"
              << "eos_id:               " << tokenizer.eos_id() << "\n"
              << "byte_fallback:        " << print_bool(model.trainer.byte_fallback) << "\n"
              << "split_digits:         " << print_bool(model.trainer.split_digits) << "\n"
              << "add_dummy_prefix:     " << print_bool(model.normalizer.add_dummy_prefix) << "\n"
              << "character_coverage:   " << model.trainer.character_coverage << "\n"
              << "user_defined_symbols: " << symbols.size() << (symbols.empty() ? "" : ": ") << join(symbols, " ")
              << "\n";
  }

  std::string model_;
  bool pieces_ = false;
};

}  // namespace

void add_tokenizer(CLI::App& root, Commands& commands) {
  CLI::App* group = root.add_subcommand("tokenizer", "train, try and inspect a tokenizer");
  group->require_subcommand(1);
  add_tokenizer_train(*group, commands);
  add_command<Encode>(*group, commands, "encode", "text to token ids");
  add_command<Decode>(*group, commands, "decode", "token ids to text");
  add_command<InspectTokenizer>(*group, commands, "inspect", "print a tokenizer model's contents");
}

}  // namespace tokamak::cli
