// Labels of texts by bags of words and letters (fastText: Joulin et al., arXiv 1607.01759): languages, quality. The
// library does the work; text_classifier.cc is the only file that includes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct Label {
  std::string name;  // without "__label__"
  double score = 0;  // the model's probability
};

// A model, for any number of threads.
class TextClassifier {
 public:
  // Reads a .bin or .ftz of fastText. Error(kData), with the path, if there is none or it is damaged.
  explicit TextClassifier(const std::string& path);
  ~TextClassifier();
  TextClassifier(const TextClassifier&) = delete;
  TextClassifier& operator=(const TextClassifier&) = delete;

  // The most probable labels first, at most `most`. Line ends count as spaces. None for a text of unknown words.
  std::vector<Label> labels(std::string_view text, int64_t most) const;
  Label best(std::string_view text) const;  // name "" if there is none
  double probability(std::string_view text, const std::string& label) const;
  void expect_label(const std::string& label) const;  // Error(kConfig), with the labels, unless it is one of them
  const std::string& hash() const { return hash_; }   // XXH3-128 of the file, for manifests

 private:
  struct Model;
  std::string path_;
  std::unique_ptr<Model> model_;
  std::string hash_;
};

struct ClassifierOptions {
  int64_t dimension = 16;
  int64_t epochs = 0;
  double learning_rate = 0.5;
  int64_t word_ngrams = 1;
  int64_t letters_from = 2;
  int64_t letters_to = 4;
  int64_t buckets = 200'000;
  int64_t seed = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("dimension", dimension, "numbers of a word's vector; more separates more labels, and makes a larger model");
    v("epochs", epochs,
      "passes over the texts; more learns small sets better, and noise too. 0: 50,000 texts, at least 5");
    v("learning_rate", learning_rate, "learning rate of the first steps; it falls to 0");
    v("word_ngrams", word_ngrams, "longest sequence of words that is a feature; 2 for quality, 1 for languages");
    v("letters_from", letters_from, "shortest sequence of letters that is a feature; 0: none are");
    v("letters_to", letters_to, "longest sequence of letters that is a feature; languages need 4");
    v("buckets", buckets, "slots that sequences share by their hash; more keeps them apart, and makes a larger model");
    v("seed", seed, "chooses the first weights");
  }
};

struct LabelledText {
  std::string label;
  std::string text;
};

// Trains a model on the texts in a random order and writes it to `path`. One thread, so the same texts give the same
// file. Error(kData) if there are
// fewer than two labels.
void train_classifier(const std::vector<LabelledText>& texts, const ClassifierOptions& options,
                      const std::string& path);

}  // namespace tokamak
