#include "data/stores/megatron.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/log.h"
#include "data/document_search.h"

namespace tokamak {

namespace {

constexpr const char* kConvertHint =
    "`tokamak data convert` reads such files, sequence by sequence, and writes a data set that training can read";
constexpr int64_t kEntriesAtOnce = 4096;
constexpr int64_t kPlaces = 16;  // of an index, looked at when it is opened

template <class T>
T read_entry(const InputFile& file, int64_t array, int64_t entry) {
  T value;
  read_values(file, array + static_cast<int64_t>(sizeof(T)) * entry, std::span(&value, 1));
  return value;
}

// One array of an index, read in order.
template <class T>
class EntryStream {
 public:
  EntryStream(const InputFile& file, int64_t array, int64_t entries) : file_(file), at_(array), left_(entries) {}

  T next() {
    if (used_ == piece_.size()) {
      TOKAMAK_CHECK(left_ > 0, file_.path());
      piece_.resize(std::min(kEntriesAtOnce, left_));
      read_values(file_, at_, std::span(piece_));
      at_ += std::ssize(piece_) * static_cast<int64_t>(sizeof(T));
      left_ -= std::ssize(piece_);
      used_ = 0;
    }
    return piece_[used_++];
  }

 private:
  const InputFile& file_;
  int64_t at_;
  int64_t left_;
  std::vector<T> piece_;
  size_t used_ = 0;
};

[[noreturn]] void refuse_pointer(const std::string& index, int64_t sequence, int64_t pointer, const std::string& what) {
  fail(Kind::kData,
       str("sequence ", sequence, " of ", index, " begins at byte ", pointer, "; ", what,
           pointer < 0 ? " (the pointers overflowed 32 bits)" : ""),
       kConvertHint);
}

// The byte at which sequence `sequence` begins, where the ones before it end at byte `expected`. Old writers computed
// pointers in 32 bits, so that `pointer` may be `expected` modulo 2^32.
int64_t resolve_pointer(const std::string& index, int64_t sequence, int64_t pointer, int64_t expected,
                        SequenceOrder order) {
  if (pointer == expected) return expected;
  if (order == SequenceOrder::kContiguous) {
    refuse_pointer(index, sequence, pointer, str("the ones before it end at byte ", expected));
  }
  return pointer == static_cast<int32_t>(expected) ? expected : pointer;
}

// Error unless `length` tokens from byte `begin` on lie in a .bin of `bytes` bytes, on whole tokens. Returns their end.
int64_t end_of_sequence(const std::string& index, int64_t sequence, int64_t begin, int32_t length, int64_t width,
                        int64_t bytes) {
  const int64_t end = length < 0 || begin < 0 || begin > bytes ? -1 : begin + length * width;
  if (end >= 0 && end <= bytes && begin % width == 0) return end;
  fail(Kind::kData,
       str("sequence ", sequence, " of ", index, " has ", length, " tokens of ", width, " bytes from byte ", begin,
           " on; the .bin has ", bytes, " bytes"),
       "the copy is incomplete, or .bin and .idx do not belong to each other");
}

}  // namespace

MegatronStore::Opened MegatronStore::read_header(const std::string& prefix, SequenceOrder order, FilePool& pool) {
  const std::string index = prefix + ".idx";
  const FilePool::Lease idx_lease = pool.open(index);
  const FilePool::Lease bin_lease = pool.open(prefix + ".bin");
  const InputFile& idx = idx_lease.file();
  const int64_t bytes = bin_lease.file().size();
  std::array<std::byte, kIndexHeaderBytes> head{};
  const auto view = std::span(head).first(std::min(kIndexHeaderBytes, idx.size()));
  idx.read_at(0, view);
  const IndexHeader header = parse_index_header(view, idx.size(), index);
  const int64_t S = header.sequences;
  const int64_t D = header.document_entries;
  if (idx.size() != header.file_bytes()) {
    fail(Kind::kData, str(index, " has a mode for each of its ", S, " sequences: it is multimodal data"),
         "only text can be trained on");
  }
  const int64_t first = D > 0 ? read_entry<int64_t>(idx, header.documents_at(), 0) : -1;
  const int64_t last = D > 0 ? read_entry<int64_t>(idx, header.documents_at(), D - 1) : -1;
  if (first != 0 || last != S) {
    fail(Kind::kData, str(index, ": its ", D, " document entries begin with ", first, " and end with ", last,
                          "; expected 0 and its number of sequences, ", S));
  }
  const int64_t width = element_bytes(header.type);
  int64_t end = 0;
  if (S > 0 && order == SequenceOrder::kContiguous) {
    const auto pointer = read_entry<int64_t>(idx, header.pointers_at(), S - 1);
    resolve_pointer(index, 0, read_entry<int64_t>(idx, header.pointers_at(), 0), 0, order);
    if (pointer < 0) refuse_pointer(index, S - 1, pointer, str("the .bin has ", bytes, " bytes"));
    end = end_of_sequence(index, S - 1, pointer, read_entry<int32_t>(idx, header.lengths_at(), S - 1), width, bytes);
    if (end != bytes) {
      log::warning(prefix, ".bin has ", bytes, " bytes, of which the last ", bytes - end,
                   " belong to no sequence and are not read");
    }
  }
  if (order == SequenceOrder::kAny) end = bytes;
  Opened opened{header, {}, {header.type, 0, end / width}};
  opened.info.name = std::filesystem::path(prefix).filename().string();
  opened.info.tokens = end / width;
  opened.info.documents = D - 1;
  opened.info.bytes = bytes;
  opened.info.index_bytes = idx.size();
  opened.info.hash = sampled_identity(str("megatron ", element_name(header.type), " ", end), bin_lease.file());
  opened.info.index_hash = sampled_identity(str("megatron ", S, " ", D), idx);
  return opened;
}

MegatronStore::MegatronStore(const std::string& prefix, SequenceOrder order, FilePool& pool)
    : MegatronStore(prefix, read_header(prefix, order, pool), order, pool) {}

MegatronStore::MegatronStore(const std::string& prefix, Opened opened, SequenceOrder order, FilePool& pool)
    : TokenFile(prefix + ".bin", std::move(opened.info), opened.layout, pool),
      index_path_(prefix + ".idx"),
      header_(opened.header),
      order_(order) {
  if (order_ == SequenceOrder::kContiguous && header_.sequences > 0) check_places();
}

// Pointers ascend from place to place. Those that overflowed 32 bits do not, wherever the file is larger.
void MegatronStore::check_places() const {
  const FilePool::Lease lease = pool().open(index_path_);
  int64_t last = 0;
  for (int64_t i = 0; i < kPlaces; ++i) {
    const int64_t sequence = header_.sequences / kPlaces * i + header_.sequences % kPlaces * i / kPlaces;
    std::array<int64_t, 2> positions;
    read_positions(lease.file(), sequence, positions);
    const int64_t width = element_bytes(layout().type);
    if (positions[0] < last) {
      refuse_pointer(index_path_, sequence, positions[0] * width, str("one before it begins at byte ", last * width));
    }
    last = positions[0];
  }
}

// The positions of sequences, in tokens. Entry S is the end of the last one. Checks that pointers and lengths of those
// read fit each other.
void MegatronStore::read_positions(const InputFile& idx, int64_t sequence, std::span<int64_t> out) const {
  const int64_t width = element_bytes(layout().type);
  const int64_t count = std::min(std::ssize(out), header_.sequences - sequence);
  std::array<int32_t, kStartsAtOnce> lengths;
  const auto pointers = out.first(count);
  if (count > 0) {
    read_values(idx, header_.pointers_at() + 8 * sequence, pointers);
    read_values(idx, header_.lengths_at() + 4 * sequence, std::span(lengths).first(count));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = pointers[i];
    if (begin < 0) refuse_pointer(index_path_, sequence + i, begin, str("the .bin has ", info().bytes, " bytes"));
    const int64_t end = end_of_sequence(index_path_, sequence + i, begin, lengths[i], width, info().bytes);
    if (i + 1 < count) resolve_pointer(index_path_, sequence + i + 1, pointers[i + 1], end, order_);
  }
  for (int64_t& pointer : pointers) pointer /= width;
  if (count < std::ssize(out)) out[count] = tokens();
}

void MegatronStore::read_starts(int64_t document, std::span<int64_t> out) const {
  const FilePool::Lease lease = pool().open(index_path_);
  const InputFile& idx = lease.file();
  read_values(idx, header_.documents_at() + 8 * document, out);
  int64_t last = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < last || out[i] > header_.sequences) {
      fail(Kind::kData, str("document ", document + static_cast<int64_t>(i), " of ", index_path_,
                            " begins at sequence ", out[i], "; expected ", last, " to ", header_.sequences));
    }
    last = out[i];
  }
  std::array<int64_t, kStartsAtOnce> positions;
  const int64_t begin = out.front();
  const int64_t count = out.back() - begin + 1;
  if (count <= kStartsAtOnce) {  // the usual index: as many sequences as documents
    read_positions(idx, begin, std::span(positions).first(count));
    for (int64_t& start : out) start = positions[start - begin];
  } else {
    for (int64_t& start : out) {
      read_positions(idx, start, std::span(positions).first(1));
      start = positions[0];
    }
  }
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i] >= out[i - 1]) continue;
    fail(Kind::kData,
         str("document ", document + static_cast<int64_t>(i), " of ", index_path_, " begins at token ", out[i],
             ", and the one before it at ", out[i - 1]),
         kConvertHint);
  }
}

