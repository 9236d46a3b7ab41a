// Text to ids in chunks of 256 pretokens. The first pass makes a record of each: its key, which is the pretoken itself
// up to 15 bytes, and its hash; it prefetches the cache's line. The second pass looks the keys up and writes the ids.
#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/byte_merge.h"
#include "tokenizer/bpe/long_cache.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/short_cache.h"
#include "tokenizer/bpe/tables.h"

namespace tokamak {

namespace {

constexpr size_t kChunk = 256;                                   // pretokens
constexpr size_t kMostIds = PretokenKey::kLongest * kChunk + 4;  // of the short pretokens of a chunk

struct Record {
  PretokenKey key;  // of a long pretoken kLongMark, which is no key
  uint64_t hash;
  uint32_t begin, length;
};

constexpr PretokenKey kLongMark = {0, uint64_t{0xFF} << 56};

// Bytes of a key that belong to a pretoken of a length, and what its upper byte becomes.
struct KeyMask {
  uint64_t low, high, tag, unused;
};

constexpr std::array<KeyMask, 17> key_masks() {
  std::array<KeyMask, 17> masks{};
  for (size_t length = 0; length <= PretokenKey::kLongest; ++length) {
    const auto bytes = [](size_t count) { return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * count) - 1; };
    masks[length] = {bytes(length), length <= 8 ? 0 : bytes(length - 8), uint64_t{length} << 56, 0};
  }
  masks[16] = {0, 0, kLongMark.high, 0};
  return masks;
}

constexpr std::array<KeyMask, 17> kKeyMasks = key_masks();

// Whether a byte of `text` may begin a character of three or four bytes. Other scripts have spaces between words.
bool is_wide(std::string_view text) {
  bool wide = false;
  for (const char byte : text) wide |= static_cast<uint8_t>(byte) >= 0xE0;
  return wide;
}

// Distinguishes a part of a pretoken from a pretoken, whose whole piece may be none that merging yields.
constexpr uint64_t kPartTag = uint64_t{0x80} << 56;

}  // namespace

struct ByteBpeEncoder::State {
  State(const ByteBpeTables& compiled, const ByteBpeCaches& caches)
      : tables(compiled),
        merger(compiled.pairs, compiled.byte_ids),
        short_cache(caches.short_entries),
        long_cache(caches.long_bytes) {}

  void encode_chunk(std::string_view text, size_t at, std::span<const uint32_t> ends);
  void make_records(std::string_view text, size_t at, std::span<const uint32_t> ends);
  void encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash);
  void encode_long(std::string_view pretoken, uint64_t hash);
  void merge_parts(std::string_view text);
  void encode_part(std::string_view part, PretokenKey key, uint64_t hash);
  void append(std::span<const uint32_t> found);
  void flush();

  const ByteBpeTables& tables;
  ByteMerger merger;
  ShortCache short_cache;
  LongCache long_cache;
  std::array<Record, kChunk> records;
  std::array<uint32_t, kMostIds> buffer;  // ids of this chunk
  size_t buffered = 0;
  std::vector<int32_t>* output = nullptr;
};

ByteBpeEncoder::ByteBpeEncoder(const ByteBpe& bpe, const ByteBpeCaches& caches)
    : state_(std::make_unique<State>(bpe.tables(), caches)) {}

ByteBpeEncoder::~ByteBpeEncoder() = default;

void ByteBpeEncoder::encode(std::string_view text, const Scanner& scanner, std::vector<int32_t>& ids) {
  std::array<uint32_t, kChunk> ends;
  state_->output = &ids;
  for (size_t at = 0;;) {
    const size_t count = scanner.scan(text, at, ends);
    if (count == 0) break;
    state_->encode_chunk(text, at, std::span(ends).first(count));
    at = ends[count - 1];
  }
}

void ByteBpeEncoder::encode_pretoken(std::string_view pretoken, std::vector<int32_t>& ids) {
  if (pretoken.empty()) return;
  state_->output = &ids;
  const auto end = static_cast<uint32_t>(pretoken.size());
  state_->encode_chunk(pretoken, 0, {&end, 1});
}

void ByteBpeEncoder::State::encode_chunk(std::string_view text, size_t at, std::span<const uint32_t> ends) {
  make_records(text, at, ends);
  buffered = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Record& record = records[i];
    const ShortCache::Value value = short_cache.find_first(record.key, record.hash);
    const uint32_t count = value.count();
    if (count - 1 < ShortCache::kInline) [[likely]] {
      const uint64_t first_two = value.low & ~(uint64_t{0xFF} << ShortCache::kCountShift);
      std::memcpy(buffer.data() + buffered, &first_two, sizeof first_two);
      std::memcpy(buffer.data() + buffered + 2, &value.high, sizeof value.high);
      buffered += count;
    } else {
      const std::string_view pretoken = text.substr(record.begin, record.length);
      record.length <= PretokenKey::kLongest ? encode_short(pretoken, record.key, record.hash)
                                             : encode_long(pretoken, record.hash);
    }
  }
  flush();
}

