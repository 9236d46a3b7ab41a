// Added tokens, the model over characters and decoding, each against its definition. oracle_test.py compares the whole
// with Hugging Face's library.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/hf/added_tokens.h"
#include "tokenizer/hf/char_bpe.h"
#include "tokenizer/hf/decode_chain.h"

using namespace tokamak;

namespace {

std::string random_text(std::mt19937_64& random, const std::vector<std::string>& letters, uint64_t longest) {
  std::string text;
  for (uint64_t n = random() % (longest + 1); n > 0; --n) text += letters[random() % letters.size()];
  return text;
}

// Leftmost, the longest of several, without overlap: place by place.
std::vector<std::pair<size_t, int32_t>> plain_matches(const std::vector<AddedToken>& tokens, const std::string& text) {
  std::vector<std::pair<size_t, int32_t>> found;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* best = nullptr;
    for (const AddedToken& token : tokens) {
      if (text.compare(at, token.content.size(), token.content) != 0) continue;
      if (best == nullptr || token.content.size() > best->content.size()) best = &token;
    }
    if (best != nullptr) found.emplace_back(at, best->id);
    at += best != nullptr ? best->content.size() : 1;
  }
  return found;
}

// Merges the adjacent pair of the lowest rank, the leftmost of equals, again and again.
std::vector<int32_t> plain_bpe(const BpeSpec& model, const std::string& text) {
  std::vector<int32_t> ids;
  for (const char c : text) {
    if (const int32_t id = model.pieces.find(std::string(1, c)); id >= 0) ids.push_back(id);
  }
  while (true) {
    const BpeMerge* best = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (const BpeMerge& merge : model.merges) {
        if (merge.left != ids[i] || merge.right != ids[i + 1] || (best != nullptr && merge.rank >= best->rank))
          continue;
        best = &merge;
        place = i;
      }
    }
    if (best == nullptr) return ids;
    ids[place] = best->result;
    ids.erase(ids.begin() + static_cast<int64_t>(place) + 1);
  }
}

BpeSpec random_bpe_spec(std::mt19937_64& random) {
  BpeSpec model;
  std::vector<std::string> texts = {"a", "b", "c", "d"};
  for (const std::string& text : texts) model.pieces.add(text, static_cast<int32_t>(model.pieces.count()));
  for (uint64_t n = random() % 20; n > 0; --n) {
    const std::string left = texts[random() % texts.size()], right = texts[random() % texts.size()];
    if (model.pieces.find(left + right) < 0) {
      model.pieces.add(left + right, static_cast<int32_t>(model.pieces.count()));
      texts.push_back(left + right);
    }
    const int32_t left_id = model.pieces.find(left), right_id = model.pieces.find(right);
    if (std::any_of(model.merges.begin(), model.merges.end(),
                    [&](const BpeMerge& m) { return m.left == left_id && m.right == right_id; })) {
      continue;
    }
    model.merges.push_back(
        {static_cast<uint32_t>(model.merges.size()), left_id, right_id, model.pieces.find(left + right)});
  }
  return model;
}

std::string repaired(std::string_view bytes, std::mt19937_64& random) {
  Utf8Repair repair;
  std::string text;
  while (!bytes.empty()) {
    const size_t length = std::min<size_t>(1 + random() % 3, bytes.size());
    repair.push(bytes.substr(0, length), text);
    bytes.remove_prefix(length);
  }
  repair.finish(text);
  return text;
}

}  // namespace

TEST_CASE("added tokens are found leftmost and longest, whatever bytes they begin with") {
  std::mt19937_64 random(21);
  const std::vector<std::string> few = {"<", "|", "a", " "}, many = {"<", "|", "a", " ", "b", "c", "\xC3\xA9"};
  for (int round = 0; round < 400; ++round) {
    const std::vector<std::string>& letters = round % 2 == 0 ? few : many;
    std::vector<AddedToken> tokens;
    for (uint64_t n = 1 + random() % 8; n > 0; --n) {
      AddedToken token;
      token.content = random_text(random, letters, 4);
      token.id = static_cast<int32_t>(tokens.size());
      const auto same = [&](const AddedToken& other) { return other.content == token.content; };
      if (!token.content.empty() && std::none_of(tokens.begin(), tokens.end(), same)) tokens.push_back(token);
    }
    const AddedTokens found(tokens, SpecialsPolicy::kIds);
    std::vector<AddedTokens::Span> spans;
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random, letters, 30);
      found.cut(text, spans);
      std::vector<std::pair<size_t, int32_t>> matches;
      size_t end = 0;
      for (const AddedTokens::Span& span : spans) {
        CHECK(span.begin == end);
        end = span.end;
        if (span.id >= 0) matches.emplace_back(span.begin, span.id);
      }
      CHECK(end == text.size());
      CHECK(matches == plain_matches(tokens, text));
    }
  }
}

