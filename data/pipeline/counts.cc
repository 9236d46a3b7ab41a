#include "data/pipeline/counts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;

constexpr size_t kExamples = 3, kMostExampleBytes = 300;
constexpr int kBucketsPerOctave = 4;

std::string cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return str(text.substr(0, most), "…");
}

// The entry of a name, or that of all others.
template <class T>
T& entry_of(std::map<std::string, T>& map, const std::string& name) {
  return map.size() < PrepareCounts::kMostNames || map.contains(name) ? map[name] : map["(others)"];
}

template <class T>
void add_named(std::map<std::string, T>& to, const std::map<std::string, T>& from) {
  for (const auto& [name, value] : from) entry_of(to, name) += value;
}

template <class Map>
void add_all(Map& to, const Map& from) {
  for (const auto& [key, value] : from) to[key] += value;
}

}  // namespace

// In this namespace, where nlohmann-json finds them.
void to_json(Json& out, const Tally& tally) { out = {tally.documents, tally.bytes}; }
void from_json(const Json& in, Tally& tally) { in.at(0).get_to(tally.documents), in.at(1).get_to(tally.bytes); }
void to_json(Json& out, const DropExample& example) { out = {{"id", example.id}, {"text", example.text}}; }
void from_json(const Json& in, DropExample& example) {
  in.at("id").get_to(example.id), in.at("text").get_to(example.text);
}

double Histogram::least_of(int bucket) { return bucket == kZero ? 0 : std::exp2(double(bucket) / kBucketsPerOctave); }

void Histogram::add(double value) {
  if (std::isnan(value)) return;
  ++buckets_[value > 0 ? static_cast<int>(std::floor(std::log2(value) * kBucketsPerOctave)) : kZero];
}

void Histogram::operator+=(const Histogram& other) {
  for (const auto& [bucket, count] : other.buckets_) buckets_[bucket] += count;
}

int64_t Histogram::count() const {
  int64_t sum = 0;
  for (const auto& [bucket, count] : buckets_) sum += count;
  return sum;
}

void PrepareCounts::see_values(const Document& document) {
  for (const DocumentValue& value : document.values) entry_of(values_, value.name).add(value.value);
}

void PrepareCounts::wrote(const std::string& source, const Document& document) {
  written_[source].add(std::ssize(document.text));
  entry_of(languages_, document.language).add(std::ssize(document.text));
  see_values(document);
}

void PrepareCounts::dropped(const std::string& source, const Document& document, int64_t bytes) {
  dropped_[document.reason][source].add(bytes);
  see_values(document);
  std::vector<DropExample>& examples = examples_[document.reason];
  if (examples.size() < kExamples) examples.push_back({document.id, cut(document.text, kMostExampleBytes)});
}

void PrepareCounts::operator+=(const PrepareCounts& other) {
  add_all(read_, other.read_);
  add_all(written_, other.written_);
  for (const auto& [reason, tallies] : other.dropped_) add_all(dropped_[reason], tallies);
  add_all(removed_, other.removed_);
  add_named(languages_, other.languages_);
  add_named(values_, other.values_);
  for (const auto& [reason, others] : other.examples_) {
    std::vector<DropExample>& examples = examples_[reason];
    for (size_t i = 0; i < others.size() && examples.size() < kExamples; ++i) examples.push_back(others[i]);
  }
  damaged_.insert(damaged_.end(), other.damaged_.begin(), other.damaged_.end());
  tokens_ += other.tokens_;
}

std::string PrepareCounts::json() const {
  Json values = nlohmann::json::object();
  for (const auto& [name, histogram] : values_)
    for (const auto& [bucket, count] : histogram.buckets_) values[name].push_back({bucket, count});
  const Json out = {{"read", read_},           {"written", written_}, {"dropped", dropped_},
                    {"removed", removed_},     {"values", values},    {"examples", examples_},
                    {"languages", languages_}, {"damaged", damaged_}, {"tokens", tokens_}};
  return out.dump(1) + "\n";
}

PrepareCounts PrepareCounts::parse(std::string_view text, const std::string& where) {
  PrepareCounts counts;
  try {
    const auto in = Json::parse(text);
    in.at("read").get_to(counts.read_), in.at("written").get_to(counts.written_);
    in.at("dropped").get_to(counts.dropped_), in.at("removed").get_to(counts.removed_);
    in.at("languages").get_to(counts.languages_), in.at("examples").get_to(counts.examples_);
    in.at("damaged").get_to(counts.damaged_), in.at("tokens").get_to(counts.tokens_);
    for (const auto& [name, buckets] : in.at("values").items())
      for (const auto& bucket : buckets) counts.values_[name].buckets_[bucket.at(0).get<int>()] = bucket.at(1);
  } catch (const nlohmann::json::exception& e) {
    fail(Kind::kData, str(where, " is damaged: ", e.what()), "remove its directory, and run again");
  }
  return counts;
}

Tally sum_of(const PrepareCounts::BySource& tallies) {
  Tally sum;
  for (const auto& [source, tally] : tallies) sum += tally;
  return sum;
}

}  // namespace tokamak
