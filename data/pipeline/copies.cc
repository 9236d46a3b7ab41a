#include "data/pipeline/copies.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "data/dataset_writer.h"
#include "data/pipeline/stages.h"

namespace tokamak {

namespace {

constexpr size_t kPairsAtOnce = size_t{1} << 16;

std::vector<std::unique_ptr<NearKeys>> keys_of(const PrepareStage& stage) {
  std::vector<std::unique_ptr<NearKeys>> keys;
  if (const auto* minhash = std::get_if<MinHashStage>(&stage)) {
    for (const WordRules words : {WordRules::kAny, WordRules::kEnglish})
      keys.push_back(make_near_keys(minhash->options, words));
  } else if (const auto* simhash = std::get_if<SimHashStage>(&stage)) {
    keys.push_back(make_near_keys(simhash->options));
  } else {
    keys.push_back(make_near_keys(ExactOptions{}));
  }
  return keys;
}

CopyUnit unit_of(const PrepareStage& stage) {
  const auto* exact = std::get_if<ExactStage>(&stage);
  return exact != nullptr ? exact->unit : CopyUnit::kDocuments;
}

const std::string& best_by(const PrepareStage& stage) {
  if (const auto* minhash = std::get_if<MinHashStage>(&stage)) return minhash->best_by;
  if (const auto* simhash = std::get_if<SimHashStage>(&stage)) return simhash->best_by;
  return std::get<ExactStage>(stage).best_by;
}

// Greater for better documents. The bits of floats from 0 on have the order of their values.
uint32_t weight_of(const Document& document, const std::string& best_by) {
  if (best_by == "bytes") return static_cast<uint32_t>(std::min<uint64_t>(document.text.size(), UINT32_MAX));
  const double* value = find_value(document, best_by);
  return value == nullptr || !(*value > 0) ? 0 : std::bit_cast<uint32_t>(static_cast<float>(*value));
}

// Values of one type, one after the other.
template <class T>
void write_all(std::span<const T> values, OutputFile& file) {
  static_assert(std::is_trivially_copyable_v<T>);
  file.write(std::as_bytes(values));
}

template <class T>
void read_all(const std::string& path, const std::function<void(std::span<const T>)>& take) {
  const InputFile file(path, Kind::kData);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  if (file.size() % kBytes != 0) fail(Kind::kData, str(path, " is damaged: it has ", file.size(), " bytes"));
  std::vector<T> block;
  for (int64_t at = 0, count = file.size() / kBytes; at < count; at += std::ssize(block)) {
    block.resize(std::min<size_t>(kPairsAtOnce, static_cast<size_t>(count - at)));
    file.read_at(at * kBytes, std::as_writable_bytes(std::span(block)));
    take(block);
  }
}

}  // namespace

bool finds_copies(const PrepareStage& stage) {
  return std::holds_alternative<ExactStage>(stage) || std::holds_alternative<MinHashStage>(stage) ||
         std::holds_alternative<SimHashStage>(stage);
}

CopyKeys::CopyKeys(const PrepareStage& stage) : stage_(stage), keys_(keys_of(stage)), bands_(keys_.front()->bands()) {}

void CopyKeys::add(const Document& document) {
  if (unit_of(stage_) == CopyUnit::kDocuments) return add_unit(document.text, document);
  for (const std::string& line : split(document.text, '\n')) add_unit(line, document);
}

void CopyKeys::add_unit(std::string_view text, const Document& document) {
  found_.clear();
  const auto* exact = std::get_if<ExactStage>(&stage_);
  const bool is_compared = !trim(text).empty() && (exact == nullptr || std::ssize(text) >= exact->least_bytes);
  const size_t words = keys_.size() > 1 ? static_cast<size_t>(word_rules_of(document)) : 0;
  if (is_compared) keys_[words]->keys(text, found_);
  bands_.add(found_, unit_of(stage_) == CopyUnit::kDocuments ? weight_of(document, best_by(stage_)) : 0);
}

void write_pairs(std::span<const BandFile> parts, int64_t band, KeyRange range, const BandRule& rule,
                 const std::string& path) {
  OutputFile file(path, Kind::kData);
  std::vector<DocumentPair> pairs;
  find_pairs(parts, band, range, rule, [&](DocumentPair pair) {
    pairs.push_back(pair);
    if (pairs.size() < kPairsAtOnce) return;
    write_all<DocumentPair>(pairs, file);
    pairs.clear();
  });
  write_all<DocumentPair>(pairs, file);
  file.sync();
  file.close();
}

void write_copies(const PrepareStage& stage, std::span<const BandFile> parts, std::span<const std::string> pair_files,
                  const std::string& directory) {
  std::vector<int64_t> documents;
  std::vector<std::vector<uint32_t>> weights;
  bool any_weight = false, any_document = false;
  for (const BandFile& part : parts) {
    documents.push_back(part.documents()), weights.push_back(part.weights());
    any_document |= part.documents() > 0;
    any_weight |= std::any_of(weights.back().begin(), weights.back().end(), [](uint32_t weight) { return weight > 0; });
  }
  if (any_document && !any_weight && unit_of(stage) == CopyUnit::kDocuments && best_by(stage) != "bytes") {
    fail(Kind::kConfig,
         str("no document has a value '", best_by(stage), "' above 0, which best_by of ", name_of(stage), " compares"),
         "name bytes, or a value that an earlier stage stores");
  }
  Clusters clusters(documents);
  for (const std::string& path : pair_files)
    read_all<DocumentPair>(path, [&](std::span<const DocumentPair> pairs) {
      for (const DocumentPair& pair : pairs) clusters.join(pair);
    });
  const std::vector<ClusterMember> members = clusters.members(weights);
  size_t begin = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    size_t end = begin;
    while (end < members.size() && members[end].document.part == part) ++end;
    OutputFile file(copies_file(directory, part), Kind::kData);
    write_all<ClusterMember>(std::span(members).subspan(begin, end - begin), file);
    file.sync();
    file.close();
    begin = end;
  }
}

std::string copies_file(const std::string& directory, size_t part) {
  return str(directory, "/", part_name(part), ".copies");
}

std::vector<ClusterMember> read_copies(const std::string& path) {
  std::vector<ClusterMember> members;
  read_all<ClusterMember>(path, [&](auto block) { members.insert(members.end(), block.begin(), block.end()); });
  return members;
}

CopyFilter::CopyFilter(const PrepareStage& stage, const std::string& copies)
    : name_(name_of(stage)), unit_(unit_of(stage)), members_(read_copies(copies)) {}

const ClusterMember* CopyFilter::next_member() {
  const uint32_t number = number_++;
  if (at_ == members_.size() || members_[at_].document.number != number) return nullptr;
  return &members_[at_++];
}

bool CopyFilter::keep(Document& document, PrepareCounts& counts) {
  if (unit_ == CopyUnit::kDocuments) {
    const ClusterMember* member = next_member();
    if (member == nullptr) return true;
    set_value(document, name_ + ".copies", member->documents);
    if (member->kept == member->document) return true;
    document.reason = name_;
    return false;
  }
  std::string kept;
  for (const std::string& line : split(document.text, '\n')) {
    const ClusterMember* member = next_member();
    if (member != nullptr && member->kept != member->document)
      counts.removed(name_ + ".paragraph", std::ssize(line));
    else
      kept += line + '\n';
  }
  document.text = trim(kept);
  if (!document.text.empty()) return true;
  document.reason = name_ + ".empty";
  return false;
}

}  // namespace tokamak
