#include "data/classify/text_classifier.h"

#include <fasttext/fasttext.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/rng.h"
#include "base/strings.h"
#include "data/classify/model_file.h"

namespace tokamak {

namespace {

constexpr int64_t kLeastEpochs = 5, kLeastSteps = 50'000;
constexpr std::string_view kPrefix = "__label__", kLineEnd = "</s>";

// fastText reads lines of words; its words end at white space of ASCII. Two words would mean something else to it: the
// end of the line, and a label.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  for (const std::string_view word : {kLineEnd, kPrefix})
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) line[at] = ' ';
  return line;
}

std::string without_prefix(const std::string& name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Steps on texts of one label in a row would make the model forget the others.
std::vector<size_t> shuffled(size_t count, int64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t salt = mix64(static_cast<uint64_t>(seed) + 1);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return mix64(salt + a) < mix64(salt + b); });
  return order;
}

std::string hash_of_file(const std::string& path) {
  const InputFile file(path, Kind::kData);
  Hasher hasher;
  std::vector<std::byte> block(size_t{1} << 20);
  for (int64_t at = 0; at < file.size();) {
    const auto part =
        std::span(block).first(static_cast<size_t>(std::min<int64_t>(std::ssize(block), file.size() - at)));
    file.read_at(at, part);
    hasher.update(part);
    at += std::ssize(part);
  }
  return hasher.hex128();
}

}  // namespace

struct TextClassifier::Model {
  fasttext::FastText fasttext;
};

TextClassifier::TextClassifier(const std::string& path)
    : path_(path), model_(std::make_unique<Model>()), hash_(hash_of_file(path)) {
  check_model_file(path);
  try {
    model_->fasttext.loadModel(path);
  } catch (const std::exception& e) {
    fail(Kind::kData, str(path, " is no model of fastText: ", e.what()), "name a .bin or .ftz file");
  }
}

TextClassifier::~TextClassifier() = default;

std::vector<Label> TextClassifier::labels(std::string_view text, int64_t most) const {
  std::istringstream line(one_line(text) + "\n");
  std::vector<std::pair<fasttext::real, std::string>> found;
  model_->fasttext.predictLine(line, found, static_cast<int32_t>(most), 0);
  std::vector<Label> labels;
  for (const auto& [score, name] : found) labels.push_back({without_prefix(name), double(score)});
  return labels;
}

Label TextClassifier::best(std::string_view text) const {
  std::vector<Label> found = labels(text, 1);
  return found.empty() ? Label{} : std::move(found.front());
}

double TextClassifier::probability(std::string_view text, const std::string& label) const {
  for (const Label& found : labels(text, model_->fasttext.getDictionary()->nlabels()))
    if (found.name == label) return found.score;
  return 0;
}

void TextClassifier::expect_label(const std::string& label) const {
  const auto dictionary = model_->fasttext.getDictionary();
  std::vector<std::string> names;
  for (int32_t i = 0; i < dictionary->nlabels(); ++i) names.push_back(without_prefix(dictionary->getLabel(i)));
  std::sort(names.begin(), names.end());
  if (!std::binary_search(names.begin(), names.end(), label))
    fail(Kind::kConfig, str("the model ", path_, " has no label '", label, "'"), str("it has ", join(names, ", ")));
}

void train_classifier(const std::vector<LabelledText>& texts, const ClassifierOptions& options,
                      const std::string& path) {
  std::set<std::string> labels;
  for (const LabelledText& text : texts) {
    const bool is_word = !text.label.empty() && text.label.find_first_of(" \t\n\v\f\r") == std::string::npos &&
                         text.label.find('\0') == std::string::npos && text.label.find(kLineEnd) == std::string::npos;
    if (!is_word)
      fail(Kind::kData, str("label '", printable(text.label), "' is no word"), "fastText's labels are words");
    labels.insert(text.label);
  }
  if (labels.size() < 2) {
    fail(Kind::kData, str("the ", texts.size(), " examples have ", labels.size(), " label(s); a classifier needs two"));
  }
  const std::string examples = path + ".examples";
  {
    OutputFile file(examples, Kind::kData);
    for (const size_t i : shuffled(texts.size(), options.seed)) {
      const LabelledText& text = texts[i];
      file.write(str(kPrefix, text.label, " ", one_line(text.text), "\n"));
    }
    file.close();
  }
  fasttext::Args args;
  args.input = examples;
  args.model = fasttext::model_name::sup;
  args.loss = fasttext::loss_name::softmax;
  args.lr = options.learning_rate;
  args.dim = static_cast<int>(options.dimension);
  const auto count = static_cast<int64_t>(texts.size());
  args.epoch = static_cast<int>(options.epochs > 0 ? options.epochs : std::max(kLeastEpochs, kLeastSteps / count));
  args.wordNgrams = static_cast<int>(options.word_ngrams);
  args.minn = static_cast<int>(options.letters_from);
  args.maxn = static_cast<int>(options.letters_to);
  args.bucket = static_cast<int>(options.buckets);
  args.minCount = 1;
  args.minCountLabel = 0;
  args.thread = 1;
  args.verbose = 0;
  args.seed = static_cast<int>(options.seed);
  std::string problem;
  try {
    fasttext::FastText fasttext;
    fasttext.train(args);
    fasttext.saveModel(path);
  } catch (const std::exception& e) {
    problem = e.what();
  }
  remove_file(examples, Kind::kData);
  if (!problem.empty()) fail(Kind::kData, str("fastText could not train ", path, ": ", problem));
  check_model_file(path);  // fastText does not say if the disk is full
  sync_file(path, Kind::kData);
}

}  // namespace tokamak