void MegatronStore::document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const {
  const auto read = [&](int64_t document, std::span<int64_t> starts) { read_starts(document, starts); };
  append_document_starts(info().documents, first, count, base, read, out);
}

void MegatronStore::sequence_lengths(int64_t first, std::span<int32_t> out) const {
  const FilePool::Lease lease = pool().open(index_path_);
  read_values(lease.file(), header_.lengths_at() + 4 * first, out);
  const auto bad = std::find_if(out.begin(), out.end(), [](int32_t length) { return length < 0; });
  if (bad == out.end()) return;
  fail(Kind::kData, str("sequence ", first + (bad - out.begin()), " of ", index_path_, " has length ", *bad));
}

void MegatronStore::for_each_part(const std::function<void(const DocumentPart&)>& visit) const {
  const FilePool::Lease lease = pool().open(index_path_);
  const InputFile& idx = lease.file();
  const int64_t width = element_bytes(layout().type);
  EntryStream<int32_t> lengths(idx, header_.lengths_at(), header_.sequences);
  EntryStream<int64_t> pointers(idx, header_.pointers_at(), header_.sequences);
  EntryStream<int64_t> firsts(idx, header_.documents_at(), header_.document_entries);
  int64_t sequence = firsts.next();
  int64_t end = 0;
  for (int64_t document = 0; document < info().documents; ++document) {
    const int64_t next = firsts.next();
    if (next < sequence || next > header_.sequences) {
      fail(Kind::kData, str("document ", document, " of ", index_path_, " has sequences ", sequence, " to ", next,
                            " of ", header_.sequences));
    }
    if (next == sequence) visit({end / width, 0});
    for (; sequence < next; ++sequence) {
      const int64_t begin = resolve_pointer(index_path_, sequence, pointers.next(), end, order_);
      const int32_t length = lengths.next();
      end = end_of_sequence(index_path_, sequence, begin, length, width, info().bytes);
      visit({begin / width, length, sequence + 1 == next});
    }
  }
}

}  // namespace tokamak
