#include "monitor/tfevents.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace tokamak::tfevents {

namespace {

constexpr int64_t kStart = 1;        // SessionLog.SessionStatus
constexpr int64_t kString = 7;       // DataType
constexpr int64_t kTensorClass = 2;  // DataClass
constexpr int64_t kFloat = 1;        // DataType

template <class Unsigned>
void append_little_endian(std::string& out, Unsigned bits) {
  for (size_t i = 0; i < sizeof(Unsigned); ++i) out += static_cast<char>(bits >> (8 * i));
}

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);  // bits reflected
    table[byte] = crc;
  }
  return table;
}();

uint32_t masked_crc(std::string_view data) { return std::rotr(crc32c(data), 15) + 0xA282EAD8; }

// protobuf refuses a string that is not UTF-8.
std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    valid += c.code == kInvalidUtf8 ? kReplacementChar : text.substr(0, static_cast<size_t>(c.length));
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return valid;
}

// A protobuf message: fields, each after a key of number and wire type.
class Message {
 public:
  Message& whole(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, double value) {
    key(field, 1);
    append_little_endian(bytes_, std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, float value) {
    key(field, 5);
    append_little_endian(bytes_, std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }

  const std::string& encoded() const { return bytes_; }

 private:
  void key(int field, int type) { varint(static_cast<uint64_t>(field << 3 | type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message event(double wall_time, int64_t step) {
  Message message;
  message.number(1, wall_time);
  if (step != 0) message.whole(2, step);  // protobuf leaves out zeros
  return message;
}

// A Summary.Value of this tag, to which the caller adds the value.
Message tagged(std::string_view tag) { return Message().bytes(1, valid_utf8(tag)); }

// The shape of one element.
Message one_element() { return Message().message(2, Message().whole(1, 1)); }

// google.protobuf.Value
Message value_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && std::isfinite(number)) return Message().number(2, number);
  if (text == "true" || text == "false") return Message().whole(4, text == "true" ? 1 : 0);
  return Message().bytes(3, valid_utf8(text));
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string record(std::string_view data) {
  std::string out;
  append_little_endian(out, static_cast<uint64_t>(data.size()));
  append_little_endian(out, masked_crc(out));
  out += data;
  append_little_endian(out, masked_crc(data));
  return out;
}

std::string file_version(double wall_time) { return record(event(wall_time, 0).bytes(3, "brain.Event:2").encoded()); }

std::string session_start(double wall_time, int64_t step) {
  return record(event(wall_time, step).message(7, Message().whole(1, kStart)).encoded());
}

void Summary::add_scalar(std::string_view tag, double value) {
  values_ += Message().message(1, tagged(tag).number(2, static_cast<float>(value))).encoded();
}

// Writes no sums of the values, because readers ignore them.
void Summary::add_histogram(std::string_view tag, int64_t first, const std::vector<int64_t>& counts) {
  std::string limits, packed;
  int64_t number = 0;
  auto limit = static_cast<double>(first);
  for (const int64_t count : counts) {
    append_little_endian(limits, std::bit_cast<uint64_t>(limit += 1));
    append_little_endian(packed, std::bit_cast<uint64_t>(static_cast<double>(count)));
    number += count;
  }
  const Message histogram = Message()
                                .number(1, static_cast<double>(first))
                                .number(2, limit)
                                .number(3, static_cast<double>(number))
                                .bytes(6, limits)
                                .bytes(7, packed);
  values_ += Message().message(1, tagged(tag).message(5, histogram)).encoded();
}

void Summary::add_text(std::string_view tag, std::string_view markdown) {
  const Message tensor = Message().whole(1, kString).message(2, one_element()).bytes(8, valid_utf8(markdown));
  const Message metadata = Message().message(1, Message().bytes(1, "text")).whole(4, kTensorClass);
  values_ += Message().message(1, tagged(tag).message(8, tensor).message(9, metadata)).encoded();
}

// HParamsPluginData with a SessionStartInfo. It is the plugin's metadata of a tensor that is 0.
void Summary::add_hparams(const std::vector<NamedText>& values, double begin) {
  Message session;
  for (const NamedText& one : values) {
    session.message(1, Message().bytes(1, valid_utf8(one.name)).message(2, value_of(one.text)));
  }
  session.number(5, begin);
  const Message plugin = Message().bytes(1, "hparams").bytes(2, Message().message(3, session).encoded());
  const Message tensor =
      Message().whole(1, kFloat).message(2, one_element()).bytes(5, std::string(sizeof(float), '\0'));
  const Message metadata = Message().message(1, plugin).whole(4, kTensorClass);
  values_ +=
      Message().message(1, tagged("_hparams_/session_start_info").message(8, tensor).message(9, metadata)).encoded();
}

std::string Summary::record(double wall_time, int64_t step) const {
  return tfevents::record(event(wall_time, step).bytes(5, values_).encoded());
}

}  // namespace tokamak::tfevents
