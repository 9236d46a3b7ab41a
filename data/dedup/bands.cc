#include "data/dedup/bands.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/dedup/simhash.h"

namespace tokamak {

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'K', 'B', 'A', 'N', 'D', 'S', '1'};
constexpr int64_t kHeaderBytes = 24;
constexpr int64_t kRecordBytes = 20;
constexpr int64_t kReadBytes = int64_t{1} << 20;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t bands = 0, documents = 0;
  uint64_t keys = 0;
};
static_assert(sizeof(Header) == kHeaderBytes);

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool same_prefix(const BandKey& a, const BandKey& b, int64_t bits) {
  if (bits >= 128) return a == b;
  if (bits > 64) return a[0] == b[0] && (a[1] ^ b[1]) >> (128 - bits) == 0;
  return bits == 0 || (a[0] ^ b[0]) >> (64 - bits) == 0;
}

}  // namespace

void BandWriter::add(std::span<const BandKey> keys, uint32_t weight) {
  TOKAMAK_CHECK(keys.empty() || keys.size() == bands_.size(), keys.size(), " keys for ", bands_.size(), " bands");
  const auto document = static_cast<uint32_t>(weights_.size());
  for (size_t i = 0; i < keys.size(); ++i) bands_[i].push_back({keys[i], document});
  weights_.push_back(weight);
}

void BandWriter::write(const std::string& path) {
  OutputFile file(path, Kind::kData);
  const Header header = {.bands = static_cast<uint32_t>(bands_.size()),
                         .documents = static_cast<uint32_t>(weights_.size()),
                         .keys = bands_.front().size()};
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(std::as_bytes(std::span(weights_)));
  std::vector<std::byte> bytes;
  for (std::vector<Record>& band : bands_) {
    std::sort(band.begin(), band.end(), [](const Record& a, const Record& b) {
      return std::tie(a.key, a.document) < std::tie(b.key, b.document);
    });
    bytes.resize(band.size() * kRecordBytes);
    for (size_t i = 0; i < band.size(); ++i) {
      std::memcpy(bytes.data() + i * kRecordBytes, band[i].key.data(), 16);
      std::memcpy(bytes.data() + i * kRecordBytes + 16, &band[i].document, 4);
    }
    file.write(bytes);
  }
  file.sync();
  file.close();
}

BandFile::BandFile(const std::string& path) : path_(path) {
  const InputFile file(path, Kind::kData);
  Header header;
  if (file.size() >= kHeaderBytes) file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  bands_ = header.bands, documents_ = header.documents, keys_ = static_cast<int64_t>(header.keys);
  const bool good = file.size() >= kHeaderBytes && header.magic == kMagic && header.keys <= header.documents &&
                    file.size() == offset_of(bands_, 0);
  if (!good) fail(Kind::kData, str(path, " is damaged: its size or head are not those of keys of documents"));
}

int64_t BandFile::offset_of(int64_t band, int64_t record) const {
  return kHeaderBytes + 4 * documents_ + (band * keys_ + record) * kRecordBytes;
}

std::vector<uint32_t> BandFile::weights() const {
  std::vector<uint32_t> weights(static_cast<size_t>(documents_));
  if (!weights.empty()) InputFile(path_, Kind::kData).read_at(kHeaderBytes, std::as_writable_bytes(std::span(weights)));
  return weights;
}

int64_t BandFile::lower_bound(const InputFile& file, int64_t band, uint64_t first_word) const {
  int64_t low = 0, high = keys_;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    uint64_t word = 0;
    file.read_at(offset_of(band, middle), std::as_writable_bytes(std::span(&word, 1)));
    if (word < first_word)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void BandFile::append(int64_t band, uint64_t low, uint64_t high, uint32_t part, std::vector<Record>& out) const {
  const InputFile file(path_, Kind::kData);
  const int64_t begin = lower_bound(file, band, low);
  const int64_t end = high == UINT64_MAX ? keys_ : lower_bound(file, band, high + 1);
  std::vector<std::byte> bytes;
  for (int64_t at = begin; at < end;) {
    const int64_t count = std::min(end - at, kReadBytes / kRecordBytes);
    bytes.resize(static_cast<size_t>(count * kRecordBytes));
    file.read_at(offset_of(band, at), bytes);
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* record = bytes.data() + i * kRecordBytes;
      out.push_back({load<BandKey>(record), {part, load<uint32_t>(record + 16)}});
    }
    at += count;
  }
}

void find_pairs(std::span<const BandFile> parts, int64_t band, KeyRange range, const BandRule& rule,
                const std::function<void(DocumentPair)>& take) {
  const int shift = 64 - std::countr_zero(range.count);
  const uint64_t low = range.count == 1 ? 0 : range.index << shift;
  const uint64_t high = range.count == 1 ? UINT64_MAX : low + ((uint64_t{1} << shift) - 1);
  std::vector<BandFile::Record> records;
  for (size_t part = 0; part < parts.size(); ++part)
    parts[part].append(band, low, high, static_cast<uint32_t>(part), records);
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return std::tie(a.key, a.document) < std::tie(b.key, b.document); });
  const auto pair = [](DocumentId a, DocumentId b) { return a < b ? DocumentPair{a, b} : DocumentPair{b, a}; };
  std::vector<size_t> distinct;  // the first record of each key
  for (size_t begin = 0, end = 0; begin < records.size(); begin = end) {
    while (end < records.size() && same_prefix(records[begin].key, records[end].key, rule.prefix_bits)) ++end;
    // Documents of equal keys are pairs with their first only, so that many copies make few pairs.
    distinct.clear();
    for (size_t i = begin; i < end; ++i) {
      if (i == begin || records[i].key != records[distinct.back()].key)
        distinct.push_back(i);
      else
        take(pair(records[distinct.back()].document, records[i].document));
    }
    for (size_t i = 0; i < distinct.size(); ++i) {
      const size_t last = std::min(distinct.size(), i + 1 + static_cast<size_t>(rule.longest_run));
      for (size_t j = i + 1; j < last; ++j)
        if (hamming_distance(records[distinct[i]].key, records[distinct[j]].key) <= rule.distance)
          take(pair(records[distinct[i]].document, records[distinct[j]].document));
    }
  }
}

uint64_t ranges_for(std::span<const BandFile> parts, int64_t bytes) {
  int64_t keys = 0;
  for (const BandFile& part : parts) keys += part.keys();
  // Vectors double, so a search holds up to twice the records, and ranges of hashes differ by less than this again.
  const int64_t held = 3 * keys * static_cast<int64_t>(sizeof(BandFile::Record));
  return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (held + bytes - 1) / bytes)));
}

}  // namespace tokamak