TEST_CASE("the model over characters merges by its definition") {
  std::mt19937_64 random(22);
  for (int round = 0; round < 300; ++round) {
    const BpeSpec model = random_bpe_spec(random);
    const CharBpe bpe(model, "a test");
    CharMerger merger(bpe);
    for (int i = 0; i < 30; ++i) {
      const std::string text = random_text(random, {"a", "b", "c", "d", "x"}, i < 25 ? 12 : 150);
      std::vector<int32_t> ids;
      merger.merge(text, ids);
      CHECK(ids == plain_bpe(model, text));
    }
  }
}

TEST_CASE("a model over characters with byte fallback may be cut, and gives the same ids") {
  std::mt19937_64 random(25);
  const std::vector<std::string> letters = {"a", "b", "c", "d", "x", "\xC3\xA9", "\xE4\xB8\xAD", "\xE6\x96\x87"};
  for (int round = 0; round < 200; ++round) {
    BpeSpec model = random_bpe_spec(random);
    model.byte_fallback = true;
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      model.pieces.add(name, static_cast<int32_t>(model.pieces.count()));
    }
    const bool has_chinese = random() % 2 == 0;
    for (const char* piece : {"\xE4\xB8\xAD", "\xE6\x96\x87", "\xE4\xB8\xAD\xE6\x96\x87"}) {
      if (has_chinese) model.pieces.add(piece, static_cast<int32_t>(model.pieces.count()));
    }
    const auto id = [&](const std::string& piece) { return model.pieces.find(piece); };
    if (has_chinese) {
      model.merges.push_back({1000, id(letters[6]), id(letters[7]), id(letters[6] + letters[7])});
    } else if (round % 3 == 0) {  // the neighbours of a character's bytes are not in the text
      model.pieces.add("<0xC3><0xA9>", static_cast<int32_t>(model.pieces.count()));
      model.merges.push_back({1000, id("<0xC3>"), id("<0xA9>"), id("<0xC3><0xA9>")});
    }
    const CharBpe bpe(model, "a test");
    CHECK((bpe.cuts() != nullptr) == (has_chinese || round % 3 != 0));
    if (bpe.cuts() == nullptr) continue;
    CharMerger merger(bpe), whole(bpe);
    ByteBpeEncoder encoder(bpe.pieces(), merger, {.short_entries = int64_t{2} << random() % 4 * 3});
    for (int i = 0; i < 30; ++i) {
      const std::string text = random_text(random, letters, i < 25 ? 12 : 150);
      std::vector<int32_t> ids, expected;
      encoder.encode(text, *bpe.cuts(), ids);
      whole.merge(text, expected);
      CHECK(ids == expected);
    }
  }
}

TEST_CASE("invalid bytes become one U+FFFD for each maximal sequence, however they arrive") {
  std::mt19937_64 random(23);
  const std::string bad(kReplacementChar);
  // The examples of the Unicode Standard, chapter 3, table 3-8 and above it.
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
       "a" + bad + bad + bad + "b" + bad + "c" + bad + bad + "d"},
      {"\xED\xA0\x80\x41", bad + bad + bad + "A"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", bad + bad + bad + bad + bad + bad + bad + bad + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", bad + bad + bad + bad + bad + "A" + bad + bad + "B"},
      {"\xE2\x82", bad},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
  for (const auto& [bytes, text] : examples) {
    for (int i = 0; i < 20; ++i) CHECK(repaired(bytes, random) == text);
  }
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = random_text(
        random, {"a", "\x80", "\xBF", "\xC2", "\xE0", "\xA0", "\xED", "\xF0", "\x90", "\xF4", "\x8F", "\xFF"}, 12);
    Utf8Repair repair;
    std::string whole;
    repair.push(bytes, whole);
    repair.finish(whole);
    CHECK(repaired(bytes, random) == whole);
    CHECK(is_valid_utf8(whole));
  }
}

TEST_CASE("a stream hands on each character with its last byte") {
  DecodeChain chain(std::vector<DecoderStep>{DecoderStep{}});
  CHECK(chain.push("a\xC3\x83") == "a");
  CHECK(chain.push("\xC2\xA9") == "\xC3\xA9");  // the bytes C3 and A9, in printable characters
  CHECK(chain.push("\xC3\xA2") == "");
  CHECK(chain.push("b") == std::string(kReplacementChar) + "b");
  CHECK(chain.finish() == "");
}
