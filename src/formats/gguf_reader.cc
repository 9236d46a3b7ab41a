// Reads GGUF strictly: every value is checked against the file's actual bytes before use.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "base/printable.h"
#include "formats/gguf.h"

namespace tokamak {

namespace {

constexpr size_t kLongestKey = 65535;
constexpr uint32_t kMostDimensions = 4;
constexpr int64_t kFirstRead = int64_t{1} << 20;
constexpr int64_t kLongestHeader = int64_t{1} << 30;

// Not an error for the user yet: the header may continue beyond the bytes read so far.
struct CutShort {};

class Cursor {
 public:
  Cursor(std::string_view text, const std::string& path, Kind kind) : text_(text), path_(path), kind_(kind) {}

  [[noreturn]] void refuse(const std::string& what) const { fail(kind_, str(path_, ": ", what)); }
  size_t at() const { return at_; }
  size_t left() const { return text_.size() - at_; }

  std::string_view take(uint64_t bytes) {
    if (bytes > left()) throw CutShort();
    const std::string_view taken = text_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string text(size_t longest, const char* what) {
    const auto length = number<uint64_t>();
    if (length > longest) refuse(str("a ", what, " of ", length, " bytes; at most ", longest, " are allowed"));
    return std::string(take(length));
  }

  template <class T>
  T value() {
    if constexpr (std::is_same_v<T, std::string>) {
      return text(SIZE_MAX / 2, "text");
    } else if constexpr (std::is_same_v<T, bool>) {
      const auto byte = number<uint8_t>();
      if (byte > 1) refuse(str("the truth value ", int{byte}));
      return byte == 1;
    } else {
      return number<T>();
    }
  }

 private:
  std::string_view text_;
  const std::string& path_;
  Kind kind_;
  size_t at_ = 0;
};

template <class T>
GgufArray read_items(Cursor& cursor, uint64_t count) {
  constexpr size_t kSmallest = std::is_same_v<T, std::string> ? sizeof(uint64_t)
                               : std::is_same_v<T, bool>      ? 1
                                                              : sizeof(T);
  if (count > cursor.left() / kSmallest) throw CutShort();
  std::vector<T> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) items.push_back(cursor.value<T>());
  return items;
}

GgufArray read_array(Cursor& cursor) {
  const auto type = cursor.number<uint32_t>();
  const auto count = cursor.number<uint64_t>();
  switch (type) {
    case 0:
      return read_items<uint8_t>(cursor, count);
    case 1:
      return read_items<int8_t>(cursor, count);
    case 2:
      return read_items<uint16_t>(cursor, count);
    case 3:
      return read_items<int16_t>(cursor, count);
    case 4:
      return read_items<uint32_t>(cursor, count);
    case 5:
      return read_items<int32_t>(cursor, count);
    case 6:
      return read_items<float>(cursor, count);
    case 7:
      return read_items<bool>(cursor, count);
    case 8:
      return read_items<std::string>(cursor, count);
    case 10:
      return read_items<uint64_t>(cursor, count);
    case 11:
      return read_items<int64_t>(cursor, count);
    case 12:
      return read_items<double>(cursor, count);
    default:
      cursor.refuse(str("an array of values of type ", type, ", which is not supported"));
  }
}

GgufValue read_value(Cursor& cursor) {
  const auto type = cursor.number<uint32_t>();
  switch (type) {
    case 0:
      return cursor.value<uint8_t>();
    case 1:
      return cursor.value<int8_t>();
    case 2:
      return cursor.value<uint16_t>();
    case 3:
      return cursor.value<int16_t>();
    case 4:
      return cursor.value<uint32_t>();
    case 5:
      return cursor.value<int32_t>();
    case 6:
      return cursor.value<float>();
    case 7:
      return cursor.value<bool>();
    case 8:
      return cursor.value<std::string>();
    case 9:
      return read_array(cursor);
    case 10:
      return cursor.value<uint64_t>();
    case 11:
      return cursor.value<int64_t>();
    case 12:
      return cursor.value<double>();
    default:
      cursor.refuse(str("a value of type ", type, ", which GGUF does not have"));
  }
}

GgufTensor read_tensor(Cursor& cursor) {
  GgufTensor tensor;
  tensor.name = cursor.text(kGgufLongestTensorName, "tensor's name");
  const auto refuse = [&](const std::string& what) {
    cursor.refuse(str("tensor '", printable(tensor.name), "': ", what));
  };
  const auto dimensions = cursor.number<uint32_t>();
  if (dimensions == 0 || dimensions > kMostDimensions) refuse(str(dimensions, " dimensions; 1 to 4 are allowed"));
  int64_t bytes = 4;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = cursor.number<uint64_t>();
    if (extent == 0 || extent > INT64_MAX) refuse(str("the extent ", extent));
    if (__builtin_mul_overflow(bytes, static_cast<int64_t>(extent), &bytes)) refuse("its size overflows");
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
  }
  const auto type = cursor.number<uint32_t>();
  if (type != 0 && type != 1 && type != 30)
    refuse(str("type ", type, "; F32 (0), F16 (1) and BF16 (30) are supported"));
  tensor.type = static_cast<GgufType>(type);
  const auto offset = cursor.number<uint64_t>();
  if (offset > INT64_MAX) refuse(str("the offset ", offset));
  tensor.offset = static_cast<int64_t>(offset);
  return tensor;
}

int64_t read_alignment(const GgufKeys& keys, const Cursor& cursor) {
  for (const auto& [name, value] : keys) {
    if (name != "general.alignment") continue;
    const auto* alignment = std::get_if<uint32_t>(&value);
    if (alignment == nullptr || !std::has_single_bit(*alignment) || *alignment < 8 || *alignment > (1U << 20)) {
      cursor.refuse("'general.alignment' is no u32 that is a power of two from 8 to 2^20");
    }
    return *alignment;
  }
  return kGgufAlignment;
}

// Checks that the padded tensors fill the data up to the end of the file.
void check_places(const GgufHeader& header, int64_t alignment, int64_t file_bytes, const Cursor& cursor) {
  int64_t end = 0;
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.offset != end) {
      cursor.refuse(
          str("tensor '", printable(tensor.name), "' lies at byte ", tensor.offset, " of the data, expected ", end));
    }
    const int64_t room = file_bytes - header.data_begin - end;
    const int64_t bytes = tensor.bytes();
    const int64_t padding = (alignment - bytes % alignment) % alignment;
    if (bytes > room || padding > room - bytes) {
      cursor.refuse(
          str("tensor '", printable(tensor.name), "' of ", bytes, " bytes at ", end, " goes beyond the file's end"));
    }
    end += bytes + padding;
  }
  if (header.data_begin + end != file_bytes) {
    cursor.refuse(str("its tensors end at byte ", header.data_begin + end, ", the file has ", file_bytes));
  }
}

