// For oracle_test.py: encodes and decodes with a tokenizer of any kind, and checks the promises that need no oracle.
// usage: tokenize_texts TOKENIZER ids|text
// Standard input has records: 'e', a length and a text, or 'd', a count and ids. Each answer is a count and ids, then a
// length and the text that these ids decode to. Numbers are int32.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

using namespace tokamak;

namespace {

template <class T>
std::vector<T> read_list() {
  int32_t count = 0;
  std::cin.read(reinterpret_cast<char*>(&count), sizeof(count));
  std::vector<T> list(static_cast<size_t>(count));
  std::cin.read(reinterpret_cast<char*>(list.data()), static_cast<std::streamsize>(list.size() * sizeof(T)));
  return list;
}

template <class List>
void write_list(const List& list) {
  const auto count = static_cast<int32_t>(list.size());
  std::cout.write(reinterpret_cast<const char*>(&count), sizeof(count));
  std::cout.write(reinterpret_cast<const char*>(list.data()), static_cast<std::streamsize>(count * sizeof(list[0])));
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const auto stream = tokenizer.make_stream_decoder();
  std::string text;
  for (const int32_t id : ids) text += stream->push(id);
  return text + stream->finish();
}

void answer_all(const Tokenizer& tokenizer) {
  const auto encoder = tokenizer.make_encoder();
  for (int kind; (kind = std::cin.get()) != EOF;) {
    std::vector<int32_t> ids;
    if (kind == 'e') {
      const std::vector<char> text = read_list<char>();
      encoder->encode({text.data(), text.size()}, ids);
    } else {
      ids = read_list<int32_t>();
    }
    const std::string text = tokenizer.decode(ids);
    TOKAMAK_CHECK(streamed(tokenizer, ids) == text, "the streamed text differs from the decoded one");
    write_list(ids);
    write_list(text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) fail(Kind::kConfig, "usage: tokenize_texts TOKENIZER ids|text");
    const bool as_text = std::string(argv[2]) == "text";
    answer_all(*load_tokenizer(argv[1], {as_text ? SpecialsPolicy::kText : SpecialsPolicy::kIds, ""}));
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
