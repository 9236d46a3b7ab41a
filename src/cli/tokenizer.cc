// tokamak tokenizer train | encode | decode | inspect: trains a tokenizer, tries it, and prints its contents.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <iomanip>
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

namespace tokamak::cli {

namespace {

constexpr const char* kModelHelp =
    "tokenizer model: SentencePiece, tokenizer.json, tekken.json, a directory of one, or FILE.tiktoken#PRESET";

void add_model(CLI::App* parser, std::string& path) {
  parser->add_option("--model", path, kModelHelp)->required()->type_name("FILE");
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
    parser->add_option("MODEL,--model", model_, kModelHelp)->required();
    parser->add_flag("--pieces", pieces_, "print the vocabulary: id, score, type, piece");
  }

  int run() override {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model_);
    if (pieces_) {
      print_pieces(*tokenizer);
    } else {
      print_settings(*tokenizer);
    }
    return 0;
  }

 private:
  static void print_pieces(const Tokenizer& tokenizer) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      std::cout << id << "\t" << tokenizer.score(id) << "\t" << name_of(tokenizer.kind(id)) << "\t"
                << tokenizer.piece(id) << "\n";
    }
  }

  static void print_settings(const Tokenizer& tokenizer) {
    const auto print = [](const std::string& name, const auto& value) {
      std::cout << std::left << std::setw(21) << name + ":"
                << " " << value << "\n";
    };
    print("path", tokenizer.path());
    print("hash", tokenizer.hash());
    const auto settings = tokenizer.settings();
    print(settings[0].first, settings[0].second);  // its type
    print("vocab_size", tokenizer.vocab_size());
    print("unk_id", tokenizer.unk_id());
    print("bos_id", tokenizer.bos_id());
    print("eos_id", tokenizer.eos_id());
    for (size_t i = 1; i < settings.size(); ++i) print(settings[i].first, settings[i].second);
  }

  std::string model_;
  bool pieces_ = false;
};

}  // namespace

void add_tokenizer(CLI::App& root, Commands& commands) {
  CLI::App* group = root.add_subcommand("tokenizer", "train, try and inspect a tokenizer");
  group->require_subcommand(1);
  add_tokenizer_train(*group, commands);
  add_tokenizer_evaluate(*group, commands);
  add_command<Encode>(*group, commands, "encode", "text to token ids")
      ->footer("  echo 'It was' | tokamak tokenizer encode --model tokenizer.model --pieces");
  add_command<Decode>(*group, commands, "decode", "token ids to text")
      ->footer("  tokamak tokenizer decode --model tokenizer.model 306 471");
  add_command<InspectTokenizer>(*group, commands, "inspect", "print a tokenizer model's contents")
      ->footer("  tokamak tokenizer inspect Llama-3.2-1B/tokenizer.json");
}

}  // namespace tokamak::cli