// Sixteen bytes are read for a key, so the last pretokens of the text are copied.
void ByteBpeEncoder::State::make_records(std::string_view text, size_t at, std::span<const uint32_t> ends) {
  std::array<uint16_t, kChunk> long_ones;
  size_t long_count = 0;
  const size_t last_load = text.size() < 16 ? 0 : text.size() - 16 + 1;
  size_t i = 0;
  for (; i < ends.size() && at < last_load; ++i) {
    const uint32_t length = ends[i] - static_cast<uint32_t>(at);
    const KeyMask& mask = kKeyMasks[std::min<uint32_t>(length, 16)];
    const PretokenKey key = {load_u64(text.data() + at) & mask.low,
                             (load_u64(text.data() + at + 8) & mask.high) | mask.tag};
    const uint64_t hash = hash_of(key);
    short_cache.prefetch(hash);
    records[i] = {key, hash, static_cast<uint32_t>(at), length};
    long_ones[long_count] = static_cast<uint16_t>(i);
    long_count += length > PretokenKey::kLongest ? 1 : 0;
    at = ends[i];
  }
  for (; i < ends.size(); ++i) {
    const std::string_view pretoken = text.substr(at, ends[i] - at);
    const PretokenKey key = key_of(pretoken);  // shorter than 16 bytes
    records[i] = {key, hash_of(key), static_cast<uint32_t>(at), static_cast<uint32_t>(pretoken.size())};
    at = ends[i];
  }
  for (size_t k = 0; k < long_count; ++k) {
    Record& record = records[long_ones[k]];
    record.hash = hash_long(text.substr(record.begin, record.length));
    long_cache.prefetch(record.hash);
  }
}

void ByteBpeEncoder::State::encode_short(std::string_view pretoken, PretokenKey key, uint64_t hash) {
  const ShortCache::Value value = short_cache.find(key, hash);
  if (value.count() == ShortCache::kSpilled) return append(short_cache.spilled(value));
  uint32_t* ids = buffer.data() + buffered;
  size_t count = value.count();
  if (count > 0) {
    std::memcpy(ids, &value, sizeof value);
    ids[0] &= (uint32_t{1} << ShortCache::kCountShift) - 1;
  } else {
    const PieceTable::Piece piece = tables.pieces.find(pretoken, hash);
    if (piece.id >= 0) {
      ids[0] = static_cast<uint32_t>(piece.id);
      count = 1;
    } else {
      count = merger.merge_short(pretoken, ids);
    }
    short_cache.insert(key, hash, {ids, count});
  }
  buffered += count;
}

void ByteBpeEncoder::State::encode_long(std::string_view pretoken, uint64_t hash) {
  flush();
  const std::span<const uint32_t> found = long_cache.find(pretoken, hash);
  if (!found.empty()) {
    output->insert(output->end(), found.begin(), found.end());
    return;
  }
  const size_t first = output->size();
  const PieceTable::Piece piece = tables.pieces.find(pretoken, hash);
  if (piece.id >= 0) {
    output->push_back(piece.id);
  } else if (is_wide(pretoken)) {
    merge_parts(pretoken);
    flush();
  } else {
    merger.merge(pretoken, *output);
  }
  if (pretoken.size() > LongCache::kLongest) return;
  long_cache.insert(pretoken, hash,
                    {reinterpret_cast<const uint32_t*>(output->data()) + first, output->size() - first});
}

// Cuts `text` and encodes its parts, which are looked up as pretokens are.
void ByteBpeEncoder::State::merge_parts(std::string_view text) {
  struct Part {
    PretokenKey key;
    uint64_t hash;
    std::string_view text;
  };
  std::array<Part, 16> parts;
  while (!text.empty()) {
    size_t count = 0;
    for (; count < parts.size() && !text.empty(); ++count) {
      const std::string_view part = text.substr(0, tables.cuts.first_part(text));
      text.remove_prefix(part.size());
      parts[count].text = part;
      if (part.size() > PretokenKey::kLongest) continue;
      PretokenKey key = key_of(part);
      if (tables.whole_pieces) key.high |= kPartTag;
      parts[count].key = key;
      parts[count].hash = hash_of(key);
      short_cache.prefetch(parts[count].hash);
    }
    for (size_t i = 0; i < count; ++i) {
      if (buffered + PretokenKey::kLongest + 4 > buffer.size()) flush();
      if (parts[i].text.size() > PretokenKey::kLongest) {
        flush();
        merger.merge(parts[i].text, *output);
      } else {
        encode_part(parts[i].text, parts[i].key, parts[i].hash);
      }
    }
  }
}

void ByteBpeEncoder::State::encode_part(std::string_view part, PretokenKey key, uint64_t hash) {
  const ShortCache::Value value = short_cache.find(key, hash);
  uint32_t* ids = buffer.data() + buffered;
  size_t count = value.count();
  if (count == ShortCache::kSpilled) return append(short_cache.spilled(value));
  if (count > 0) {
    std::memcpy(ids, &value, sizeof value);
    ids[0] &= (uint32_t{1} << ShortCache::kCountShift) - 1;
  } else {
    count = merger.merge_short(part, ids);
    short_cache.insert(key, hash, {ids, count});
  }
  buffered += count;
}

void ByteBpeEncoder::State::append(std::span<const uint32_t> found) {
  std::copy(found.begin(), found.end(), buffer.data() + buffered);
  buffered += found.size();
}

void ByteBpeEncoder::State::flush() {
  output->insert(output->end(), buffer.data(), buffer.data() + buffered);
  buffered = 0;
}

}  // namespace tokamak