GgufHeader parse(Cursor& cursor, int64_t file_bytes) {
  if (cursor.take(4) != "GGUF") cursor.refuse("it does not begin with 'GGUF'; this is no GGUF file");
  const auto version = cursor.number<uint32_t>();
  if (version != 3) cursor.refuse(str("version ", version, " of GGUF; only 3 is supported"));
  const auto tensors = cursor.number<uint64_t>();
  const auto keys = cursor.number<uint64_t>();
  GgufHeader header;
  std::set<std::string> names;
  for (uint64_t i = 0; i < keys; ++i) {
    std::string name = cursor.text(kLongestKey, "key");
    if (name.empty()) cursor.refuse(str("key ", i, " has no name"));
    if (!names.insert(name).second) cursor.refuse(str("the key '", printable(name), "' comes twice"));
    header.keys.emplace_back(name, read_value(cursor));
  }
  names.clear();
  for (uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(read_tensor(cursor));
    const std::string& name = header.tensors.back().name;
    if (!names.insert(name).second) cursor.refuse(str("tensor '", printable(name), "' comes twice"));
  }
  const int64_t alignment = read_alignment(header.keys, cursor);
  const auto end = static_cast<int64_t>(cursor.at());
  header.data_begin = (end + alignment - 1) / alignment * alignment;
  const std::string_view padding = cursor.take(static_cast<uint64_t>(header.data_begin - end));
  if (padding.find_first_not_of('\0') != std::string_view::npos) cursor.refuse("what pads its header is not zero");
  check_places(header, alignment, file_bytes, cursor);
  return header;
}

// nullopt if the header continues beyond `text`.
std::optional<GgufHeader> try_parse(std::string_view text, int64_t file_bytes, const std::string& path, Kind kind) {
  Cursor cursor(text, path, kind);
  try {
    return parse(cursor, file_bytes);
  } catch (const CutShort&) {
    return std::nullopt;
  }
}

GgufHeader read_gguf_header(const InputFile& file, Kind kind) {
  std::string text;
  for (int64_t bytes = kFirstRead;; bytes *= 4) {
    const int64_t length = std::min(std::min(bytes, kLongestHeader), file.size());
    text.resize(static_cast<size_t>(length));
    file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    if (auto header = try_parse(text, file.size(), file.path(), kind)) return *std::move(header);
    if (length == file.size() || length == kLongestHeader) fail(kind, str(file.path(), " ends within its header"));
  }
}

}  // namespace

GgufHeader parse_gguf_header(std::string_view text, int64_t file_bytes, const std::string& path, Kind kind) {
  auto header = try_parse(text, file_bytes, path, kind);
  if (!header) fail(kind, str(path, " ends within its header"));
  return *std::move(header);
}

GgufFile::GgufFile(const std::string& path, Kind kind) : file_(path, kind), header_(read_gguf_header(file_, kind)) {}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                  [&](const GgufTensor& tensor) { return tensor.name == name; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

void GgufFile::read_bytes(const GgufTensor& tensor, int64_t first, std::span<std::byte> out) const {
  TOKAMAK_CHECK(0 <= first && first <= tensor.bytes() && static_cast<int64_t>(out.size()) <= tensor.bytes() - first,
                out.size(), " bytes from ", first, " of ", tensor.name);
  file_.read_at(header_.data_begin + tensor.offset + first, out);
}

}  // namespace tokamak
