#include "formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/printable.h"
#include "formats/json.h"

namespace tokamak {

static_assert(std::endian::native == std::endian::little, "safetensors is read and written without swapping bytes");

namespace {

struct TypeBits {
  const char* name;
  int64_t bits;
};

// In the order of the reference writer, by ascending alignment.
constexpr std::array<TypeBits, 22> kTypes = {
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};

const TypeBits* find_type(const std::string& name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeBits& t) { return name == t.name; });
  return found == kTypes.end() ? nullptr : &*found;
}

// Bytes of a tensor of this shape; nullopt if they overflow or are not an integer.
std::optional<int64_t> bytes_of(const std::vector<int64_t>& shape, int64_t bits) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  if (__builtin_mul_overflow(product, bits, &product) || product % 8 != 0) return std::nullopt;
  return product / 8;
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += str(i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

SafetensorsHeader read_members(const JsonValue& json) {
  SafetensorsHeader header;
  for (const std::string& name : json.keys()) {
    const JsonValue member = json[name];
    if (name == "__metadata__") {
      for (const std::string& key : member.keys()) header.metadata[key] = member[key].text();
      continue;
    }
    SafetensorsEntry& tensor = header.tensors.emplace_back();
    tensor.name = name;
    tensor.dtype = member["dtype"].text();
    tensor.shape = member["shape"].counts();
    const std::vector<int64_t> offsets = member["data_offsets"].counts();
    if (offsets.size() != 2) member["data_offsets"].refuse("expected two whole numbers");
    if (member.keys().size() != 3) member.refuse("expected dtype, shape and data_offsets alone");
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
  }
  return header;
}

}  // namespace

int64_t SafetensorsEntry::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

void check_safetensors_length(uint64_t length, int64_t file_bytes, const std::string& path, Kind kind) {
  if (length > static_cast<uint64_t>(kSafetensorsLargestHeader)) {
    fail(kind, str(path, ": a header of ", length, " bytes is longer than safetensors allows (",
                   kSafetensorsLargestHeader, "); this is no safetensors file"));
  }
  if (kSafetensorsLengthBytes + static_cast<int64_t>(length) > file_bytes) {
    fail(kind, str(path, ": its header says ", length, " bytes, the whole file has ", file_bytes));
  }
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t file_bytes, const std::string& path,
                                           Kind kind) {
  const auto refuse = [&](const std::string& what) { fail(kind, str(path, ": ", what)); };
  if (text.empty() || text[0] != '{') refuse("its header does not begin with '{'; this is no safetensors file");
  SafetensorsHeader header = read_members(JsonDocument(text, {str(path, ": its header"), kind}).root());
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t end = 0;
  for (const SafetensorsEntry& tensor : header.tensors) {
    const std::string name = str("tensor '", printable(tensor.name), "'");
    const TypeBits* type = find_type(tensor.dtype);
    if (type == nullptr) refuse(str(name, " has the unknown dtype '", printable(tensor.dtype), "'"));
    if (tensor.begin != end || tensor.end < tensor.begin) {
      refuse(str(name, " lies at bytes [", tensor.begin, ", ", tensor.end, "), but the data before it ends at ", end));
    }
    const std::optional<int64_t> bytes = bytes_of(tensor.shape, type->bits);
    if (!bytes)
      refuse(str(name, ": shape ", printable(text_of(tensor.shape)), " of ", tensor.dtype, " has no size in bytes"));
    if (*bytes != tensor.bytes()) {
      refuse(str(name, ": shape ", printable(text_of(tensor.shape)), " of ", tensor.dtype, " takes ", *bytes,
                 " bytes, its offsets span ", tensor.bytes()));
    }
    end = tensor.end;
  }
  header.data_begin = kSafetensorsLengthBytes + std::ssize(text);
  // Compared as a difference: data_begin + end might overflow.
  if (end != file_bytes - header.data_begin) {
    refuse(str("its tensors end at byte ", end, " of ", file_bytes - header.data_begin, " bytes of data"));
  }
  return header;
}

std::string render_safetensors_header(std::vector<SafetensorsEntry>& tensors, const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    auto& entry = json["__metadata__"] = nlohmann::ordered_json::object();
    for (const auto& [key, value] : metadata) entry[key] = value;
  }
  std::set<std::string> names = {"__metadata__"};
  int64_t end = 0;
  for (SafetensorsEntry& tensor : tensors) {
    TOKAMAK_CHECK(names.insert(tensor.name).second, tensor.name, " twice");
    const TypeBits* type = find_type(tensor.dtype);
    TOKAMAK_CHECK(type != nullptr, tensor.name, ": ", tensor.dtype);
    const std::optional<int64_t> bytes = bytes_of(tensor.shape, type->bits);
    TOKAMAK_CHECK(bytes.has_value(), tensor.name, ": ", text_of(tensor.shape));
    TOKAMAK_CHECK(end % std::max(type->bits / 8, int64_t{1}) == 0, tensor.name, " would be misaligned at byte ", end);
    tensor.begin = end;
    tensor.end = end += *bytes;
    json[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  TOKAMAK_CHECK(std::ssize(text) <= kSafetensorsLargestHeader, text.size());
  const uint64_t length = text.size();
  std::string head(sizeof(length), '\0');
  std::memcpy(head.data(), &length, sizeof(length));
  return head + text;
}

void sort_as_reference(std::vector<SafetensorsEntry>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const TypeBits* type_a = find_type(a.dtype);
    const TypeBits* type_b = find_type(b.dtype);
    return type_a != type_b ? type_a > type_b : a.name < b.name;
  });
}

}  // namespace tokamak
