#include "data/classify/confusion.h"

namespace tokamak {

namespace {

double share(int64_t part, int64_t all) { return double(part) / double(all); }

}  // namespace

std::vector<std::string> Confusion::labels() const {
  std::vector<std::string> labels;
  for (const auto& [name, unused] : names_) labels.push_back(name);
  return labels;
}

int64_t Confusion::count(const std::string& truth, const std::string& given) const {
  const auto row = counts_.find(truth);
  if (row == counts_.end()) return 0;
  const auto cell = row->second.find(given);
  return cell == row->second.end() ? 0 : cell->second;
}

double Confusion::accuracy() const {
  int64_t right = 0;
  for (const std::string& label : labels()) right += count(label, label);
  return share(right, texts_);
}

double Confusion::precision(const std::string& label) const {
  int64_t given = 0;
  for (const std::string& truth : labels()) given += count(truth, label);
  return share(count(label, label), given);
}

double Confusion::recall(const std::string& label) const {
  int64_t have = 0;
  for (const std::string& given : labels()) have += count(label, given);
  return share(count(label, label), have);
}

Threshold at_threshold(const std::vector<ScoredText>& texts, double score) {
  Threshold out{.score = score};
  int64_t right = 0, positive = 0;
  for (const ScoredText& text : texts) {
    positive += text.is_positive ? 1 : 0;
    if (text.score < score) continue;
    ++out.kept;
    right += text.is_positive ? 1 : 0;
  }
  out.precision = share(right, out.kept), out.recall = share(right, positive);
  return out;
}

}  // namespace tokamak
