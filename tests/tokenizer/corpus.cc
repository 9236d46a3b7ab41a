#include "corpus.h"

#include "base/file.h"

namespace tokamak {

namespace {

const std::vector<std::string>& words() {
  static const std::vector<std::string> list = {
      "the",       "of",      "tokamak",  "plasma",    "magnetic", "field",    "confines", "heating",
      "energy",    "and",     "turning",  "gradients", "model",    "loss",     "training", "trains",
      "tested",    "tests",   "contents", "a",         "токамак",  "плазма",   "магнит",   "поле",
      "удержание", "энергия", "и",        "в",         "модели",   "обучение", "测试",     "等离子体",
      "磁场",      "能量",    "训练模型", "的",        "一个",     "模型",     "トカマク", "プラズマ"};
  return list;
}

const std::vector<std::string>& bits() {
  static const std::vector<std::string> list = {" ",
                                                "  ",
                                                "   ",
                                                "\t",
                                                "\n",
                                                "\r\n",
                                                "0",
                                                "42",
                                                "3.14159",
                                                ",",
                                                ".",
                                                "(x)",
                                                "//",
                                                "<s>",
                                                "</s>",
                                                "▁",
                                                "▁▁",
                                                "<unk>",
                                                "é",
                                                "e\u0301",
                                                "😀",
                                                "👩‍👩‍👧",
                                                "\xFF",
                                                "\xC3",
                                                "\xE2\x96",
                                                "\xED\xA0\x80",
                                                "\xF4\x90\x80\x80",
                                                "\xC0\x80",
                                                "a",
                                                "t",
                                                "<0x0A>",
                                                "ß",
                                                "ﬁ",
                                                "\xEF\xBF\xBD",
                                                "\xEF\xBB\xBF",
                                                "。"};
  return list;
}

const std::string& pick(std::mt19937_64& random, const std::vector<std::string>& from) {
  return from[random() % from.size()];
}

}  // namespace

std::vector<std::string> corpus_lines(int64_t count) {
  std::mt19937_64 random(1);
  std::vector<std::string> lines;
  for (int64_t i = 0; i < count; ++i) {
    std::string line;
    for (int64_t w = 0; w < 12; ++w) {
      line += pick(random, words());
      line += random() % 8 == 0 ? ", " : random() % 8 == 0 ? "  " : " ";
      if (random() % 10 == 0) line += std::to_string(random() % 1000) + " ";
    }
    lines.push_back(line + (random() % 5 == 0 ? "    if (x < 10) { y = f(x); }" : "."));
  }
  return lines;
}

std::vector<HardText> hard_texts() {
  std::string every_byte;
  for (int b = 0; b < 256; ++b) every_byte += static_cast<char>(b);
  return {
      {"nothing", ""},
      {"one space", " "},
      {"spaces only", "       "},
      {"newlines", "\n\n a \n"},
      {"tabs", "\ta\t\tb "},
      {"English", "The magnetic field confines the plasma; training trains the contents of a test."},
      {"Russian", "Токамак удерживает плазму магнитным полем, и модель учится."},
      {"Chinese", "磁场约束等离子体，能量的测试：训练模型一个。"},
      {"mixed scripts", "модель model 模型 トカマクtokamakтокамак"},
      {"emoji", "😀😀 family: 👩‍👩‍👧‍👦 flag: 🇫🇷 skin: 👍🏽"},
      {"runs of spaces", "a  b   c    d     e"},
      {"leading and trailing spaces", "   energy   "},
      {"digits", "1234567890 3.14 ３７ ٣"},
      {"special pieces as text", "<s> </s> <unk> <0x0A> <pad>"},
      {"U+2581 as text", "▁the▁ ▁ ▁▁tokamak"},
      {"combining marks stay as they are", "e\u0301 \u00E9 \u1E9B\u0323 ﬁ Å"},
      {"every byte", every_byte},
      {"lone continuation and lead bytes",
       "a\x80"
       "b\xC3"
       "c\xE2\x82"
       "d\xF0\x9F\x98"},
      {"overlong, surrogate, too large", "\xC0\x80 \xE0\x80\x80 \xED\xA0\x80 \xF4\x90\x80\x80 \xFF\xFE"},
      {"NUL", std::string("a\0b\0", 4)},
      {"replacement character", "\xEF\xBF\xBD\xEF\xBF\xBD x"},
      {"code", "  if (x < 10) {\n    y = f(x);\n  }\r\n"},
  };
}

std::string random_text(std::mt19937_64& random, int64_t length, const std::vector<std::string>& extra) {
  std::string text;
  while (static_cast<int64_t>(text.size()) < length) {
    const uint64_t kind = random() % (extra.empty() ? 8 : 10);
    if (kind < 4) {
      text += pick(random, words());
    } else if (kind < 7) {
      text += pick(random, bits());
    } else if (kind == 7) {
      text += static_cast<char>(random() % 256);
    } else {
      text += pick(random, extra);
    }
    if (random() % 3 == 0) text += ' ';
  }
  return text;
}

TokenizerTrainOptions small_options() {
  TokenizerTrainOptions options;
  options.vocab_size = 700;
  options.character_coverage = 0.999;
  return options;
}

std::string train_small(const std::string& path, const TokenizerTrainOptions& options) {
  const std::vector<std::string> lines = corpus_lines(400);
  size_t at = 0;
  const auto next = [&](std::string& line) {
    if (at == lines.size()) return false;
    line = lines[at++];
    return true;
  };
  train_tokenizer(next, options, path);
  return path;
}

}  // namespace tokamak
